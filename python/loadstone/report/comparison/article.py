"""A comparison as an article: the sentence, the verdicts, the matrix, the chart of differences, the rest.

Knows the order, and that many sides are rows and not columns. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.messages import say
from loadstone.report.article.elements import (
    Article,
    ArticleTable,
    Bullets,
    Drawings,
    Heading,
    Paragraph,
    TableCell,
    VerdictLine,
    Verdicts,
    drawing,
)
from loadstone.report.comparison import charts, words
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.comparison.metric import Metric, Quantity
    from loadstone.report.article.elements import Block
    from loadstone.report.pictures.charts import Spec

OPERATE: Final = say("report.heading.operate")
COLUMNS: Final = 3
"""So many sides are columns of the matrix; more are its rows, so that it stays within the page."""


def article(comparison: ComparisonTable) -> Article:
    """Return what is said of a comparison."""
    names = [one.name for one in comparison.sides]
    blocks: list[Block] = [Paragraph(words.headline(comparison), "answer")]
    blocks += [Paragraph(f"{one.name}: {doubt}", "doubt") for one in comparison.sides for doubt in one.doubts]
    blocks.append(
        Verdicts(
            [
                VerdictLine(one.name, one.verdict, words.kind(one), str(one.worst.verdict.sentences))
                for one in comparison.sides
            ]
        )
    )
    blocks += matrix(comparison)
    blocks.append(Paragraph(words.legend(comparison), "soft"))
    forest = charts.forest(comparison)
    blocks += [Drawings([drawing(forest)], 1)] if forest is not None else []
    blocks += _list(
        say("report.heading.left_out"),
        [f"{side}: {phases}: {why}" for side, phases, why in words.excluded(comparison)],
    )
    blocks += _list(say("report.heading.warnings"), comparison.warnings)
    if comparison.operating:
        blocks += [
            Heading(OPERATE),
            ArticleTable(table_heads("", "side", "value"), words.operating(comparison), names=3),
        ]
    if comparison.differences:
        rows = [[one.key, *one.values] for one in comparison.differences]
        blocks += [
            Heading(say("report.heading.differs")),
            ArticleTable(["", *names], rows, names=1 + len(names)),
        ]
    blocks += _charts(say("report.heading.curves"), charts.curves(comparison), 2)
    blocks += _charts(say("report.heading.over_time"), charts.over_time(comparison), 3)
    distributions = _charts(say("report.heading.distributions"), charts.distributions(comparison), 2)
    if distributions and (points := words.of_points(comparison)):
        distributions.insert(1, Paragraph(points, "soft"))
    blocks += distributions
    blocks += _jobs(comparison)
    return Article(say("report.page.comparison"), words.title(comparison), blocks)


def matrix(comparison: ComparisonTable) -> list[ArticleTable]:
    """Return the matrix: a line for each quantity of each pattern; of many sides a table for each pattern."""
    names = [one.name for one in comparison.sides]
    shown = words.shown(comparison)
    blocks = []
    for row in dict.fromkeys(effect.row for effect in shown):
        row_effects = [effect for effect in shown if effect.row == row]
        metrics = list(dict.fromkeys(effect.metric for effect in row_effects))
        lines = [
            (metric, _line(names, metric, [one for one in row_effects if one.metric == metric]))
            for metric in metrics
        ]
        blocks.append((row_effects[0].pattern, lines))
    if len(names) <= COLUMNS:
        rows: list[Sequence[TableCell | str]] = []
        for pattern, lines in blocks:
            rows.append([TableCell(pattern)])
            rows += [[metric.name, *cells] for metric, cells in lines]
        return [ArticleTable([say("report.column.pattern"), *names], rows, matrix=True)] if rows else []
    return [
        ArticleTable(
            [pattern, *(metric.name for metric, _ in lines)],
            [[name, *(cells[at] for _, cells in lines)] for at, name in enumerate(names)],
            matrix=True,
        )
        for pattern, lines in blocks
    ]


def _line(names: Sequence[str], metric: Metric, effects: Sequence[Effect]) -> list[TableCell]:
    by_side = {one.side: one for one in effects}
    cells = [_cell(effects[0].before, metric.quantity)]
    for at in range(1, len(names)):
        one = by_side.get(at)
        cells.append(TableCell(units.NONE, "none") if one is None else _cell(one.after, metric.quantity, one))
    return cells


def _cell(entry: SideValue, quantity: Quantity, one: Effect | None = None) -> TableCell:
    text = words.entry(entry, quantity)
    if not entry.valid:
        return TableCell(text, struck=True, below=say("report.mark.not_valid"))
    below = [words.each(entry, quantity), words.left_out(entry)]
    below = below if one is None else [words.told(one), *below]
    return TableCell(text, "base" if one is None else one.judgement, below="\n".join(filter(None, below)))


def _list(title: str, said: Sequence[str]) -> list[Block]:
    return [Heading(title), Bullets(said)] if said else []


def _charts(title: str, specs: Sequence[Spec], columns: int) -> list[Block]:
    return [Heading(title), Drawings([drawing(spec) for spec in specs], columns)] if specs else []


def _jobs(comparison: ComparisonTable) -> list[Block]:
    if not comparison.rows:
        return []
    if len(comparison.sides) > COLUMNS:
        return [
            Heading(say("report.heading.each_job")),
            ArticleTable(table_heads("job", "metric", "side", "value"), _each(comparison), names=3),
        ]
    rows: list[list[TableCell | str]] = []
    before = ("", "", "")
    for row in comparison.rows:
        names = (row.thing, row.job, row.op)
        quantity = row.metric.quantity
        rows.append(
            [
                "" if names == before else " ".join(part for part in names if part),
                row.metric.name,
                words.value(row.cells[0].sample, quantity),
                *(
                    TableCell(
                        words.value(cell.sample, quantity),
                        cell.judgement,
                        below=f"{words.change(cell.contrast)} {words.MARKS[cell.judgement]}".rstrip(),
                    )
                    for cell in row.cells[1:]
                ),
            ]
        )
        before = names
    headings = [*table_heads("job", "metric"), *(one.name for one in comparison.sides)]
    return [Heading(say("report.heading.each_job")), ArticleTable(headings, rows, names=2)]


def _each(comparison: ComparisonTable) -> list[list[TableCell | str]]:
    """Return a row for each side: so many have no room beside each other."""
    rows: list[list[TableCell | str]] = []
    before = ("", "", "")
    for row in comparison.rows:
        names = (row.thing, row.job, row.op)
        job = "" if names == before else " ".join(part for part in names if part)
        before = names
        for side, cell in zip(comparison.sides, row.cells, strict=True):
            change = "" if side is comparison.sides[0] else words.change(cell.contrast)
            first = side is comparison.sides[0]
            rows.append(
                [
                    job if first else "",
                    row.metric.name if first else "",
                    side.name,
                    TableCell(
                        words.value(cell.sample, row.metric.quantity),
                        cell.judgement if change else "",
                        below=f"{change} {words.MARKS[cell.judgement]}".strip() if change else "",
                    ),
                ]
            )
    return rows
