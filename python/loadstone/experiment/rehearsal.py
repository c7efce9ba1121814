"""Each level set once and put back before the first run, so that one that cannot be set is said before.

Knows which levels go together: what another level resets is set after that, and what is of a volume
while its layout stands. Measures nothing, and waits for no array to synchronise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.bundle.experiment import UnsetLevel
from loadstone.control.control_kind import Setting
from loadstone.errors import LoadstoneError, RefusedError, RunError
from loadstone.experiment.file import VOLUME
from loadstone.experiment.levels import Asked, applies, asked
from loadstone.experiment.machine_state import fill_bytes
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.bundle.experiment import ExperimentRun
    from loadstone.control.changes import Changes
    from loadstone.errors import Where
    from loadstone.experiment.file import ExperimentFactor
    from loadstone.experiment.levels import WantedSetting
    from loadstone.experiment.machine_state import Machine

SET_ALONE = ("control", "fill_level", "cgroup", "command")
"""Kinds of factors whose levels are set by themselves; a layout is built for those that need it."""


@dataclass(frozen=True, slots=True)
class LevelTrial:
    """A level that is to be set once."""

    factor: str
    level: str
    wanted: Asked
    before: tuple[WantedSetting, ...]
    """What is set before it: levels of other factors that would reset it."""
    beside: tuple[str, ...]
    """The same in words."""
    layout: str | None
    """What has to stand, where it is of a volume."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what makes it another one."""
        return (self.factor, self.level, self.before, self.layout)


@dataclass(slots=True)
class RehearsedLevels:
    """What was taken before some levels were left out: nobody has to try that again."""

    trials: set[tuple[object, ...]] = field(default_factory=set)
    """`LevelTrial.key` of each."""
    runs: set[str] = field(default_factory=set)
    """Names of runs that were planned while their layout stood."""
    for_all: bool = False
    """What is for all runs was set."""


@dataclass(frozen=True, slots=True)
class RehearsalSize:
    """What a rehearsal will do."""

    levels: int = 0
    layouts: int = 0
    commands: int = 0
    """Of the levels, those that run commands: nobody knows for how long."""
    filled_bytes: int = 0


@dataclass(slots=True)
class Rehearsal:
    """All levels of the runs of one block."""

    machine: Machine
    runs: Sequence[ExperimentRun]
    place: Callable[[WantedSetting], Where]
    """Where the file sets something for all runs."""
    look: Callable[[str], None] = lambda _: None
    """Called with the name of each layout while it stands."""
    earlier: RehearsedLevels = field(default_factory=RehearsedLevels)
    """What is not tried again; this rehearsal adds to it."""
    _refused: dict[tuple[str, str], str] = field(default_factory=dict)

    def hold(self) -> list[UnsetLevel]:
        """Return the levels that are not taken, and why.

        Raises RefusedError for what is for all runs and is not taken, RunError for what cannot be put back.
        """
        machine, trials = self.machine, self._trials()
        if self.earlier.for_all and not any(trials.values()) and len(trials) == 1:
            return []
        once, again = machine.constant()
        constant = [*once, *(one for one in again if VOLUME not in one.subject)]
        with machine.changes() as changes:
            self._set_for_all(changes, machine.placed(constant, None))
            self.earlier.for_all = True
            self._try_all(trials.pop(None, []))
            for name, own_trials in trials.items():
                self._try_layout(str(name), own_trials)
        return [UnsetLevel(factor=name, level=level, why=why) for (name, level), why in self._refused.items()]

    def size(self) -> RehearsalSize:
        """Return what it will do, and do nothing."""
        trials = self._trials()
        every = [one for own in trials.values() for one in own]
        return RehearsalSize(
            levels=len(every),
            layouts=len(trials) - 1,
            commands=sum(bool(one.wanted.commands) for one in every),
            filled_bytes=sum(fill_bytes(setting) for one in every for setting in one.wanted.settings),
        )

    def _trials(self) -> dict[str | None, list[LevelTrial]]:
        """Return what is to be set, each level once with what it depends on, by the layout that stands then.

        A command is tried where a run of its level would have it: a layout stands then, if there are any.
        """
        whole = self.machine.whole
        by_layout: dict[str | None, list[LevelTrial]] = {None: []}
        known = set(self.earlier.trials)
        for run in self.runs:
            layout = asked(whole, run.levels, run.pattern).layout
            if layout is not None and run.name not in self.earlier.runs:
                by_layout.setdefault(layout, [])
            for factor in whole.factors:
                trial = self._trial(factor, run, layout)
                if trial is not None and trial.key not in known:
                    known.add(trial.key)
                    stands = layout if trial.layout is not None or factor.what == "command" else None
                    by_layout.setdefault(stands, []).append(trial)
        return by_layout

    def _trial(self, factor: ExperimentFactor, run: ExperimentRun, layout: str | None) -> LevelTrial | None:
        """Return what a run on a layout sets by one factor; None: nothing."""
        if factor.what not in SET_ALONE:
            return None
        wanted = self._of_factor(factor, run)
        if wanted == Asked():
            return None
        first = [one for one in self._resetting(factor) if applies(one, run.pattern)]
        return LevelTrial(
            factor=factor.name,
            level=run.levels[factor.name],
            wanted=wanted,
            before=tuple(item for one in first for item in self._of_factor(one, run).settings),
            beside=tuple(f"{one.name} = {run.levels[one.name]}" for one in first),
            layout=layout if VOLUME in f"{factor.subject}{factor.of}" else None,
        )

    def _of_factor(self, factor: ExperimentFactor, run: ExperimentRun) -> Asked:
        alone = self.machine.whole.model_copy(update={"factors": (factor,)})
        return asked(alone, run.levels, run.pattern)

    def _resetting(self, factor: ExperimentFactor) -> list[ExperimentFactor]:
        """Return the factors whose levels reset those of this one."""
        controls = self.machine.controls
        others = [
            one
            for one in self.machine.whole.factors
            if one is not factor and one.control is not None and factor.control is not None
        ]
        if VOLUME in factor.subject:
            # What resets what is known when the volume is there; together is how the runs have them.
            return [one for one in others if VOLUME in one.subject]
        own_settings = set(controls.meant(str(factor.control), factor.subject)) if others else set()
        return [
            one
            for one in others
            if own_settings.intersection(controls.reset_by(str(one.control), one.subject))
        ]

    def _try_layout(self, name: str, trials: Sequence[LevelTrial]) -> None:
        machine = self.machine
        records = len(machine.for_all)
        if machine.ledger.why_over(f"building {name}") is not None:
            return  # The run that would have it says so.
        try:
            machine.stand(name, synchronised=False)
        except LoadstoneError as error:
            self._refuse_left()
            self._refuse_layout(name, error)
        else:
            try:
                self._try_on(name, trials)
            finally:
                machine.take_down()
            self._refuse_left()
            self.earlier.runs |= {run.name for run in self._on(name)}
        # What was built is gone again: the page tells what the runs had.
        del machine.for_all[records:]

    def _try_on(self, name: str, trials: Sequence[LevelTrial]) -> None:
        """Try all that is of a layout, while it stands."""
        machine = self.machine
        on_volumes = [one for one in machine.constant()[1] if VOLUME in one.subject]
        with machine.changes() as changes:
            for one in on_volumes:
                self._set_for_all(changes, machine.placed([one], name), one)
            self.look(name)
            self._try_all(trials, name)

    def _refuse_layout(self, name: str, error: LoadstoneError) -> None:
        for factor in self.machine.whole.factors:
            for run in self._on(name) if factor.what == "layout" else ():
                self._refused.setdefault((factor.name, run.levels[factor.name]), error.message)

    def _on(self, layout: str) -> list[ExperimentRun]:
        """Return the runs on a layout."""
        whole = self.machine.whole
        return [run for run in self.runs if asked(whole, run.levels, run.pattern).layout == layout]

    def _refuse_left(self) -> None:
        """Refuse to go on where a layout did not go."""
        if left := self.machine.still_changed:
            settings = "; ".join(f"{Setting(one.control, one.subject)}: {one.why}" for one in left)
            raise make_error(RunError, "control.restore.still_changed", settings=settings)

    def _set_for_all(
        self, changes: Changes, settings: Sequence[WantedSetting], written: WantedSetting | None = None
    ) -> None:
        """Set what is for all runs; `written`: as the file has it, where that is another subject."""
        for one in settings:
            if self._exceeds(one):
                continue
            try:
                changes.set(one.control, one.subject, one.value)
            except LoadstoneError as error:
                place = self.place(written or one)
                raise make_error(
                    RefusedError, "experiment.setting.cannot", where=place, reason=error.message
                ) from error

    def _try_all(self, trials: Sequence[LevelTrial], layout: str | None = None) -> None:
        for trial in trials:
            why = self._why_not_taken(trial, layout)
            if why is not None:
                on_layout = [f"layout {layout}"] if layout and trial.wanted.settings else []
                beside = [*trial.beside, *on_layout]
                words = say("experiment.level.beside", beside=", ".join(beside), reason=why)
                self._refused.setdefault((trial.factor, trial.level), words if beside else why)

    def _why_not_taken(self, trial: LevelTrial, layout: str | None) -> str | None:
        """Set a level and put it back. What is set before it and is not taken is a level of its own."""
        machine = self.machine
        with machine.changes() as changes:
            try:
                for one in machine.placed(trial.before, layout):
                    changes.set(one.control, one.subject, one.value)
            except LoadstoneError:
                return None
            try:
                self._set(changes, trial.wanted, layout)
            except LoadstoneError as error:
                return error.message
        self.earlier.trials.add(trial.key)
        return None

    def _set(self, changes: Changes, wanted: Asked, layout: str | None) -> None:
        machine = self.machine
        if wanted.group is not None:
            changes.set("cgroup", f"{machine.label}-{os.getpid()}", wanted.group)
        for one in self._affordable(machine.placed(wanted.settings, layout)):
            changes.set(one.control, one.subject, one.value)
        for pair in wanted.commands:
            changes.run(pair.name, pair.do, pair.undo)

    def _affordable(self, settings: Sequence[WantedSetting]) -> Iterator[WantedSetting]:
        return (one for one in settings if not self._exceeds(one))

    def _exceeds(self, wanted: WantedSetting) -> bool:
        """Return whether a setting would write more than the budget; if not, count what it writes."""
        ledger, count = self.machine.ledger, fill_bytes(wanted)
        if count and ledger.why_over(f"filling {wanted.subject}", more_bytes=count) is not None:
            return True
        ledger.wrote(count)
        return False
