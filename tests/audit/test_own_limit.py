"""What a job itself asked for is named as its limit; what the storage fell short of is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadstone.analysis.latency import Latency
from loadstone.audit.case import Figure, OpMeasurement
from loadstone.audit.rule import Clear
from loadstone.audit.rules import generator_stopped, littles_law, own_limit
from tests.audit import cases

MS = 1e6


def test_a_rate_that_was_kept_is_the_jobs_own() -> None:
    case = cases.run(500.0, jobs=(cases.job(rate_iops=500.0, paced=True),), mean_ns=MS)
    found = cases.one(own_limit.RULE, case)
    assert found.effect == "limited"
    assert found.evidence["asked_iops"] == 500.0


def test_a_rate_that_was_not_kept_is_the_storages() -> None:
    case = cases.run(450.0, jobs=(cases.job(rate_iops=500.0, paced=True),), mean_ns=MS)
    assert isinstance(own_limit.RULE.judge(case), Clear)


@pytest.mark.parametrize(("reached", "limited"), [(295.0, True), (280.0, False)])
def test_jobs_with_rates_are_held_to_them_together(reached: float, limited: bool) -> None:
    """A part of few I/Os falls short of its own rate by chance."""
    low, high = 0.9 * reached / 2, 1.1 * reached / 2
    jobs = tuple(cases.job(job=name, rate_iops=150.0, paced=True) for name in ("low", "high"))
    by_job = {
        name: {"read": OpMeasurement(iops=Figure(rate))} for name, rate in (("low", low), ("high", high))
    }
    answer = own_limit.RULE.judge(cases.run(reached, jobs=jobs, by_job=by_job))
    assert isinstance(answer, tuple)
    assert [one.effect for one in answer] == (["limited"] * 2 if limited else ["note"])


@pytest.mark.parametrize(("mean_ms", "limited"), [(9.0, False), (5.0, True)])
def test_pauses_are_told_by_the_room_they_leave(mean_ms: float, limited: bool) -> None:
    thinking = cases.job(thinks=True, paced=True)
    case = cases.run(100.0, jobs=(thinking,), mean_ns=mean_ms * MS)
    answer = own_limit.RULE.judge(case)
    assert isinstance(answer, tuple) == limited


def test_flushes_have_a_place_in_littles_law() -> None:
    flush = OpMeasurement(operations=1000, iops=Figure(100.0), latencies={"lat": Latency(mean_ns=6 * MS)})
    case = cases.run(100.0, op="write", mean_ns=4 * MS, source="fio", device_ns=MS)
    alone = littles_law.RULE.judge(case)
    assert isinstance(alone, tuple)
    assert isinstance(littles_law.RULE.judge(replace(case, flush=flush)), Clear)


def test_a_stop_that_was_kept_out_leaves_doubt_and_one_that_was_not_no_number() -> None:
    case = cases.run(100.0, stops=((2_000_000_000, 2_300_000_000),), stops_left_out=True)
    assert cases.one(generator_stopped.RULE, case).effect == "suspect"
    within = replace(case, stops_left_out=False)
    assert cases.one(generator_stopped.RULE, within).effect == "not_valid"
    assert isinstance(generator_stopped.RULE.judge(replace(case, stops=())), Clear)


def test_more_than_a_rate_is_not_a_part_of_it() -> None:
    case = cases.run(347.0, jobs=(cases.job(job="paced", rate_iops=300.0, paced=True),), mean_ns=MS)
    found = cases.one(own_limit.RULE, case)
    assert "paced did 347 at its rate of 300 IOPS" in found.text.replace("\N{NO-BREAK SPACE}", " ")
