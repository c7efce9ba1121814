"""A comparison as PDF: text, the matrix, the chart of differences, what was left out and what differs.

Knows how lines and tables are laid out on a sheet as wide as A4 and as long as it needs to be.
The words and the charts are those of the page. Computes nothing.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import vl_convert

from loadstone import units
from loadstone.printable import printable
from loadstone.report.comparison import charts, words
from loadstone.report.pictures import chart_images
from loadstone.report.pictures.charts import FONT

if TYPE_CHECKING:
    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.report.pictures.charts import Spec

WIDTH: Final = 794.0
"""A4 at 96 points to the inch."""
MARGIN: Final = 48.0
INNER: Final = WIDTH - 2 * MARGIN
FILLS: Final = {"better": "#d9f2e6", "worse": "#ffe3c7", "same": "#f1f1f1", "unknown": "#f1f1f1"}
INK: Final = "#1c1c1c"
SOFT: Final = "#606060"
WRONG: Final = "#a33c00"


class _Sheet:
    """What was drawn, and how far down."""

    def __init__(self) -> None:
        self.y = MARGIN
        self.parts: list[str] = []

    def text(self, said: str, size: float = 11, *, weight: int = 400, ink: str = INK, x: float = 0.0) -> None:
        """Write a paragraph, broken into lines."""
        most = max(20, int((INNER - x) / (size * 0.52)))
        for line in textwrap.wrap(said, most) or [""]:
            self.y += size * 1.35
            self.word(line, MARGIN + x, self.y, size, weight=weight, ink=ink)

    def word(
        self, said: str, x: float, y: float, size: float, *, weight: int = 400, ink: str = INK,
        right: bool = False, struck: bool = False,
    ) -> None:  # fmt: skip
        """Write one line where it is told."""
        anchor = ' text-anchor="end"' if right else ""
        line = ' text-decoration="line-through"' if struck else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-family="{FONT}" font-size="{size}" font-weight="{weight}" '
            f'fill="{ink}"{anchor}{line}>{escape(printable(said).replace(units.THIN, " "))}</text>'
        )

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """Colour an area."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'
        )

    def picture(self, spec: Spec, x: float, width: float) -> float:
        """Draw a chart; returns its height."""
        drawn = chart_images.svg(spec)
        size = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn)
        wide, high = (float(size[1]), float(size[2])) if size else (width, width / 2)
        scale = width / wide
        inner = re.sub(r"^.*?<svg", "<svg", drawn, count=1, flags=re.DOTALL)
        # Names inside a chart are its own: two charts on a sheet must not share a clip path.
        number = len(self.parts)
        inner = re.sub(r'id="([^"]+)"', rf'id="c{number}-\1"', inner)
        inner = re.sub(r"url\(#([^)]+)\)", rf"url(#c{number}-\1)", inner)
        self.parts.append(f'<g transform="translate({x:.1f},{self.y:.1f}) scale({scale:.4f})">{inner}</g>')
        return high * scale

    def svg(self) -> str:
        """Return the whole sheet."""
        height = self.y + MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}">'
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>{"".join(self.parts)}</svg>'
        )


def pdf(made: ComparisonTable) -> bytes:
    """Return the PDF."""
    return bytes(vl_convert.svg_to_pdf(sheet(made)))


def sheet(made: ComparisonTable) -> str:
    """Return what is on the sheet, as SVG."""
    drawn = _Sheet()
    names = [one.name for one in made.sides]
    drawn.text(f"{', '.join(names[1:])} against {names[0]}", 19, weight=700)
    drawn.text(words.headline(made), 12.5)
    for one in made.sides:
        for doubt in one.doubts:
            drawn.text(f"{one.name}: {doubt}", 11, weight=700, ink=WRONG)
        drawn.text(f"{one.name}: {words.kind(one)}", 11, ink=WRONG if one.verdict == "not_valid" else SOFT)
    _matrix(made, drawn)
    drawn.text(words.legend(made), 9, ink=SOFT)
    forest = charts.forest(made)
    if forest is not None:
        drawn.y += 12
        drawn.y += drawn.picture(forest, MARGIN, min(INNER, 620.0))
    _list(
        drawn,
        "Left out, because it is not valid",
        [f"{o.side} {o.run}, {o.phase}: {o.why}" for o in made.excluded],
    )
    _list(drawn, "To keep in mind", list(made.warnings))
    _list(drawn, "What else differs", [f"{one.key}: {' → '.join(one.values)}" for one in made.differences])
    _grid(drawn, "Latency against load", charts.curves(made), 2)
    _grid(drawn, "Over time", charts.over_time(made), 2)
    _grid(drawn, "Latency distributions", charts.distributions(made), 2)
    return drawn.svg()


def _matrix(made: ComparisonTable, drawn: _Sheet) -> None:
    """Draw the matrix: a line for each quantity, a change below each value."""
    several = len(made.sides)
    first = 150.0 if several <= 4 else 110.0
    column = (INNER - first) / several
    size = 10.0 if several <= 4 else 8.0
    drawn.y += 22
    for at, side in enumerate(made.sides):
        short = textwrap.shorten(side.name, max(8, int(column / (size * 0.55))), placeholder="…")
        drawn.word(short, MARGIN + first + (at + 1) * column - 6, drawn.y, size, weight=700, right=True)
    last = -1
    lines: dict[tuple[int, str], list[Effect]] = {}
    for effect in words.shown(made):
        lines.setdefault((effect.row, effect.metric.name), []).append(effect)
    for (row, metric), found in lines.items():
        base = found[0]
        if row != last:
            drawn.y += 20
            drawn.rect(MARGIN, drawn.y - 13, INNER, 0.8, "#999")
            drawn.word(base.pattern, MARGIN, drawn.y, 11, weight=700)
            last = row
        top = drawn.y + 5
        drawn.y += 17
        drawn.word(metric, MARGIN, drawn.y, size)
        _value(drawn, base.before, base, (first, column, size), 0)
        for one in found:
            left = MARGIN + first + one.side * column
            if one.after.valid:
                drawn.rect(left, top, column - 2, 29, FILLS[one.judgement])
            _value(drawn, one.after, one, (first, column, size), one.side)
            weight = 700 if one.told_apart else 400
            told = words.told(one)
            drawn.word(told, left + column - 6, drawn.y + 12, size - 1.5, weight=weight, right=True)
        drawn.y += 15


def _value(
    drawn: _Sheet, entry: SideValue, one: Effect, columns: tuple[float, float, float], at: int
) -> None:
    first, column, size = columns
    right = MARGIN + first + (at + 1) * column - 6
    ink = INK if entry.valid else WRONG
    text = words.entry(entry, one.metric.quantity)
    drawn.word(text, right, drawn.y, size, ink=ink, right=True, struck=not entry.valid)


def _list(drawn: _Sheet, title: str, said: list[str]) -> None:
    if not said:
        return
    drawn.y += 12
    drawn.text(title, 13, weight=700)
    for one in said:
        drawn.text(f"• {one}", 9.5)


def _grid(drawn: _Sheet, title: str, specs: list[Spec], columns: int) -> None:
    if not specs:
        return
    drawn.y += 12
    drawn.text(title, 13, weight=700)
    width = (INNER - 16) / columns
    for start in range(0, len(specs), columns):
        drawn.y += 8
        heights = [
            drawn.picture(spec, MARGIN + at * (width + 16), width)
            for at, spec in enumerate(specs[start : start + columns])
        ]
        drawn.y += max(heights)
