"""Runs of an experiment that are done again: which, why, and what is left of the attempt before.

Knows how attempts are called in `study.json`, and what somebody else changed while a run lasted. Opens no
bundle, and does not decide when they are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.bundle.experiment import ExperimentAttempt

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from loadstone.bundle.experiment import ExperimentDocument, ExperimentRun
    from loadstone.bundle.study import Point

_ATTEMPT: Final = " (attempt "


def stem(name: str) -> str:
    """Return the name of the run that an attempt is of."""
    return name.partition(_ATTEMPT)[0]


def counts(point: Point) -> bool:
    """Return whether something rests on a run: it completed, and is not done again."""
    return point.status == "complete" and _ATTEMPT not in point.name


def not_held(run: ExperimentRun) -> str | None:
    """Return what somebody else changed while a run lasted; None: nothing."""
    changed = [one for one in run.settings if one.outcome in ("changed_by_others", "not_held")]
    return None if not changed else f"{changed[0].control} of {changed[0].subject}: {changed[0].why}"


def disturbed(document: ExperimentDocument, points: Sequence[Point]) -> dict[str, str]:
    """Return the runs that completed while somebody else changed what they rest on, and what that was."""
    complete = {one.name for one in points if counts(one)}
    reasons = {run.name: not_held(run) for run in document.runs if run.name in complete}
    return {name: why for name, why in reasons.items() if why is not None}


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


def with_attempts(document: ExperimentDocument, points: Sequence[Point]) -> ExperimentDocument:
    """Return the document with what was set for runs that are done again kept under their attempts' names.

    `points`: after `renamed`. A session that was killed as it wrote down its first run has kept nothing yet:
    what is there is of the first attempt that has no record.
    """
    recorded = {one.name for one in document.attempts}
    names = {one.name for one in points}
    attempts, runs = list(document.attempts), []
    for run in document.runs:
        own = [one for one in points if stem(one.name) == run.name and one.name not in recorded]
        if run.name in names or run.started is None or not own:
            runs.append(run)
            continue
        why = not_held(run) if own[0].status == "complete" else None
        attempts.append(
            ExperimentAttempt(
                name=own[0].name, run=run.name, started=run.started, settings=run.settings, why=why or ""
            )
        )
        runs.append(run.model_copy(update={"started": None, "settings": ()}))
    return document.model_copy(update={"attempts": tuple(attempts), "runs": tuple(runs)})
