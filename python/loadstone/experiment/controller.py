"""Which run of an experiment comes next: the first in order that has not been done.

Knows the order, what a run like the next one took before, and that nothing is measured on a machine
that could not be put back. Knows no setting; the budget is the ledger's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.experiment.ledger import BudgetLedger
from loadstone.experiment.writes import written_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from loadstone.study.controller import Done, Next


class ExperimentController:
    """Does every run that no run of that name has completed, each once in this session.

    `alike` says which runs take as much, by the run and the one before it; `planned` the seconds of a run
    that nothing is known of, and the bytes that any run writes at least.
    """

    def __init__(
        self,
        nexts: Sequence[Next],
        known: Sequence[Next],
        ledger: BudgetLedger | None = None,
        *,
        done_before: Sequence[Done] = (),
        obstacle: Callable[[], str | None] = lambda: None,
        alike: Callable[[Next, Next | None], Hashable] = lambda _, __: None,
        planned: Callable[[Next], tuple[float, int]] = lambda _: (0.0, 0),
    ) -> None:
        self._nexts = nexts
        finished = _finished(done_before)
        self._known = [one for one in known if one.name not in finished]
        self._left = [one for one in nexts if one.name not in finished]
        # One that completed while somebody changed the machine has another name now, and is done again.
        self._attempts_before = len(done_before) - len(finished & {one.name for one in nexts})
        self._ledger = ledger or BudgetLedger()
        self._obstacle = obstacle
        self._alike = alike
        self._planned = planned
        self._took: list[tuple[Hashable, float, int]] = []
        """Of each run of this session: which are like it, its time, and what was written for it."""
        self._written: dict[str, int] = {}
        """Bytes of each run by its name: a bundle is read once."""
        self._most_before = max(map(self._bytes_of, done_before), default=0)
        self._begun: tuple[Hashable, float, int] | None = None
        self._at = 0
        self.ended_because: str | None = None
        """In words, where it is over before its last run."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run."""
        ledger = self._ledger
        ledger.runs_bytes = sum(map(self._bytes_of, done))
        self._note()
        if self._at == len(self._left):
            return None
        wanted = self._left[self._at]
        kind = self._alike(wanted, self._left[self._at - 1] if self._at else None)
        self.ended_because = self._obstacle() or ledger.exceeded or self._over_budget(wanted, kind)
        if self.ended_because is not None:
            return None
        self._begun = (kind, ledger.used_s, ledger.written_bytes)
        self._at += 1
        return wanted

    def known(self) -> Sequence[Next]:
        """Return the runs that can be checked before the first one begins."""
        return self._known

    def expected(self) -> int:
        """Return how many runs there will be, those before and their lost attempts counted."""
        return len(self._nexts) + self._attempts_before

    def most(self) -> int:
        """Return how many runs there can be."""
        return self.expected()

    def _bytes_of(self, one: Done) -> int:
        name = one.point.name
        if name not in self._written:
            self._written[name] = 0 if one.summary is None else written_bytes(one.summary.bundle)
        return self._written[name]

    def _note(self) -> None:
        """Note what the run that was begun last took, with all that was done for it."""
        if self._begun is not None:
            kind, used_s, written = self._begun
            self._took.append((kind, self._ledger.used_s - used_s, self._ledger.written_bytes - written))
            self._begun = None

    def _over_budget(self, wanted: Next, kind: Hashable) -> str | None:
        """Hold the next run against the budget: it takes as much as the largest one like it, or of all."""
        same = [one for one in self._took if one[0] == kind] or self._took
        planned_s, planned_bytes = self._planned(wanted)
        most_bytes = max((count for *_, count in same), default=self._most_before)
        return self._ledger.why_over(
            "another run",
            more_s=max((seconds for _, seconds, _ in same), default=planned_s),
            more_bytes=max(most_bytes, planned_bytes),
        )


def _finished(done: Sequence[Done]) -> set[str]:
    return {one.point.name for one in done if one.point.status == "complete"}
