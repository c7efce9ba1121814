"""The hierarchical reuse random walk, from a job to what the engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from loadstone.errors import Where
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import RandomOrderReuse
from loadstone.plan.resolve import resolve
from loadstone.workload.addresses import Distribution, Reuse
from loadstone.workload.block_sizes import fixed
from loadstone.workload.model import Job, Workload
from loadstone.workload.placement import Amount
from tests.plan.test_engine_agrees import checked
from tests.support.realised import realised

if TYPE_CHECKING:
    from pathlib import Path

LEAF = 8 * 4096
READS = Reuse(leaf_bytes=LEAF, least_leaves=64, climb_percent=44)
WRITES = Reuse(leaf_bytes=LEAF, least_leaves=64, climb_percent=44, step_leaves=8, again_percent=15)


def workload(reads: Reuse = READS, writes: Reuse = WRITES) -> Workload:
    order = [Distribution(kind="reuse", reuse=one) for one in (reads, writes, reads)]
    job = Job.of(
        {
            "name": "walk",
            "where": Where("walk"),
            "mix.rw": "randrw",
            "sizes.bs": fixed(4096),
            "addresses.norandommap": True,
            "addresses.random_distribution": (order[0], order[1], order[2]),
            "engine.ioengine": "null",
            "placement.size": Amount(bytes=1 << 36),
            "engine.iodepth": 1,
        }
    )
    return Workload(name="walk", jobs=(job,))


def test_each_operation_has_its_own_law(tmp_path: Path) -> None:
    plan = resolve(workload(), host=HostFacts.here()).plan
    pattern = plan.streams[0].pattern
    assert pattern.read.random == RandomOrderReuse(
        leaf_bytes=LEAF, least_leaves=64, climb_percent=44, step_leaves=1, again_percent=0
    )
    assert isinstance(pattern.write.random, RandomOrderReuse)
    assert pattern.write.random.step_leaves == 8
    path = tmp_path / "plan.json"
    path.write_text(plan.model_dump_json())
    done = checked(path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.in_turn
def test_it_comes_back_to_where_it_was(tmp_path: Path) -> None:
    """2^36 bytes are 2^21 leaves: the walk leaves its subtree of 64 leaves in about a third of the steps.

    A step that climbed to 64 * 2^k leaves (chance 0.44^k 0.56) lands outside the old 64 with
    1 - 2^-k: sum 0.56 0.44^k (1 - 2^-k) = 1 - 0.56 / (1 - 0.22) = 0.282.
    """
    ios = realised(workload(writes=READS), tmp_path, size=Amount(bytes=1 << 36), ops=40_000)
    subtree = (ios.sort("start_ns", "t_ns")["offset"] // (64 * LEAF)).to_numpy()
    left = float(np.mean(subtree[1:] != subtree[:-1]))
    assert left == pytest.approx(1 - 0.56 / 0.78, abs=0.012)


@pytest.mark.in_turn
def test_writes_keep_to_every_eighth_leaf_and_some_come_twice(tmp_path: Path) -> None:
    ios = realised(workload(), tmp_path, size=Amount(bytes=1 << 36), ops=40_000)
    writes = ios.filter(ios["op"] == 1).sort("start_ns", "t_ns")["offset"].to_numpy()
    assert set((writes // LEAF % 8).tolist()) == {int(writes[0] // LEAF % 8)}
    twice = float(np.mean(writes[1:] == writes[:-1]))
    assert twice == pytest.approx(15 / 115, abs=0.015)
