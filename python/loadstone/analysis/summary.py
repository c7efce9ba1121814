"""The result of a run: every line's totals, its CPU, its notes and its problems.

Knows how the parts of the analysis make one document. Knows no screen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from loadstone import exitcodes
from loadstone.analysis import against_data_sheet, commit, cpu, path, watched
from loadstone.analysis import document as shape
from loadstone.analysis.measurement import Measurement
from loadstone.analysis.pacing import Pacing, pacing
from loadstone.analysis.problems import Problem, problems
from loadstone.analysis.read_back import VerifiedBlocks, verified
from loadstone.analysis.tool_cost import ToolCost, tool
from loadstone.analysis.totals import OpTotals, Total, totals
from loadstone.messages import say
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.measurement import By, MeasuredLine
    from loadstone.bundle.hosts import HostPart
    from loadstone.bundle.read import Bundle
    from loadstone.verdict import Audited


@dataclass(frozen=True, slots=True)
class RunNote:
    """Something said about the run. `kind` as in the Workload's notes, or `engine`."""

    kind: str
    text: str
    where: str | None


def summarise(bundle: Bundle) -> Summary:
    """Read a bundle, whole or partial, and add it up."""
    return Summary(Measurement(bundle))


class Summary:
    """Totals by every grouping, computed when first asked for."""

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self.bundle = measurement.bundle
        self._totals: dict[By, list[Total]] = {}
        self._cpu_per_interval: dict[tuple[int, ...], tuple[Estimate | None, Estimate | None]] = {}

    def totals(self, by: By) -> list[Total]:
        """Return the lines of a grouping, in the Plan's order."""
        if by not in self._totals:
            lines = self.measurement.lines(by)
            cells = [line.cells for line in lines]
            # A run of one job has the same figures by job, target and stage.
            same = next(
                (known for known in self._totals.values() if [one.line.cells for one in known] == cells), None
            )
            self._totals[by] = (
                totals(self.measurement, by)
                if same is None
                else [replace(one, line=line) for one, line in zip(same, lines, strict=True)]
            )
        return self._totals[by]

    @property
    def total(self) -> Total:
        """Everything together."""
        return self.totals("all")[0]

    @property
    def has_total(self) -> bool:
        """Return whether the total tells something: several jobs, and all of them at the same time.

        Rates of jobs that ran one after the other have no sum anybody could see.
        """
        return len(self.totals("job")) > 1 and len(self.measurement.stages_of(self.total.line)) == 1

    @property
    def status(self) -> str:
        """The bundle's status."""
        return self.bundle.status

    @cached_property
    def by_host(self) -> dict[str, Summary]:
        """Each host of a run on several, added up for itself; one whose bundle did not come is not there."""
        record = self.bundle.hosts
        bundles = {
            part.name: self.bundle.of_host(part) for part in (record.hosts if record is not None else ())
        }
        return {name: summarise(bundle) for name, bundle in bundles.items() if bundle is not None}

    @cached_property
    def hosts(self) -> list[shape.ResultHost]:
        """Each host of a run on several, for the document."""
        return [self._host(part) for part in (self.bundle.hosts.hosts if self.bundle.hosts else ())]

    def _host(self, part: HostPart) -> shape.ResultHost:
        total = next((one for one in self.totals("host") if one.line.name == part.name), None)
        stats = _stats(None if total is None else total.data)
        own = self.by_host.get(part.name)
        return shape.ResultHost(
            name=part.name,
            status=part.status,
            error=part.error,
            ops=stats.operations,
            bytes=stats.bytes,
            errors=stats.errors,
            iops=stats.iops,
            iops_error=stats.iops_error,
            bandwidth_bytes_per_s=stats.bandwidth_bytes_per_s,
            latency=stats.latency_ns,
            cpu=None if own is None else own._cpu(own.total),
            start_skew_ns=part.start_skew_ns,
            clock_offset_ns=part.clock_offset_ns,
            clock_error_ns=part.clock_error_ns,
            agent_cpu_share=part.agent_cpu_share,
            bundle=part.bundle,
        )

    @cached_property
    def problems(self) -> list[Problem]:
        """What went wrong, one entry per kind."""
        # What of the samples cannot be read is known once they were.
        _ = self.measurement.samples
        return problems(self.bundle)

    @cached_property
    def pacing(self) -> list[Pacing]:
        """Rates asked for and achieved, one row per paced job and operation."""
        return pacing(self.measurement, self.totals("job"))

    @cached_property
    def spec(self) -> list[against_data_sheet.SpecRow]:
        """What was reached of the data sheet; empty without one."""
        return against_data_sheet.rows(self.measurement, self.totals("stage"))

    @cached_property
    def paths(self) -> list[path.Paths]:
        """The layers under the targets and what each did, phase by phase; none for a bundle that has none."""
        return path.paths(self.measurement)

    @cached_property
    def tool(self) -> ToolCost:
        """The tool's own cost."""
        return tool(self.measurement, self.totals("stage"))

    @cached_property
    def notes(self) -> list[RunNote]:
        """What was said before and during the run, each thing once."""
        run_notes = [_note(note) for note in self.bundle.notes]
        run_notes += [
            RunNote("engine", str(event.get("text")), self._place(event))
            for event in self.bundle.events
            if event.get("type") == "note"
        ]
        cost = self.bundle.event("monitor_cost") or {}
        failed: dict[str, str] = cost.get("failed", {})
        run_notes += [
            RunNote("info", say("analysis.notes.monitor", name=name, reason=why), None)
            for name, why in failed.items()
        ]
        run_notes += [RunNote("info", text, None) for text in watched.notes(self.bundle)]
        if spun_ns := cpu.spun_ns(self.measurement):
            run_notes.append(RunNote("info", say("analysis.notes.spun", spun_ns=spun_ns), None))
        if self.measurement.settled.text is not None:
            run_notes.append(RunNote("changed", self.measurement.settled.text, None))
        if self.measurement.stops.text is not None:
            run_notes.append(RunNote("changed", self.measurement.stops.text, None))
        if (unsealed := self.bundle.unsealed) is not None:
            run_notes.append(RunNote("info", unsealed, None))
        return list(dict.fromkeys(run_notes))

    @property
    def started(self) -> datetime | None:
        """Wall clock of the first I/O, `None` when it came to none."""
        start = self.bundle.event("start")
        return datetime.fromtimestamp(int(start["unix_ns"]) / 1e9, UTC) if start else None

    @property
    def duration_s(self) -> float:
        """Time from the first I/O to the end, stages and ramps included."""
        return self.measurement.ended_ns / 1e9

    @property
    def exit_code(self) -> int | None:
        """Return what the program ended with, or what follows from the status of an old bundle."""
        code = self.bundle.manifest.get("exit_code")
        if isinstance(code, int):
            return code
        went_wrong = any(problem.kind not in ("engine", "program", "bundle") for problem in self.problems)
        codes = {
            "complete": exitcodes.FAILED if went_wrong else exitcodes.DONE,
            "interrupted": exitcodes.INTERRUPTED,
            "failed": exitcodes.FAILED,
        }
        return codes.get(self.status)

    def cpu_per_interval(self, line: MeasuredLine) -> tuple[Estimate | None, Estimate | None]:
        """Return user and system time per I/O of the stages a line ran in, with their errors."""
        stages = tuple(self.measurement.stages_of(line))
        if stages not in self._cpu_per_interval:
            self._cpu_per_interval[stages] = cpu.per_interval(self.measurement, stages)
        return self._cpu_per_interval[stages]

    def cpu_of(self, total: Total) -> tuple[cpu.EngineCpu, bool] | None:
        """Return the CPU of the stages a line ran in, and whether others ran in them too."""
        stages = self.measurement.stages_of(total.line)
        engine_cpu = cpu.of_stages(self.measurement, stages)
        if engine_cpu is None:
            return None
        plan = self.measurement.plan
        beside = {
            index for index, stream in enumerate(plan.streams) if plan.workers[stream.worker].stage in stages
        }
        return engine_cpu, bool(beside - set(total.line.streams))

    def backends_of(self, total: Total) -> list[str]:
        """Return what really did the line's I/O, as told at the end, or as planned."""
        backends = {
            int(event["stream"]): str(event["backend"])
            for event in self.bundle.events
            if event.get("type") == "stream_end" and event.get("backend")
        }
        plan = self.measurement.plan
        names = [
            backends.get(i, plan.workers[plan.streams[i].worker].backend.type) for i in total.line.streams
        ]
        return list(dict.fromkeys(names))

    def document(self, audited: Audited | None = None) -> dict[str, Any]:
        """Return `result.json`, with the verdict when there is one; docs/result-json.md describes it."""
        return shape.dump(
            shape.ResultDocument(
                format=shape.FORMAT,
                loadstone_version=__version__,
                bundle=str(self.bundle.path.resolve()),
                status=cast("Literal['complete', 'interrupted', 'failed', 'partial']", self.status),
                verified=self.bundle.verified,
                exit_code=self.exit_code,
                started=self.started.isoformat() if self.started else None,
                duration_s=self.duration_s,
                total=shape.ResultLine(**self._line(self.total)),
                groups=[
                    shape.ResultGroup(**self._line(total), group=self.group_of(total))
                    for total in self.totals("group")
                ],
                jobs=[self._job(total) for total in self.totals("job")],
                targets=self._lines(self.totals("target")),
                hosts=self.hosts,
                by_stage=self._by_stage(),
                cpu=self._cpu(self.total),
                tool=self._tool(),
                notes=[shape.ResultNote(**asdict(note)) for note in self.notes],
                spec=[spec_line(row) for row in self.spec],
                watched=watched.document(self.measurement),
                errors=[shape.ResultError.model_validate(asdict(problem)) for problem in self.problems],
                verdict=audited.verdict if audited else None,
                phases=list(audited.phases) if audited else [],
            )
        )

    def _by_stage(self) -> list[shape.ResultStageLines]:
        stages = self.totals("stage")
        return [
            shape.ResultStageLines(
                stage=whole.line.key,
                jobs=[job.line.name for job in self.within(whole, "job")],
                total=shape.ResultLine(**self._line(whole)),
                targets=self._lines(self.within(whole, "target of stage")),
                hosts=self._lines(self.within(whole, "host of stage")) if self.hosts else [],
            )
            for whole in (stages if len(stages) > 1 else [])
        ]

    def within(self, whole: Total, by: By) -> list[Total]:
        """Return the lines of a grouping all of whose streams are also the line's."""
        streams = set(whole.line.streams)
        return [one for one in self.totals(by) if set(one.line.streams) <= streams]

    def _lines(self, found: Sequence[Total]) -> list[shape.ResultLine]:
        return [shape.ResultLine(**self._line(total)) for total in found]

    def _line(self, total: Total) -> dict[str, Any]:
        return {
            "name": total.line.name,
            "measured_s": total.measured_ns / 1e9,
            "cpu": self._cpu(total),
            "commit_ns": commit.mean_ns(self.measurement, total),
            **dict(_stats(total.data)),
            **{op: _stats(stats) for op, stats in total.ops.items()},
        }

    def _job(self, total: Total) -> shape.ResultJob:
        streams = [self.measurement.plan.streams[index] for index in total.line.streams]
        lines = self.measurement.lines("unit")
        apart = sum(unit.cells <= total.line.cells for unit in lines) > 1
        # Not even added up when a job is one unit: it would be the same numbers again.
        units = [unit for unit in self.totals("unit") if unit.line.cells <= total.line.cells] if apart else []
        return shape.ResultJob(
            **self._line(total),
            group=self.group_of(total),
            stages=self.measurement.stages_of(total.line),
            clones=len(streams),
            iodepth=list(dict.fromkeys(stream.iodepth for stream in streams)),
            backends=self.backends_of(total),
            pacing=[_pacing(row) for row in self.pacing if row.job_key == total.line.key],
            verified=_verified(verified(self.bundle, total.line.streams)),
            units=[shape.ResultLine(**self._line(unit)) for unit in units] or None,
        )

    def group_of(self, total: Total) -> int:
        """Return the reporting group of a job's or a group's line."""
        plan = self.measurement.plan
        return plan.units[plan.cells[min(total.line.cells)].unit].group

    def _tool(self) -> shape.ResultTool:
        cost = self.tool
        return shape.ResultTool(
            stages=[
                shape.ResultStage(stage=s.stage, ceiling_iops=s.ceiling_iops, iops=s.iops, share=s.share)
                for s in cost.stages
            ],
            share_of_ceiling=cost.nearest.share if cost.nearest else None,
            user_ns_per_io_null=cost.user_ns_per_io_null,
            system_ns_per_io_null=cost.system_ns_per_io_null,
            monitor_cpu_share=cost.monitor_cpu_share,
            monitors=cost.monitors,
            skipped=cost.skipped,
        )

    def _cpu(self, total: Total) -> shape.ResultCpu | None:
        line_cpu = self.cpu_of(total)
        if line_cpu is None:
            return None
        used, shared = line_cpu
        return shape.ResultCpu(
            user_ns_per_io=used.user_ns_per_io,
            system_ns_per_io=used.system_ns_per_io,
            user_ns=used.user_ns,
            system_ns=used.system_ns,
            shared=shared,
        )

    def _place(self, event: dict[str, Any]) -> str | None:
        at = event.get("target")
        targets: Sequence[Any] = self.measurement.plan.targets
        return str(targets[at].path) if isinstance(at, int) and at < len(targets) else None


def spec_line(row: against_data_sheet.SpecRow) -> shape.SpecLine:
    """Return a figure of the data sheet for the document."""
    return shape.SpecLine(
        name=row.name,
        op=row.op,
        quantity=row.quantity,
        kind=row.kind,
        measured=row.measured.value,
        measured_error=row.measured.error,
        specified=row.specified,
        share=row.share,
        share_error=row.share_error,
        source=row.source,
    )


def _verified(verified_blocks: VerifiedBlocks | None) -> shape.ResultVerified | None:
    if verified_blocks is None:
        return None
    return shape.ResultVerified(
        checked=verified_blocks.checked,
        damaged=verified_blocks.damaged,
        unverified=verified_blocks.unverified,
    )


def _pacing(row: Pacing) -> shape.ResultPacing:
    return shape.ResultPacing(
        op=row.op,
        unit=row.unit,
        process=row.process,
        asked_per_s=row.asked_per_s,
        achieved_per_s=row.achieved_per_s,
        held=row.held,
    )


def _stats(stats: OpTotals | None) -> shape.ResultStats:
    if stats is None:
        stats = OpTotals(0, 0, 0, 0, None, None, {})
    kinds = {kind: latency for kind, latency in stats.latencies.items() if latency.count}
    return shape.ResultStats(
        operations=stats.operations,
        bytes=stats.bytes,
        errors=stats.errors,
        shorts=stats.shorts,
        iops=_value(stats.iops),
        iops_error=stats.iops.error if stats.iops else None,
        bandwidth_bytes_per_s=_value(stats.bandwidth),
        bandwidth_error=stats.bandwidth.error if stats.bandwidth else None,
        latency_ns=kinds.get("lat"),
        slat_ns=kinds.get("slat"),
        clat_ns=kinds.get("clat"),
        wait_ns=kinds.get("wait"),
    )


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _note(note: object) -> RunNote:
    """Take a note as it is in the bundle: a text, or an object with `text`, `kind` and `where`."""
    if not isinstance(note, dict):
        return RunNote("info", str(note), None)
    where = note.get("where")
    if isinstance(where, dict):
        line = f":{where['line']}" if where.get("line") else ""
        option = f": {where['option']}" if where.get("option") else ""
        where = f"{where.get('file') or ''}{line}{option}".removeprefix(": ")
    return RunNote(str(note.get("kind") or "info"), str(note.get("text")), where or None)
