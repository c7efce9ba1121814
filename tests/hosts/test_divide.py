"""Parts of what several hosts write: equal, whole blocks, and no byte in two of them."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import RefusedError
from loadstone.hosts.assignment import Division
from loadstone.hosts.divide import divided
from loadstone.plan.model import Plan
from tests.support import plans


def plan(length: int, block: int) -> Plan:
    stream = plans.stream(length_bytes=length, block_bytes=block, read_percent=0)
    made = plans.plan([plans.target("/dev/x", "block", length)], [stream])
    return Plan.model_validate_json(json.dumps(made))


@given(st.integers(1, 64), st.sampled_from([512, 4096, 65536]), st.integers(1, 1 << 34))
@pytest.mark.in_turn
def test_parts_do_not_overlap_and_stay_within(count: int, block: int, length: int) -> None:
    whole = plan(length, block)
    try:
        parts = [divided(whole, Division(paths=("/dev/x",), index=at, count=count)) for at in range(count)]
    except RefusedError:
        assert length // count < max(block, 4096)
        return
    uses = [part.streams[0].files[0] for part in parts]
    assert len({use.length_bytes for use in uses}) == 1
    assert all(use.length_bytes % block == 0 and use.length_bytes for use in uses)
    for before, after in itertools.pairwise(uses):
        assert before.offset_bytes + before.length_bytes == after.offset_bytes
    assert uses[-1].offset_bytes + uses[-1].length_bytes <= length


def test_other_targets_stay_as_they_are() -> None:
    whole = plan(1 << 20, 4096)
    assert divided(whole, Division(paths=("/dev/y",), index=1, count=2)) == whole


def test_what_has_no_whole_block_for_each_is_refused() -> None:
    with pytest.raises(RefusedError, match="cannot be divided among 9 hosts"):
        divided(plan(32768, 4096), Division(paths=("/dev/x",), index=0, count=9))
