"""The charts of the host that a run had: its CPUs and its memory, over the time of the run.

Knows how rows of monitors become charts, and that rows of another time are none of the run's. Knows no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone.messages import say
from loadstone.report.pictures import charts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary

MAX_SECONDS: Final = 300
"""More rows of the monitors than this are added up for a chart."""


def host_cpu(summary: Summary) -> charts.Spec | None:
    """Return how busy the host's CPUs were, by kind."""
    host, beyond = _during(summary, summary.bundle.host("cpu.all."))
    kinds = {"user": "user", "system": "system", "irq": "irq", "iowait": "I/O wait", "steal": "stolen"}
    present = [kind for kind in kinds if f"cpu.all.{kind}_ns" in host.columns]
    if not present or host.height == 0:
        return None
    every = [name for name in host.columns if name.startswith("cpu.all.")]
    rows: list[charts.Spec] = []
    for row in _added(host, every).iter_rows(named=True):
        whole, below = sum(row[name] or 0 for name in every), 0.0
        for kind in present if whole else []:
            upto = below + 100 * (row[f"cpu.all.{kind}_ns"] or 0) / whole
            times = {"t0": (row["t_ns"] - row["dt_ns"]) / 1e9, "t1": row["t_ns"] / 1e9}
            rows.append({**times, "low": below, "high": upto, "kind": kinds[kind]})
            below = upto
    if not rows:
        return None
    names = [kinds[kind] for kind in present]
    return {
        **charts.base(say("report.chart.host_cpu"), rows),
        **_titled(say("report.chart.host_cpu"), beyond),
        "mark": {"type": "rect", "clip": True, "aria": False},
        "encoding": {
            "x": charts.time_axis(charts.whole_s(summary), "t0"),
            "x2": {"field": "t1"},
            "y": {
                "field": "low",
                "type": "quantitative",
                "scale": {"domain": [0, 100]},
                "axis": {"title": None, "tickCount": 5},
            },
            "y2": {"field": "high"},
            "color": charts.colour("kind", names),
        },
    }


def _added(host: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return so many rows as can be told apart on a chart: each the sum of several."""
    part = pl.int_range(pl.len()) // _every(host)
    added = host.group_by(part.alias("part"), maintain_order=True)
    return added.agg(pl.col("t_ns").last(), pl.col("dt_ns").sum(), pl.col(names).sum())


def _every(host: pl.DataFrame) -> int:
    return max(1, -(-host.height // MAX_SECONDS))


def host_memory(summary: Summary) -> charts.Spec | None:
    """Return the host's memory over time: available, cached, dirty, and the engine's own."""
    kinds = {
        "memory.available_bytes": say("report.legend.available"),
        "memory.cached_bytes": say("report.legend.page_cache"),
        "memory.dirty_bytes": say("report.legend.dirty"),
        "engine.rss_bytes": say("report.legend.engine"),
    }
    host, beyond = _during(summary, summary.bundle.host(*kinds))
    host = host.gather_every(_every(host))
    rows = [
        {"t": row["t_ns"] / 1e9, "gib": row[column] / (1 << 30), "line": name}
        for row in host.iter_rows(named=True)
        for column, name in kinds.items()
        if row.get(column) is not None
    ]
    if not rows:
        return None
    names = [name for name in kinds.values() if any(row["line"] == name for row in rows)]
    spec = charts.time_chart(
        summary, say("report.chart.host_memory"), rows, names=names, span_s=charts.whole_s(summary)
    )
    spec["layer"][-1]["encoding"]["y"] = charts.axis_from_zero("gib", label=None)
    return spec | _titled(say("report.chart.host_memory"), beyond)


def _during(summary: Summary, host: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows that lie in the time of the run, and how many do not.

    A clock that jumped, or a damaged file: one row of another year would set the scale of all.
    """
    _, end_s = charts.whole_s(summary)
    # The last one may be written when all has ended: it begins before that.
    within = (pl.col("t_ns") > 0) & (pl.col("t_ns") - pl.col("dt_ns") < end_s * 1e9)
    rows = host.filter(within)
    return rows, host.height - rows.height


def _titled(title: str, beyond: int) -> charts.Spec:
    if not beyond:
        return {}
    below = say("report.chart.out_of_time", rows=beyond)
    return {"title": {"text": title, "subtitle": below, "subtitleColor": "#555"}}
