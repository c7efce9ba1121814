"""Where the latency of a load went: the generator, each layer, and what no clock explains.

Knows the layers' own clocks (time in service, by operation, and of a sample of I/Os) and the engine's
four latencies. The time of a layer is the mean of its I/Os, weighed with the part of the load that
reached it; what it spent itself is that without the layer below. Of the 99th percentile the slowest of
a layer are taken to be the slowest of the load, as far down as each of the load's I/Os is one of the
layer's. Judges nothing.
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
BELOW: Final = " and below"
ROUNDING: Final = 1.02
"""A layer's clock may be this much beyond the one above it: they are read at other moments."""
SAMPLING: Final = 1.5
"""The same for percentiles of a sample."""
SAME: Final = 0.05
"""An I/O of a layer is one of the load where number and size of both differ by less."""


def split(data: OpTotals | None, layers: Sequence[LayerFlow]) -> Time | None:
    """Return where the mean latency went; None without latencies."""
    lat = data.latencies.get("lat") if data is not None else None
    whole = None if lat is None else lat.mean_ns
    if data is None or lat is None or not lat.count or whole is None:
        return None
    # Sums over all I/Os: not each of them waited.
    spent = {
        kind: (latency.mean_ns or 0.0) * (latency.count or 0) / lat.count
        for kind, latency in data.latencies.items()
        if kind != "lat"
    }
    generator = min(whole, spent.get("wait", 0.0) + spent.get("slat", 0.0))
    levels = _levels(layers)
    parts, unknown = divided(whole - generator, _clocks(levels))
    p99 = lat.percentile(99.0)
    return Time(
        measured_ns=whole,
        generator_ns=generator,
        layers=parts,
        unknown_ns=unknown,
        p99=None if p99 is None else _tail(float(p99), data, levels),
    )


def divided(
    below_ns: float, clocks: Sequence[tuple[str, float]], slack: float = ROUNDING
) -> tuple[tuple[LayerTime, ...], float]:
    """Divide the time in the kernel and below among the layers with a clock; the rest is unknown."""
    if not clocks or clocks[0][1] > slack * below_ns:
        # The first layer's I/Os take longer than the load's: they are not the same I/Os.
        return (), below_ns
    layer_times: list[LayerTime] = []
    left = below_ns
    names = [ABOVE, *(name for name, _ in clocks)]
    ends = [*(min(ns, below_ns) for _, ns in clocks), 0.0]
    for name, end in zip(names, ends, strict=True):
        inner = min(end, left)
        layer_times.append(LayerTime(name=name, ns=left - inner))
        left = inner
    return tuple(layer_times), 0.0


def _levels(layers: Sequence[LayerFlow]) -> list[list[LayerFlow]]:
    """Return the layers with a clock from the top; members that serve at the same time are one level."""
    levels: list[list[LayerFlow]] = []
    for layer in [one for one in layers if one.service_ns is not None and one.given_by is not None]:
        if levels and levels[-1][0].given_by == layer.given_by:
            levels[-1].append(layer)
        else:
            levels.append([layer])
    return levels


def _name(level: Sequence[LayerFlow]) -> str:
    return level[0].name if len(level) == 1 else f"{level[0].name} and {len(level) - 1} more"


def _clocks(levels: Sequence[Sequence[LayerFlow]]) -> list[tuple[str, float]]:
    """Return each level's name and the mean time of the load in it and all below, from the top."""
    clocks: list[tuple[str, float]] = []
    reached = 1.0
    for level in levels:
        share, mean = _share(level), _mean(level)
        clocks.append((_name(level), mean * reached * share))
        reached *= share
    return clocks


def _ios(level: Sequence[LayerFlow]) -> float:
    return sum((one.reads or 0.0) + (one.writes or 0.0) + (one.trims or 0.0) for one in level)


def _moved(level: Sequence[LayerFlow]) -> float:
    return sum((one.read_bytes or 0.0) + (one.write_bytes or 0.0) for one in level)


def _due(level: Sequence[LayerFlow]) -> float:
    """Return the bytes that the layer above gave; 0 where that is not known."""
    return sum((one.expected_read_bytes or 0.0) + (one.expected_write_bytes or 0.0) for one in level)


def _share(level: Sequence[LayerFlow]) -> float:
    """Return the part of what the layer above gave that reached this one."""
    due = _due(level)
    return min(1.0, _moved(level) / due) if due else 1.0


def _mean(level: Sequence[LayerFlow]) -> float:
    ios = _ios(level)
    spent = sum((one.service_ns or 0.0) * ((one.reads or 0.0) + (one.writes or 0.0)) for one in level)
    return spent / ios if ios else 0.0


def _tail(p99_ns: float, data: OpTotals, levels: Sequence[Sequence[LayerFlow]]) -> TimeSplit:
    """Return where the 99th percentile went: at most so much of it is the generator's."""
    late = [data.latencies.get(kind) for kind in ("wait", "slat")]
    known = [one.percentile(99.0) for one in late if one is not None]
    # Where few I/Os waited at all, the generator had no part in the percentile.
    most = sum(float(one) for one in known if one is not None)
    generator = min(p99_ns, most)
    size = data.bytes / data.operations if data.operations else 0.0
    parts, unknown = divided(p99_ns - generator, _tails(levels, size), SAMPLING)
    return TimeSplit(measured_ns=p99_ns, generator_ns=generator, layers=parts, unknown_ns=unknown)


def _tails(levels: Sequence[Sequence[LayerFlow]], size_bytes: float) -> list[tuple[str, float]]:
    """Return the 99th percentile of each level, as far down as an I/O of the load is one of the level's."""
    tails: list[tuple[str, float]] = []
    for level in levels:
        p99s = [one.service_p99_ns for one in level if one.service_p99_ns is not None]
        if (
            len(p99s) < len(level)
            or max(p99s) > SAMPLING * min(p99s)
            or not _is_one_to_one(level, size_bytes)
        ):
            break
        tails.append((_name(level), max(p99s)))
    if tails and len(tails) < len(levels):
        tails[-1] = (tails[-1][0] + BELOW, tails[-1][1])
    return tails


def _is_one_to_one(level: Sequence[LayerFlow], size_bytes: float) -> bool:
    """Return whether a level's I/Os are those of the load: none more, fewer, larger or smaller."""
    ios, moved = _ios(level), _moved(level)
    due = _due(level) or moved
    return ios > 0 and abs(moved / ios - size_bytes) <= SAME * size_bytes and abs(moved - due) <= SAME * due
