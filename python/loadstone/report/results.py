"""The report of results, whoever measured them: one file, a folder of another tool, or a directory of any.

Knows the order of such a report: what was measured and what it is worth, the matrix with repeats
together, what was found, the courses. Computes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import output, units
from loadstone.audit.judge import WORST_FIRST
from loadstone.comparison import matrix, pairing
from loadstone.comparison.metric import BANDWIDTH, FAILED, IOPS, MEAN, P99
from loadstone.comparison.settings import MEASURED_BY
from loadstone.messages import say
from loadstone.report.article.blocks import (
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
from loadstone.report.verdict.words import NAMES, confidence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from loadstone.comparison.metric import Metric
    from loadstone.comparison.pairing import Repeats
    from loadstone.comparison.phase import ComparedPhase
    from loadstone.comparison.side import Side
    from loadstone.report.article.blocks import Block

REPORT: Final = "report.html"
SHOWN: Final = (IOPS, BANDWIDTH, MEAN, P99, FAILED)
HEADINGS: Final = ("pattern", "IOPS", "bandwidth", "latency mean", "p99", "failed", "valid runs", "verdict")
NAMED: Final = 6
"""So many results are named in the sentence; the table has all of them."""
MAX_REASONS: Final = 20
MAX_SMALL: Final = 12


def write(side: Side, path: Path) -> None:
    """Write the report. Raises `InputError` for an ending that says nothing."""
    ending = ending_of(path, "results")
    output.write(path, as_file(article(side), ending))


def article(side: Side) -> Article:
    """Return what the report says."""
    cells = [*pairing.cells(side), *_loads(side)]
    shared = frozenset(
        name for name, count in Counter(cell.first.pattern for cell in cells).items() if count > 1
    )
    answer = " ".join(filter(None, (_answer(cells, shared), side.not_read)))
    blocks: list[Block] = [Paragraph(answer, "answer")]
    blocks += [Paragraph(doubt, "doubt") for doubt in side.doubts]
    blocks.append(Verdicts(_worth(side, shared)))
    blocks.append(Facts(_facts(side)))
    blocks.append(ArticleTable(HEADINGS, [_row(cell) for cell in cells], matrix=True))
    blocks.append(Paragraph(say("report.results.errors"), "soft"))
    if side.passed:
        lines = [f"{one.path}: {one.why}" for one in side.passed]
        blocks += [Heading("Not read"), Bullets(lines)]
    blocks += _findings(side, shared)
    row_of = [pairing.PatternRow(cell.first.pattern, (cell,)) for cell in cells]
    courses = [spec for row in row_of[:MAX_SMALL] if (spec := charts.course_of([side.name], row)) is not None]
    blocks += [Heading("Over time"), Drawings([drawing(one) for one in courses], 3)] if courses else []
    return Article(
        kicker="Loadstone report of results",
        title=side.name,
        blocks=blocks,
        footer="Everything here can be computed again from the results.",
    )


def _loads(side: Side) -> list[Repeats]:
    """Return the loads of curves, one by one: together they are no repeats."""
    return [pairing.Repeats((phase,)) for phase in side.phases if phase.on_a_curve]


def _name(phase: ComparedPhase, shared: AbstractSet[str]) -> str:
    """Return what a phase is called: its pattern, or its own name where others have the pattern, too."""
    return _own_name(phase) if phase.pattern in shared else phase.pattern


def _own_name(phase: ComparedPhase) -> str:
    return phase.label or phase.name


def _answer(cells: Sequence[Repeats], shared: AbstractSet[str]) -> str:
    sound = [cell for cell in cells if cell.valid]
    if not sound:
        return say("report.study.none_valid", patterns=len(cells))
    parts = [_in_short(cell, shared) for cell in sound[:NAMED]]
    parts += [say("report.study.more", patterns=len(sound) - NAMED)] if len(sound) > NAMED else []
    broken = [_name(cell.first, shared) for cell in cells if not cell.valid]
    if broken:
        names = ", ".join(broken[:NAMED]) + (", …" if len(broken) > NAMED else "")
        parts.append(say("report.study.not_valid", names=names))
    return f"{'; '.join(parts)}."


def _in_short(cell: Repeats, shared: AbstractSet[str]) -> str:
    name = _name(cell.first, shared)
    metric = matrix.first_metric(cell, cell)
    entry = matrix.entry(cell, metric) if metric is not None else None
    if metric is None or entry is None:
        return name
    unit = " IOPS" if metric is IOPS else ""
    return f"{name} {words.value(entry.sample, metric.quantity)}{unit}"


def _worth(side: Side, shared: AbstractSet[str]) -> list[VerdictLine]:
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
        names = ", ".join(dict.fromkeys(_name(phase, shared) for phase in phases[:NAMED]))
        sure = confidence(first.verdict.confidence)
        lines.append(
            VerdictLine(NAMES[first.verdict.kind], kind, f"{names} ({sure})", str(first.verdict.sentences))
        )
    return lines[: MAX_REASONS + 1]


def _facts(side: Side) -> list[tuple[str, str]]:
    tools = dict.fromkeys(MEASURED_BY[phase.case.source] for phase in side.phases)
    results = dict.fromkeys(phase.path for phase in side.phases)
    return [
        ("Read from", str(side.path)),
        ("Measured by", ", ".join(tools)),
        ("Results", str(len(results))),
        ("Phases", str(len(side.phases))),
    ]


def _row(cell: Repeats) -> list[TableCell | str]:
    first = matrix.first_metric(cell, cell)
    kinds = [phase.verdict.kind for phase in cell.phases]
    worst = next(kind for kind in WORST_FIRST if kind in kinds)
    name = _own_name(cell.first)
    pattern = cell.first.pattern
    return [
        TableCell(pattern, below=name if name != pattern else ""),
        *(_value(cell, metric, strong=metric is first) for metric in SHOWN),
        f"{len(cell.valid)} of {len(cell.phases)}",
        NAMES[worst],
    ]


def _value(cell: Repeats, metric: Metric, *, strong: bool) -> TableCell:
    entry = matrix.entry(cell, metric)
    if entry is None:
        return TableCell(units.NONE)
    return TableCell(
        words.entry(entry, metric.quantity), struck=not entry.valid, strong=strong and entry.valid
    )


def _findings(side: Side, shared: AbstractSet[str]) -> list[Block]:
    """Return what the audit found, each finding once, with what to change."""
    phases_by_finding: dict[tuple[str, str], list[ComparedPhase]] = {}
    advice: dict[tuple[str, str], str] = {}
    for phase in side.phases:
        for cause in phase.verdict.causes:
            key = (cause.rule, cause.text)
            phases_by_finding.setdefault(key, []).append(phase)
            advice[key] = cause.advice
    if not phases_by_finding:
        return []
    rows = [
        [", ".join(dict.fromkeys(_name(phase, shared) for phase in phases[:3])), key[1], advice[key]]
        for key, phases in list(phases_by_finding.items())[:MAX_REASONS]
    ]
    return [Heading("What was found"), ArticleTable(["in", "finding", "what to change"], rows, names=3)]
