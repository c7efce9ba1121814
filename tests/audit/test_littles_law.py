"""Rate, latency and depth held against each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadstone.analysis.latency import Latency
from loadstone.audit.rule import CannotTell, Clear, NotMine, cannot_tell
from loadstone.audit.rules.littles_law import RULE
from tests.audit.figures import finding, job, told

MS = 1e6


@pytest.mark.parametrize("source", ["fio", "vdbench", "bundle"])
def test_what_agrees_is_clear(source: str) -> None:
    case = told(iops=1000.0, mean_ns=10 * MS, jobs=(job(iodepth=10),), source=source)
    assert isinstance(RULE.judge(case), Clear)


def test_printed_figures_that_agree_are_told_with_their_arithmetic() -> None:
    found = finding(RULE, told(iops=118e3, mean_ns=8 * MS, jobs=(job(clones=16, iodepth=64),)))
    assert found.effect == "note"
    assert found.evidence["outstanding_by_littles_law"] == 944


def test_a_latency_that_is_too_low_was_measured_elsewhere() -> None:
    clones = (job(clones=128, iodepth=128, block_bytes=131072),)
    printed = finding(RULE, told(bytes_per_s=5.7e9, mean_ns=0.3 * MS, jobs=clones))
    assert printed.effect == "suspect"
    assert printed.evidence["latency_expected_ns"] == pytest.approx(376.8 * MS, rel=0.001)
    of_one_tool = told(bytes_per_s=5.7e9, mean_ns=0.3 * MS, jobs=clones, source="fio")
    assert finding(RULE, of_one_tool).effect == "not_valid"


def test_more_outstanding_than_asked_for_is_not_possible() -> None:
    found = finding(RULE, told(iops=1000.0, mean_ns=100 * MS, jobs=(job(iodepth=10),)))
    assert found.effect == "not_valid"


@pytest.mark.parametrize(("mean_ms", "clear"), [(11.0, True), (11.1, False)])
def test_a_tenth_is_the_edge(mean_ms: float, clear: bool) -> None:
    case = told(iops=1000.0, mean_ns=mean_ms * MS, jobs=(job(iodepth=10),), source="fio")
    assert isinstance(RULE.judge(case), Clear) == clear


def test_without_depth_or_latency_nothing_can_be_told() -> None:
    assert isinstance(RULE.judge(told(iops=1.0)), CannotTell)
    unknown = told(iops=1.0, mean_ns=MS, jobs=(job(iodepth=None),), source="fio")
    assert RULE.judge(unknown) == cannot_tell("audit.littles_law.outstanding")
    paced = told(iops=1.0, mean_ns=MS, jobs=(job(rate_iops=1.0),), source="fio")
    assert isinstance(RULE.judge(paced), NotMine)


@pytest.mark.parametrize("source", ["fio", "vdbench", "iometer", "diskspd"])
@pytest.mark.parametrize(
    ("mean_ms", "effect"), [(8.9, None), (5.1, None), (4.9, "suspect"), (1.1, "suspect"), (0.9, "not_valid")]
)
def test_a_tool_that_does_not_keep_its_depth_has_still_measured_it(
    mean_ms: float, effect: str | None, source: str
) -> None:
    """fio's own libaio at 64 x 32 outstanding kept 1,249 of 2,048: a true result of a busy host."""
    case = told(iops=1000.0, mean_ns=mean_ms * MS, jobs=(job(iodepth=10),), source=source)
    if effect is None:
        assert isinstance(RULE.judge(case), Clear)
    else:
        assert finding(RULE, case).effect == effect


def test_a_depth_of_one_decimal_is_as_good_as_its_digits() -> None:
    case = replace(told(iops=10.1, mean_ns=6.081 * MS, source="vdbench"), queue_depth=0.1)
    assert isinstance(RULE.judge(case), Clear)
    assert not isinstance(RULE.judge(replace(case, queue_depth=1.0)), Clear)


def test_where_nobody_says_whether_it_came_at_a_rate_less_is_no_contradiction() -> None:
    """fio's text does not have rate_iops, and a rate keeps fewer I/Os outstanding than the depth."""
    unknown = told(iops=50.0, mean_ns=MS, jobs=(job(iodepth=32, paced=None),), source="fio")
    assert RULE.judge(unknown) == cannot_tell("audit.littles_law.paced")
    assert not isinstance(RULE.judge(replace(unknown, jobs=(job(iodepth=32),))), CannotTell)
    # What waits for its turn is in the slat of our own fio outputs: more is none either.
    more = told(iops=1000.0, mean_ns=97 * MS, jobs=(job(iodepth=10, paced=None),), source="fio")
    assert RULE.judge(more) == cannot_tell("audit.littles_law.paced")
    assert finding(RULE, replace(more, source="vdbench")).effect == "not_valid"
    assert finding(RULE, replace(more, jobs=(job(iodepth=10, paced=False),))).effect == "not_valid"


@pytest.mark.parametrize(("clat_ms", "wrong"), [(5000.0, True), (0.06, False), (0.07, False)])
def test_a_part_is_not_longer_than_the_whole(clat_ms: float, wrong: bool) -> None:
    case = told(iops=1000.0, mean_ns=0.065 * MS, jobs=(job(),), source="fio")
    latencies = {"lat": Latency(mean_ns=0.065 * MS), "clat": Latency(mean_ns=clat_ms * MS)}
    case = replace(case, ops={"read": replace(case.ops["read"], latencies=latencies)})
    found = RULE.judge(case)
    told_of_it = isinstance(found, tuple) and "completion_latency_ns" in found[0].evidence
    assert told_of_it == wrong


def test_a_sum_that_is_far_too_small_is_named() -> None:
    """185,000 per second of 10 microseconds each are two outstanding, not 64."""
    found = finding(RULE, told(iops=185e3, mean_ns=0.01 * MS, jobs=(job(iodepth=64),), source="fio"))
    assert found.effect == "not_valid"
    assert found.evidence["outstanding_by_littles_law"] == 1.85


def test_a_whole_number_of_depths_is_clones_that_the_file_of_fio_does_not_name() -> None:
    eight = told(
        iops=57_000.0, mean_ns=8 * 128 / 57_000 * 1e9 * 1.001, jobs=(job(iodepth=128),), source="fio"
    )
    found = finding(RULE, eight)
    assert (found.effect, found.evidence["clones"]) == ("suspect", 8)
    assert finding(RULE, replace(eight, source="vdbench")).effect == "not_valid"
    broken = told(iops=57_000.0, mean_ns=7.5 * 128 / 57_000 * 1e9, jobs=(job(iodepth=128),), source="fio")
    assert finding(RULE, broken).effect == "not_valid"


@pytest.mark.parametrize(
    ("mean_s", "ramp_s", "wrong"), [(756_538.0, 0.0, True), (29.0, 0.0, False), (45.0, 30.0, False)]
)
def test_no_latency_is_longer_than_its_run(mean_s: float, ramp_s: float, wrong: bool) -> None:
    """A fio of 2014 printed means of days for runs of 30 s, and nobody was told."""
    case = told(iops=165e3, mean_ns=mean_s * 1e9, jobs=(job(paced=None, ramp_s=ramp_s),), source="fio")
    case = replace(case, seconds=30.0)
    found = RULE.judge(case)
    told_of_it = isinstance(found, tuple) and found[0].evidence.get("seconds") == 30.0
    assert told_of_it == wrong
    own = RULE.judge(replace(case, source="bundle"))
    assert not (isinstance(own, tuple) and "seconds" in own[0].evidence)
