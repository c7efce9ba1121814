"""The report of results, whoever measured them: one file, a folder of another tool, or a directory of any.

Knows the order of such a report: what was measured and what it is worth, the matrix with repeats
together, what was found, the courses. Computes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import output, units
from loadstone.audit.judge import WORST_FIRST
from loadstone.comparison import matrix, pairing
from loadstone.comparison.metric import BANDWIDTH, CLAT_P99, FAILED, IOPS, MEAN, P99
from loadstone.comparison.settings import MEASURED_BY, MOST_NAMED, first_of
from loadstone.messages import say
from loadstone.report.article.elements import (
    Article,
    ArticleTable,
    Bullets,
    Drawings,
    Facts,
    Heading,
    Paragraph,
    TableCell,
    VerdictLine,
    Verdicts,
    drawing,
)
from loadstone.report.article.files import as_file, ending_of
from loadstone.report.comparison import charts, words
from loadstone.report.study.answer import first_named
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict.words import NAMES, sureness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from loadstone.comparison.metric import Metric
    from loadstone.comparison.pairing import PatternRow, Repeats
    from loadstone.comparison.phase import ComparedPhase
    from loadstone.comparison.side import Side
    from loadstone.report.article.elements import Block
    from loadstone.verdict import Cause

REPORT: Final = "report.html"
SHOWN: Final = (IOPS, BANDWIDTH, MEAN, P99, FAILED)
HEADINGS: Final = table_heads(
    "pattern", "IOPS", "bandwidth", "latency_mean", "p99", "failed", "valid_runs", "verdict"
)
MAX_REASONS: Final = 20
MAX_SMALL: Final = 12
FIGURE: Final = re.compile(r"(?<![\w.])\d[\d.,]*\s?(?:[kMGT]i?B?(?:/s)?|[µnm]?s|%)?")
"""A number of a finding, with its unit; the digits of `sda1` and `lun2` belong to a name."""


def write(side: Side, path: Path) -> None:
    """Write the report. Raises `InputError` for an ending that says nothing."""
    ending = ending_of(path, "results")
    output.write(path, as_file(article(side), ending))


def article(side: Side) -> Article:
    """Return what the report says."""
    rows = pairing.patterns(side)
    names = {id(phase): row.pattern for row in rows for phase in _cell(row).phases}
    answer = " ".join(filter(None, (_answer(rows), side.not_read)))
    blocks: list[Block] = [Paragraph(answer, "answer")]
    blocks += [Paragraph(doubt, "doubt") for doubt in side.doubts]
    blocks.append(Verdicts(_worth(side, names)))
    blocks.append(Facts(_facts(side)))
    blocks.append(ArticleTable(HEADINGS, [_row(row) for row in rows], matrix=True))
    blocks += [Paragraph(note, "soft") for note in (*side.at_once, say("report.results.errors"))]
    if side.passed:
        blocks += [
            Heading(say("report.heading.not_read")),
            Bullets([side.said_of(one) for one in side.passed]),
        ]
    blocks += _findings(side, names)
    courses = [spec for row in rows[:MAX_SMALL] if (spec := charts.course_of([side.name], row)) is not None]
    blocks += (
        [Heading(say("report.heading.over_time")), Drawings([drawing(one) for one in courses], 3)]
        if courses
        else []
    )
    return Article(
        kicker=say("report.page.results"),
        title=side.name,
        blocks=blocks,
        footer=say("report.page.again_from_results"),
    )


def _cell(row: PatternRow) -> Repeats:
    """Return what a row of one side is of."""
    (cell,) = row.cells
    assert cell is not None  # noqa: S101 - the rows are this side's own
    return cell


def _answer(rows: Sequence[PatternRow]) -> str:
    sound = [row for row in rows if _cell(row).valid]
    if not sound:
        return say("report.study.none_valid", patterns=len(rows))
    broken = [row.pattern for row in rows if not _cell(row).valid]
    return first_named([_in_short(row) for row in sound], broken, most=MOST_NAMED)


def _in_short(row: PatternRow) -> str:
    cell = _cell(row)
    metric = matrix.first_metric(cell, cell)
    entry = matrix.entry(cell, metric) if metric is not None else None
    if metric is None or entry is None:
        return row.pattern
    unit = " IOPS" if metric is IOPS else ""
    return f"{row.pattern}: {words.value(entry.sample, metric.quantity)}{unit}"


def _worth(side: Side, names: Mapping[int, str]) -> list[VerdictLine]:
    counts = Counter(phase.verdict.kind for phase in side.phases)
    order = [kind for kind in WORST_FIRST if counts[kind]]
    verdicts = ", ".join(f"{counts[kind]} {NAMES[kind]}" for kind in order)
    whole = len(side.phases)
    lines = [VerdictLine(f"{whole} phase{'s' if whole != 1 else ''}", side.verdict, verdicts)]
    alike: dict[tuple[str, str], list[ComparedPhase]] = {}
    for phase in side.phases:
        decided = phase.verdict.decided_by
        alike.setdefault((phase.verdict.kind, "" if decided is None else str(decided[0])), []).append(phase)
    for (kind, _), phases in sorted(alike.items(), key=lambda one: order.index(one[1][0].verdict.kind)):
        first = phases[0]
        patterns = _some(names[id(phase)] for phase in phases)
        sure = f" ({text})" if (text := sureness(first.verdict)) else ""
        lines.append(
            VerdictLine(NAMES[first.verdict.kind], kind, f"{patterns}{sure}", str(first.verdict.sentences))
        )
    return lines[: MAX_REASONS + 1]


def _some(names: Iterable[str]) -> str:
    """Name the first few patterns, and how many more there are; their names have commas."""
    return first_of(dict.fromkeys(names), separator="; ")


def _facts(side: Side) -> list[tuple[str, str]]:
    tools = dict.fromkeys(MEASURED_BY[phase.case.source] for phase in side.phases)
    results = dict.fromkeys(path for phase in side.phases for path in phase.paths)
    return [
        (say("report.fact.read_from"), str(side.path)),
        (say("report.fact.measured_by"), ", ".join(tools)),
        (say("report.fact.results"), str(len(results))),
        (say("report.fact.phases"), str(len(side.phases))),
    ]


def _row(row: PatternRow) -> list[TableCell | str]:
    cell = _cell(row)
    first = matrix.first_metric(cell, cell)
    kinds = [phase.verdict.kind for phase in cell.phases]
    worst = next(kind for kind in WORST_FIRST if kind in kinds)
    name = cell.first.label or cell.first.name
    return [
        TableCell(row.pattern, below="" if name in row.pattern else name),
        *(_value(cell, metric, strong=metric is first) for metric in SHOWN),
        f"{len(cell.valid)} of {len(cell.phases)}",
        NAMES[worst],
    ]


def _value(cell: Repeats, metric: Metric, *, strong: bool) -> TableCell:
    entry = matrix.entry(cell, metric)
    of_clat = metric is P99 and entry is None
    entry = matrix.entry(cell, CLAT_P99) if of_clat else entry
    if entry is None:
        return TableCell(units.NONE)
    return TableCell(
        words.entry(entry, metric.quantity), struck=not entry.valid, strong=strong and entry.valid,
        below="clat" if of_clat else "",
    )  # fmt: skip


def _findings(side: Side, names: Mapping[int, str]) -> list[Block]:
    """Return what the audit found with what to change, each finding once: numbers apart it is the same."""
    causes: dict[tuple[str, str], list[tuple[ComparedPhase, Cause]]] = {}
    for phase in side.phases:
        for cause in phase.verdict.causes:
            causes.setdefault((cause.rule, FIGURE.sub("", cause.text)), []).append((phase, cause))
    if not causes:
        return []
    rows = []
    for same in list(causes.values())[:MAX_REASONS]:
        cause = same[0][1]
        texts = dict.fromkeys(one.text for _, one in same)
        more = say("report.results.more_like_it", count=len(same) - 1) if texts.keys() - {cause.text} else ""
        patterns = _some(names[id(phase)] for phase, _ in same)
        rows.append([patterns, " ".join(filter(None, (cause.text, more))), cause.advice])
    return [
        Heading(say("report.heading.findings")),
        ArticleTable(table_heads("where", "finding", "what_to_change"), rows, names=3),
    ]
