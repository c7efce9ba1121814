"""A comparison as text: for a terminal of any width, and as Markdown for a ticket or an article.

Knows tables and colours: green for better, orange for worse, grey for what is not told apart, and
struck through what is not valid. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from loadstone import printable, units
from loadstone.messages import say
from loadstone.report.comparison import words
from loadstone.report.run.summary_text import in_unit
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict.words import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.comparison.metric import Metric, Quantity

COLOURS: Final = {
    "better": "green",
    "worse": "dark_orange",
    "same": "bright_black",
    "unrepeated": "bright_black",
    "unknown": "bright_black",
}
MAX_DIFFERENCES: Final = 12
"""So many on a terminal; the page and the JSON have all of them."""
MAX_EXCLUDED: Final = 8
MAX_WATCHED: Final = 12
WATCHED_COLOURS: Final = {"better": "green", "worse": "dark_orange", "differs": ""}
BESIDE: Final = 2
"""So many sides fit beside each other; more are told one below the other."""
NARROW: Final = 100
"""Below this width values and changes go below the pattern."""


def terminal(comparison: ComparisonTable, console: Console) -> None:
    """Print the comparison: the verdicts, the matrix, what was left out, what else differs."""
    for one in comparison.sides:
        verdict_text = Text.assemble((f"{one.name}: ", "bold"), (words.kind(one), STYLES[one.verdict]))
        console.print(verdict_text)
    console.print(Text(words.headline(comparison), "bold"))
    wide = console.width >= NARROW and len(comparison.sides) <= BESIDE
    if wide:
        console.print(_table(comparison))
    else:
        for line in _lines(comparison):
            console.print(line)
    console.print(Text(words.legend(comparison), "dim"))
    excluded = words.excluded(comparison)
    for side, phases, why in excluded[:MAX_EXCLUDED]:
        console.print(Text(say("report.comparison.excluded", side=side, phases=phases, reason=why), "red"))
    if len(excluded) > MAX_EXCLUDED:
        more = say("report.comparison.more_reasons", count=len(excluded) - MAX_EXCLUDED)
        console.print(Text(f"  {more}", "red"))
    for text in comparison.warnings:
        console.print(Text(f"warning: {text}", "yellow"))
    _watched(comparison, console)
    _facts(comparison, console)


def _watched(comparison: ComparisonTable, console: Console) -> None:
    """Print what of the watched hosts is told apart, and how much is not."""
    apart = [
        (row, at, cell)
        for row in comparison.watched
        for at, cell in enumerate(row.cells)
        if cell.judgement in ("better", "worse", "differs")
    ]
    for row, at, cell in apart[:MAX_WATCHED]:
        before, after = (
            units.NONE if one.sample is None else in_unit(one.sample.value, row.unit)
            for one in (row.cells[0], cell)
        )
        side = f" ({comparison.sides[at].name})" if len(comparison.sides) > BESIDE else ""
        line = f"{row.host} {row.name}: {before} -> {after}, {words.change(cell.contrast)}{side}"
        console.print(Text(line, WATCHED_COLOURS[cell.judgement]))
    if comparison.watched:
        rest = max(0, len(apart) - MAX_WATCHED)
        more = say("report.comparison.watched_more", more=rest) if rest else ""
        summary = say("report.comparison.watched", differing=len(apart), quantities=len(comparison.watched))
        console.print(Text(f"{summary}{more}", "dim"))


def _table(comparison: ComparisonTable) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(say("report.column.pattern"), overflow="fold")
    table.add_column("")
    for side in comparison.sides:
        table.add_column(side.name, justify="right", overflow="fold")
    table.add_column(say("report.column.change"), justify="right", no_wrap=True)
    last = -1
    for effect in words.shown(comparison):
        quantity = effect.metric.quantity
        cells: list[str | Text] = [effect.pattern if effect.row != last else "", effect.metric.name]
        last = effect.row
        cells += [
            Text(words.entry(one, quantity), "" if one.valid else "strike red")
            for one in (effect.before, effect.after)
        ]
        cells.append(Text(words.told(effect), COLOURS[effect.judgement]))
        table.add_row(*cells)
    return table


def _lines(comparison: ComparisonTable) -> Iterator[Text]:
    """Yield a block for each pattern: its quantities, and each side's change below."""
    several = len(comparison.sides) > BESIDE
    for row in dict.fromkeys(effect.row for effect in words.shown(comparison)):
        row_effects = [effect for effect in words.shown(comparison) if effect.row == row]
        yield Text(row_effects[0].pattern, "bold")
        for metric in dict.fromkeys(effect.metric for effect in row_effects):
            effects = [effect for effect in row_effects if effect.metric == metric]
            before = effects[0].before
            if several:
                head = Text(f"  {metric.name}  {comparison.sides[0].name} ")
                head.append(words.entry(before, metric.quantity), "" if before.valid else "strike red")
                yield head
            for effect in effects:
                name = f"    {comparison.sides[effect.side].name} " if several else f"  {metric.name}  "
                line = Text(name)
                if not several:
                    line.append(words.entry(before, metric.quantity), "" if before.valid else "strike red")
                    line.append(" → ")
                after = effect.after
                line.append(words.entry(after, metric.quantity), "" if after.valid else "strike red")
                line.append("  ")
                line.append(words.told(effect), COLOURS[effect.judgement])
                yield line


def _facts(comparison: ComparisonTable, console: Console) -> None:
    for swept, side, values in words.operating(comparison):
        console.print(Text(say("report.comparison.recommended", swept=swept, side=side, values=values)))
    if comparison.differences:
        console.print(Text(say("report.comparison.differs"), "yellow"))
    for one in comparison.differences[:MAX_DIFFERENCES]:
        values = " → ".join(text if len(text) < 60 else text[:57] + "…" for text in one.values)
        console.print(Text(f"  {one.key}: {values}"), soft_wrap=True)
    more = len(comparison.differences) - MAX_DIFFERENCES
    if more > 0:
        console.print(Text(f"  {say('report.results.more', count=str(more))}", "dim"))


def markdown(comparison: ComparisonTable) -> str:
    """Return the comparison as Markdown."""
    verdicts = "\n".join(
        f"- **{printable.markdown(one.name)}**: {words.kind(one)}" for one in comparison.sides
    )
    parts = [
        printable.markdown(words.headline(comparison)),
        verdicts,
        _matrix(comparison),
        words.legend(comparison),
    ]
    if comparison.excluded:
        listed = [f"- {side}: {phases}: {why}" for side, phases, why in words.excluded(comparison)]
        parts.append(
            say("report.comparison.left_out_heading") + "\n\n" + "\n".join(map(printable.markdown, listed))
        )
    parts.append("\n".join(f"- **warning**: {printable.markdown(text)}" for text in comparison.warnings))
    if comparison.operating:
        points = words.operating(comparison)
        facts = [f"- {swept}, {printable.markdown(f'{side}: {point}')}" for swept, side, point in points]
        parts.append(say("report.comparison.operate") + "\n\n" + "\n".join(facts))
    if comparison.differences:
        facts = [
            f"- {one.key}: {printable.markdown(' → '.join(one.values))}" for one in comparison.differences
        ]
        parts.append(say("report.comparison.differs") + "\n\n" + "\n".join(facts))
    if comparison.rows:
        parts.append(say("report.comparison.each_job") + "\n\n" + _jobs(comparison))
    return "\n\n".join(part for part in parts if part) + "\n"


def _matrix(comparison: ComparisonTable) -> str:
    first, *others = comparison.sides
    heads = [*table_heads("pattern", ""), first.name]
    for side in others:
        heads += [side.name, say("report.column.change")]
    lines = [_line(heads), _line(["---"] * 2 + ["---:"] * (len(heads) - 2))]
    last = -1
    for (row, metric), effects in _by_row(comparison).items():
        quantity = metric.quantity
        start = next(iter(effects.values()))
        cells = [start.pattern if row != last else "", metric.name, _struck(start.before, quantity)]
        last = row
        for at in range(1, len(comparison.sides)):
            one = effects.get(at)
            if one is None:
                cells += [units.NONE, units.NONE]
                continue
            strong = "**" if one.told_apart else ""
            cells += [_struck(one.after, quantity), f"{strong}{words.told(one)}{strong}"]
        lines.append(_line(cells))
    return "\n".join(lines)


def _by_row(comparison: ComparisonTable) -> dict[tuple[int, Metric], dict[int, Effect]]:
    by_row: dict[tuple[int, Metric], dict[int, Effect]] = {}
    for one in words.shown(comparison):
        by_row.setdefault((one.row, one.metric), {})[one.side] = one
    return by_row


class _Ready(str):
    """Markdown already."""

    __slots__ = ()


def _struck(one: SideValue, quantity: Quantity) -> str:
    text = words.entry(one, quantity)
    if not one.valid:
        return _Ready(f"~~{printable.markdown(text)}~~")
    each = words.each(one, quantity).replace("\N{NO-BREAK SPACE}", " ")
    return f"{text} ({each})" if each else text


def _jobs(comparison: ComparisonTable) -> str:
    heads = [*table_heads("job", "op", "metric"), comparison.sides[0].name]
    for side in comparison.sides[1:]:
        heads += [side.name, say("report.column.change")]
    lines = [_line(heads), _line(["---"] * 3 + ["---:"] * (len(heads) - 3))]
    for row in comparison.rows:
        cells = [" ".join(part for part in (row.thing, row.job) if part), row.op, row.metric.name]
        for at, cell in enumerate(row.cells):
            cells.append(words.value(cell.sample, row.metric.quantity))
            if at:
                strong = "**" if cell.judgement in ("better", "worse") else ""
                change = f"{words.change(cell.contrast)} {words.MARKS[cell.judgement]}".rstrip()
                cells.append(f"{strong}{change}{strong}")
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    texts = (cell if isinstance(cell, _Ready) else printable.markdown(cell) for cell in cells)
    escaped = (cell.replace(units.THIN, " ") for cell in texts)
    return f"| {' | '.join(escaped)} |"
