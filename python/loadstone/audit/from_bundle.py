"""Cases of a bundle: one for each stage, from what was planned, measured and watched.

Knows bundles and their analysis. Judges nothing.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.analysis import commit, fine_rates
from loadstone.analysis.series import series
from loadstone.audit import case as shape
from loadstone.audit import latency_split, layer_flows, monitor_readings, targets, watched_hosts
from loadstone.audit.monitor_readings import OPS
from loadstone.audit.spec_case import with_spec
from loadstone.bundle.earlier_runs import sequence
from loadstone.explanations.job_facts import job_facts
from loadstone.explanations.readings import Probed
from loadstone.path.spec import Spec
from loadstone.plan.derived import asked_operations, reads_beside_writes, targets_of
from loadstone.plan.model import (
    BackendIoUring,
    BackendIoUringCmd,
    FillPattern,
    FillZero,
    OpenSync,
    SizesFixed,
    SizesRange,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.analysis.latency import Latency
    from loadstone.analysis.measurement import MeasuredLine, Measurement
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.plan.model import OpPattern, Sizes, Stream
    from loadstone.verdict import LayerFlow

MAX_SIZES: Final = 64
"""A range of sizes with more steps than this is told by this many of them."""


def cases(made: Summary) -> list[shape.Case]:
    """Return the cases of a run in the order of its stages; stages that measured nothing are there, too."""
    found = [_declared(made, _stage(made, total)) for total in made.totals("stage")]
    return [_with_siblings(one, found) for one in found]


def _with_siblings(one: shape.Case, every: Sequence[shape.Case]) -> shape.Case:
    return replace(one, siblings=tuple(other for other in every if other is not one))


def _stage(made: Summary, total: Total) -> shape.Case:
    measurement = made.measurement
    jobs = [job for job in made.totals("job") if set(job.line.streams) <= set(total.line.streams)]
    bounds = _bounds(measurement, total.line)
    every = monitor_readings.to_the_end(
        measurement.bundle.host(), measurement.bundle.event("monitor_cost"), bounds
    )
    stopped = measurement.stops
    issued_until_ns = min(bounds[1], measurement.issued_until_ns(total.line))
    every = monitor_readings.outside(every, stopped.left_out)
    host = monitor_readings.within(every, bounds)
    rates, used = _series(measurement, total.line), targets.targets(measurement.bundle, total.line)
    asked = rates.filter(pl.col("op").is_in(total.requested)) if measurement.plan.trees else rates
    used = [targets.with_stored(one, every) for one in used]
    layers = _layers(monitor_readings.inside(every, bounds), rates, used)
    return shape.Case(
        name=_name(jobs, total),
        source="bundle",
        jobs=tuple(_asked(made, job.line) for job in jobs),
        total=measured(total.data),
        ops={op: measured(total.ops[op]) for op in OPS if op in total.ops},
        seconds=total.measured_ns / 1e9 or None,
        flush=measured(total.ops.get("sync")) if "sync" in total.ops else None,
        commit_ns=commit.mean_ns(measurement, total),
        stops=tuple(one for one in stopped.times if one[1] > bounds[0] and one[0] < bounds[1]),
        stops_left_out=bool(stopped.left_out),
        by_job={job.line.name: {op: measured(job.ops[op]) for op in OPS if op in job.ops} for job in jobs},
        targets=tuple(used),
        series=asked,
        host=host if host.height else None,
        traffic=monitor_readings.traffic(every, rates, used, bounds),
        layers=layers,
        time=latency_split.split(total.data, layers),
        fine=fine_rates.of_stage(measurement, total.line, (bounds[0], issued_until_ns)),
        issued_until_ns=issued_until_ns,
        drained_s=(bounds[1] - issued_until_ns) / 1e9,
        histograms={
            op: latency.histogram
            for op in OPS
            if op in total.ops and (latency := total.ops[op].latencies.get("clat")) is not None
        },
        environment=made.bundle.environment,
        problems=tuple(_problems(made, total)),
        generator_cpu_percent=_engine_percent(host),
        host_cpu_percent=_host_percent(host),
        host_cpus=made.bundle.environment.get("host", {}).get("cpu", {}).get("online"),
        share_of_ceiling=_share(made, total),
        same_sequence_before=_again(measurement, total.line),
        job_facts=job_facts(measurement.plan, _number(total)),
        probed=_probed(made, _number(total)),
        watched=watched_hosts.of_phase(measurement, bounds, _own_disks(layers, used)),
        probe_command=_probe_command(made.bundle.request),
    )


def _own_disks(layers: Sequence[LayerFlow], used: Sequence[shape.TargetState]) -> frozenset[str]:
    """Return the devices on this host's side of the path."""
    carriers = [name.partition(".")[2] for one in used for name in one.carriers if name.startswith("block.")]
    return frozenset([*carriers, *(layer.name for layer in layers)])


def _layers(
    rows: pl.DataFrame, rates: pl.DataFrame, used: Sequence[shape.TargetState]
) -> tuple[LayerFlow, ...]:
    asked = {op: monitor_readings.load(rates, rows, op) for op in OPS}
    return layer_flows.flows(rows, asked, monitor_readings.load(rates, rows, "sync").ios, used)


def _probed(made: Summary, stage: int) -> Probed | None:
    """Return what probes measured of a stage; None where none ran."""
    told = made.bundle.probed
    if told is None:
        return None
    found = Probed.model_validate(told)
    return found if found.stage == stage else None


def _probe_command(request: dict[str, Any]) -> str | None:
    """Return the command that would run the same with probes; None where it was not made by one."""
    words = [str(word) for word in request.get("argv", ())][1:]
    if request.get("front_end") != "run" or not words:
        return None
    # A bundle is never written over: the next run gets a directory of its own.
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before != "--out" and not word.startswith(("--probe", "--out"))
    ]
    return shlex.join(["loadstone", *kept, "--probe"])


def _name(jobs: list[Total], total: Total) -> str:
    names = [job.line.name for job in jobs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or total.line.name


def _number(total: Total) -> int:
    return int(total.line.name.removeprefix("stage "))


def _share(made: Summary, total: Total) -> float | None:
    number = _number(total)
    return next((stage.share for stage in made.tool.stages if stage.stage == number), None)


def _bounds(measurement: Measurement, line: MeasuredLine) -> tuple[int, int]:
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
    mine = {found for index in line.streams if (found := sequence(plan, plan.streams[index])) is not None}
    if mine & {sequence(plan, stream) for stream in before}:
        return True
    kept = measurement.bundle.environment.get("same_sequence")
    return None if kept is None else bool(kept)


def _declared(made: Summary, case: shape.Case) -> shape.Case:
    """Add what the user's data sheet says; its ceilings are in the paths already."""
    told = made.bundle.environment.get("spec")
    if told is None:
        return case
    found = with_spec(case, Spec.model_validate(told))
    return replace(found, declared=replace(found.declared or shape.Declared(), ceilings=()))


def _series(measurement: Measurement, line: MeasuredLine) -> pl.DataFrame:
    every = series(measurement, "stage", percentiles=())
    return every.filter((pl.col("name") == line.name) & ~pl.col("ramp"))


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
        latency=_latency(stats.latencies.get("lat")),
    )


def _latency(latency: Latency | None) -> shape.LatencyFigures | None:
    if latency is None:
        return None
    percents = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
    known = {percent: latency.percentile(percent) for percent in percents}
    return shape.LatencyFigures(
        mean_ns=latency.mean_ns,
        kind="lat",
        count=latency.count,
        min_ns=latency.min_ns,
        max_ns=latency.max_ns,
        stddev_ns=latency.stddev_ns,
        percentiles_ns={percent: float(value) for percent, value in known.items() if value is not None},
    )


def _asked(made: Summary, line: MeasuredLine) -> shape.JobRequest:
    plan = made.measurement.plan
    streams = [plan.streams[index] for index in line.streams]
    first = streams[0]
    pattern, backend = first.pattern, plan.workers[first.worker].backend
    moving = pattern.read_percent + pattern.write_percent
    # A job that reads back what it wrote does so in a stream of its own, of another mix.
    alike = len({(one.pattern.read_percent, one.pattern.write_percent) for one in streams}) == 1
    # So are the reads that validation puts beside writes nobody's share.
    alike &= not any(one.verify is not None and reads_beside_writes(one.verify) for one in streams)
    numbers = dict.fromkeys(number for stream in streams for number in targets_of(plan, stream))
    used = [plan.targets[number] for number in numbers]
    transfers = first.tree is None or first.tree.operation.type == "transfer"
    ranges = tuple(
        tuple(
            shape.Range(plan.targets[use.target].path, use.offset_bytes, use.length_bytes)
            for use in stream.files
        )
        for stream in streams
    )
    return shape.JobRequest(
        job=line.name,
        clones=len(streams),
        operation=None if first.tree is None or transfers else first.tree.operation.type,
        iodepth=first.iodepth if len({stream.iodepth for stream in streams}) == 1 else None,
        read_percent=100 * pattern.read_percent / moving if moving and alike and transfers else None,
        random_percent=_random_percent(first) if transfers else None,
        block_bytes=_mixed(first) if transfers else {},
        # The end of a file is where it is: its last transfer has the size that is left.
        read_block_bytes=_exact(pattern.read) if pattern.read_percent and not first.tree else {},
        write_block_bytes=_exact(pattern.write) if pattern.write_percent and not first.tree else {},
        direct=all(target.direct for target in used) if used else None,
        synchronous=first.flush.fsync_every == 1
        or first.flush.fdatasync_every == 1
        or (bool(used) and all(target.sync != OpenSync.NONE for target in used)),
        end_fsync=first.flush.at_end or first.flush.on_close,
        flushes=any(first.flush.model_dump().values()),
        backend=backend.type,
        paced=any(_paced(stream) for stream in streams),
        thinks=any(stream.pace.think is not None for stream in streams),
        polls=isinstance(backend, BackendIoUring | BackendIoUringCmd) and (backend.iopoll or backend.sqpoll),
        rate_iops=_rate(made, line, "ops"),
        rate_bytes_per_s=_rate(made, line, "bytes"),
        targets=tuple(dict.fromkeys(target.path for target in used)),
        ranges=ranges if first.tree is None else (),
        size_bytes=union_bytes(one for clone in ranges for one in clone)
        if first.tree is None
        else first.tree.working_set_bytes or used[0].size_bytes,
        payload=_payload(first) if pattern.write_percent else None,
        runtime_s=first.limits.runtime_ns / 1e9 or None,
        ramp_s=first.limits.ramp_ns / 1e9,
        seeds=tuple(stream.seed for stream in streams),
    )


def _exact(op: OpPattern) -> dict[int, float]:
    """Return the sizes that an operation must have.

    What takes every block once at random places is cut where it would reach into a block that is
    taken, so that sizes of several kinds are on average smaller than asked for.
    """
    sizes = _sizes(op.sizes)
    once = op.random_percent > 0 and op.random.type == "uniform" and not op.random.repeat
    return {} if once and len(sizes) > 1 else sizes


def union_bytes(ranges: Iterable[shape.Range]) -> int:
    """Return the bytes of all ranges together, those in several counted once."""
    by_target: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in ranges:
        by_target[one.target].append((one.start_bytes, one.start_bytes + one.length_bytes))
    whole = 0
    for parts in by_target.values():
        reached = -1
        for start, end in sorted(parts):
            whole += max(0, end - max(start, reached))
            reached = max(reached, end)
    return whole


def _weights(stream: Stream) -> list[tuple[OpPattern, int]]:
    pattern = stream.pattern
    return [
        (pattern.read, pattern.read_percent),
        (pattern.write, pattern.write_percent),
        (pattern.trim, pattern.trim_percent),
    ]


def _weighted(stream: Stream) -> list[str]:
    return [OPS[at] for at, (_, weight) in enumerate(_weights(stream)) if weight]


def _random_percent(stream: Stream) -> float | None:
    weights = _weights(stream)
    whole = sum(weight for _, weight in weights)
    return sum(op.random_percent * weight for op, weight in weights) / whole if whole else None


def _mixed(stream: Stream) -> dict[int, float]:
    weights = _weights(stream)
    whole = sum(weight for _, weight in weights)
    mixed: dict[int, float] = defaultdict(float)
    for op, weight in weights:
        for size, share in _sizes(op.sizes).items() if weight else ():
            mixed[size] += share * weight / whole
    return dict(mixed)


def _sizes(sizes: Sizes) -> dict[int, float]:
    if isinstance(sizes, SizesFixed):
        return {sizes.bytes: 1.0}
    if isinstance(sizes, SizesRange):
        steps = (sizes.max_bytes - sizes.min_bytes) // max(1, sizes.step_bytes) + 1
        count = min(steps, MAX_SIZES)
        span = sizes.max_bytes - sizes.min_bytes
        told = [sizes.min_bytes + span * at // max(1, count - 1) for at in range(count)]
        return dict.fromkeys(told, 1 / count)
    whole = sum(entry.weight for entry in sizes.table)
    found: dict[int, float] = defaultdict(float)
    for entry in sizes.table:
        found[entry.bytes] += entry.weight / whole
    return dict(found)


def _paced(stream: Stream) -> bool:
    if stream.tree is not None:
        return stream.tree.rate is not None
    pace = stream.pace
    return any(one is not None for one in (pace.read, pace.write, pace.trim, pace.think, stream.flow))


def _rate(made: Summary, line: MeasuredLine, unit: str) -> float | None:
    """Return the mean rate that was due, all operations together; None when one is not paced."""
    plan = made.measurement.plan
    streams = [plan.streams[index] for index in line.streams]
    does = {op for one in streams for op in (asked_operations(one) if one.tree else _weighted(one))}
    due = {row.op: row.asked_per_s for row in made.pacing if row.job_key == line.key and row.unit == unit}
    return sum(due.values()) if does and does <= set(due) else None


def _payload(stream: Stream) -> shape.PayloadProperties:
    payload = stream.payload
    stamped = stream.verify is not None
    kind: Any = "random"
    if isinstance(payload.fill, FillZero):
        kind = "zero"
    elif isinstance(payload.fill, FillPattern):
        kind = "pattern"
    return shape.PayloadProperties(
        kind="stamped" if stamped and kind == "random" else kind,
        repeats=not (payload.refill or payload.stamp or stamped),
        compress_percent=payload.compress_percent,
        dedupe_percent=payload.dedupe_percent,
    )


def _engine_percent(host: pl.DataFrame) -> float | None:
    used_ns = monitor_readings.total(host, "engine.user_ns", "engine.system_ns")
    return None if used_ns is None else 100 * used_ns / 1e9 / monitor_readings.seconds(host)


def _host_percent(host: pl.DataFrame) -> float | None:
    """Return the part of all processors' time that was not idle, in percent."""
    every = [name for name in host.columns if name.startswith("cpu.all.") and name.endswith("_ns")]
    whole = monitor_readings.total(host, *every)
    idle = monitor_readings.total(host, "cpu.all.idle_ns", "cpu.all.iowait_ns") or 0.0
    return 100 * (1 - idle / whole) if whole else None
