"""What every layer of the data path did over the measured time of a phase, beside what it could do at most.

Knows the monitors' columns and the layers of a bundle's environment. Judges no result: it says
which layer was fullest, and a verdict may know better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from loadstone.bundle.layout import OPS
from loadstone.path.layers import DataPath, Layer
from loadstone.plan.derived import targets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.analysis.measurement import MeasuredLine, Measurement
    from loadstone.path.layers import Ceiling, LayerKind

READ: Final = OPS.index("read")
WRITE: Final = OPS.index("write")
MOST_NAMED: Final = 3
FULL: Final = 0.9
"""Share of a ceiling, or of the time, from which on a layer is what holds the rest up."""
CARRIES_WHAT_IS_ABOVE: Final[frozenset[LayerKind]] = frozenset({"link", "adapter", "array", "network_block"})
"""Without counters of its own such a layer moved what the layers above it did."""


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Means over the time that is told of all layers."""

    read_bytes_per_s: float
    write_bytes_per_s: float
    read_iops: float | None = None
    write_iops: float | None = None


@dataclass(frozen=True, slots=True)
class CeilingReached:
    """A ceiling and what was reached of it; None: nothing counts it, or it is for other I/O."""

    ceiling: Ceiling
    share: float | None


@dataclass(frozen=True, slots=True)
class LayerUse:
    """One layer. `busy_share` is the part of the time with at least one I/O in flight."""

    layer: Layer
    traffic: LayerTraffic | None
    counted: bool
    """False: the traffic is that of the layers above."""
    busy_share: float | None
    outstanding: float | None
    """Mean I/Os in flight, as the kernel sums their times."""
    held: tuple[CeilingReached, ...]

    @property
    def fullest(self) -> float | None:
        """The largest share of any of its ceilings."""
        return max((one.share for one in self.held if one.share is not None), default=None)


@dataclass(frozen=True, slots=True)
class Paths:
    """The layers of all targets, those they share once; the nearest to the targets first."""

    uses: tuple[LayerUse, ...]
    gaps: tuple[str, ...]
    seconds: float
    """Time that was watched; 0: no row of the monitors lies in the measured time."""
    phase: str = ""
    """Its jobs, where a run has several phases."""

    def named(self, name: str) -> LayerUse | None:
        """Return the use of a layer."""
        return next((use for use in self.uses if use.layer.name == name), None)

    def narrowest(self) -> tuple[list[LayerUse], Literal["ceiling", "busy"]]:
        """Return the layers that were fullest, side by side, and how that is known; none, when none was.

        A layer at its ceiling is. Else it is the lowest device that always had something to do:
        those above it only waited. A device that serves many I/Os at once may do more all the same.
        """
        full = [use for use in self.uses if (use.fullest or 0.0) >= FULL]
        if full:
            # Of a bond and its only port in use, equally full, it is the port.
            fullest = max(reversed(full), key=lambda use: round(use.fullest or 0.0, 2))
            return [use for use in full if self._beside(use, fullest)], "ceiling"
        busy = [use for use in self.uses if (use.busy_share or 0.0) >= FULL]
        return [use for use in busy if self._beside(use, busy[-1])], "busy"

    def _beside(self, one: LayerUse, other: LayerUse) -> bool:
        """Tell whether two layers are of one kind and share the load of the same layers above."""
        above = [
            {upper.layer.name for upper in self.uses if use.layer.name in upper.layer.below}
            for use in (one, other)
        ]
        return one.layer.kind == other.layer.kind and above[0] == above[1]


def paths(measurement: Measurement) -> list[Paths]:
    """Return the paths of each phase of a run in which anything was measured; none for a bundle without.

    All layers of one are told over the same time, the targets too: the seconds of the monitors that
    lie in the measured time of the phase.
    """
    documents = measurement.bundle.environment.get("paths")
    if not documents:
        return []
    data_paths = [DataPath.model_validate(one) for one in documents]
    phases = [_phase(measurement, line, data_paths) for line in measurement.lines("stage")]
    known = [one for one in phases if one is not None]
    return known if len(known) > 1 else [replace(one, phase="") for one in known]


def _phase(measurement: Measurement, line: MeasuredLine, found: Sequence[DataPath]) -> Paths | None:
    """Return the paths of one stage; None when nothing of it was measured or none of its targets has one."""
    plan, spans = measurement.plan, measurement.union(line)
    used = {plan.targets[at].path for index in line.streams for at in targets_of(plan, plan.streams[index])}
    stage_paths = [one for one in found if one.target in used]
    if not stage_paths or not spans:
        return None
    layers = merged_layers(stage_paths)
    rows = _measured(measurement, [f"{layer.counters}." for layer in layers if layer.counters], spans)
    seconds = float(rows["dt_ns"].sum()) / 1e9 if rows.height else 0.0
    engine = _of_engine(measurement, line, _stretches(rows) or spans)
    known: dict[str, LayerTraffic | None] = {}
    for layer in layers:
        known[layer.name] = _own(layer, rows, engine) or _above(layer, layers, known)
    random = _random(measurement, line)
    uses = [_use(layer, known[layer.name], rows, engine, random) for layer in layers]
    gaps = dict.fromkeys(gap for one in stage_paths for gap in one.gaps)
    jobs = [job.name for job in measurement.lines("job") if set(job.streams) & set(line.streams)]
    more = f" and {len(jobs) - MOST_NAMED} more" if len(jobs) > MOST_NAMED else ""
    return Paths(tuple(uses), tuple(gaps), seconds, ", ".join(jobs[:MOST_NAMED]) + more)


def merged_layers(found: Iterable[DataPath]) -> list[Layer]:
    """Return the layers of all paths, each after everything that stands on it."""
    layers: dict[str, Layer] = {}
    for path in found:
        for layer in path.layers:
            before = layers.get(layer.name)
            below = dict.fromkeys((*(before.below if before else ()), *layer.below))
            layers[layer.name] = layer.model_copy(update={"below": tuple(below)})
    depth = dict.fromkeys(layers, 0)
    # As many rounds as there are layers are enough for the longest chain.
    for _ in layers:
        for layer in layers.values():
            for name in layer.below:
                if name in depth:
                    depth[name] = max(depth[name], depth[layer.name] + 1)
    return sorted(layers.values(), key=lambda layer: depth[layer.name])


def _measured(
    measurement: Measurement, starts: Sequence[str], spans: Sequence[tuple[int, int]]
) -> pl.DataFrame:
    """Return the monitors' rows whose middle lies in one of the spans."""
    host = measurement.bundle.host(*starts or ["t_ns"])
    middle = pl.col("t_ns") - pl.col("dt_ns") // 2
    return host.filter(pl.any_horizontal([(middle >= begin) & (middle <= end) for begin, end in spans]))


def _stretches(rows: pl.DataFrame) -> list[tuple[int, int]]:
    """Return the times that rows stand for."""
    return [(end - length, end) for end, length in rows.select("t_ns", "dt_ns").iter_rows()]


def _use(
    layer: Layer,
    traffic: LayerTraffic | None,
    rows: pl.DataFrame,
    engine: dict[str, LayerTraffic],
    random: bool | None,
) -> LayerUse:
    prefix = layer.counters
    time_ns = float(rows["dt_ns"].sum()) if rows.height else 0.0
    busy_ns = _sum(rows, f"{prefix}.busy_ns")
    queued_ns = _sum(rows, f"{prefix}.queue_time_ns")
    return LayerUse(
        layer=layer,
        traffic=traffic,
        counted=_own(layer, rows, engine) is not None,
        busy_share=None if busy_ns is None or not time_ns else min(busy_ns / time_ns, 1.0),
        outstanding=None if queued_ns is None or not time_ns else queued_ns / time_ns,
        held=tuple(CeilingReached(one, _share(one, traffic, random)) for one in layer.ceilings),
    )


def _own(layer: Layer, rows: pl.DataFrame, engine: dict[str, LayerTraffic]) -> LayerTraffic | None:
    """Return what a layer's own counters say; of a target itself, what the engine did."""
    if layer.name in engine:
        return engine[layer.name]
    if layer.counters is None or not rows.height:
        return None
    seconds = float(rows["dt_ns"].sum()) / 1e9
    network = layer.counters.startswith("net.")
    names = ("rx_bytes", "tx_bytes") if network else ("read_bytes", "write_bytes")
    moved = [_sum(rows, f"{layer.counters}.{name}") for name in names]
    if moved[0] is None or moved[1] is None or not seconds:
        return None
    counts = [None if network else _count(layer, rows, op) for op in ("read", "write")]
    reads, writes = (None if count is None else count / seconds for count in counts)
    return LayerTraffic(moved[0] / seconds, moved[1] / seconds, reads, writes)


def _count(layer: Layer, rows: pl.DataFrame, op: str) -> float | None:
    count = _sum(rows, f"{layer.counters}.{op}s")
    # A limit counts I/Os before the device's queue merges them.
    merged = _sum(rows, f"{layer.counters}.{op}_merges") if layer.kind == "cgroup" else None
    return count if count is None or merged is None else count + merged


def _of_engine(
    measurement: Measurement, line: MeasuredLine, times: Sequence[tuple[int, int]]
) -> dict[str, LayerTraffic]:
    """Return what was done to each target in these times, ramps of single jobs included.

    A row that reaches beyond them counts in part.
    """
    rows = measurement.rows("target")
    rows = rows.filter((rows["stage"] == line_stage(line)) & rows["op"].is_in([READ, WRITE]))
    names = {one.key: one.name for one in measurement.lines("target")}
    starts, ends = (rows[name].to_numpy().astype(np.float64) for name in ("start_ns", "end_ns"))
    covered = np.zeros(len(starts))
    for begin, end in times:
        covered += np.clip(np.minimum(ends, end) - np.maximum(starts, begin), 0, None)
    part = covered / np.maximum(ends - starts, 1)
    seconds = sum(end - begin for begin, end in times) / 1e9
    sums = (
        rows.select("key", "op", "bytes", "ops")
        .with_columns((pl.col("bytes") * part).alias("bytes"), (pl.col("ops") * part).alias("ops"))
        .group_by("key", "op")
        .agg(pl.col("bytes").sum(), pl.col("ops").sum())
    )
    done = {(key, op): (moved / seconds, ios / seconds) for key, op, moved, ios in sums.iter_rows()}
    return {
        names[key]: LayerTraffic(
            *(done.get((key, op), (0.0, 0.0))[column] for column in (0, 1) for op in (READ, WRITE))
        )
        for key in {key for key, _ in done}
    }


def line_stage(line: MeasuredLine) -> int:
    """Return the number of the stage that a line of stages stands for."""
    return int(line.name.removeprefix("stage "))


def _above(
    layer: Layer, layers: Sequence[Layer], known: dict[str, LayerTraffic | None]
) -> LayerTraffic | None:
    """Return the sum of what the layers on top of this one moved, when all of it is known."""
    if layer.kind not in CARRIES_WHAT_IS_ABOVE:
        return None
    parts = [known.get(upper.name) for upper in layers if layer.name in upper.below]
    if not parts or None in parts:
        return None
    traffic = [part for part in parts if part is not None]
    counts = [[part.read_iops for part in traffic], [part.write_iops for part in traffic]]
    reads, writes = (None if None in one else sum(x for x in one if x is not None) for one in counts)
    return LayerTraffic(
        sum(part.read_bytes_per_s for part in traffic),
        sum(part.write_bytes_per_s for part in traffic),
        reads,
        writes,
    )


def _random(measurement: Measurement, line: MeasuredLine) -> bool | None:
    """Tell whether all I/O of a phase was random; None when some was and some was not."""
    percents = {
        pattern.random_percent
        for stream in (measurement.plan.streams[index] for index in line.streams)
        for pattern, used in (
            (stream.pattern.read, stream.pattern.read_percent),
            (stream.pattern.write, stream.pattern.write_percent),
        )
        if used
    }
    return {frozenset({100}): True, frozenset({0}): False}.get(frozenset(percents))


def _share(ceiling: Ceiling, traffic: LayerTraffic | None, random: bool | None) -> float | None:
    """Return what was reached of a ceiling, None where it is for another access or nothing was counted."""
    if traffic is None or (ceiling.access is not None and random is not (ceiling.access == "random")):
        return None
    by_bytes = ceiling.quantity == "bytes_per_s"
    read = traffic.read_bytes_per_s if by_bytes else traffic.read_iops
    write = traffic.write_bytes_per_s if by_bytes else traffic.write_iops
    if read is None or write is None:
        return None
    reached = {"read": read, "write": write, "each": max(read, write), "both": read + write}[ceiling.op]
    return reached / ceiling.per_s


def _sum(rows: pl.DataFrame, name: str) -> float | None:
    if name not in rows.columns or rows[name].null_count() == rows.height:
        return None
    return float(rows[name].sum())
