"""Rounds of the same runs until one of them is steady: how SNIA measures a solid state drive.

Knows the order (what prepares, then round after round) and when it is enough. What steady
means is `analysis.steady`; what a round holds is the caller's business.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, Literal

from loadstone.analysis.statistics.steady import ROUNDS, steady
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.study.controller import Done, Next

ROUND: Final = "round"
Quantity = Literal["iops", "bandwidth", "mean_ns"]


class RoundsController:
    """Repeats `cells` until the one called `tracks` is steady, at most `most` times.

    `every`: rounds between two of the five that are compared.
    """

    def __init__(
        self,
        prepare: Sequence[Next],
        cells: Sequence[Next],
        *,
        most: int,
        tracks: str,
        quantity: Quantity,
        every: int = 1,
    ) -> None:
        self._prepare = list(prepare)
        self._cells = list(cells)
        self._most = most
        self._tracked = [cell.name for cell in cells].index(tracks)
        self._quantity: Quantity = quantity
        self._every = every
        self.ended_because: str | None = None
        """In words, once there is no more to do."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next preparation, or the next cell of the round."""
        if len(done) < len(self._prepare):
            return self._prepare[len(done)]
        number, at = divmod(len(done) - len(self._prepare), len(self._cells))
        if at == 0 and number:
            self.ended_because = self._why_no_more(done, number)
            if self.ended_because is not None:
                return None
        return self._cell(number, at)

    def known(self) -> Sequence[Next]:
        """Return the preparations, and the rounds without which nothing is decided."""
        sure = min(self._most, self._every * (ROUNDS - 1) + 1)
        cells = range(len(self._cells))
        return [*self._prepare, *(self._cell(number, at) for number in range(sure) for at in cells)]

    def expected(self) -> int | None:
        """Return None: the results decide."""
        return None

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
        return len(self._prepare) + self._most * len(self._cells)

    def _why_no_more(self, done: Sequence[Done], number: int) -> str | None:
        values = self._series(done)
        # Backwards from the last, so that the newest round is always looked at.
        compared = values[:: -self._every][:ROUNDS][::-1]
        window = steady(compared) if len(values) == number else None
        if window is not None and window.steady:
            return say(
                "study.rounds.steady",
                rounds=number,
                compared=ROUNDS,
                range_share=window.range_share,
                slope_share=window.slope_share,
            )
        if number >= self._most:
            return say("study.rounds.not_steady", rounds=number)
        return None

    def _series(self, done: Sequence[Done]) -> list[float]:
        """Return what the tracked cell measured in each round, oldest first."""
        tracked = done[len(self._prepare) + self._tracked :: len(self._cells)]
        estimates = [getattr(one.run.whole, self._quantity) if one.run.whole else None for one in tracked]
        return [one.value for one in estimates if one is not None]

    def _cell(self, number: int, at: int) -> Next:
        cell = self._cells[at]
        return dataclasses.replace(
            cell,
            name=f"round-{number + 1} {cell.name}",
            factors={**cell.factors, ROUND: number + 1},
        )
