"""A sample of a long parametrised list: what `make test` runs, the rest being `make nightly`'s.

`@pytest.mark.drawn(20)` keeps twenty cases of a test: first as few as have every value of each parameter
that has no more than twenty, then others up to that number. Which ones is drawn anew for each number in
`LOADSTONE_TESTS_DRAW`; `make test` gives it the day of the year, so that a year of days tries them all.

`@pytest.mark.in_turn` stands at what takes a fifth of a second of CPU time or more: of those in a file each
fourteenth is run, from another one on each day. Two weeks of `make test` run them all, and so does each
night; `make turns` runs them at once, with `LOADSTONE_TESTS_TURNS=1`.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE: Final = "LOADSTONE_TESTS_DRAW"
TURNS: Final = int(os.environ.get("LOADSTONE_TESTS_TURNS", "14"))


def number() -> str:
    """What decides which cases are drawn."""
    return os.environ.get(VARIABLE, "1")


def leave_out(items: Sequence[pytest.Item]) -> None:
    """Mark as `nightly` the cases that are not drawn, and of the rest the tests whose turn it is not."""
    lists: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("drawn") is not None:
            lists[item.nodeid.partition("[")[0]].append(item)
    for name, cases in lists.items():
        marker = cases[0].get_closest_marker("drawn")
        assert marker is not None
        kept = _drawn_cases(cases, marker.args[0], random.Random(f"{number()} {name}"))
        for case in cases:
            if case.nodeid not in kept:
                case.add_marker(pytest.mark.nightly)
    _take_turns(items)


def _take_turns(items: Sequence[pytest.Item]) -> None:
    """Mark as `nightly` the tests of a file that take turns but each fourteenth, and of drawn cases."""
    taking: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("in_turn") is not None and item.get_closest_marker("nightly") is None:
            among = "[" if item.get_closest_marker("drawn") is not None else "::"
            taking[item.nodeid.partition(among)[0]].append(item)
    for name, tests in taking.items():
        for place, item in enumerate(tests, crc32(name.encode()) + day()):
            if place % TURNS:
                item.add_marker(pytest.mark.nightly)


def day() -> int:
    """Return the day that decides whose turn it is."""
    told = number()
    return int(told) if told.isdecimal() else crc32(told.encode())


def _drawn_cases(cases: Sequence[pytest.Function], most: int, draw: random.Random) -> set[str]:
    order = draw.sample(cases, len(cases))
    values_of: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        for name, value in case.callspec.params.items():
            values_of[name].add(str(value))
    covered = {name for name, values in values_of.items() if len(values) <= most}
    seen: set[tuple[str, str]] = set()
    kept: dict[str, None] = {}
    for case in order:
        values = {(name, str(value)) for name, value in case.callspec.params.items() if name in covered}
        if values - seen:
            kept[case.nodeid] = None
            seen |= values
    others = [case.nodeid for case in order if case.nodeid not in kept]
    return {*kept, *others[: max(0, most - len(kept))]}
