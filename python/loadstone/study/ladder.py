"""A maximum, then runs at shares of it, in the order given.

Knows how a maximum is read off a run. Does not know how a run at a share is made, nor what
its name is: whoever asks for a ladder says so, because every language has names of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.study.controller import Done, Next


class Ladder:
    """`rung` makes the run at a percentage of a maximum, given both: (percent, maximum_iops).

    When the maximum could not be measured there is nothing to climb and the ladder ends.
    """

    def __init__(
        self, maximum: Next, percents: Sequence[float], rung: Callable[[float, float], Next]
    ) -> None:
        self._maximum = maximum
        self._percents = list(percents)
        self._rung = rung
        self._ended = False

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the maximum, then rung by rung."""
        if not done:
            return self._maximum
        found = done_iops(done[0].summary)
        if found is None:
            self._ended = True
        if self._ended or found is None or len(done) > len(self._percents):
            return None
        return self._rung(self._percents[len(done) - 1], found)

    def known(self) -> Sequence[Next]:
        """Return the maximum: the rates of the others are not known yet."""
        return [self._maximum]

    def expected(self) -> int:
        """Return the number of runs."""
        return 1 if self._ended else 1 + len(self._percents)


def done_iops(summary: Summary | None) -> float | None:
    """Return the I/Os per second of a run, None when there were none."""
    if summary is None or summary.total.data is None or summary.total.data.iops is None:
        return None
    return summary.total.data.iops.value or None
