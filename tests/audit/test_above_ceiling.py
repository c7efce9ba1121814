"""Results held against data sheets and mechanics."""

from __future__ import annotations

from typing import Literal

import pytest

from loadstone.audit.case import PublishedSetup
from loadstone.audit.rule import CannotTell, Clear, NotMine
from loadstone.audit.rules.above_ceiling import RULE
from loadstone.path.layers import Ceiling
from tests.audit.figures import KIB, finding, job, told


def sheet(per_s: float, op: Literal["read", "write"] = "read") -> Ceiling:
    return Ceiling(quantity="bytes_per_s", op=op, per_s=per_s, kind="specified", source="the data sheet")


def test_reaching_the_data_sheet_is_a_note() -> None:
    found = finding(RULE, told(bytes_per_s=1.0616e9, ceilings=(sheet(1.1e9),), rotational=False))
    assert found.effect == "note"
    assert found.evidence["of_specified_percent"] == pytest.approx(96.5, abs=0.05)


@pytest.mark.parametrize(("share", "effect"), [(1.16, "suspect"), (1.51, "not_valid")])
def test_above_the_data_sheet(share: float, effect: str) -> None:
    found = finding(RULE, told(bytes_per_s=share * 1e9, ceilings=(sheet(1e9),), rotational=False))
    assert found.effect == effect


def test_far_below_the_data_sheet_is_clear() -> None:
    case = told(bytes_per_s=0.5e9, ceilings=(sheet(1e9),), rotational=False)
    assert isinstance(RULE.judge(case), Clear)


def test_a_line_for_writes_says_nothing_of_reads() -> None:
    case = told(bytes_per_s=2e9, ceilings=(sheet(1e9, "write"),), rotational=False)
    assert isinstance(RULE.judge(case), CannotTell)


def test_random_reads_faster_than_heads_move_came_from_a_cache() -> None:
    found = finding(RULE, told(iops=25_000, rotational=True, spindles=3))
    assert found.effect == "not_valid"
    assert found.evidence["iops_per_spindle"] == pytest.approx(8333, abs=1)


def test_a_narrow_band_explains_some_of_it() -> None:
    assert finding(RULE, told(iops=3 * 500, rotational=True, spindles=3)).effect == "suspect"


def test_what_heads_can_do_is_clear() -> None:
    assert isinstance(RULE.judge(told(iops=3 * 280, rotational=True, spindles=3)), Clear)


def test_in_order_and_on_flash_no_head_limits() -> None:
    assert isinstance(
        RULE.judge(told(iops=1e5, jobs=(job(random_percent=0.0),), rotational=True)), CannotTell
    )
    assert isinstance(RULE.judge(told(iops=1e6, rotational=False)), CannotTell)


def test_mirrors_halve_what_spindles_do_for_the_host() -> None:
    setup = PublishedSetup(drive_writes_per_write=2.0)
    case = told(iops=500, op="write", rotational=True, spindles=2, setup=setup)
    assert finding(RULE, case).evidence["possible_iops_per_spindle"] == pytest.approx(149.3, abs=0.1)


def test_unknown_spindles_matter_when_one_is_not_enough() -> None:
    large = (job(read_percent=0.0, block_bytes=16384 * KIB),)
    answer = RULE.judge(told(bytes_per_s=690e6, op="write", jobs=large, rotational=True, links=("FC",)))
    assert isinstance(answer, CannotTell)
    assert answer.essential
    assert "at least 3" in answer.missing
    assert "the link's bandwidth" in answer.missing


def test_unknown_spindles_do_not_matter_when_one_is_enough() -> None:
    answer = RULE.judge(told(iops=200, rotational=True))
    assert isinstance(answer, CannotTell)
    assert not answer.essential


def test_nothing_known_of_the_medium() -> None:
    assert isinstance(RULE.judge(told(iops=200)), CannotTell)
    assert not isinstance(RULE.judge(told(iops=200)), NotMine)


def test_a_device_of_this_host_may_be_a_whole_array() -> None:
    answer = RULE.judge(told(iops=30_000, rotational=True, source="bundle"))
    assert isinstance(answer, CannotTell)
    assert not answer.essential
