"""A host's clock against ours: the truth is never outside the error that is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.hosts.clock_offset import Exchange, offset

DELAYS = st.integers(1_000, 50_000_000)


@given(
    true_ns=st.integers(-(10**15), 10**15),
    delays=st.lists(st.tuples(DELAYS, DELAYS), min_size=1, max_size=20),
)
@pytest.mark.in_turn
def test_the_truth_lies_within_the_error(true_ns: int, delays: list[tuple[int, int]]) -> None:
    at, exchanges = 10**12, []
    for there, back in delays:
        exchanges.append(Exchange(at, at + there + true_ns, at + there + back))
        at += 10**8
    found = offset(exchanges)
    assert found is not None
    assert abs(found.offset_ns - true_ns) <= found.error_ns + 1
    assert found.round_trip_ns == min(there + back for there, back in delays)
    assert abs(found.here(found.there(5)) - 5) == 0


def test_without_an_exchange_nothing_is_known() -> None:
    assert offset([]) is None
    assert offset([Exchange(10, 5, 9)]) is None
