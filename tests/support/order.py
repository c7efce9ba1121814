"""The order of tests that run side by side: the slow ones begin first.

Of pytest-xdist's `worksteal` each worker gets an equal run of the list, as it was collected, and who has
nothing left takes from the end of another's. A slow test at the end of a run holds up all, so the slow
ones are dealt to the beginning of every worker's share.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TypeVar

import pytest

T = TypeVar("T")


class SlowFirst:
    """A plugin of pytest, of a worker that is one of so many."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort what is left when all others have taken away from the list."""
        slow = [item for item in items if item.get_closest_marker("slow")]
        others = [item for item in items if not item.get_closest_marker("slow")]
        items[:] = dealt(slow, others, self._workers)


def dealt(slow: list[T], others: list[T], workers: int) -> list[T]:
    """Return all, in as many equal shares as there are workers, each with its part of `slow` first."""
    rest = iter(others)
    shares = []
    for worker in range(workers):
        first = slow[workers - 1 - worker :: workers]
        # As xdist counts them: what does not divide is the last ones'.
        size = (len(slow) + len(others) + worker) // workers
        shares.append([*first, *islice(rest, size - len(first))])
    return list(chain(*shares))
