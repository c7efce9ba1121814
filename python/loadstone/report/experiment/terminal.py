"""An experiment on a terminal of any width: the answer, what to choose, the matrix, what is open.

Knows tables and colours: green for better, orange for worse, grey for what is not told apart.
Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from loadstone.effects.metric_names import name_of
from loadstone.messages import say
from loadstone.report.experiment import tables, words
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from loadstone.report.experiment.story import ExperimentStory
    from loadstone.report.experiment.tables import FactorTable

COLOURS: Final = {
    "better": "green", "worse": "dark_orange", "alike": "bold bright_black", "open": "bright_black",
    "confounded": "magenta", "requested": "bright_black", "unknown": "bright_black",
    "none": "bright_black", "base": "",
}  # fmt: skip
NARROW: Final = 100
"""Below this width levels stand below each other."""
MOST: Final = 8
"""So many lines of a kind; the page and the JSON have all of them."""


def terminal(story: ExperimentStory, console: Console) -> None:
    """Print the report."""
    console.print(Text(story.record.title, "bold"))
    for doubt in tables.doubts(story):
        console.print(Text(doubt, "bold red"))
    if story.record.ended_because:
        console.print(Text(say("report.results.ended_early", reason=story.record.ended_because), "yellow"))
    console.print(Text(words.headline(story), "bold"))
    _choices(story, console)
    console.print(Text(tables.counts(story), "dim"))
    for table in tables.matrix(story, [story.metric]):
        console.print()
        if console.width >= NARROW and len(table.levels) <= 5:
            console.print(_table(table))
        else:
            for line in _lines(table):
                console.print(line)
    if story.effects.tests:
        console.print(Text(words.legend(story.effects, story.record.design), "dim"))
    if not story.effects.factors:
        console.print(_measured(story))
    _some(say("report.experiment.open"), words.open_points(story.effects), "yellow", console)
    _some(
        say("report.experiment.interaction"),
        tables.interactions(story, clear_only=True),
        "",
        console,
    )
    _some(say("report.experiment.drift"), tables.drifts(story, clear_only=True), "", console)
    _some("", tables.outliers(story), "yellow", console)
    _some("", tables.missing(story), "yellow", console)
    _some(say("report.experiment.left_out"), tables.left_out(story), "red", console)
    _some(say("report.experiment.not_tried"), tables.unset(story), "yellow", console)


def _choices(story: ExperimentStory, console: Console) -> None:
    several = len(story.effects.patterns) > 1
    for one in story.effects.recommendations:
        where = f", {one.pattern}" if several else ""
        line = Text(f"{words.aim(one)}{where}: ")
        line.append(words.choice(story.effects, one), "green" if one.levels is not None else "yellow")
        costs = words.costs(story, one)
        console.print(line.append(say("report.experiment.also_changes", costs=costs) if costs else "", "dim"))


def _table(factors: FactorTable) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(factors.factor, overflow="fold")
    for level in factors.levels:
        table.add_column(level, justify="right", overflow="fold")
    for line in factors.lines:
        cells = [Text(f"{one.value}  {one.change}".rstrip(), COLOURS[one.kind]) for one in line.cells]
        table.add_row(line.name, *cells)
    return table


def _measured(story: ExperimentStory) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*table_heads("pattern", "valid_runs"), *map(name_of, story.metrics)):
        table.add_column(
            name, justify="left" if name == say("report.column.pattern") else "right", overflow="fold"
        )
    for row in tables.patterns(story):
        table.add_row(*row)
    return table


def _lines(factors: FactorTable) -> Iterator[Text]:
    yield Text(factors.factor, "bold")
    for line in factors.lines:
        yield Text(f"  {line.name}")
        for level, one in zip(factors.levels, line.cells, strict=True):
            yield Text(f"    {level}  ").append(f"{one.value}  {one.change}".rstrip(), COLOURS[one.kind])


def _some(kind: str, lines: list[str], style: str, console: Console) -> None:
    for line in lines[:MOST]:
        console.print(Text(f"{kind}: {line}" if kind else line, style))
    if len(lines) > MOST:
        more = say("report.results.more", count=str(len(lines) - MOST))
        console.print(Text(f"  {more}", "dim"))
