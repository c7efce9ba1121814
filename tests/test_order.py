"""Slow tests begin first, on every worker, and no test is lost by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xdist.scheduler import WorkStealingScheduling

from tests.support.order import dealt


class ScheduledWorker:
    """What the scheduler knows of one."""

    shutting_down = False

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices


def shares(names: list[str], workers: int) -> list[list[str]]:
    """What each worker is given at first, by xdist itself."""
    config: Any = SimpleNamespace(getvalue=lambda _: ["popen"])
    schedule = WorkStealingScheduling(config)
    schedule.numnodes = workers
    nodes: list[Any] = [ScheduledWorker() for _ in range(workers)]
    for node in nodes:
        schedule.add_node(node)
        schedule.add_node_collection(node, names)
    schedule.schedule()
    return [[names[one] for one in node.given] for node in nodes]


def test_each_worker_begins_with_its_part_of_the_slow_ones() -> None:
    for workers in (1, 2, 3, 6):
        for slow_count in (0, 1, 5, 6, 13):
            for other_count in (4 * workers, 40, 101):
                slow = [f"slow {number}" for number in range(slow_count)]
                others = [f"other {number}" for number in range(other_count)]
                names = dealt(slow, others, workers)
                assert sorted(names) == sorted(slow + others)
                for share in shares(names, workers):
                    first = [name for name in share if name.startswith("slow")]
                    assert share[: len(first)] == first
                    assert slow_count // workers <= len(first) <= slow_count // workers + 1
