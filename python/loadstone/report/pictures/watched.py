"""A watched host beside the load: strips one below the other, on one time axis.

Knows which quantities make a strip, and that what nobody saw is a gap in a line. Computes nothing but
sums of neighbouring rows where there are more than can be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loadstone.analysis import watched
from loadstone.messages import say
from loadstone.report.pictures import charts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.watched import Track, Unit, WatchedHost
    from loadstone.report.pictures.charts import Spec

MOST_POINTS: Final = 240
STRIP_HEIGHT: Final = 78
SPACING: Final = 32
LEGEND_AT: Final = 120
AXIS_WIDTH: Final = 58
GAP: Final = 2.5
"""So many usual lengths of a row between two of them are a gap."""
STRIPS: Final = (
    (
        say("report.chart.cpu"),
        ("cpu_percent", "cpu_minute_percent", "busiest_core_percent", "cpu_of_limit_percent"),
    ),
    (say("report.chart.disks"), ("disks_read_bytes_per_s", "disks_write_bytes_per_s")),
    (say("report.chart.busiest_disk"), ("disk_*_busy_percent",)),
    (say("report.chart.network"), ("net_rx_bytes_per_s", "net_tx_bytes_per_s")),
    (say("report.chart.memory"), ("memory_cache_bytes", "memory_dirty_bytes", "zfs_arc_bytes")),
)
"""Title and the quantities in it; of those with a star the one with the highest mean."""
SCALES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def lanes(summary: Summary) -> list[tuple[str, Spec]]:
    """Return a picture for each watched host: the load above, the host's strips below it."""
    pictures = []
    for host in watched.hosts(summary.bundle):
        tracks = {one.key: one for one in watched.tracks(host.rows, host.facts)}
        known = [
            (title, chosen)
            for title, keys in STRIPS
            if (chosen := [one for key in keys for one in _chosen(key, tracks)])
        ]
        strips = [
            _strip(summary, title, chosen, host, last=at == len(known) - 1)
            for at, (title, chosen) in enumerate(known)
        ]
        if strips:
            pictures.append((host.name, _together(summary, host, strips)))
    return pictures


def _together(summary: Summary, host: WatchedHost, strips: Sequence[Spec]) -> Spec:
    load = _load(summary)
    return {
        "$schema": charts.SCHEMA,
        "config": charts.config(),
        "title": say("report.chart.beside_load", host=host.name),
        "spacing": SPACING,
        "bounds": "flush",
        "vconcat": [*load, *strips],
        "resolve": {"scale": {"color": "independent"}},
    }


def _load(summary: Summary) -> list[Spec]:
    """Return the load's own strip: its bandwidth over all jobs."""
    rows = [
        {"t": row["t"], "v": row["bytes_per_s"], "line": row["op"]}
        for row in charts.totals_over_time(summary)
    ]
    if not rows:
        return []
    return [_drawn(summary, "load", rows, "bytes_per_s")]


def _strip(summary: Summary, title: str, chosen: Sequence[Track], host: WatchedHost, *, last: bool) -> Spec:
    points = [row for track in chosen for row in _points(track, host.interval_ns)]
    # As in the host's own charts: what has the time of another day would set the scale of all.
    end_s = charts.whole_s(summary)[1] + host.interval_ns / 1e9
    rows = [row for row in points if 0 <= row["t"] <= end_s]
    beyond = sum(row["v"] is not None for row in points) - sum(row["v"] is not None for row in rows)
    if title.startswith("busiest"):
        title = chosen[0].name.replace(" busy", " busy, %")
    rows = rows or [{"t": 0.0, "v": None, "line": chosen[0].name}]
    if beyond:
        title = f"{title} ({say('report.chart.out_of_time', rows=beyond)})"
    return _drawn(summary, title, rows, chosen[0].unit, last=last)


def _chosen(key: str, tracks: dict[str, Track]) -> list[Track]:
    if "*" not in key:
        return [tracks[key]] if key in tracks else []
    before, _, after = key.partition("*")
    alike = [one for name, one in tracks.items() if name.startswith(before) and name.endswith(after)]
    return [max(alike, key=lambda one: one.mean.value)] if alike else []


def _points(track: Track, interval_ns: int) -> Iterator[dict[str, Any]]:
    """Yield points of a line, neighbours together where they are many, and nothing in a gap."""
    every = max(1, -(-len(track.numerators) // MOST_POINTS))
    usual_ns = max(interval_ns, float(np.median(track.end_ns - track.start_ns))) * every
    before_ns: float | None = None
    for at in range(0, len(track.numerators), every):
        part = slice(at, at + every)
        start, end = float(track.start_ns[part][0]), float(track.end_ns[part][-1])
        if before_ns is not None and start - before_ns > (GAP - 1) * usual_ns:
            yield {"t": (start + before_ns) / 2e9, "v": None, "line": track.name}
        yield {
            "t": (start + end) / 2e9,
            "v": float(track.numerators[part].sum() / track.denominators[part].sum()),
            "line": track.name,
        }
        before_ns = end


def _drawn(
    summary: Summary, title: str, rows: list[dict[str, Any]], unit: Unit, *, last: bool = False
) -> Spec:
    """Return one strip; only the last one has the time below it."""
    names = list(dict.fromkeys(row["line"] for row in rows))
    most = max((row["v"] for row in rows if row["v"] is not None), default=0.0)
    axis: Spec = {"title": None, "tickCount": 3, "minExtent": AXIS_WIDTH, "maxExtent": AXIS_WIDTH}
    scale: Spec = {"zero": True}
    if unit == "percent":
        scale = {"domain": [0, 104], "clamp": True}
        axis["values"] = [0, 50, 100]
    elif unit in ("bytes_per_s", "bytes"):
        size, name = next((one for one in SCALES if most >= one[0]), SCALES[-1])
        rows = [{**row, "v": None if row["v"] is None else row["v"] / size} for row in rows]
        title = f"{title}, {name}{'/s' if unit == 'bytes_per_s' else ''}"
    few = len(rows) < 60 * len(names)
    across = charts.time_axis(charts.whole_s(summary), "t")
    if not last:
        across["axis"] |= {"title": None, "labels": False}
    # Beside the strip's title: over the lines it would hide them.
    beside: Spec = {"orient": "none", "direction": "horizontal", "legendX": LEGEND_AT, "legendY": -20}
    ink = charts.inked("line", names, **beside)
    if len(names) == 1:
        ink = charts.without_legend(ink)
    return {
        "title": {"text": title, "fontSize": 12, "offset": -14 if len(names) > 1 else 4},
        "width": charts.WIDTH - AXIS_WIDTH - 14,
        "height": STRIP_HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.7, "clip": True, "point": {"size": 12} if few else False},
        "encoding": {
            "x": across,
            "y": {"field": "v", "type": "quantitative", "scale": scale, "axis": axis},
            **ink,
        },
    }
