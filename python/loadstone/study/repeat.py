"""The same thing again, so many times or until the mean is known well enough.

Knows when to stop. The interval is looked at after every run, so it holds a little less often
than its level says; `MIN_RUNS` keeps that little.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study import repeats
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.study.controller import Done, Next

MIN_RUNS: Final = 4
"""Before an interval may end a study: two or three runs often lie close together by chance."""


@dataclass(frozen=True, slots=True)
class Until:
    """Stop when the 95 % interval of the mean is within `share` of it, or when time is up."""

    share: float
    budget_s: float


class RepeatController:
    """Repeats a run `most` times, or fewer when `until` says so first; one of the two is given."""

    def __init__(
        self,
        run: Next,
        *,
        most: int | None,
        until: Until | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._most = most
        self._until = until
        self._now = now
        self._began_s: float | None = None
        self.ended_because: str | None = None
        """In words, once there is no more to do."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next repeat."""
        if self._began_s is None:
            self._began_s = self._now()
        if done:
            self.ended_because = self._why_no_more(done)
        return None if self.ended_because else self._repeat(len(done) + 1)

    def known(self) -> Sequence[Next]:
        """Return all repeats, or those without which nothing is decided."""
        sure = (self._most or MIN_RUNS) if self._until is None else min(self._most or MIN_RUNS, MIN_RUNS)
        return [self._repeat(number + 1) for number in range(sure)]

    def expected(self) -> int | None:
        """Return the number of repeats, None when the results decide."""
        return self._most if self._until is None else None

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
        return self._most

    def _why_no_more(self, done: Sequence[Done]) -> str | None:
        if self._most is not None and len(done) >= self._most:
            return say("study.repeat.most", repeats=self._most)
        if self._until is None:
            return None
        runs = [one.run for one in done]
        if len(runs) >= MIN_RUNS and repeats.narrow(runs, self._until.share):
            return say("study.repeat.precise", limit_percent=self._until.share * 100)
        used_s = self._now() - (self._began_s or 0.0)
        if used_s + used_s / len(done) > self._until.budget_s:
            return say(
                "study.repeat.no_time",
                budget_s=self._until.budget_s,
                limit_percent=self._until.share * 100,
            )
        return None

    def _repeat(self, number: int) -> Next:
        return dataclasses.replace(
            self._run,
            name=f"repeat-{number}",
            factors={**self._run.factors, "repeat": number},
        )
