"""Section "Latency in parts": how long each part of an I/O's life took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.messages import say
from loadstone.report.article.elements import ArticleTable, Heading, Paragraph
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.report.article.elements import Block

PERCENTILES: Final = (50, 90, 95, 99, 99.9, 99.99)
HEADINGS: Final = (
    *table_heads("job", "part", "min", "mean", "stddev"),
    *(f"p{one:g}" for one in PERCENTILES),
    "max",
)
MEANING: Final = say("report.page.latency_parts")


def section(summary: Summary) -> Sequence[Block]:
    """Return the table; nothing when no latency was measured."""
    rows: list[list[str]] = []
    for total in summary.totals("job"):
        for op, stats in total.ops.items():
            for kind, lat in stats.latencies.items():
                shown: list[float | None] = [lat.min_ns, lat.mean_ns, lat.stddev_ns]
                shown += [lat.percentile(percent) for percent in PERCENTILES]
                name = f"{total.line.name} {op}" if kind == "lat" else ""
                rows.append([name, kind, *(units.duration(value) for value in [*shown, lat.max_ns])])
    if not rows:
        return []
    return [
        Heading(say("report.heading.latency_parts")),
        ArticleTable(HEADINGS, rows, names=2),
        Paragraph(MEANING, "soft"),
    ]
