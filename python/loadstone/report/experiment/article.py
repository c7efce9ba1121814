"""An experiment as an article: the answer first, the matrix, effects, the course of time, how to redo it.

Knows the order in which things are said. Words and tables are those of its sisters; how a page, a
sheet and Markdown look, the blocks' room knows. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.effects.metric_names import name_of
from loadstone.messages import say
from loadstone.report.article.elements import (
    Article,
    ArticleTable,
    Bullets,
    Drawings,
    Heading,
    Paragraph,
    TableCell,
    Typed,
    VerdictLine,
    Verdicts,
    drawing,
)
from loadstone.report.experiment import charts, tables, words
from loadstone.report.run import path_blocks
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.report.article.elements import Block, CellKind
    from loadstone.report.experiment.story import ExperimentStory
    from loadstone.report.experiment.tables import FactorTable
    from loadstone.report.pictures.charts import Spec

KINDS: Final[dict[str, CellKind]] = {
    "better": "better", "worse": "worse", "alike": "same", "open": "unknown", "confounded": "unknown",
    "requested": "unknown", "unknown": "unknown", "none": "none", "base": "base",
}  # fmt: skip


def article(story: ExperimentStory) -> Article:
    """Return the article."""
    return Article(
        kicker=say("report.page.experiment"),
        title=story.record.title,
        blocks=[
            *_answer(story),
            *_effects(story),
            *_listed(say("report.heading.open"), words.open_points(story.effects)),
            *_interactions(story),
            *_shares(story),
            *_time(story),
            *_more(story),
            *_listed(say("report.heading.no_figure"), tables.missing(story)),
            *(_combinations(story) if story.effects.factors else ()),
            *_listed(say("report.heading.without_effect"), tables.left_out(story)),
            *_listed(say("report.heading.not_tried"), tables.unset(story)),
            *path_blocks.of_runs(story.runs),
            *_machine(story),
            Heading(say("report.heading.redo")),
            Typed(story.redo),
            Paragraph(tables.design(story), "soft"),
            *_method(story),
        ],
    )


def _answer(story: ExperimentStory) -> Iterator[Block]:
    if story.record.question:
        yield Paragraph(story.record.question, "soft")
    yield Paragraph(words.headline(story), "answer")
    for doubt in tables.doubts(story):
        yield Paragraph(doubt, "doubt")
    if story.record.ended_because:
        yield Paragraph(say("report.page.ended_early", reason=story.record.ended_because), "doubt")
    if story.effects.recommendations:
        yield Verdicts(_choices(story))
    yield Paragraph(tables.counts(story), "soft")


def _choices(story: ExperimentStory) -> list[VerdictLine]:
    several = len(story.effects.patterns) > 1
    lines = []
    for one in story.effects.recommendations:
        costs = words.costs(story, one)
        lines.append(
            VerdictLine(
                words.sentence(words.aim(one)) + (f", {one.pattern}" if several else ""),
                "measures_storage" if one.levels is not None else "cannot_tell",
                words.choice(story.effects, one),
                say("report.page.also_changes", costs=costs) if costs else "",
            )
        )
    return lines


def _effects(story: ExperimentStory) -> Iterator[Block]:
    if not story.effects.factors:
        yield Heading(say("report.heading.measured"))
        rows: list[list[TableCell | str]] = [list(row) for row in tables.patterns(story)]
        yield ArticleTable([*table_heads("pattern", "valid_runs"), *map(name_of, story.metrics)], rows)
        return
    yield Heading(words.sentence(name_of(story.metric)))
    for table in tables.matrix(story, [story.metric]):
        yield _factor(table)
    if story.effects.tests:
        yield Paragraph(words.legend(story.effects, story.record.design), "soft")
    spec = charts.effects(story)
    if spec is not None:
        yield Drawings([drawing(spec, charts.effects(story, narrow=True))], 1)


def _factor(factors: FactorTable) -> ArticleTable:
    rows: list[list[TableCell | str]] = [
        [
            line.name,
            *(
                TableCell(
                    one.value, KINDS[one.kind], below=one.change, strong=one.kind in ("better", "worse")
                )
                for one in line.cells
            ),
        ]
        for line in factors.lines
    ]
    return ArticleTable([factors.factor, *factors.levels], rows, matrix=True)


def _drawn(specs: Sequence[Spec | None], columns: int = 2) -> Iterator[Block]:
    known = [drawing(spec) for spec in specs if spec is not None]
    if known:
        yield Drawings(known, columns)


def _listed(title: str, lines: Sequence[str]) -> Iterator[Block]:
    if lines:
        yield Heading(title)
        yield Bullets(lines)


def _interactions(story: ExperimentStory) -> Iterator[Block]:
    lines = tables.interactions(story)
    yield from _listed(say("report.heading.interactions"), lines)
    if lines:
        yield from _drawn(charts.interactions(story))


def _shares(story: ExperimentStory) -> Iterator[Block]:
    spec = charts.shares(story)
    if spec is not None:
        yield Heading(say("report.heading.shares"))
        yield from _drawn([spec], 1)
        yield ArticleTable(*tables.shares(story))
        if note := tables.shared(story):
            yield Paragraph(note, "soft")


def _time(story: ExperimentStory) -> Iterator[Block]:
    specs = charts.over_time(story)
    if specs:
        yield Heading(say("report.heading.order"))
        yield Paragraph(
            say("report.page.order"),
            "soft",
        )
        yield Bullets([*tables.drifts(story), *tables.outliers(story)])
        yield from _drawn(specs)


def _more(story: ExperimentStory) -> Iterator[Block]:
    # Where nothing was varied, all of them stand in one table.
    if story.metrics[1:] and story.effects.factors:
        yield Heading(say("report.heading.other_metrics"))
        for table in tables.matrix(story, story.metrics[1:]):
            yield _factor(table)


def _combinations(story: ExperimentStory) -> Iterator[Block]:
    names = [one.name for one in story.effects.factors]
    rows: list[list[TableCell | str]] = []
    for one in tables.combinations(story):
        if one.first:
            rows.append([one.pattern])
        value = say("report.mark.no_data") if one.why else one.value
        rows.append([*one.levels, one.runs, value, one.interval])
    missing = tables.no_data(story)
    if rows or missing:
        yield Heading(say("report.heading.combinations"))
    if rows:
        headings = [
            *names,
            say("report.column.valid_runs"),
            name_of(story.metric),
            say("report.column.interval"),
        ]
        yield ArticleTable(headings, rows, names=len(names))
    if missing:
        yield Bullets(missing)


def _machine(story: ExperimentStory) -> Iterator[Block]:
    yield Heading(say("report.heading.machine"))
    rows: list[list[TableCell | str]] = [
        [
            TableCell(one.control, strong=one.left), one.subject, one.before, one.asked, str(one.times),
            TableCell(one.outcome, strong=one.left),
        ]
        for one in tables.settings(story)
    ]  # fmt: skip
    if not rows:
        yield Paragraph(say("report.page.nothing_changed"))
        return
    yield ArticleTable(table_heads("setting", "of", "before", "set_to", "times", "afterwards"), rows, names=4)


def _method(story: ExperimentStory) -> Iterator[Block]:
    yield Heading(say("report.heading.method"))
    rows = [
        [one.pattern, one.metric, one.runs, one.method, one.noise, one.normal, one.equal]
        for one in tables.models(story)
    ]
    headings = table_heads("pattern", "metric", "runs", "error_by", "noise", "normal_p", "equal_noise_p")
    yield ArticleTable(headings, rows, names=2)
    notes = tables.notes(story)
    if notes:
        yield Bullets(notes)
