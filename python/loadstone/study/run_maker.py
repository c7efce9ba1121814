"""How one run of a study is made: on this host, by a session of its own.

Knows what is certain before the first run (`check`) and how a run comes about (`make`). Another maker
takes the runs to other hosts. Knows no order of runs and no `study.json`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.engine import plan_check
from loadstone.engine.calibrate import shape
from loadstone.errors import InputError, LoadstoneError, RefusedError, each, raise_all
from loadstone.messages import make_error, say
from loadstone.path.child import answering, run_in_child
from loadstone.plan import tree_jobs
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.derived import changes_trees
from loadstone.plan.safety import guard, obstacles
from loadstone.session import run_plan, through_parent
from loadstone.study.verified_blocks import KnownBlocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.audit.run import SealedFigures
    from loadstone.errors import Where
    from loadstone.plan.model import Plan
    from loadstone.session import Outcome, Progress, RunRequest
    from loadstone.study.controller import Next
    from loadstone.study.time_estimate import TimeEstimate
    from loadstone.workload.model import Note


class Resolved(Protocol):
    """What is needed of a run before it starts: `plan.resolve.Resolution`, or a Plan that ran before."""

    @property
    def plan(self) -> Plan:
        """What will run."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said of it."""

    @property
    def duration_ns(self) -> int | None:
        """Longest time of the load; None when that is not known."""


@dataclass(frozen=True, slots=True)
class StudyStep:
    """One run of a study: what is wanted, and where it goes."""

    wanted: Next
    asked: RunRequest
    out_dir: Path
    begin: Callable[[], Progress | None]
    """Called when it is about to start; returns who wants to see it."""
    consent: guard.Consent
    figures: SealedFigures


class RunMaker(Protocol):
    """Makes the runs of a study, one after the other."""

    def hold(self) -> AbstractContextManager[None]:
        """Take what all runs need, from before the check to the end of the last run."""
        ...

    def check(self, known: Sequence[Next], consent: guard.Consent, clock: TimeEstimate) -> None:
        """Check every run that is certain to come, before the first; ask for consent once."""

    def make(self, step: StudyStep, clock: TimeEstimate) -> Outcome:
        """Do one run. Raises what a run raises."""
        ...


class RunsHere:
    """Runs of this host. `resolve`: what a run is here. `only_told`: none will follow the check."""

    def __init__(
        self, resolve: Callable[[Next], Resolved], *, calibration: bool, only_told: bool = False
    ) -> None:
        self._resolve = resolve
        self._only_told = only_told
        self._calibration = calibration
        self._calibrations: dict[str, dict[str, Any]] = {}
        self._blocks = KnownBlocks()

    def hold(self) -> AbstractContextManager[None]:
        """Take nothing: each run holds its targets itself."""
        return contextlib.nullcontext()

    def check(self, known: Sequence[Next], consent: guard.Consent, clock: TimeEstimate) -> None:
        """Resolve and check every run; what an earlier one makes for a later one is not there yet.

        Trees that a later one changes are looked at all the same.
        """
        prepared = False
        names: set[str] = set()
        plans: list[Plan] = []
        early: list[Plan] = []
        wrong: dict[tuple[str, Where | None], LoadstoneError] = {}
        """By what is wrong: what is wrong with many runs is told of the first."""
        for wanted in known:
            if wanted.name in names:
                raise make_error(InputError, "study.same_name", name=repr(wanted.name))
            names.add(wanted.name)
        for wanted, resolved in zip(known, self._resolved(known), strict=True):
            if isinstance(resolved, LoadstoneError):
                prepared_before, prepared = prepared, prepared or wanted.role == "prepare"
                if prepared_before:
                    early += self._trees_changed(wanted)
                    continue
                for one in each(resolved):
                    message = one.message if len(known) == 1 else f"run {wanted.name}: {one.message}"
                    mistake = type(one)(message, where=one.where, hint=one.hint)
                    wrong.setdefault((one.message, one.where), mistake)
                continue
            prepared = prepared or wanted.role == "prepare" or changes_trees(resolved.plan)
            clock.planned(wanted, resolved.duration_ns)
            plans.append(resolved.plan)
            consent = consent.placed(target_places(resolved.plan, wanted.workload))
        raise_all([*wrong.values()])
        check_targets([*plans, *early], consent, only_told=self._only_told)
        if len(plans) == len(known):
            guard.check_consent(consent, plans)

    def _resolved(self, known: Sequence[Next]) -> list[Resolved | LoadstoneError]:
        """Return what each run is here, or what is wrong with it, from one child for all of them."""
        return run_in_child(
            lambda: [self._resolved_or_wrong(wanted) for wanted in known],
            doing=say("path.child.looking.targets_of_study"),
        )

    def _resolved_or_wrong(self, wanted: Next) -> Resolved | LoadstoneError:
        try:
            resolved = self._resolve(wanted)
            plan_check.memory_bytes(resolved.plan)
        except (InputError, RefusedError) as error:
            return error
        return resolved

    def _trees_changed(self, wanted: Next) -> list[Plan]:
        """Return a Plan that changes the trees of a run that cannot be resolved yet; none if it has none."""
        work = tree_jobs.only_making_directories(wanted.workload)
        try:
            return [] if work is None else [self._resolve(dataclasses.replace(wanted, workload=work)).plan]
        except (InputError, RefusedError):
            return []

    def make(self, step: StudyStep, clock: TimeEstimate) -> Outcome:
        """Resolve a run and do it."""
        resolved = self._resolve(step.wanted)
        clock.planned(step.wanted, resolved.duration_ns)
        progress = step.begin()
        alike = shape(resolved.plan) if self._calibration else ""
        plan = self._blocks.before(resolved.plan)
        outcome = run_plan(
            plan,
            request=dataclasses.replace(
                step.asked, notes=[note.model_dump(mode="json") for note in resolved.notes]
            ),
            out_dir=step.out_dir,
            progress=progress,
            consent=step.consent.placed(target_places(resolved.plan, step.wanted.workload)),
            result=step.figures.document,
            calibration=self._calibrations.get(alike, self._calibration),
        )
        self._blocks.after(plan, step.out_dir)
        summary = step.figures.summary
        if self._calibration and summary is not None:
            calibration = summary.bundle.event("calibration")
            if calibration is not None and "skipped" not in calibration:
                self._calibrations.setdefault(alike, {**calibration, "taken_over_from": step.out_dir.name})
        return outcome


def check_targets(plans: Sequence[Plan], consent: guard.Consent, *, only_told: bool) -> None:
    """Check what runs write, in a child: what does not answer is an error.

    `only_told`: nothing is touched, as no run follows.
    """
    asking, questions = through_parent(consent)

    def look() -> None:
        looked_at: set[frozenset[str]] = set()
        for plan in plans:
            paths = frozenset(plan.targets[index].path for index in guard.written(plan))
            if paths not in looked_at:
                looked_at.add(paths)
                # A Plan that ran before was not resolved here.
                obstacles.check(plan, asking.places, naming=not only_told)
                guard.secure(plan, asking)

    with answering(*questions):
        run_in_child(look, doing=say("path.child.looking.targets_of_study"))
