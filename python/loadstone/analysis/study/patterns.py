"""What a study measured, one line for each thing: repeats together, valid runs apart from the others.

Knows which runs of a list or of repeats are the same thing. Computes no figure itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.pooled import Pooled, pooled
from loadstone.analysis.study.repeats import REPEAT
from loadstone.analysis.study.run_figures import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.run_figures import LineFigures, RunFigures

PREPARED: Final = "prepare"


@dataclass(frozen=True, slots=True)
class StudyPattern:
    """One thing that was measured: a run of a list in all its passes, or a job and operation of it."""

    run: str
    """The name of its runs without the number of the pass; empty where all runs are the same thing."""
    job: str
    op: str
    runs: tuple[RunFigures, ...]
    measured: Pooled | None
    """Of all its runs, those that are not valid, too."""
    sound: Pooled | None
    """Of its valid runs: what may be told."""

    @property
    def name(self) -> str:
        """What it is called in a table."""
        job = "" if self.job == WHOLE else f"{self.job} {self.op}"
        return f"{self.run} {job}".strip() or self.op

    @property
    def each(self) -> tuple[tuple[RunFigures, LineFigures], ...]:
        """Its figures, run by run."""
        return tuple((run, line) for run in self.runs if (line := _line(run, self.job, self.op)) is not None)

    @property
    def valid(self) -> int:
        """How many of its runs anything may rest on."""
        return sum(line.valid for _, line in self.each)


def patterns(runs: Sequence[RunFigures], *, alike: bool = False) -> list[StudyPattern]:
    """Return what was measured, in the order it was met; `alike`: every run is the same thing."""
    groups: dict[str, list[RunFigures]] = {}
    for run in runs:
        if run.point.role != PREPARED and run.lines:
            groups.setdefault("" if alike else base_name(run), []).append(run)
    return [one for name, group in groups.items() for one in _of_runs(name, group)]


def base_name(run: RunFigures) -> str:
    """Return the name of a run without the number of its pass."""
    return run.point.name.removesuffix(f" {REPEAT} {run.point.factors.get(REPEAT)}")


def _of_runs(name: str, runs: Sequence[RunFigures]) -> list[StudyPattern]:
    if all(run.whole is not None for run in runs):
        ops = {run.whole.op for run in runs if run.whole is not None}
        return [_pattern(name, WHOLE, op, runs) for op in sorted(ops)]
    keys = dict.fromkeys((line.job, line.op) for run in runs for line in run.lines if line.op != "sync")
    return [_pattern(name, job, op, runs) for job, op in keys]


def _pattern(name: str, job: str, op: str, runs: Sequence[RunFigures]) -> StudyPattern:
    run_lines = [(run, line) for run in runs if (line := _line(run, job, op)) is not None]
    return StudyPattern(
        run=name,
        job=job,
        op=op,
        runs=tuple(runs),
        measured=pooled([line for _, line in run_lines]),
        sound=pooled([line for _, line in run_lines if line.valid]),
    )


def _line(run: RunFigures, job: str, op: str) -> LineFigures | None:
    if job == WHOLE:
        return run.whole if run.whole is not None and run.whole.op == op else None
    return next((line for line in run.lines if (line.job, line.op) == (job, op)), None)
