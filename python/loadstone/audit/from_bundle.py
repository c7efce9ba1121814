"""Cases of a bundle: one for each stage, from what was asked for, measured and watched.

Knows bundles and their analysis. Judges nothing.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from loadstone.analysis import commit, cpu, depth_search, fine_rates
from loadstone.analysis.contention import contention
from loadstone.analysis.series import series
from loadstone.audit import case as shape
from loadstone.audit import (
    case_queries,
    latency_split,
    layer_flows,
    monitor_readings,
    targets,
    watched_hosts,
)
from loadstone.audit.job_facts import job_facts
from loadstone.audit.monitor_readings import OPS
from loadstone.audit.planned import jobs_of_units, planned
from loadstone.audit.requested import DueRates, request
from loadstone.audit.spec_case import with_spec
from loadstone.bundle import layout
from loadstone.bundle.earlier_runs import sequence
from loadstone.bundle.table_rows import columns_of, rows_where
from loadstone.explanations.not_probed import why_not_probed
from loadstone.explanations.readings import MOMENTS, NO_TIME, Probed
from loadstone.path.spec import Spec
from loadstone.plan.model import BackendNull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.contention import Contention
    from loadstone.analysis.measurement import MeasuredLine, Measurement
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.explanations.job_facts import JobFacts
    from loadstone.verdict import LayerFlow

_PROBED: Final = TypeAdapter(Probed)
MORE: Final = 3
"""Times the budget that probes used up before all was told."""


AGAIN: Final = 3
"""Runs that show by how much they differ."""
SEVERAL: Final = ("repeat", "until", "more")
"""Options with which a command line is of several runs."""
CONSENT: Final = "--i-accept-data-loss"
ELSEWHERE: Final = ("fuse", "network_file_system", "network_block")
"""Kinds of layers below which the storage is another program's or another host's."""


def cases(made: Summary, beside: Sequence[shape.LoadBeside] = ()) -> list[shape.Case]:
    """Return the cases of a run in the order of its stages; stages that measured nothing are there, too.

    `beside` are the loads of other hosts of the run on the same machine.
    """
    stage_cases = [_declared(made, _stage(made, total, beside)) for total in made.totals("stage")]
    return [_with_siblings(one, stage_cases) for one in stage_cases]


def loads(made: Summary, shift_ns: int) -> list[shape.LoadBeside]:
    """Return the loads of a run as they lie beside those of a host whose clock is `shift_ns` behind."""
    # What was before that host's origin is before all its rows.
    moved = [
        (pl.col(name).cast(pl.Int64) + shift_ns).clip(0).cast(pl.UInt64).alias(name)
        for name in ("start_ns", "end_ns")
    ]
    return [
        _load_beside(targets.targets(made.bundle, total.line), rates.with_columns(moved))
        for total in made.totals("stage")
        if (rates := measured_series(made.measurement, total.line, ramps=True)).height
    ]


def _load_beside(used: Sequence[shape.TargetState], rates: pl.DataFrame) -> shape.LoadBeside:
    return shape.LoadBeside(
        carriers=frozenset(name for one in used for name in one.carriers),
        layers=tuple(layer for one in used if one.path_layers for layer in one.path_layers.layers),
        rates=rates,
    )


def _with_siblings(one: shape.Case, every: Sequence[shape.Case]) -> shape.Case:
    return replace(one, siblings=tuple(other for other in every if other is not one))


@dataclass(frozen=True, slots=True)
class _HostReadings:
    """What the monitors read while a stage was measured, held against its load."""

    rows: pl.DataFrame
    """Those of which most lies in the measured time."""
    targets: tuple[shape.TargetState, ...]
    traffic: shape.CarrierTraffic | None
    layers: tuple[LayerFlow, ...]

    @classmethod
    def of(
        cls,
        measurement: Measurement,
        line: MeasuredLine,
        rates: pl.DataFrame,
        beside: Sequence[shape.LoadBeside],
    ) -> _HostReadings:
        """Read the monitors' rows of a stage, whose operations over time are `rates`."""
        bundle, bounds = measurement.bundle, measured_bounds(measurement, line)
        rows = cpu.with_spun(measurement, bundle.host())
        rows = monitor_readings.to_the_end(rows, bundle.event("monitor_cost"), bounds)
        rows = monitor_readings.outside(rows, measurement.stops.left_out)
        used = [targets.with_stored(one, rows) for one in targets.targets(bundle, line)]
        load = _with_those_beside(rates, used, beside)
        inside = monitor_readings.inside(rows, bounds)
        of_targets = {} if beside else _load_of_targets(measurement, line, inside)
        return cls(
            rows=monitor_readings.within(rows, bounds),
            targets=tuple(used),
            traffic=monitor_readings.traffic(rows, load, used, bounds),
            layers=layer_flows.flows(inside, monitor_readings.load(load, inside), used, of_targets),
        )


def _stage(made: Summary, total: Total, beside: Sequence[shape.LoadBeside]) -> shape.Case:
    measurement, bounds = made.measurement, measured_bounds(made.measurement, total.line)
    of_stage = set(total.line.streams)
    jobs = [job for job in made.totals("job") if job.line.streams and set(job.line.streams) <= of_stage]
    issued_until_ns = min(bounds[1], measurement.issued_until_ns(total.line))
    rates = measured_series(measurement, total.line)
    readings = _HostReadings.of(measurement, total.line, rates, beside)
    host, layers = readings.rows, readings.layers
    cpus = made.bundle.environment.get("host", {}).get("cpu", {}).get("online")
    contended = contention(host, cpus)
    probed = _probed(made, _number(total), contended, _host_percent(host))
    return shape.Case(
        name=name_of_stage(jobs, total),
        source="bundle",
        jobs=_requests(made, jobs),
        total=measured(total.data),
        ops={op: measured(total.ops[op]) for op in OPS if op in total.ops},
        seconds=total.measured_ns / 1e9 or None,
        flush=measured(total.ops.get("sync")) if "sync" in total.ops else None,
        commit_ns=commit.mean_ns(measurement, total),
        stops=_stops(measurement, bounds),
        stops_left_out=bool(measurement.stops.left_out),
        began=_began(measurement, total.line),
        ramp_ios=None if total.data and total.data.operations else _ramp_ios(measurement, total.line),
        searched_depth=_searches_depth(measurement, total.line),
        by_job={job.line.name: {op: measured(job.ops[op]) for op in OPS if op in job.ops} for job in jobs},
        targets=readings.targets,
        series=_of_ops(rates, _in_series(measurement, total)),
        host=host if host.height else None,
        traffic=readings.traffic,
        layers=layers,
        time=latency_split.split(total.data, layers),
        fine=fine_rates.of_stage(measurement, total.line, (bounds[0], issued_until_ns)),
        issued_until_ns=issued_until_ns,
        drained_s=(bounds[1] - issued_until_ns) / 1e9,
        environment=made.bundle.environment,
        problems=tuple(_problems(made, total)),
        generator_cpu_percent=_engine_percent(host),
        host_cpu_percent=_host_percent(host),
        host_cpus=cpus,
        contention=contended,
        share_of_ceiling=_share(made, total),
        same_sequence_before=_again(measurement, total.line),
        job_facts=phase_facts(measurement, total.line),
        probed=probed,
        watched=watched_hosts.of_phase(measurement, bounds, client_disks(readings.targets)),
        probe_command=_probe_command(measurement, total.line, probed),
        beside=tuple(beside),
    )


def _stops(measurement: Measurement, bounds: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the times in which the engine was stopped while a stage was measured."""
    return tuple(one for one in measurement.stops.times if one[1] > bounds[0] and one[0] < bounds[1])


def client_disks(used: Sequence[shape.TargetState]) -> frozenset[str]:
    """Return the devices of this host that stand on storage elsewhere: they are the client's side of it.

    A disk with nothing below it on the way is the storage itself, also where its host is watched.
    """
    names: set[str] = set()
    for one in used:
        if one.path_layers is None:
            names |= {name.partition(".")[2] for name in one.carriers if name.startswith("block.")}
            continue
        remote: set[str] = set()
        for layer in reversed(one.path_layers.layers):
            if layer.kind in ELSEWHERE or remote & set(layer.below):
                remote.add(layer.name)
        names |= remote
    return frozenset(names)


def _load_of_targets(
    measurement: Measurement, line: MeasuredLine, rows: pl.DataFrame
) -> dict[str, dict[shape.Op, shape.Moved]]:
    """Return what a phase did on each target in the time of `rows`; empty where a sample is of several."""
    plan = measurement.plan
    used = {plan.cells[cell].target for cell in line.cells}
    if None in used or len(used) < 2:
        return {}
    samples = measurement.rows("target")
    counted = np.isin(samples["cell"].to_numpy(), sorted(line.cells)) & ~samples["ramp"].to_numpy()
    keys, ops = samples["key"].to_numpy(), samples["op"].to_numpy()
    lines = [one for one in measurement.lines("target") if one.cells & line.cells]
    amounts = columns_of(samples, monitor_readings.AMOUNTS)
    times = monitor_readings.stretches(rows)
    return {
        one.name: {
            op: monitor_readings.moved_in(
                rows_where(amounts, counted & (keys == one.key) & (ops == layout.OPS.index(op))), times
            )
            for op in OPS
        }
        for one in lines
    }


def _probed(
    made: Summary, stage: int, contended: Contention | None, busy_percent: float | None
) -> Probed | None:
    """Return what probes measured of a stage, with the doubt that others on the CPUs cast on it; None: none.

    Where it is not known what those took of the run, moments in which nothing happened on a busy host are
    left out, and what each probe knows of itself counts.
    """
    probed = made.bundle.probed(_PROBED)
    if probed is None or probed.stage != stage:
        return None
    if contended is not None:
        return probed.beside_others(contended.share)
    is_busy = busy_percent is not None and busy_percent >= case_queries.HOST_BUSY_PERCENT
    known = probed.without(MOMENTS) if is_busy else probed
    return known.beside_others(None)


def _probe_command(measurement: Measurement, line: MeasuredLine, probed: Probed | None) -> str | None:
    """Return the command that would try what was not tried; None where all was, or there is no storage.

    What no probe can repeat is run again as a whole: runs that agree are evidence, too.
    """
    bundle, plan = measurement.bundle, measurement.plan
    options = bundle.request.get("options", {})
    if all(isinstance(plan.workers[plan.streams[at].worker].backend, BackendNull) for at in line.streams):
        return None
    can = why_not_probed(plan, [plan.streams[index] for index in line.streams]) is None
    if can and options.get("probe") is not None and (probed is None or probed.ended != NO_TIME):
        return None
    words = [str(word) for word in bundle.request.get("argv", ())][1:]
    # Of a run among several its own Plan alone is run again; a program has no command line of ours.
    is_command = bundle.request.get("front_end") == "run" and words[:1] in (["run"], ["probe"])
    several = any(options.get(name) for name in SEVERAL)
    if not is_command or several:
        if bundle.hosts is not None:
            return None
        consent = [word for path in options.get("i_accept_data_loss") or () for word in (CONSENT, str(path))]
        words = ["rerun", str(bundle.path.absolute()), *consent]
    option = "--budget" if words[0] == "probe" else "--probe"
    # A bundle is never written over: the next run gets a directory of its own.
    arguments = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in ("--out", "--budget") and not word.startswith(("--out", option))
    ]
    if not can:
        again = [] if words[0] == "rerun" else [f"--repeat={AGAIN}"]
        return shlex.join(["loadstone", *arguments, *again])
    probe_option = option if probed is None else f"{option}={MORE * probed.budget_s:g}s"
    return shlex.join(["loadstone", *arguments, probe_option])


def name_of_stage(jobs: Sequence[Total], total: Total) -> str:
    """Return what a stage is called after its jobs."""
    names = [job.line.name for job in jobs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or total.line.name


def _number(total: Total) -> int:
    return int(total.line.name.removeprefix("stage "))


def _share(made: Summary, total: Total) -> float | None:
    number = _number(total)
    return next((stage.share for stage in made.tool.stages if stage.stage == number), None)


def measured_bounds(measurement: Measurement, line: MeasuredLine) -> tuple[int, int]:
    """Return when the first stream of a stage was past its ramp and the last one ended, in ns."""
    spans = [measurement.spans[index] for index in line.streams]
    ran = [(ramp_end, end) for start, ramp_end, end in spans if end > start]
    return (min(one[0] for one in ran), max(one[1] for one in ran)) if ran else (0, 0)


def _problems(made: Summary, total: Total) -> list[shape.ErrorCount]:
    """Return the problems met while the stage ran, and those that have no time."""
    spans = [made.measurement.spans[index] for index in total.line.streams]
    begin, end = min(span[0] for span in spans), max(span[2] for span in spans)
    return [
        shape.ErrorCount(one.kind, one.message, one.count)
        for one in made.problems
        if one.t_ns is None or begin <= one.t_ns <= end
    ]


def _again(measurement: Measurement, line: MeasuredLine) -> bool | None:
    """Return whether an earlier stage, or a run kept beside this one, went over the same sequence.

    None in bundles from before that was looked for.
    """
    plan = measurement.plan
    first = min(measurement.stages_of(line), default=0)
    before = [stream for stream in plan.streams if plan.workers[stream.worker].stage < first]
    sequences = {
        own_sequence
        for index in line.streams
        if (own_sequence := sequence(plan, plan.streams[index])) is not None
    }
    if sequences & {sequence(plan, stream) for stream in before}:
        return True
    same_sequence = measurement.bundle.environment.get("same_sequence")
    return None if same_sequence is None else bool(same_sequence)


def _declared(made: Summary, case: shape.Case) -> shape.Case:
    """Add what the user's data sheet says; its ceilings are in the paths already."""
    spec = made.bundle.environment.get("spec")
    if spec is None:
        return case
    declared_case = with_spec(case, Spec.model_validate(spec))
    return replace(declared_case, declared=replace(declared_case.declared or shape.Declared(), ceilings=()))


def _in_series(measurement: Measurement, total: Total) -> tuple[str, ...]:
    """Return what was asked for; without a tree also its flushes, which rules look at."""
    return total.requested if measurement.plan.trees else (*total.requested, "sync")


def measured_series(measurement: Measurement, line: MeasuredLine, *, ramps: bool = False) -> pl.DataFrame:
    """Return what a stage did over time: rows as in `Case.series`, with `ramps` those of its ramps, too."""
    rates = series(measurement, "stage", percentiles=())
    own = (rates["name"] == line.name).to_numpy()
    return rows_where(rates, own if ramps else own & ~rates["ramp"].to_numpy())


def _of_ops(rates: pl.DataFrame, ops: Sequence[str]) -> pl.DataFrame:
    """Return the rows of some operations; nearly always all are."""
    return rates if set(rates["op"]) <= set(ops) else rates.filter(pl.col("op").is_in(ops))


def _began(measurement: Measurement, line: MeasuredLine) -> bool:
    """Whether a stream is known to have run; of a run whose samples were lost, whether it did any I/O."""
    if measurement.samples.is_empty():
        return measurement.bundle.event("start") is not None
    return any(measurement.spans[at][2] for at in line.streams)


def _searches_depth(measurement: Measurement, line: MeasuredLine) -> bool:
    """Tell whether a stream had not found the depth of a latency target: nothing of it counts."""
    return bool(depth_search.searching(measurement.plan, measurement.samples) & set(line.streams))


def _ramp_ios(measurement: Measurement, line: MeasuredLine) -> int:
    rates = measured_series(measurement, line, ramps=True)
    return int(rates.filter(pl.col("ramp"))["ops"].sum())


def _with_those_beside(
    rates: pl.DataFrame, used: Sequence[shape.TargetState], beside: Sequence[shape.LoadBeside]
) -> pl.DataFrame:
    """Return all that the run asked of the devices under these targets, from whichever of its hosts."""
    carriers = {name for one in used for name in one.carriers}
    others = [one.rates for one in beside if carriers & one.carriers]
    return pl.concat([rates, *others]) if others else rates


def measured(stats: OpTotals | None) -> shape.OpMeasurement:
    """Return totals as a case has them."""
    if stats is None:
        return shape.OpMeasurement()
    return shape.OpMeasurement(
        operations=stats.operations,
        bytes=stats.bytes,
        errors=stats.errors,
        iops=shape.Figure(stats.iops.value, stats.iops.error) if stats.iops else None,
        bandwidth=shape.Figure(stats.bandwidth.value, stats.bandwidth.error) if stats.bandwidth else None,
        latencies=stats.latencies,
    )


def phase_facts(measurement: Measurement, line: MeasuredLine) -> JobFacts | None:
    """Return what decides which explanations can hold for a phase; None where its jobs are not known."""
    workload = measurement.bundle.known_workload
    streams = [measurement.plan.streams[index] for index in line.streams]
    return job_facts(measurement.plan, () if workload is None else workload.jobs, streams)


def _requests(made: Summary, jobs: Sequence[Total]) -> tuple[shape.JobRequest, ...]:
    """Return what was asked of the jobs of a stage.

    What is read back after a crash is only what was verified: other jobs have no streams there.
    """
    plan, workload = made.measurement.plan, made.bundle.known_workload
    workload_jobs = workload.jobs if workload is not None else ()
    number_of = jobs_of_units(plan, workload_jobs)
    requests = []
    for line in (total.line for total in jobs):
        units = sorted({plan.cells[cell].unit for cell in line.cells})
        job_numbers = dict.fromkeys(number_of[unit] for unit in units if unit in number_of)
        streams = [plan.streams[index] for index in line.streams]
        due = DueRates(_due(made, line, "ops"), _due(made, line, "bytes"))
        requests.append(
            request(line.name, [workload_jobs[number] for number in job_numbers], planned(plan, streams), due)
        )
    return tuple(requests)


def _due(made: Summary, job: MeasuredLine, unit: str) -> dict[str, float]:
    rows = (row for row in made.pacing if row.job_key == job.key and row.unit == unit)
    return {row.op: row.asked_per_s for row in rows}


def _engine_percent(host: pl.DataFrame) -> float | None:
    used_ns = monitor_readings.total(host, "engine.user_ns", "engine.system_ns")
    return None if used_ns is None else 100 * used_ns / 1e9 / monitor_readings.seconds(host)


def _host_percent(host: pl.DataFrame) -> float | None:
    """Return the part of all processors' time that was neither idle nor spun away, in percent."""
    every = [name for name in host.columns if name.startswith("cpu.all.") and name.endswith("_ns")]
    whole = monitor_readings.total(host, *every)
    idle = monitor_readings.total(host, "cpu.all.idle_ns", "cpu.all.iowait_ns", cpu.SPUN) or 0.0
    return 100 * (1 - idle / whole) if whole else None
