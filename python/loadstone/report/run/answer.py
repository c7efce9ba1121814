"""The answer of a run: the number, whether to believe it, and what limited it.

Knows which number is that of a run: the total of all jobs that ran at the same time, reads and
writes together; of phases that ran one after the other there is one each. Computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rich.text import Text

from loadstone import units
from loadstone.analysis.study.run_figures import are_large
from loadstone.messages import say
from loadstone.report.verdict.words import STYLES, headline, sureness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from loadstone.analysis.measurement import By
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.verdict import Audited, Verdict

MAX_PHASES: Final = 12
"""More phases than this are counted on a terminal; the page has all of them."""
MAX_NAMES: Final = 2


@dataclass(frozen=True, slots=True)
class PhaseAnswer:
    """One number: of what, the rate that matters with its error, the rest of it, and what it is worth."""

    name: str
    number: str
    unit: str
    details: tuple[str, ...]
    kind: str | None
    believe: str | None
    """The verdict and how sure it is."""


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """All of it. With one phase the verdict on it is that on the run."""

    phases: tuple[PhaseAnswer, ...]
    kind: str | None
    believe: str | None
    why: str


def answer(summary: Summary, audited: Audited | None = None) -> RunAnswer:
    """Return the answer of a run; no phase when nothing was measured."""
    totals = summary.totals("stage")
    verdicts = [None] * len(totals) if audited is None else [phase.verdict for phase in audited.phases]
    if len(verdicts) != len(totals):
        verdicts = [None] * len(totals)
    measured_phases = [
        _phase(summary, total, verdict)
        for total, verdict in zip(totals, verdicts, strict=True)
        if total.data is not None and total.data.operations
    ]
    whole = audited.verdict if audited is not None else None
    return RunAnswer(
        phases=tuple(measured_phases),
        kind=whole.kind if whole is not None else None,
        believe=None if whole is None else _believe(whole),
        why=whole.sentences if whole is not None else "",
    )


def phases(summary: Summary) -> list[tuple[str, Total]]:
    """Return the total of each phase under its name; nothing where all jobs ran at the same time."""
    totals = summary.totals("stage")
    return [(_named(summary.within(total, "job")), total) for total in totals] if len(totals) > 1 else []


def by_phase(summary: Summary, by: Literal["target", "host"]) -> list[tuple[str, Total]]:
    """Return each target or host under its name, phase by phase where a run has several.

    Phases that ran one after the other have no mean rate that anybody could see.
    """
    if not (several := phases(summary)):
        return [(total.line.name, total) for total in summary.totals(by)]
    each: By = "target of stage" if by == "target" else "host of stage"
    return [
        (f"{total.line.name} · {phase}", total)
        for phase, whole in several
        for total in summary.within(whole, each)
    ]


def _phase(summary: Summary, total: Total, verdict: Verdict | None) -> PhaseAnswer:
    data = total.data
    assert data is not None  # noqa: S101 - it was chosen because it is there
    number, unit, other = _rates(data)
    return PhaseAnswer(
        name=_named(summary.within(total, "job")),
        number=number,
        unit=unit,
        details=(*other, *_latencies(data), *_parts(total)),
        kind=None if verdict is None else verdict.kind,
        believe=None if verdict is None else _believe(verdict),
    )


def _rates(data: OpTotals) -> tuple[str, str, list[str]]:
    """Return the rate that matters, its unit, and the other one."""
    large = are_large(data.bytes / data.operations)
    iops = units.with_error(data.iops, "count")
    moved = units.with_error(data.bandwidth, "binary") if data.bytes else units.NONE
    if not large:
        return iops, "IOPS", [units.figure(data.bandwidth, "binary")] if data.bytes else []
    number, _, unit = moved.rpartition(units.THIN)
    return number, unit, [f"{units.figure(data.iops, 'count')} IOPS"]


def _latencies(data: OpTotals) -> list[str]:
    lat = data.latencies.get("lat")
    if lat is None:
        return []
    p99 = lat.percentile(99)
    latencies = [f"mean {units.figure(lat.mean, 'time')}"]
    return latencies + ([f"p99 {units.duration(p99)}"] if p99 is not None else [])


def _parts(total: Total) -> list[str]:
    """Return reads and writes by themselves, where there are both."""
    if len(total.requested) < 2:
        return []
    return [f"{op} {units.figure(total.ops[op].iops, 'count')}" for op in total.requested if op in total.ops]


def _named(jobs: list[Total]) -> str:
    names = [job.line.name for job in jobs]
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{len(names)} jobs, {names[0]} to {names[-1]}"


def _believe(verdict: Verdict) -> str:
    sure = sureness(verdict)
    return f"{headline(verdict)} ({sure})" if sure else headline(verdict)


def terminal(run_answer: RunAnswer, console: Console) -> None:
    """Print the answer as the last lines of a run: a line for each phase, and what they are worth."""
    for line in _lines(run_answer):
        console.print(line)


def _lines(run_answer: RunAnswer) -> Iterator[Text]:
    several = len(run_answer.phases) > 1
    for phase in run_answer.phases[:MAX_PHASES]:
        line = Text(f"{phase.name}: " if several else "")
        line.append(f"{phase.number}{units.THIN}{phase.unit}", "bold")
        line.append("".join(f" · {one}" for one in phase.details))
        if several and phase.believe is not None:
            line.append(" · ")
            line.append(phase.believe, STYLES[phase.kind or "cannot_tell"])
        yield line
    if len(run_answer.phases) > MAX_PHASES:
        yield Text(say("report.run.more_phases", count=len(run_answer.phases) - MAX_PHASES), "dim")
    if not several and run_answer.phases and run_answer.believe is not None:
        yield Text(run_answer.believe, STYLES[run_answer.kind or "cannot_tell"])
