"""Rule `attributes_cached`: looking at files that the kernel remembers measures the kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadstone.audit.rule import CannotTell, Clear, NotMine
from loadstone.audit.rules import attributes_cached
from tests.audit.cases import file, job, one, run

TREE = (file(kind="tree"),)
LOOK = (job(operation="getattr", backend="files", read_percent=None, direct=False),)


def test_operations_that_no_device_saw_came_from_memory() -> None:
    found = one(attributes_cached.RULE, run(jobs=LOOK, targets=TREE, device_ios=0.0))
    assert (found.effect, found.confidence) == ("not_valid", 0.9)
    assert found.evidence == {"operations": 10_000, "device_reads": 0}
    assert found.layer == "dentry and inode caches"


@pytest.mark.parametrize("operation", ["getattr", "access", "open"])
def test_operations_that_read_blocks_are_clear(operation: str) -> None:
    jobs = (replace(LOOK[0], operation=operation),)
    assert attributes_cached.RULE.judge(run(jobs=jobs, targets=TREE, device_ios=0.1)) == Clear()


def test_reads_are_another_rules_business() -> None:
    assert attributes_cached.RULE.judge(run()) == NotMine()


@pytest.mark.parametrize(("writes", "found"), [(0.05, True), (0.2, False)])
def test_changes_that_are_collected_are_suspected(writes: float, found: bool) -> None:
    jobs = (replace(LOOK[0], operation="create"),)
    case = run(op="write", jobs=jobs, targets=TREE, device_ios=writes)
    if not found:
        assert attributes_cached.RULE.judge(case) == Clear()
        return
    told = one(attributes_cached.RULE, case)
    assert (told.effect, told.layer) == ("suspect", "journal of the file system")
    assert told.evidence == {"operations": 10_000, "device_writes": 500}


def test_what_nothing_counted_is_said() -> None:
    told = attributes_cached.RULE.judge(run(jobs=LOOK, targets=TREE, traffic=None))
    assert isinstance(told, CannotTell)
    beside = attributes_cached.RULE.judge(run(jobs=(*LOOK, job()), targets=TREE, device_ios=0.0))
    assert isinstance(beside, CannotTell)
    remote = (file(kind="tree", carriers=("nfs.mnt",)),)
    assert isinstance(attributes_cached.RULE.judge(run(jobs=LOOK, targets=remote)), CannotTell)


@pytest.mark.parametrize("operation", ["getattr", "create", "mkdir"])
def test_a_tree_in_memory_has_no_storage_under_it(operation: str) -> None:
    jobs = (replace(LOOK[0], operation=operation),)
    found = one(attributes_cached.RULE, run(jobs=jobs, targets=(file(kind="tree", file_system="tmpfs"),)))
    assert found.effect == "not_valid"
    assert "which is memory" in found.text
