"""What stated sizes and data sheets settle where nothing counted what reached the storage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadstone.audit.case import Case, Declared
from loadstone.audit.rule import CannotTell, Clear
from loadstone.audit.rules import page_cache_read, writeback_absorbed
from loadstone.path.layers import Ceiling
from tests.audit.figures import GB, finding, job, told


def read(iops: float, size_bytes: int | None, **changed: Any) -> Case:
    return stated(told(iops=iops, jobs=(job(direct=False, size_bytes=size_bytes),), **changed))


def write(iops: float, size_bytes: int | None, *, random_percent: float = 0.0, **changed: Any) -> Case:
    asked = job(direct=False, size_bytes=size_bytes, read_percent=0.0, random_percent=random_percent)
    return stated(told(iops=iops, op="write", jobs=(asked,), **changed))


def stated(case: Case, **changed: Any) -> Case:
    return replace(case, declared=replace(case.declared or Declared(), memory_bytes=32 * GB, **changed))


def test_data_that_fit_into_memory_may_come_from_there() -> None:
    found = finding(page_cache_read.RULE, read(5000, 10 * GB))
    assert found.effect == "suspect"
    assert found.evidence == {"data_bytes": 10 * GB, "memory_bytes": 32 * GB}


@pytest.mark.parametrize(("size", "clear"), [(64 * GB, True), (63 * GB, False)])
def test_data_of_two_memories_do_not_fit(size: int, clear: bool) -> None:
    assert isinstance(page_cache_read.RULE.judge(read(5000, size)), Clear) == clear


def test_what_only_heads_are_as_slow_as_did_not_come_from_memory() -> None:
    assert isinstance(page_cache_read.RULE.judge(read(83, 10 * GB, rotational=True, spindles=3)), Clear)
    assert finding(page_cache_read.RULE, read(750, 10 * GB, rotational=True, spindles=3)).effect == "suspect"


def test_without_sizes_buffered_reads_cannot_be_told() -> None:
    answer = page_cache_read.RULE.judge(read(5000, None))
    assert isinstance(answer, CannotTell)
    assert answer.essential


def test_a_rate_of_the_data_sheet_is_not_that_of_memory() -> None:
    sheet = Ceiling(quantity="bytes_per_s", op="read", per_s=1e9, kind="specified", source="sheet")
    case = told(bytes_per_s=0.97e9, jobs=(job(direct=None),), ceilings=(sheet,))
    assert isinstance(page_cache_read.RULE.judge(case), Clear)
    far = told(bytes_per_s=0.5e9, jobs=(job(direct=None),), ceilings=(sheet,))
    assert isinstance(page_cache_read.RULE.judge(far), CannotTell)


def test_memory_explains_a_part_of_a_long_write_at_most() -> None:
    found = finding(writeback_absorbed.RULE, write(97_000, 300 * GB, seconds=600.0))
    assert found.effect == "note"
    assert found.evidence["explained_percent"] == pytest.approx(13.4, abs=0.05)


def test_writes_over_a_small_file_may_stay_in_memory_for_ever() -> None:
    assert finding(writeback_absorbed.RULE, write(97_000, 10 * GB, seconds=600.0)).effect == "suspect"


def test_a_short_write_of_a_large_file_cannot_be_told() -> None:
    answer = writeback_absorbed.RULE.judge(write(27_000, 300 * GB, seconds=600.0))
    assert isinstance(answer, CannotTell)
    assert answer.essential


def test_slow_random_writes_went_to_the_heads() -> None:
    case = write(133, 300 * GB, random_percent=100.0, rotational=True, spindles=3, seconds=600.0)
    assert isinstance(writeback_absorbed.RULE.judge(case), Clear)


def test_a_cache_of_the_storage_explains_a_tenth() -> None:
    asked = job(read_percent=0.0, size_bytes=None)
    case = told(iops=1000, op="write", jobs=(asked,))
    measured = replace(case.ops["write"], bytes=20 * GB)
    case = replace(case, ops={"write": measured}, declared=Declared(cache_bytes=2 * GB))
    found = finding(writeback_absorbed.RULE, case)
    assert found.effect == "note"
    assert found.evidence["explained_percent"] == pytest.approx(10)
