"""Writes that age an SSD: how much is written again, and where; what fio refuses is refused."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import LoadstoneError
from loadstone.plan.model import RandomOrderAged

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from tests.plan.conftest import Planner

SIZE_BYTES = 32 << 20
JOB = f"[a]\nioengine=null\nsize={SIZE_BYTES}\nrw=randwrite\n"
BLOCKS = SIZE_BYTES // 4096


def stream(plan: Planner, *options: str) -> Stream:
    return plan(JOB + "".join(f"{one}\n" for one in ("sprandom=1", *options))).plan.streams[0]


def aged(plan: Planner, *options: str) -> RandomOrderAged:
    order = stream(plan, *options).pattern.write.random
    assert isinstance(order, RandomOrderAged)
    return order


@pytest.mark.parametrize(("over", "regions"), [(0.15, 100), (0.1, 50), (0.25, 100), (0.9, 7), (0.5, 2)])
def test_a_pass_writes_the_physical_capacity_and_every_block(
    plan: Planner, over: float, regions: int
) -> None:
    options = (f"spr_op={over}", f"spr_num_regions={regions}")
    order = aged(plan, *options)
    assert len(order.again_blocks) == regions
    assert order.region_blocks == int(BLOCKS * (1 + over)) // regions
    assert order.region_blocks * regions - sum(order.again_blocks) == BLOCKS
    assert stream(plan, *options).limits.bytes == 4096 * order.region_blocks * regions
    # Each is what is whole of its part, so one more may follow.
    assert all(one + 1 >= after for one, after in itertools.pairwise(order.again_blocks))
    assert order.again_blocks[-1] == 0


def test_blocks_of_less_validity_take_more_of_the_flash(plan: Planner) -> None:
    """Equal parts of the flash stand for equal steps of the logarithm of validity."""
    order = aged(plan, "size=1g")
    valid = [1 - again / order.region_blocks for again in order.again_blocks]
    assert valid == pytest.approx([valid[0] ** (1 - number / 99) for number in range(100)], abs=0.003)
    assert (1 - valid[0]) / -math.log(valid[0]) == pytest.approx(1 / 1.15, abs=0.003)


def test_a_cache_lets_repeats_wait_until_the_end_of_the_next_region(plan: Planner) -> None:
    assert not aged(plan).at_the_end
    assert aged(plan, "spr_cs=32k").at_the_end


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("random_generator=tausworthe", "sprandom is for rw=randwrite"),
        ("norandommap=0", "sprandom is for rw=randwrite"),
        ("rw=randread", "sprandom is for rw=randwrite"),
        ("rw=write", "sprandom is for rw=randwrite"),
        ("random_distribution=zipf", "sprandom is for rw=randwrite"),
        ("spr_cs=32m", "is smaller than the cache of 33554432"),
        (
            "spr_num_regions=100000",
            "100000 regions are too many for 8192 blocks and 15% of over-provisioning",
        ),
        ("spr_op=1", "expected a number between 0 and 1"),
        ("bsrange=4k-8k", "blocks of one size"),
        ("blockalign=8k", "blocks of one size"),
        ("zonesize=1m", "blocks of one size"),
        ("io_size=1g", "has no effect with sprandom"),
        ("nrfiles=2", "sprandom writes one file, found 2"),
    ],
)
def test_what_does_not_go_with_it_is_refused(plan: Planner, option: str, message: str) -> None:
    with pytest.raises(LoadstoneError, match=message):
        stream(plan, option)


def test_its_parameters_alone_have_no_effect_and_are_told(plan: Planner) -> None:
    found = plan(JOB + "spr_op=0.2\n")
    assert found.plan.streams[0].pattern.write.random.type == "uniform"
    assert "has no effect without sprandom=1" in [note.text for note in found.notes]
