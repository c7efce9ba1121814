"""The data path as a chart, for the pictures in which the diagram, which is HTML, has no place.

Knows lines and bars: a line for each layer from the target down, and what it did as a share of its
ceilings and of the time. What the shares are, `path_diagram` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.report.pictures.charts import base
from loadstone.report.run.path_diagram import members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.path import Paths
    from loadstone.report.pictures.charts import Spec
    from loadstone.report.run.path_diagram import DiagramLayer

TITLE: Final = say("report.heading.path")
LINE_HEIGHT: Final = 26
MAX_LABEL: Final = 210
MAX_NAME: Final = 26
LETTER: Final = 8
TITLE_LIMIT: Final = 480


def of_hosts(named: Sequence[tuple[str, Paths]], limited_by: str | None = None) -> list[Spec | None]:
    """Return a chart of each path, the name of its host in the title; a run on one host has no name there."""
    return [path(paths, limited_by, f"{TITLE} of {host}" if host else TITLE) for host, paths in named]


def path(paths: Paths, limited_by: str | None = None, title: str = TITLE) -> Spec | None:
    """Return the chart; None for a path without layers."""
    layers = members(paths, limited_by)
    if not layers:
        return None
    known = any(member.bars for _, member in layers)
    rows = _rows(layers)
    names = {row["line"]: row["name"] for row in rows}
    # Room for a wider font than the one the chart is laid out with.
    room = min(MAX_LABEL, LETTER * max(map(len, names.values())))
    expression = " : ".join(f"datum.value == '{line}' ? '{_quoted(name)}'" for line, name in names.items())
    y = {
        "field": "line",
        "type": "nominal",
        "axis": {
            "title": None,
            "labelExpr": f"{expression} : ''",
            "labelLimit": MAX_LABEL,
            "minExtent": room,
            "ticks": False,
            "domain": False,
        },
    }
    x = {
        "field": "percent",
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        # Where no ceiling and no use is known there are words alone, and an axis would be of nothing.
        "axis": {"title": say("report.axis.path"), "tickCount": 5} if known else None,
    }
    of_phase: Spec = {
        "title": {"text": title, "subtitle": paths.phase, "subtitleColor": "#555", "limit": TITLE_LIMIT}
    }
    return {
        **base(title, rows),
        **(of_phase if paths.phase else {}),
        "height": {"step": LINE_HEIGHT},
        "layer": [
            {
                "mark": {"type": "bar", "height": 14, "opacity": 0.55},
                "encoding": {"y": y, "x": x, "color": {"field": "colour", "scale": None}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "limit": 490},
                "encoding": {"y": y, "x": {"datum": 0}, "text": {"field": "text"}},
            },
        ],
    }


def _rows(layers: Sequence[tuple[str, DiagramLayer]]) -> list[Spec]:
    rows: list[Spec] = []
    for kind, member in layers:
        name = f"{kind} {member.name}" if kind != say("report.layer_kind.file") else member.name
        # The end of a long path tells more than its beginning.
        name = name if len(name) <= MAX_NAME else f"…{name[1 - MAX_NAME :]}"
        marked = f"{name} ({member.mark})" if member.mark else name
        bars = [(bar.percent, bar.colour, f"{bar.share} {bar.text}") for bar in member.bars]
        for at, (percent, colour, text) in enumerate(bars or [(0.0, "white", member.moved)]):
            rows.append(
                {
                    "line": f"{len(rows):03d}",
                    "name": "" if at else marked,
                    "percent": percent,
                    "colour": colour,
                    "text": text,
                }
            )
    return rows


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
