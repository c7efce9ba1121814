"""Runs of an experiment that are done again: which, why, and what is left of the attempt before.

Knows how attempts are called in `study.json`, what somebody else changed while a run lasted, and which rules
of a verdict say that something outside the load spoilt it. Opens no bundle, and does not decide when they are
done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.bundle.experiment import ExperimentAttempt
from loadstone.control.control_kind import Setting

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.bundle.experiment import ExperimentDocument, ExperimentRun
    from loadstone.bundle.study import Point
    from loadstone.verdict import RuleName

_ATTEMPT: Final = " (attempt "
OUTSIDE: Final[frozenset[RuleName]] = frozenset(
    {"clock_jump", "clock_skew", "generator_stopped", "foreign_load", "background_work", "network_loss"}
)
"""Rules about what came upon a run by chance: another one like it need not have it.

All others are about the job, its targets or the host, and would find the same again.
"""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Why nothing rests on a run that completed. `rule`: of its verdict; empty: a setting was changed."""

    why: str
    rule: str = ""


def stem(name: str) -> str:
    """Return the name of the run that an attempt is of."""
    return name.partition(_ATTEMPT)[0]


def counts(point: Point) -> bool:
    """Return whether something rests on a run: it completed, and is not done again."""
    return point.status == "complete" and _ATTEMPT not in point.name


def not_held(run: ExperimentRun) -> str | None:
    """Return what somebody else changed while a run lasted; None: nothing."""
    changed = [one for one in run.settings if one.outcome in ("changed_by_others", "not_held")]
    return None if not changed else f"{Setting(changed[0].control, changed[0].subject)}: {changed[0].why}"


def disturbed(
    document: ExperimentDocument, points: Sequence[Point], spoilt: Mapping[str, Disturbance]
) -> dict[str, Disturbance]:
    """Return the runs that completed and are done again, and why.

    `spoilt`: runs that are not valid for a reason outside the load. One that was done again for such a reason
    is not done a third time: what comes twice may come always.
    """
    complete = {one.name for one in points if counts(one)}
    again = {one.run for one in document.attempts if one.rule}
    reasons = {}
    for run in document.runs:
        if run.name not in complete:
            continue
        if (why := not_held(run)) is not None:
            reasons[run.name] = Disturbance(why)
        elif run.name in spoilt and run.name not in again:
            reasons[run.name] = spoilt[run.name]
    return reasons


def renamed(points: Sequence[Point], again: Collection[str]) -> tuple[Point, ...]:
    """Give runs that did not complete, and those of `again`, a name of their own: they are to be done."""
    names = {point.name for point in points}
    new_points = []
    for point in points:
        if point.status == "complete" and point.name not in again:
            new_points.append(point)
            continue
        run, number = stem(point.name), 1
        while f"{run}{_ATTEMPT}{number})" in names and f"{run}{_ATTEMPT}{number})" != point.name:
            number += 1
        names.add(f"{run}{_ATTEMPT}{number})")
        new_points.append(point.model_copy(update={"name": f"{run}{_ATTEMPT}{number})"}))
    return tuple(new_points)


def with_attempts(
    document: ExperimentDocument, points: Sequence[Point], spoilt: Mapping[str, Disturbance]
) -> ExperimentDocument:
    """Return the document with what was set for runs that are done again kept under their attempts' names.

    `points`: after `renamed`, and so the names of `spoilt`. A session that was killed as it wrote down its
    first run has kept nothing yet: what is there is of the first attempt that has no record.
    """
    recorded = {one.name for one in document.attempts}
    names = {one.name for one in points}
    attempts, runs = list(document.attempts), []
    for run in document.runs:
        own = [one for one in points if stem(one.name) == run.name and one.name not in recorded]
        if run.name in names or run.started is None or not own:
            runs.append(run)
            continue
        reason = Disturbance("")
        if own[0].status == "complete":
            why = not_held(run)
            reason = Disturbance(why) if why is not None else spoilt.get(own[0].name, reason)
        attempts.append(
            ExperimentAttempt(
                name=own[0].name,
                run=run.name,
                started=run.started,
                settings=run.settings,
                why=reason.why,
                rule=reason.rule,
            )
        )
        runs.append(run.model_copy(update={"started": None, "settings": ()}))
    return document.model_copy(update={"attempts": tuple(attempts), "runs": tuple(runs)})
