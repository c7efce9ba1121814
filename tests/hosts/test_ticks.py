"""The hosts' seconds put together for one display."""

from __future__ import annotations

from typing import Any

from loadstone.bundle.hosts import HostPart
from loadstone.hosts.ticks import MergedTicks

PARTS = (
    HostPart(name="a", bundle=None, status="running", first_cell=0, cells=1),
    HostPart(name="b", bundle=None, status="running", first_cell=1, cells=1),
)


def tick(interval: int, ops: int) -> dict[str, Any]:
    row = {"cell": 0, "op": "read", "ramp": False, "ops": ops, "bytes": 0, "errors": 0}
    return {"type": "tick", "interval": interval, "t_ns": (interval + 1) * 10**9, "rows": [row]}


def shown(found: list[dict[str, Any]]) -> list[tuple[int, list[tuple[int, int]]]]:
    return [(one["interval"], [(row["cell"], row["ops"]) for row in one["rows"]]) for one in found]


def test_a_second_is_shown_when_all_hosts_have_told_it() -> None:
    ticks = MergedTicks(PARTS)
    assert ticks.heard("a", tick(0, 5)) == []
    assert shown(ticks.heard("b", tick(0, 7))) == [(0, [(0, 5), (1, 7)])]


def test_a_host_that_is_behind_is_waited_for_two_seconds_and_counts_when_it_comes() -> None:
    ticks = MergedTicks(PARTS)
    assert ticks.heard("a", tick(0, 1)) == []
    assert ticks.heard("a", tick(1, 2)) == []
    assert shown(ticks.heard("a", tick(2, 3))) == [(0, [(0, 1)])]
    assert shown(ticks.heard("b", tick(0, 9))) == [(0, [(1, 9)])]


def test_a_host_that_has_ended_is_not_waited_for() -> None:
    ticks = MergedTicks(PARTS)
    ticks.ended("b")
    assert shown(ticks.heard("a", tick(0, 5))) == [(0, [(0, 5)])]
