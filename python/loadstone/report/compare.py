"""A comparison for people and for programs: terminal, Markdown, HTML, JSON.

Knows words and colours: green for better and orange for worse, only where the difference is
significant, grey otherwise. Computes nothing.
"""

from __future__ import annotations

import math
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

import jinja2
from pydantic import BaseModel, ConfigDict, Field
from rich.table import Table
from rich.text import Text

from loadstone import printable, units
from loadstone.analysis.estimate import Estimate
from loadstone.report.verdict import headline
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from loadstone.analysis.compare import Cell, Comparison, Metric, Row
    from loadstone.verdict import Audited

FORMAT: Final = 1
STYLES: Final = {"better": "green", "worse": "dark_orange", "same": "bright_black", "unknown": "bright_black"}
MARKS: Final = {"better": "▲", "worse": "▼", "same": "", "unknown": ""}
STEPS: Final = {"count": "count", "bytes_per_s": "binary", "ns": "time"}
MAX_DIFFERENCES: Final = 12
"""So many on a terminal; the page and the JSON have all of them."""
LEGEND: Final = (
    "▲ better, ▼ worse: the difference is significant at 5 % after Holm's correction for their number. "
    "The range is the 95 % interval of the change."
)


def value(cell: Cell, metric: Metric) -> str:
    """Write a side's value with its error."""
    sample = cell.sample
    if sample is None:
        return units.NONE
    if metric.quantity == "errors":
        return units.count(sample.value)
    return units.with_error(Estimate(sample.value, sample.error, sample.runs, ""), STEPS[metric.quantity])


def change(cell: Cell) -> str:
    """Write a change and its interval: `+12 % (+9 to +15)`; no digit that the interval does not carry."""
    found = cell.contrast
    if found is None:
        return units.NONE
    if math.isinf(found.change):
        return "from none"
    if found.low is None or found.high is None:
        return f"{found.change * 100:+.0f}{units.THIN}%" if found.change else "none"
    width = (found.high - found.low) * 50
    places = 0 if width >= 1 else (1 if width >= 0.1 else 2)
    low, high = (f"{part * 100:+.{places}f}" for part in (found.low, found.high))
    return f"{found.change * 100:+.{places}f}{units.THIN}% ({low} to {high})"


def terminal(made: Comparison, audits: Sequence[Audited], console: Console) -> None:
    """Print the comparison."""
    for one, audited in zip(made.sides, audits, strict=True):
        console.print(Text(f"{one.name}: {headline(audited.verdict)}", style="bold"))
    console.print(_table(made))
    console.print(Text(LEGEND, "dim"))
    for text in [*made.warnings, *worthless(made, audits)]:
        console.print(Text(f"warning: {text}", "yellow"))
    _facts(made, console)


def _table(made: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("job", "op", "metric"):
        table.add_column(title)
    for at, one in enumerate(made.sides):
        table.add_column(one.name, justify="right", overflow="fold")
        if at:
            table.add_column("change", justify="right")
    last: tuple[str, ...] = ()
    for row in made.rows:
        place = (row.thing, row.job, row.op)
        job = " ".join(part for part in (row.thing, row.job) if part)
        cells: list[str | Text] = [job if place[:2] != last[:2] else "", row.op if place != last else ""]
        cells.append(row.metric.name)
        last = place
        for at, cell in enumerate(row.cells):
            cells.append(value(cell, row.metric))
            if at:
                cells.append(Text(f"{change(cell)} {MARKS[cell.judgement]}".rstrip(), STYLES[cell.judgement]))
        table.add_row(*cells)
    return table


def _facts(made: Comparison, console: Console) -> None:
    if made.differences:
        console.print(Text("What else differs:", "yellow"))
    for one in made.differences[:MAX_DIFFERENCES]:
        told = " → ".join(text if len(text) < 60 else text[:57] + "…" for text in one.values)
        console.print(Text(f"  {one.where} {one.key}: {told}"), soft_wrap=True)
    more = len(made.differences) - MAX_DIFFERENCES
    if more > 0:
        console.print(Text(f"  and {more} more (--json and --html have them)", "dim"))


def worthless(made: Comparison, audits: Sequence[Audited]) -> list[str]:
    """Say which sides are not valid: a difference between such numbers means nothing."""
    return [
        f"{one.name} is {headline(audited.verdict)}: {audited.verdict.sentences}"
        for one, audited in zip(made.sides, audits, strict=True)
        if audited.verdict.kind in ("not_valid", "cannot_tell")
    ]


def markdown(made: Comparison, audits: Sequence[Audited]) -> str:
    """Return the comparison as Markdown, for a merge request or a ticket."""
    heads = ["job", "op", "metric", made.sides[0].name]
    for one in made.sides[1:]:
        heads += [one.name, "change"]
    lines = [_line(heads), _line(["---"] * 3 + ["---:"] * (len(heads) - 3))]
    for row in made.rows:
        cells = [" ".join(part for part in (row.thing, row.job) if part), row.op, row.metric.name]
        for at, cell in enumerate(row.cells):
            cells.append(value(cell, row.metric))
            if at:
                strong = "**" if cell.judgement in ("better", "worse") else ""
                cells.append(f"{strong}{change(cell)} {MARKS[cell.judgement]}".rstrip() + strong)
        lines.append(_line(cells))
    told = [
        f"- **warning**: {printable.markdown(text)}" for text in [*made.warnings, *worthless(made, audits)]
    ]
    facts = [
        f"- {one.where} `{one.key}`: {printable.markdown(' → '.join(one.values))}" for one in made.differences
    ]
    parts = ["\n".join(lines), LEGEND, "\n".join(told)]
    if facts:
        parts.append("What else differs:\n\n" + "\n".join(facts))
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(cells: Sequence[str]) -> str:
    escaped = (printable.markdown(cell).replace(units.THIN, " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def page(made: Comparison, audits: Sequence[Audited]) -> str:
    """Return the comparison as one HTML file that needs nothing else."""
    files = resources.files("loadstone.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((files / "compare.html").read_text())
    return template.render(
        style=(files / "page.css").read_text(),
        version=__version__,
        sides=[
            (one.name, audited.verdict.kind, headline(audited.verdict), audited.verdict.sentences)
            for one, audited in zip(made.sides, audits, strict=True)
        ],
        rows=[_page_row(row, before) for row, before in zip(made.rows, [None, *made.rows[:-1]], strict=True)],
        legend=LEGEND,
        doubts=[f"{one.name}: {one.doubt}" for one in made.sides if one.doubt],
        warnings=made.warnings,
        differences=made.differences,
    )


def _page_row(row: Row, before: Row | None) -> dict[str, Any]:
    first = before is None or (row.thing, row.job, row.op) != (before.thing, before.job, before.op)
    return {
        "first": first,
        "name": " ".join(part for part in (row.thing, row.job) if part) if first else "",
        "op": row.op if first else "",
        "metric": row.metric.name,
        "base": value(row.cells[0], row.metric),
        "others": [
            (value(cell, row.metric), f"{change(cell)} {MARKS[cell.judgement]}".rstrip(), cell.judgement)
            for cell in row.cells[1:]
        ],
    }


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Value(_Model):
    """A side's value; for everything but the first side also how it differs from the first."""

    value: float | None
    error: float | None = Field(description="one standard error; null: not known")
    runs: int
    change: float | None = Field(description="share by which it is above the first side's; null: not known")
    low: float | None = Field(description="lower end of the change's 95 % interval")
    high: float | None
    p: float | None = Field(description="after Holm's correction")
    judgement: Literal["better", "worse", "same", "unknown"] | None


class JsonRow(_Model):
    """One metric of one operation of one job."""

    thing: str = Field(description="the part of a study; empty for a run")
    job: str
    op: str
    metric: str
    quantity: Literal["count", "bytes_per_s", "ns", "errors"]
    more_is_better: bool
    values: list[Value]


class JsonSide(_Model):
    """One side and what its numbers are worth."""

    name: str
    path: str
    verified: bool | None = Field(
        description="every file is the one that was sealed; null: not sealed, false: read with --unverified"
    )
    verdict: str
    confidence: float


class JsonDifference(_Model):
    """A fact that is not the same on all sides."""

    where: Literal["environment", "plan"]
    key: str
    values: list[str]


class Document(_Model):
    """`compare --json`."""

    format: Literal[1]
    loadstone_version: str
    sides: list[JsonSide]
    rows: list[JsonRow]
    differences: list[JsonDifference]
    warnings: list[str]
    gate: Literal["passed", "regression", "no_data"] | None = Field(description="null: not asked for")


def document(made: Comparison, audits: Sequence[Audited], gate: str | None) -> dict[str, Any]:
    """Return the JSON document."""
    sides = [
        JsonSide(
            name=one.name,
            path=str(one.path.resolve()),
            verified=one.verified,
            verdict=audited.verdict.kind,
            confidence=audited.verdict.confidence,
        )
        for one, audited in zip(made.sides, audits, strict=True)
    ]
    told = Document.model_validate(
        {
            "format": FORMAT,
            "loadstone_version": __version__,
            "sides": sides,
            "rows": [_json_row(row) for row in made.rows],
            "differences": [
                {"where": one.where, "key": one.key, "values": list(one.values)} for one in made.differences
            ],
            "warnings": [*made.warnings, *worthless(made, audits)],
            "gate": gate,
        }
    )
    return told.model_dump(mode="json")


def _json_row(row: Row) -> dict[str, Any]:
    return {
        "thing": row.thing,
        "job": row.job,
        "op": row.op,
        "metric": row.metric.name,
        "quantity": row.metric.quantity,
        "more_is_better": row.metric.more_is_better,
        "values": [_json_cell(cell, first=at == 0) for at, cell in enumerate(row.cells)],
    }


def _json_cell(cell: Cell, *, first: bool) -> dict[str, Any]:
    sample, found = cell.sample, cell.contrast
    endless = found is not None and math.isinf(found.change)
    return {
        "value": sample.value if sample else None,
        "error": sample.error if sample else None,
        "runs": sample.runs if sample else 0,
        "change": None if found is None or endless else found.change,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "p": found.p if found else None,
        "judgement": None if first else cell.judgement,
    }
