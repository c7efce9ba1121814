"""A fixed list of runs, some of which may decide for themselves how they go on, once or several times.

Knows order only. A part is a run, or a controller whose runs come in its place: each of the
four corners with a curve of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from loadstone.analysis.study.repeats import REPEAT, again
from loadstone.study.controller import Controller, Done, Next

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ListController:
    """Runs its parts in their order. A part that is a controller sees its own runs only."""

    def __init__(self, parts: Sequence[Next | Controller]) -> None:
        self._parts = [_Single(part) if isinstance(part, Next) else part for part in parts]
        self._at = 0
        self._before = 0
        """Runs that earlier parts did."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run of the part whose turn it is."""
        while self._at < len(self._parts):
            wanted = self._parts[self._at].next(done[self._before :])
            if wanted is not None:
                return wanted
            self._at, self._before = self._at + 1, len(done)
        return None

    def known(self) -> Sequence[Next]:
        """Return what every part is certain of."""
        return [run for part in self._parts for run in part.known()]

    def expected(self) -> int | None:
        """Return the sum over the parts, None as soon as one does not know."""
        counts = [part.expected() for part in self._parts]
        return _sum(counts)

    def most(self) -> int | None:
        """Return the sum over the parts, None as soon as nothing bounds one."""
        return _sum([part.most() for part in self._parts])


class RepeatedList:
    """Does a list several times over, each time from its start and by what that time measured."""

    def __init__(self, make_controller: Callable[[], Controller], times: int) -> None:
        self._list = ListController(
            [ChangedRuns(make_controller(), partial(_of_pass, number + 1)) for number in range(times)]
        )

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run of the pass whose turn it is."""
        return self._list.next(done)

    def known(self) -> Sequence[Next]:
        """Return what every pass is certain of."""
        return self._list.known()

    def expected(self) -> int | None:
        """Return the runs of all passes, None as soon as one does not know."""
        return self._list.expected()

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
        return self._list.most()


class ChangedRuns:
    """The runs of a controller, each of them changed: given another name, say."""

    def __init__(self, runs: Controller, change: Callable[[Next], Next]) -> None:
        self._runs = runs
        self._change = change

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run, changed."""
        wanted = self._runs.next(done)
        return None if wanted is None else self._change(wanted)

    def known(self) -> Sequence[Next]:
        """Return what the controller is certain of, changed."""
        return [self._change(wanted) for wanted in self._runs.known()]

    def expected(self) -> int | None:
        """Return how many runs the controller will do."""
        return self._runs.expected()

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
        return self._runs.most()


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _of_pass(number: int, wanted: Next) -> Next:
    """Return a run of one of several passes over a list, with a name of its own."""
    name = again(wanted.name, number)
    return replace(
        wanted,
        name=name,
        workload=wanted.workload.model_copy(update={"name": name}),
        factors={**wanted.factors, REPEAT: number},
    )


class _Single:
    """One run as a controller."""

    def __init__(self, run: Next) -> None:
        self._run = run

    def next(self, done: Sequence[Done]) -> Next | None:
        return None if done else self._run

    def known(self) -> Sequence[Next]:
        return [self._run]

    def expected(self) -> int | None:
        return 1

    def most(self) -> int | None:
        return 1
