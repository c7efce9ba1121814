"""Cases of a bundle: one for each stage, from what was planned, measured and watched.

Knows bundles and their analysis. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from loadstone.analysis.series import series
from loadstone.audit import case as shape
from loadstone.path.layers import DataPath
from loadstone.plan.model import FillPattern, FillZero, OpenSync, RateAmountOps, SizesFixed, SizesRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.analysis.measurement import Line, Measurement
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Latency, Stats, Total
    from loadstone.plan.model import OpPattern, Sizes, Stream

MOVING: Final[tuple[shape.Op, ...]] = ("read", "write", "trim")
MAX_SIZES: Final = 64
"""A range of sizes with more steps than this is told by this many of them."""


def cases(made: Summary) -> list[shape.Case]:
    """Return the cases of a run in the order of its stages; stages that measured nothing are there, too."""
    found = [_stage(made, total) for total in made.totals("stage")]
    return [_with_siblings(one, found) for one in found]


def _with_siblings(one: shape.Case, every: Sequence[shape.Case]) -> shape.Case:
    return replace(one, siblings=tuple(other for other in every if other is not one))


def _stage(made: Summary, total: Total) -> shape.Case:
    measurement = made.measurement
    jobs = [job for job in made.totals("job") if set(job.line.streams) <= set(total.line.streams)]
    bounds = _bounds(measurement, total.line)
    host = _within(measurement.bundle.host(), bounds)
    return shape.Case(
        name=_name(jobs, total),
        source="bundle",
        jobs=tuple(_asked(measurement, job.line) for job in jobs),
        total=_measured(total.data),
        ops={op: _measured(total.ops[op]) for op in MOVING if op in total.ops},
        seconds=total.measured_ns / 1e9 or None,
        by_job={
            job.line.name: {op: _measured(job.ops[op]) for op in MOVING if op in job.ops} for job in jobs
        },
        targets=tuple(_targets(measurement, total.line)),
        series=_series(measurement, total.line),
        host=host if host.height else None,
        environment=made.bundle.environment,
        problems=tuple(_problems(made, total)),
        generator_cpu_percent=_engine_percent(host),
        host_cpu_percent=_host_percent(host),
        host_cpus=made.bundle.environment.get("host", {}).get("cpu", {}).get("online"),
        share_of_ceiling=_share(made, total),
        extra={"bounds_ns": bounds, "stage": _number(total), "events": made.bundle.events},
    )


def _name(jobs: list[Total], total: Total) -> str:
    names = [job.line.name for job in jobs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or total.line.name


def _number(total: Total) -> int:
    return int(total.line.name.removeprefix("stage "))


def _share(made: Summary, total: Total) -> float | None:
    number = _number(total)
    return next((stage.share for stage in made.tool.stages if stage.stage == number), None)


def _bounds(measurement: Measurement, line: Line) -> tuple[int, int]:
    """Return when the first stream of a stage was past its ramp and the last one ended, in ns."""
    spans = [measurement.spans[index] for index in line.streams]
    ran = [(ramp_end, end) for start, ramp_end, end in spans if end > start]
    return (min(one[0] for one in ran), max(one[1] for one in ran)) if ran else (0, 0)


def _within(host: pl.DataFrame, bounds: tuple[int, int]) -> pl.DataFrame:
    """Return the rows of which most lies in the measured time; a row stands for the time before it."""
    begin, end = bounds
    middle = pl.col("t_ns") - pl.col("dt_ns") // 2
    return host.filter((middle >= begin) & (middle <= end))


def _problems(made: Summary, total: Total) -> list[shape.Problem]:
    """Return the problems met while the stage ran, and those that have no time."""
    spans = [made.measurement.spans[index] for index in total.line.streams]
    begin, end = min(span[0] for span in spans), max(span[2] for span in spans)
    return [
        shape.Problem(one.kind, one.message, one.count)
        for one in made.problems
        if one.t_ns is None or begin <= one.t_ns <= end
    ]


def _series(measurement: Measurement, line: Line) -> pl.DataFrame:
    every = series(measurement, "stage", percentiles=())
    return every.filter((pl.col("name") == line.name) & ~pl.col("ramp"))


def _measured(stats: Stats | None) -> shape.Measured:
    if stats is None:
        return shape.Measured()
    return shape.Measured(
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
        mean_ns=latency.mean.value,
        kind="lat",
        count=latency.count,
        min_ns=latency.min_ns,
        max_ns=latency.max_ns,
        stddev_ns=latency.stddev,
        percentiles_ns={percent: float(value) for percent, value in known.items() if value is not None},
    )


def _asked(measurement: Measurement, line: Line) -> shape.Asked:
    plan = measurement.plan
    streams = [plan.streams[index] for index in line.streams]
    first = streams[0]
    pattern = first.pattern
    moving = pattern.read_percent + pattern.write_percent
    targets = [plan.targets[use.target] for stream in streams for use in stream.files]
    ranges = tuple(
        tuple(
            shape.Range(plan.targets[use.target].path, use.offset_bytes, use.length_bytes)
            for use in stream.files
        )
        for stream in streams
    )
    return shape.Asked(
        job=line.name,
        clones=len(streams),
        iodepth=first.iodepth if len({stream.iodepth for stream in streams}) == 1 else None,
        read_percent=100 * pattern.read_percent / moving if moving else None,
        random_percent=_random_percent(first),
        block_bytes=_mixed(first),
        read_block_bytes=_sizes(pattern.read.sizes) if pattern.read_percent else {},
        write_block_bytes=_sizes(pattern.write.sizes) if pattern.write_percent else {},
        direct=all(target.direct for target in targets) if targets else None,
        synchronous=first.flush.fsync_every == 1
        or first.flush.fdatasync_every == 1
        or (bool(targets) and all(target.sync != OpenSync.NONE for target in targets)),
        end_fsync=first.flush.at_end or first.flush.on_close,
        backend=plan.workers[first.worker].backend.type,
        rate_iops=_rate(streams, ops=True),
        rate_bytes_per_s=_rate(streams, ops=False),
        targets=tuple(dict.fromkeys(target.path for target in targets)),
        ranges=ranges,
        size_bytes=union_bytes(one for clone in ranges for one in clone),
        payload=_payload(first) if pattern.write_percent else None,
        runtime_s=first.limits.runtime_ns / 1e9 or None,
        ramp_s=first.limits.ramp_ns / 1e9,
        seeds=tuple(stream.seed for stream in streams),
    )


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


def _rate(streams: Sequence[Stream], *, ops: bool) -> float | None:
    """Return the total of the streams' rates; None when one has none."""
    whole = 0.0
    for stream in streams:
        rates = [rate for rate in (stream.pace.read, stream.pace.write, stream.pace.trim) if rate is not None]
        mine = [rate.amount.per_second for rate in rates if isinstance(rate.amount, RateAmountOps) == ops]
        if not mine:
            return None
        whole += sum(mine)
    return whole


def _payload(stream: Stream) -> shape.Payload:
    payload = stream.payload
    stamped = stream.verify is not None
    kind: Any = "random"
    if isinstance(payload.fill, FillZero):
        kind = "zero"
    elif isinstance(payload.fill, FillPattern):
        kind = "pattern"
    return shape.Payload(
        kind="stamped" if stamped and kind == "random" else kind,
        repeats=not (payload.refill or payload.stamp or stamped),
        compress_percent=payload.compress_percent,
        dedupe_percent=payload.dedupe_percent,
    )


def _targets(measurement: Measurement, line: Line) -> list[shape.Target]:
    plan, told = measurement.plan, measurement.bundle.environment
    used = dict.fromkeys(use.target for index in line.streams for use in plan.streams[index].files)
    before = {str(one.get("path")): one for one in told.get("targets", [])}
    paths = {str(one["target"]): one for one in told.get("paths") or []}
    made = {int(event["target"]) for event in measurement.bundle.events if event.get("type") == "layout"}
    host = measurement.bundle.host()
    found = []
    for index in used:
        path = plan.targets[index].path
        facts = before.get(path, {})
        layers = DataPath.model_validate(paths[path]) if path in paths else None
        sizes = _column(host, f"file.{index}.allocated_bytes")
        devices = [told.get("devices", {}).get(name, {}) for name in facts.get("devices", [])]
        found.append(
            shape.Target(
                path=path,
                size_bytes=facts.get("size_bytes") or plan.targets[index].size_bytes or None,
                allocated_bytes_before=sizes[0] if sizes else facts.get("allocated_bytes"),
                allocated_bytes_after=sizes[-1] if sizes else None,
                created=index in made or "missing" in facts,
                rotational=_rotational(devices),
                reduces=_reduces(layers),
                path_layers=layers,
            )
        )
    return found


def _column(host: pl.DataFrame, name: str) -> list[int]:
    if name not in host.columns:
        return []
    return [int(value) for value in host[name].drop_nulls().to_list()]


def _rotational(devices: Sequence[dict[str, Any]]) -> bool | None:
    """Return what the lowest device says that says anything."""
    told = [one.get("queue", {}).get("rotational") for one in devices]
    known = [value == "1" for value in told if value is not None]
    return known[-1] if known else None


def _reduces(path: DataPath | None) -> str | None:
    """Return the layer of a path that says of itself that it compresses or deduplicates."""
    for layer in path.layers if path is not None else ():
        for fact in ("compression", "deduplication"):
            value = layer.facts.get(fact)
            if value and value not in ("off", "none", "no"):
                return f"{layer.kind} {layer.name}: {fact} {value}"
        if layer.kind == "zram":
            return f"zram {layer.name}"
    return None


def _engine_percent(host: pl.DataFrame) -> float | None:
    return _percent(host, [name for name in ("engine.user_ns", "engine.system_ns") if name in host.columns])


def _host_percent(host: pl.DataFrame) -> float | None:
    """Return the part of all processors' time that was not idle, in percent."""
    every = [name for name in host.columns if name.startswith("cpu.all.") and name.endswith("_ns")]
    idle = [name for name in every if name in ("cpu.all.idle_ns", "cpu.all.iowait_ns")]
    whole = _sum(host, every)
    return 100 * (1 - _sum(host, idle) / whole) if whole else None


def _percent(host: pl.DataFrame, names: list[str]) -> float | None:
    time_ns = _sum(host, ["dt_ns"]) if names else 0.0
    return 100 * _sum(host, names) / time_ns if time_ns else None


def _sum(host: pl.DataFrame, names: list[str]) -> float:
    return float(sum(cast("float", host[name].sum() or 0) for name in names))
