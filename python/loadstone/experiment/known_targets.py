"""What the targets of an experiment are in this session, held against what they were in those before.

Knows targets of this host, what layouts mount, and targets as other hosts see them. Refuses others than
those that the runs so far were measured on, unless somebody agrees to them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from loadstone.errors import RefusedError, RunError
from loadstone.experiment import target_record
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadstone.bundle.experiment import ExperimentTarget
    from loadstone.control.layout.description import LayoutOrder
    from loadstone.plan.safety.guard import Consent


class TargetsElsewhere(Protocol):
    """Targets that other hosts see."""

    @property
    def names(self) -> Sequence[str]:
        """The hosts."""
        ...

    def targets(self) -> tuple[ExperimentTarget, ...]:
        """Let each host look at those of the runs that were checked. Raises LoadstoneError."""
        ...


@dataclass(slots=True)
class KnownTargets:
    """Targets by their records. `killed`: the session before ended in the middle of a run."""

    before: tuple[ExperimentTarget, ...] = ()
    """As the session before left them."""
    killed: bool = False
    elsewhere: TargetsElsewhere | None = None
    """Who knows them, where they are on other hosts."""
    commands: bool = False
    """Runs have commands, which may put others in their place."""
    lost: Callable[[str], None] = lambda _: None
    """Told why no run may begin any more."""
    now: tuple[ExperimentTarget, ...] = field(init=False)
    _mounted: dict[str, ExperimentTarget] = field(default_factory=dict)
    """By the name of the layout."""

    def __post_init__(self) -> None:
        self.now = self.before

    def look(self, paths: Iterable[str]) -> None:
        """Look at them as they are now. Raises LoadstoneError."""
        looked_at = target_record.looked_at(paths) if self.elsewhere is None else self.elsewhere.targets()
        # What no run of this session uses was what it was.
        self.now = target_record.together(self.before, (*looked_at, *self._mounted.values()))

    def stood(self, order: LayoutOrder) -> None:
        """Look at what a layout has mounted. Raises RunError where it was another in this session."""
        for one in target_record.on_layout(order.name, order.description.source or "", order.volume(0)):
            known = self._mounted.setdefault(order.name, one)
            for path, why in target_record.others([known], [one], killed=False):
                error = make_error(RunError, "experiment.target.changed", path=path, reason=why)
                self.lost(error.message)
                raise error
            self.now = target_record.together(self.now, [known])

    def refuse_others(self, agreed: Consent) -> None:
        """Raise RefusedError for others than those of the sessions before, unless that is agreed to."""
        self._refuse_other_hosts()
        differing = dict(target_record.others(self.before, self.now, killed=self.killed))
        for path in sorted(agreed.paths):
            if not any(os.path.realpath(one) == os.path.realpath(path) for one in differing):
                raise make_error(RefusedError, "experiment.target.not_another", where=agreed.where, path=path)
        refused = {path: why for path, why in differing.items() if not agreed.given(path, [why])}
        if refused:
            words = "; ".join(f"{path}: {why}" for path, why in refused.items())
            hint = say("experiment.target.another_hint", remedy=agreed.remedy(list(refused)))
            raise RefusedError(f"{say('experiment.target.another')}: {words}", hint=hint)

    def _refuse_other_hosts(self) -> None:
        """Refuse hosts that the runs before were not made by, and to go on without one of those."""
        names = ("",) if self.elsewhere is None else tuple(self.elsewhere.names)
        before = list(dict.fromkeys(one.host for one in self.before))
        used = dict.fromkeys(one.host for one in self.now)
        if before and ({*before} - {*names} or {*used} - {*before}):
            raise make_error(
                RefusedError, "experiment.again.other_hosts", before=_named(before), now=_named(names)
            )

    def after_run(self) -> None:
        """Note what a run made of the files; devices and mounts stay those of the beginning.

        Raises LoadstoneError.
        """
        before = [one for one in self.now if not one.layout]
        now: Sequence[ExperimentTarget] = (
            target_record.looked_at(one.path for one in before)
            if self.elsewhere is None
            else self.elsewhere.targets()
        )
        if not self.commands:
            now = target_record.with_files_of(before, now)
        self.now = target_record.together(self.now, now)


def _named(hosts: Iterable[str]) -> str:
    return ", ".join(one or say("experiment.again.this_host") for one in hosts)


def others_here(before: Sequence[ExperimentTarget], *, killed: bool) -> list[tuple[str, str]]:
    """Return targets of this host other than those of the sessions before, and why; mount nothing for it."""
    own = [one for one in before if not one.host and not one.layout]
    return list(target_record.others(own, target_record.looked_at(one.path for one in own), killed=killed))
