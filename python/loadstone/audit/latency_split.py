"""Where the latency of a load went: the generator, each layer, and what no clock explains.

Knows the layers' own clocks (time in service, by operation) and the engine's four latencies. The
time of a layer is the mean of its I/Os, weighed with the part of the load that reached it; what it
spent itself is that without the layer below. Judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.verdict import LayerTime, Time, TimeSplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.totals import OpTotals
    from loadstone.verdict import LayerFlow

ABOVE: Final = "host above the devices"
"""File system, page cache, submission: between the kernel's door and the first layer with a clock."""
ROUNDING: Final = 1.02
"""A layer's clock may be this much beyond the one above it: they are read at other moments."""


def split(data: OpTotals | None, layers: Sequence[LayerFlow]) -> Time | None:
    """Return where the mean latency went; None without latencies."""
    lat = data.latencies.get("lat") if data is not None else None
    if data is None or lat is None or not lat.count:
        return None
    # Sums over all I/Os: not each of them waited.
    spent = {
        kind: latency.mean.value * latency.count / lat.count
        for kind, latency in data.latencies.items()
        if kind != "lat"
    }
    whole = lat.mean.value
    generator = min(whole, spent.get("wait", 0.0) + spent.get("slat", 0.0))
    parts, unknown = divided(whole - generator, layers)
    p99 = lat.percentile(99.0)
    return Time(
        measured_ns=whole,
        generator_ns=generator,
        layers=parts,
        unknown_ns=unknown,
        p99=None if p99 is None else _tail(float(p99), data),
    )


def divided(below_ns: float, layers: Sequence[LayerFlow]) -> tuple[tuple[LayerTime, ...], float]:
    """Divide the time in the kernel and below among the layers with a clock."""
    clocks = _clocks(layers)
    if not clocks:
        return (), below_ns
    if clocks[0][1] > ROUNDING * below_ns:
        # The first layer's I/Os take longer than the load's: they are not the same I/Os.
        return (), below_ns
    found: list[LayerTime] = []
    left = below_ns
    names = [ABOVE, *(name for name, _ in clocks)]
    ends = [*(min(ns, below_ns) for _, ns in clocks), 0.0]
    for name, end in zip(names, ends, strict=True):
        inner = min(end, left)
        found.append(LayerTime(name=name, ns=left - inner))
        left = inner
    return tuple(found), 0.0


def _clocks(layers: Sequence[LayerFlow]) -> list[tuple[str, float]]:
    """Return each level's name and the mean time of the load in it and all below, from the top."""
    found: list[tuple[str, float]] = []
    level: list[LayerFlow] = []
    above: str | None = None
    reached = 1.0
    for layer in [one for one in layers if one.service_ns is not None and one.given_by is not None]:
        if level and layer.given_by != above:
            reached *= _add(found, level, reached)
            level = []
        above = layer.given_by
        level.append(layer)
    if level:
        _add(found, level, reached)
    return found


def _add(found: list[tuple[str, float]], level: Sequence[LayerFlow], reached: float) -> float:
    """Add a level (one layer, or members that serve at the same time); return the part that reached it."""
    ios = sum((one.reads or 0.0) + (one.writes or 0.0) + (one.trims or 0.0) for one in level)
    moved = sum((one.read_bytes or 0.0) + (one.write_bytes or 0.0) for one in level)
    due = [(one.expected_read_bytes, one.expected_write_bytes) for one in level]
    expected = sum((reads or 0.0) + (writes or 0.0) for reads, writes in due)
    share = min(1.0, moved / expected) if expected else 1.0
    mean = (
        sum((one.service_ns or 0.0) * ((one.reads or 0.0) + (one.writes or 0.0)) for one in level) / ios
        if ios
        else 0.0
    )
    name = level[0].name if len(level) == 1 else f"{level[0].name} and {len(level) - 1} more"
    found.append((name, mean * reached * share))
    return share


def _tail(p99_ns: float, data: OpTotals) -> TimeSplit:
    """Return what is known of the 99th percentile: at most so much of it is the generator's.

    Which I/Os of a layer belong to the slowest of the load nobody recorded: the rest is unknown.
    """
    late = [data.latencies.get(kind) for kind in ("wait", "slat")]
    known = [one.percentile(99.0) for one in late if one is not None]
    # Where few I/Os waited at all, the generator had no part in the percentile.
    most = sum(float(one) for one in known if one is not None)
    generator = min(p99_ns, most)
    return TimeSplit(measured_ns=p99_ns, generator_ns=generator, layers=(), unknown_ns=p99_ns - generator)
