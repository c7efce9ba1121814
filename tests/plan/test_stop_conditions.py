"""Jobs that wait for others, search for a depth or end when they are steady, as Plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from tests.plan.conftest import Planner

JOB = "filename=/t/1g\nrw=randread\nsize=64m\n"
STEADY = "ss=iops_slope:0.5%\nss_dur=10\nss_ramp=3\nruntime=60\ntime_based\n"


def test_a_job_waits_for_the_clones_of_one_before_it(plan: Planner) -> None:
    found = plan(f"[a]\n{JOB}numjobs=2\n[b]\n{JOB}[c]\n{JOB}wait_for=a\nstartdelay=1\n").plan
    assert [stream.wait_for for stream in found.streams] == [(), (), (), (0, 1)]


def test_a_job_of_an_earlier_stage_is_over_anyway(plan: Planner) -> None:
    found = plan(f"[a]\n{JOB}[b]\n{JOB}stonewall\nwait_for=a\n").plan
    assert [stream.wait_for for stream in found.streams] == [(), ()]


def test_the_time_of_those_waited_for_is_told(plan: Planner) -> None:
    timed = f"{JOB}time_based\nruntime=10\n"
    resolved = plan(f"[a]\n{timed}[b]\n{timed}wait_for=a\nramp_time=5\n[c]\n{timed}")
    assert resolved.duration_ns == 25 * 10**9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"[a]\n{JOB}[b]\n{JOB}wait_for=c\n", "'c', which is no job"),
        (f"[a]\n{JOB}wait_for=b\n[b]\n{JOB}", "'b', which stands after it"),
        (f"[a]\n{JOB}wait_for=a\n", "'a', which stands after it"),
        (f"[a]\n{JOB}[a]\n{JOB}[b]\n{JOB}wait_for=a\n", "'a', which is not unique"),
        (f"[a]\nfilename=/t/1g\nrw=write\nsize=1m\nverify=md5\n[b]\n{JOB}wait_for=a\n", "reads back"),
        (f"[a]\n{JOB}latency_target=1ms\n", "no window"),
        (f"[a]\n{JOB}latency_target=1ms\nlatency_window=1s\nrate_iops=5\n", "the rate decides it"),
        (f"[a]\n{JOB}ss=iops:1%\n", "without ss_dur"),
        (f"[a]\n{JOB}ss_dur=10\n", "without ss"),
        (f"[a]\n{JOB}ss=iops:1%\nss_dur=1\n", "multiple of ss_interval"),
        (
            f"[global]\ngroup_reporting\n[a]\n{JOB}{STEADY}[b]\n{JOB}",
            "its rules for a steady state differ",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(plan: Planner, text: str, words: str) -> None:
    with pytest.raises(RefusedError) as refused:
        plan(text)
    assert words in str(refused.value)
    assert refused.value.where is not None
    assert refused.value.where.line


def test_a_search_is_its_own_ramp(plan: Planner) -> None:
    text = f"[a]\n{JOB}latency_target=2ms\nlatency_window=5s\nlatency_percentile=99.5\nramp_time=9\n"
    (stream,) = plan(text + "iodepth=64\nmax_latency=1s,2s\n").plan.streams
    assert stream.search is not None
    assert stream.search.model_dump() == {
        "target_ns": 2_000_000,
        "window_ns": 5_000_000_000,
        "percentile": 99.5,
        "keep_on": False,
    }
    assert stream.limits.ramp_ns == 0
    assert stream.limits.max_latency_ns == (10**9, 2 * 10**9, 2 * 10**9)
    (keeps_on,) = plan(text + "latency_run=1\n").plan.streams
    assert keeps_on.limits.ramp_ns == 9 * 10**9


def test_rules_are_of_clones_or_of_a_group_reported_together(plan: Planner) -> None:
    found = plan(f"[a]\n{JOB}{STEADY}numjobs=2\n[b]\n{JOB}runtime=60\ntime_based\n").plan
    assert [rule.streams for rule in found.steady] == [(0, 1)]
    assert found.steady[0].model_dump() == {
        "streams": (0, 1),
        "metric": "ops",
        "slope": True,
        "limit": 0.5,
        "percent": True,
        "after_ns": 3 * 10**9,
        "sample_ns": 10**9,
        "samples": 10,
    }
    assert 10**9 % found.interval_ns == 0
    grouped = plan(f"[global]\ngroup_reporting\n{STEADY}[a]\n{JOB}[b]\n{JOB}[c]\n{JOB}new_group\n").plan
    assert [rule.streams for rule in grouped.steady] == [(0, 1), (2,)]
