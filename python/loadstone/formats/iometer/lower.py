"""From a configuration to the runs of a test, each a Workload.

Knows what Iometer does with a specification, a worker and a target, and the words in which
Loadstone says it. Knows no device: what a drive is here is in `drive_names`.
Semantics: Iometer User's Guide, and Iometer 1.1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, RefusedError
from loadstone.formats.iometer import run_cycle
from loadstone.formats.iometer.access import SECTOR_BYTES
from loadstone.formats.iometer.drive_names import check_mapping, place, short
from loadstone.formats.iometer.managers import IometerTarget, IometerWorker, Manager
from loadstone.formats.iometer.setup import RECORDED, TEST_TYPES
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Job, Note, NoteKind, Workload
from loadstone.workload.placement import Amount, HostPlace, TargetName
from loadstone.workload.rows import RowWork, WorkloadRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.errors import Where
    from loadstone.formats.iometer.access import AccessSpec
    from loadstone.formats.iometer.read import Configuration
    from loadstone.formats.iometer.run_cycle import CycleStep

MILLISECOND_NS: Final = 1_000_000
MAX_WORKERS: Final = 1024
_REPEATED_BYTE: Final = 0x69
AMBIGUOUS: Final = "-1"
"""Iometer's word for transactions per connection where there are no connections."""

VOCABULARY: Final = {
    "engine.iodepth": "# of Outstanding I/Os",
    "engine.ios_per_connection": "Transactions per Connection",
    "limits.runtime_ns": "Run Time",
    "placement.offset": "Starting Disk Sector",
    "placement.size": "Maximum Disk Size",
    "placement.size=1g": "2097152 sectors as Maximum Disk Size",
    "schedule.numjobs": "Number of Workers",
    "sizes.bs": "Transfer Request Size",
}
"""What Iometer calls what a job asks for: for what is said about it further on."""


@dataclass(frozen=True, slots=True)
class CommandLineChanges:
    """What the command line changes. `runtime_ns`, `ramp_ns` None: as the file says."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    targets: Sequence[str] = ()
    runtime_ns: int | None = None
    ramp_ns: int | None = None


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of a test. `factors`: what differs between runs."""

    name: str
    workload: Workload
    factors: dict[str, str | int]


def runs(configuration: Configuration, changes: CommandLineChanges | None = None) -> list[TestRun]:
    """Return the runs of a test in Iometer's order. Raises InputError and RefusedError."""
    return _ConfigurationLowering(configuration, changes or CommandLineChanges()).runs()


class _ConfigurationLowering:
    """One configuration on its way."""

    def __init__(self, configuration: Configuration, changes: CommandLineChanges) -> None:
        self._file = configuration
        self._setup = configuration.setup
        self._asked = changes
        self._here = {**changes.mapping, **{path: path for path in changes.targets}}
        self._specs = {spec.name.lower(): spec for spec in configuration.specs}
        self._notes: dict[tuple[str, str], Note] = {}
        for note in configuration.notes:
            self._note(note.where, note.text, note.kind)
        self._managers = self._with_targets(configuration.managers or self._default_manager())

    def runs(self) -> list[TestRun]:
        check_mapping(self._asked.mapping, self._managers)
        self._check_workers()
        self._tell_managers()
        test_runs: list[TestRun] = []
        longest = max((len(w.specs) for m in self._managers for w in m.workers), default=0)
        for index in range(longest):
            whole = run_cycle.able(self._managers, index)
            where = self._setup.at("test type", self._file.where)
            test_runs += [self._run(index, step) for step in run_cycle.steps(self._setup, whole, where)]
        if not test_runs:
            raise make_error(InputError, "formats_iometer.lower.no_work", where=self._file.where)
        return _named_apart(test_runs)

    def _note(self, where: Where | None, text: str, kind: NoteKind) -> None:
        self._notes.setdefault((str(where), text), Note(where=where, text=text, kind=kind))

    def _default_manager(self) -> list[Manager]:
        """Make the workers a file without a manager list leaves to the defaults of its setup."""
        where = self._file.where
        specs = [(spec.name, spec.where) for spec in self._file.specs if spec.assigned in ("ALL", "DISK")]
        if not specs:
            raise make_error(InputError, "formats_iometer.lower.no_managers", where=where)
        count = self._setup.disk_workers
        count = len(os.sched_getaffinity(0)) if count is None else count
        if count > MAX_WORKERS:
            where = self._setup.at("default disk workers to spawn", where)
            raise make_error(
                InputError,
                "formats_iometer.lower.too_many_workers",
                where=where,
                count=count,
                max_workers=MAX_WORKERS,
            )
        workers = [
            IometerWorker(f"Worker {number}", where, specs=list(specs)) for number in range(1, count + 1)
        ]
        self._note(where, say("formats_iometer.lower.default_workers", count=count), "info")
        return [Manager(1, "localhost", "", where, workers)]

    def _with_targets(self, managers: Sequence[Manager]) -> list[Manager]:
        """Let every worker use the targets of the command line instead of its own."""
        if not self._asked.targets:
            return list(managers)
        if len(set(self._asked.targets)) != len(self._asked.targets):
            raise make_error(InputError, "formats_iometer.lower.target_twice")
        text = say("formats_iometer.lower.targets", targets=", ".join(self._asked.targets))
        self._note(None, text, "changed")
        return [
            replace(
                manager,
                workers=[
                    replace(
                        worker, targets=[IometerTarget(path, worker.where) for path in self._asked.targets]
                    )
                    for worker in manager.workers
                ],
            )
            for manager in managers
        ]

    def _check_workers(self) -> None:
        """Find every specification, and every target, before the first run."""
        for manager in self._managers:
            for worker in manager.workers:
                for name, where in worker.specs:
                    if name.lower() != run_cycle.IDLE and name.lower() not in self._specs:
                        known = [spec.name for spec in self._file.specs]
                        raise make_error(
                            InputError,
                            "formats_iometer.lower.no_specification",
                            where=where,
                            hint=nearest(name, known),
                            name=f"{name!r}",
                        )
                if worker.specs:
                    for target in worker.targets:
                        place(target, self._here)

    def _tell_managers(self) -> None:
        names = [manager.name for manager in self._managers]
        if self._file.managers:
            key = "formats_iometer.lower.one_manager" if len(names) == 1 else "formats_iometer.lower.managers"
            text = say(key, names=", ".join(names))
            self._note(self._file.managers[0].where, text, "changed")

    def _run(self, index: int, step: CycleStep) -> TestRun:
        jobs: list[Job] = []
        used: dict[str, AccessSpec] = {}
        for (at, number), count in step.active.items():
            worker = self._managers[at].workers[number]
            spec = self._specs[worker.specs[index][0].lower()]
            used[spec.name] = spec
            own = {"worker_id": f"{at + 1}.{number + 1}"}
            worker_jobs = self._jobs(self._managers[at], worker, spec, count, step.depth)
            jobs += [job.changed({"own_options": job.own_options | own}) for job in worker_jobs]
        name = " + ".join(used)
        factors: dict[str, str | int] = {"access_specification": name, **step.factors}
        shown = " ".join(f"{factor}={value}" for factor, value in step.factors.items())
        workload = Workload(
            name=PurePath(self._file.name).stem,
            jobs=tuple(_distinct(jobs)),
            notes=tuple(self._notes.values()),
            global_options=self._about(used),
            sources={self._file.name: self._file.source},
        )
        return TestRun(f"{name} {shown}".strip(), workload, factors)

    def _about(self, used: Mapping[str, AccessSpec]) -> dict[str, str]:
        """Return what a table of results says of the test besides its numbers."""
        about = {
            "test_description": self._setup.description,
            "test_type": str(TEST_TYPES.index(self._setup.test_type)),
            "record_results": str(RECORDED.index(self._setup.recorded)),
            "version": self._file.version,
        }
        for spec in used.values():
            about[f"access_specification {spec.name}"] = "\n".join(row.text() for row in spec.rows)
        return about

    def _jobs(
        self, manager: Manager, worker: IometerWorker, spec: AccessSpec, count: int, depth: int | None
    ) -> list[Job]:
        """One job for each target; one for all of them where a delay is shared between them."""
        targets = worker.targets[:count]
        waits = any(row.delay_ms for row in spec.rows)
        if waits and len(targets) > 1:
            if any((target.settings or worker.settings).transactions_per_connection for target in targets):
                raise make_error(
                    RefusedError, "formats_iometer.lower.connections_in_turn", where=worker.where
                )
            self._note(worker.where, say("formats_iometer.lower.take_turns"), "changed")
            return [self._job(manager, worker, spec, targets, depth)]
        return [self._job(manager, worker, spec, [target], depth) for target in targets]

    def _job(
        self,
        manager: Manager,
        worker: IometerWorker,
        spec: AccessSpec,
        targets: list[IometerTarget],
        depth: int | None,
    ) -> Job:
        settings = targets[0].settings or worker.settings
        places = [place(target, self._here) for target in targets]
        outstanding = settings.outstanding_ios if depth is None else depth
        per_connection = settings.transactions_per_connection
        fields: dict[str, Any] = {
            "work": RowWork(rows=self._rows(spec)),
            **self._delay(spec),
            **self._payload(spec, worker, settings.data_pattern),
            **self._times(),
            **_range(settings.start_sector, settings.max_sectors),
        }
        fields |= (
            {"seeds.randseed": settings.seed} if settings.seed is not None else {"seeds.repeatable": False}
        )
        return Job.of(
            {
                **fields,
                "name": _job_name(manager, worker, places, alone=len(self._managers) == 1),
                "where": worker.where,
                "vocabulary": VOCABULARY,
                "set_at": self._set_at(worker, spec, targets),
                "own_options": {
                    "manager": manager.name,
                    "worker": worker.name,
                    "target": ", ".join(target.name for target in targets),
                    "access_specification": spec.name,
                    "outstanding_ios": str(outstanding),
                    "transactions_per_connection": str(per_connection or AMBIGUOUS),
                    "starting_sector": str(settings.start_sector),
                    "maximum_size": str(settings.max_sectors),
                },
                "placement.targets": tuple(places),
                "hosts": self._places(manager),
                "engine.ioengine": "io_uring",
                "engine.direct": True,
                "engine.iodepth": outstanding * len(targets),
                "engine.ios_per_connection": per_connection,
            }
        )

    def _set_at(
        self, worker: IometerWorker, spec: AccessSpec, targets: list[IometerTarget]
    ) -> dict[str, Where]:
        """Return where in the file each field of the job is set."""
        of_worker = (
            "engine.iodepth",
            "engine.ios_per_connection",
            "placement.offset",
            "placement.size",
            "payload.buffer_pattern",
        )
        return dict.fromkeys(of_worker, worker.where) | {
            "rows": spec.where,
            "placement.targets": targets[0].where,
            "seeds.repeatable": self._file.where,
            "limits.runtime_ns": self._setup.at("run time", self._file.where),
        }

    def _places(self, manager: Manager) -> tuple[HostPlace, ...]:
        """Return the host of a manager where there are several; without `--hosts` all of them are here."""
        if len(self._managers) < 2:
            return ()
        names = tuple(dict.fromkeys(name for name in (manager.name, manager.address) if name))
        return (HostPlace(names=names, where=manager.where, away=False),)

    def _rows(self, spec: AccessSpec) -> tuple[WorkloadRow, ...]:
        for row in spec.rows:
            if row.reply_bytes:
                raise make_error(RefusedError, "formats_iometer.lower.reply", where=row.where)
            if row.random_percent and not row.align_bytes and row.size_bytes > SECTOR_BYTES:
                text = say("formats_iometer.lower.any_sector", size=row.size_bytes)
                self._note(row.where, text, "trap")
        return tuple(
            WorkloadRow(
                percent=row.percent,
                bytes=row.size_bytes,
                read_percent=row.read_percent,
                random_percent=row.random_percent,
                align_bytes=row.align_bytes or None,
                burst=row.burst,
            )
            for row in spec.rows
        )

    def _delay(self, spec: AccessSpec) -> dict[str, Any]:
        """Return the pause before each burst, which all lines must have in common."""
        first = spec.rows[0]
        if not any(row.delay_ms for row in spec.rows):
            return {}
        for row in spec.rows:
            if (row.delay_ms, row.burst) != (first.delay_ms, first.burst):
                raise make_error(
                    RefusedError,
                    "formats_iometer.lower.delays",
                    where=row.where,
                    delay=row.delay_ms,
                    burst=row.burst,
                    spec=f"{spec.name!r}",
                    first_delay=first.delay_ms,
                    first_burst=first.burst,
                )
        return {
            "pacing.thinktime_ns": first.delay_ms * MILLISECOND_NS,
            "pacing.thinktime_blocks": first.burst,
            "pacing.thinktime_blocks_type": "issue",
        }

    def _payload(self, spec: AccessSpec, worker: IometerWorker, pattern: int | None) -> dict[str, Any]:
        if all(row.read_percent == 100 for row in spec.rows):
            return {}
        if pattern == 0:
            self._note(worker.where, say("formats_iometer.lower.same_byte"), "changed")
            return {"payload.buffer_pattern": (_REPEATED_BYTE,)}
        if pattern == 1:
            # Iometer fills one buffer and writes it again and again.
            return {"payload.scramble_buffers": False}
        if pattern is None:
            self._note(worker.where, say("formats_iometer.lower.random_bytes"), "info")
        return {}

    def _times(self) -> dict[str, Any]:
        runtime_ns = self._asked.runtime_ns or self._setup.run_ns
        if not runtime_ns:
            raise make_error(
                InputError,
                "formats_iometer.lower.no_run_time",
                where=self._setup.at("run time", self._file.where),
            )
        ramp_ns = self._setup.ramp_ns if self._asked.ramp_ns is None else self._asked.ramp_ns
        return {"limits.runtime_ns": runtime_ns, "limits.ramp_ns": ramp_ns or None, "limits.time_based": True}


def _range(start_sector: int, max_sectors: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if start_sector:
        fields["placement.offset"] = Amount(bytes=start_sector * SECTOR_BYTES)
    if max_sectors:
        fields["placement.size"] = Amount(bytes=max_sectors * SECTOR_BYTES)
    return fields


def _job_name(manager: Manager, worker: IometerWorker, places: list[TargetName], *, alone: bool) -> str:
    who = worker.name if alone else f"{manager.name} {worker.name}"
    drives = [short(one.written) for one in places]
    return f"{who} {drives[0] if len(drives) == 1 else f'{len(drives)} targets'}"


def _distinct(jobs: list[Job]) -> list[Job]:
    """Put numbers to jobs of the same name: two workers may have one."""
    names = _numbered([job.name for job in jobs])
    return [job.changed({"name": name}) for job, name in zip(jobs, names, strict=True)]


def _named_apart(test_runs: list[TestRun]) -> list[TestRun]:
    """Put numbers to runs of the same name: a worker may do a specification twice."""
    names = _numbered([run.name for run in test_runs])
    return [replace(run, name=name) for run, name in zip(test_runs, names, strict=True)]


def _numbered(names: list[str]) -> list[str]:
    counts = [names[: at + 1].count(name) for at, name in enumerate(names)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
