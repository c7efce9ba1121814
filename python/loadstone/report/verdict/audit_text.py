"""An audit in words: for the terminal and as Markdown.

Knows how a number, a verdict and its causes stand in a table. Judges nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from loadstone import printable, units
from loadstone.audit.find_results import not_read
from loadstone.messages import say, title
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from loadstone.audit.case import Case
    from loadstone.audit.document import AuditedResults
    from loadstone.audit.find_results import PassedOver
    from loadstone.verdict import Cause, Verdict

HEADINGS: Final = table_heads("result", "number", "verdict", "why")
HEAD: Final = say("report.audited.about")
SAID: Final = say("report.column.author_says")


def number(case: Case) -> str:
    """Return what was measured: IOPS, bandwidth and mean latency, as far as they are known."""
    parts = []
    total = case.total
    if total.iops is not None and not _of_bandwidth(case):
        parts.append(f"{units.count(total.iops.value)} IOPS")
    if total.bandwidth is not None and total.bandwidth.value:
        parts.append(units.bandwidth_decimal(total.bandwidth.value))
    if total.latency is not None and total.latency.mean_ns is not None:
        parts.append(f"mean {units.duration(total.latency.mean_ns)}")
    return ", ".join(parts) or units.NONE


def _of_bandwidth(case: Case) -> bool:
    """Whether the source printed a bandwidth only, so that IOPS are its worked-out shadow."""
    printed = case.printed
    return bool(printed.bandwidth) and not printed.iops


def _why(verdict: Verdict) -> list[str]:
    """Return the causes and what is missing, each as a line that names the rule and one of text."""
    causes = [_cause(cause) for cause in verdict.causes]
    missing = [
        say("report.audited.not_checked", rule=title(one.rule), reason=_cell(one.what))
        for one in verdict.missing
        if one.essential
    ]
    if causes or missing:
        return [*causes, *missing]
    # The first sentence only repeats the name and the verdict of the row.
    _, _, rest = verdict.sentences.partition("measures the storage. ")
    return (
        [_cell(rest or verdict.sentences)]
        if verdict.kind == "cannot_tell"
        else [say("report.audited.no_finding")]
    )


def _cause(cause: Cause) -> str:
    return (
        f"{title(cause.rule)} (`{cause.rule}`, {words.EFFECTS[cause.effect]}, "
        f"{words.confidence(cause.confidence)})<br>{_cell(cause.text)}"
    )


def terminal(
    every: Sequence[AuditedResults], console: Console, passed: Sequence[PassedOver] = (), unrelated: int = 0
) -> None:
    """Print each file with the verdict on each of its phases, and at the end what was passed over.

    That anything is missing is said first: a verdict that is good says nothing of it.
    """
    if left_out := not_read(passed):
        console.print(Text(left_out, "yellow"))
        console.print()
    for index, one in enumerate(every):
        if index:
            console.print()
        heading = f" · {one.results.title}" if one.results.title else ""
        console.print(Text.assemble((one.path, "bold"), f" · {one.results.format}{heading}"))
        for note in one.results.notes:
            console.print(Text(f"note: {note}"))
        words.terminal(one.audited, console)
        if len(one.audited.phases) < 2:
            continue
        for case, phase in zip(one.results.cases, one.audited.phases, strict=True):
            verdict = phase.verdict
            console.print(
                Text.assemble(
                    f"  {phase.name}: {number(case)}: ",
                    (words.headline(verdict), words.STYLES[verdict.kind]),
                    (f" {words.sureness(verdict)}".rstrip(), "dim"),
                )
            )
    _passed(passed, unrelated, console)


def _passed(passed: Sequence[PassedOver], unrelated: int, console: Console) -> None:
    """Print what was not read, and why."""
    if passed:
        table = Table(
            say("report.column.passed_over"),
            say("report.column.why"),
            box=None,
            pad_edge=False,
            header_style="bold",
        )
        for one in passed:
            table.add_row(Text(str(one.path)), Text(one.why))
        console.print()
        console.print(table)
    if unrelated:
        console.print(Text(say("report.results.other_files", count=unrelated), "dim"))


def markdown(every: Sequence[AuditedResults], passed: Sequence[PassedOver] = ()) -> str:
    """Return a page: for each file what was found, and a table with a row for each result."""
    parts = [say("report.audited.title"), HEAD]
    if left_out := not_read(passed):
        parts.append(f"**{printable.markdown(left_out)}**")
    for one in every:
        parts.append(f"## {printable.markdown(one.results.title or str(one.path))}")
        if one.results.source:
            parts.append(say("report.audited.source", source=printable.markdown(one.results.source)))
        parts += [say("report.audited.note", note=printable.markdown(note)) for note in one.results.notes]
        parts.append(f"**{_counts(one)}.**")
        if findings := _findings(one):
            parts.append(findings)
        parts.append(_table(one))
    if passed:
        rows = [
            table_heads("passed_over", "why"),
            ("---", "---"),
            *((str(one.path), one.why) for one in passed),
        ]
        parts.append("\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows))
    return "\n\n".join(parts) + "\n"


def _findings(one: AuditedResults) -> str:
    """Return the strongest finding of each rule, and how often the rule found something."""
    by_rule: dict[str, list[Cause]] = {}
    for cause in one.audited.verdict.causes:
        by_rule.setdefault(cause.rule, []).append(cause)
    lines = []
    for rule, causes in by_rule.items():
        first = max(causes, key=lambda cause: cause.confidence)
        about = f" of *{_cell(first.about)}*" if first.about and len(one.audited.phases) > 1 else ""
        again = say("report.audited.also_found", count=len(causes)) if len(causes) > 1 else ""
        lines.append(f"- **{title(rule)}** (`{rule}`){about}<br>{_cell(first.text)}{again}")
    return "\n".join(lines)


def _counts(one: AuditedResults) -> str:
    """Return how many results there are of each kind: of many, the worst says little of the others."""
    kinds = Counter(words.NAMES[phase.verdict.kind] for phase in one.audited.phases)
    verdicts = ", ".join(f"{name} {count}" for name, count in kinds.most_common())
    return f"{len(one.audited.phases)} result{'' if len(one.audited.phases) == 1 else 's'}: {verdicts}"


def _table(one: AuditedResults) -> str:
    has_author = any(_author(case) for case in one.results.cases)
    headings = (*HEADINGS, SAID) if has_author else HEADINGS
    rows = [headings, tuple("---" for _ in headings)]
    for case, phase in zip(one.results.cases, one.audited.phases, strict=True):
        verdict = phase.verdict
        kind = ", ".join(filter(None, (words.headline(verdict), words.sureness(verdict))))
        row = (_cell(phase.name), number(case), kind, "<br>".join(_why(verdict)))
        rows.append((*row, _cell(_author(case))) if has_author else row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _author(case: Case) -> str:
    return (case.declared.author_says or "") if case.declared else ""


def _cell(text: str) -> str:
    return printable.markdown(text.replace("\n", " "))
