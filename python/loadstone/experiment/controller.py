"""Which run of an experiment comes next: the first in order that has not been done.

Knows the order, the budget, and that nothing is measured on a machine that could not be put back.
Knows no setting.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.bundle.experiment import ExperimentBudget
    from loadstone.study.controller import Done, Next


class ExperimentController:
    """Does every run that no run of that name has completed, each once in this session."""

    def __init__(
        self,
        nexts: Sequence[Next],
        known: Sequence[Next],
        budget: ExperimentBudget,
        *,
        done_before: Sequence[Done] = (),
        obstacle: Callable[[], str | None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nexts = nexts
        finished = _finished(done_before)
        self._known = [one for one in known if one.name not in finished]
        self._left = [one for one in nexts if one.name not in finished]
        self._attempts_before = len(done_before) - len(finished)
        self._earlier = len(done_before)
        self._budget = budget
        self._obstacle = obstacle
        self._now = now
        self._began_s: float | None = None
        self._at = 0
        self.ended_because: str | None = None
        """In words, where it is over before its last run."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run."""
        if self._began_s is None:
            self._began_s = self._now()
        if self._at == len(self._left):
            return None
        self.ended_because = self._obstacle() or self._over_budget(done)
        if self.ended_because is not None:
            return None
        self._at += 1
        return self._left[self._at - 1]

    def known(self) -> Sequence[Next]:
        """Return the runs that can be checked before the first one begins."""
        return self._known

    def expected(self) -> int:
        """Return how many runs there will be, those before and their lost attempts counted."""
        return len(self._nexts) + self._attempts_before

    def _over_budget(self, done: Sequence[Done]) -> str | None:
        own = done[self._earlier :]
        if not own:
            return None
        limit_s, limit_bytes = self._budget.time_s, self._budget.written_bytes
        used_s = self._now() - (self._began_s or 0.0)
        if limit_s is not None and used_s + used_s / len(own) > limit_s:
            return f"another run would take more than the budget of {units.whole_seconds(limit_s)}"
        written = [written_bytes(one) for one in done]
        if limit_bytes is not None and sum(written) + max(written) > limit_bytes:
            return f"another run could write more than the budget of {units.size(limit_bytes)}"
        return None


def _finished(done: Sequence[Done]) -> set[str]:
    return {one.point.name for one in done if one.point.status == "complete"}


def written_bytes(done: Done) -> int:
    """Return what a run wrote."""
    lines = [line for line in done.run.lines if line.op == "write"]
    return int(sum(line.operations * (line.block_bytes or 0) for line in lines))
