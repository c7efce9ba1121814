"""Curves of simulated devices whose theory is known: M/D/1, and M/D/4 by an independent simulation."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from loadstone.analysis.study.curve import curve
from loadstone.analysis.study.slo import read
from loadstone.study.curve import VDBENCH_PERCENTS, CurveController, CurveOptions
from loadstone.study.run import Hooks, StudyRequest, run_study

from . import simulated

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.study.curve import Curve
    from loadstone.plan.model import SimDevice

ASKED = StudyRequest("curve", "a curve", "fio", {}, {})
SERVICE_NS = 100_000


def measure(path: Path, options: CurveOptions, device: SimDevice, seconds: float = 20, **job: Any) -> Curve:
    work = simulated.workload(seconds, **{"iodepth": 4096} | job)
    controller = CurveController(work, options)
    most = controller.most()
    outcome = run_study(
        controller,
        request=ASKED,
        out_dir=path / "s",
        hooks=Hooks(simulated.on(device)),
        after_failure="go_on",
    )
    assert most is not None
    assert len(outcome.done) <= most
    return curve([one.run for one in outcome.done], "", options.slo)


def m_d_1_waits_at_most(services: float, rho: float) -> float:
    """P(wait <= t) of M/D/1, t in service times (Erlang 1909)."""
    return (1 - rho) * sum(
        (rho * (k - services)) ** k / math.factorial(k) * math.exp(-rho * (k - services))
        for k in range(math.floor(services) + 1)
    )


def highest_rho(allowed: float, services: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if m_d_1_waits_at_most(services, middle) >= allowed else (low, middle)
    return low


@pytest.mark.in_turn
def test_a_ladder_is_walked_and_its_latencies_are_those_of_theory(tmp_path: Path) -> None:
    found = measure(tmp_path, CurveOptions(), simulated.device(SERVICE_NS))
    assert found.maximum is not None
    assert found.maximum.iops.value == pytest.approx(10_000, rel=0.001)
    assert [load.percent for load in found.loads] == list(VDBENCH_PERCENTS)
    for load in found.loads[:-1]:
        rho = load.iops.value * SERVICE_NS / 1e9
        theory = SERVICE_NS * (1 + rho / (2 * (1 - rho)))
        assert load.mean_ns.error is not None
        # What the achieved load says of the mean has an error of its own, largest near saturation.
        assert load.mean_ns.value == pytest.approx(theory, abs=4 * load.mean_ns.error + 0.02 * theory)


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (CurveOptions(percents=None), 49),
        (CurveOptions(percents=(50.0, 90.0), slo=read("mean<150us")), 27),
        (CurveOptions(percents=(50.0, 90.0), repeat=2), 6),
    ],
)
def test_it_is_known_how_many_runs_results_can_ask_for(options: CurveOptions, most: int) -> None:
    """That no curve takes more, `measure` holds."""
    assert CurveController(simulated.workload(2, iodepth=64), options).most() == most


@pytest.mark.in_turn
@pytest.mark.slow
def test_the_knee_is_where_theory_has_it(tmp_path: Path) -> None:
    """Largest power of M/D/1: 2 - sqrt(2) of capacity."""
    found = measure(tmp_path, CurveOptions(percents=None), simulated.device(SERVICE_NS))
    assert found.knee is not None
    assert found.knee.low <= (2 - math.sqrt(2)) * 10_000 <= found.knee.high
    assert found.knee.high - found.knee.low < 2000
    percents = [load.percent or 0 for load in found.loads]
    assert len(percents) > 6
    # More points where it bends than where it is flat.
    assert sum(70 < percent < 100 for percent in percents) > sum(10 < percent < 50 for percent in percents)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "rho"),
    [
        ("mean<200us", 2 / 3),
        ("p99<500us", highest_rho(0.99, 4.0)),
        ("p95<350us", highest_rho(0.95, 2.5)),
    ],
)
def test_the_highest_load_that_keeps_a_limit_is_found_between_the_rungs(
    tmp_path: Path, text: str, rho: float
) -> None:
    found = measure(tmp_path, CurveOptions(slo=read(text)), simulated.device(SERVICE_NS), seconds=60)
    limit = found.limit
    assert limit is not None
    assert limit.holds is not None
    assert limit.breaks is not None
    low, high = (load.iops.value / 10_000 for load in (limit.holds, limit.breaks))
    assert low <= rho * 1.01
    assert high >= rho * 0.99
    assert high - low < 0.05
    assert limit.holds.percent not in VDBENCH_PERCENTS


def m_d_c_mean(servers: int, rho: float) -> float:
    """Mean latency in service times of a queue with Poisson arrivals, from its definition."""
    rng = np.random.default_rng(5)
    arrivals = np.cumsum(rng.exponential(1 / (rho * servers), 300_000))
    free = [0.0] * servers
    heapq.heapify(free)
    whole = 0.0
    for arrival in arrivals:
        start = max(float(arrival), heapq.heappop(free))
        heapq.heappush(free, start + 1)
        whole += start + 1 - float(arrival)
    return whole / len(arrivals)


@pytest.mark.nightly
def test_four_servers_keep_a_limit_up_to_where_a_queue_of_four_does(tmp_path: Path) -> None:
    device = simulated.device(SERVICE_NS, servers=4)
    found = measure(tmp_path, CurveOptions(slo=read("mean<150us")), device, seconds=40)
    assert found.maximum is not None
    assert found.maximum.iops.value == pytest.approx(40_000, rel=0.001)
    assert found.limit is not None
    assert found.limit.holds is not None
    assert found.limit.breaks is not None
    low, high = (load.iops.value / 40_000 for load in (found.limit.holds, found.limit.breaks))
    assert m_d_c_mean(4, low) < 1.5 * 1.02
    assert m_d_c_mean(4, min(high, 0.99)) > 1.5 * 0.98
    assert high - low < 0.04


@pytest.mark.in_turn
def test_limits_that_always_or_never_hold_are_told_so(tmp_path: Path) -> None:
    """Never: the device itself takes 100 µs. Always: nothing is slower than the depth lets it be."""
    device = simulated.device(SERVICE_NS)
    never = measure(tmp_path / "n", CurveOptions(slo=read("mean<50us"), percents=(50.0, 90.0)), device)
    assert never.limit is not None
    assert never.limit.holds is None
    assert never.limit.breaks is not None
    assert never.limit.breaks.percent is not None
    assert never.limit.breaks.percent < 2


@pytest.mark.in_turn
def test_what_is_noisy_is_measured_again_and_pooled(tmp_path: Path) -> None:
    device = simulated.device(SERVICE_NS, service="exponential")
    found = measure(tmp_path, CurveOptions(percents=(20.0, 95.0)), device, seconds=2)
    assert [load.runs for load in found.loads] == [1, 3]
    noisy = found.loads[1]
    assert noisy.intervals_ns[99.0] is not None
    low, high = noisy.intervals_ns[99.0]
    assert low < (noisy.percentiles_ns[99.0] or 0) < high


@pytest.mark.in_turn
def test_repeat_measures_every_load_so_often_and_the_maximum_too(tmp_path: Path) -> None:
    found = measure(
        tmp_path, CurveOptions(percents=(20.0, 50.0), repeat=2), simulated.device(SERVICE_NS), seconds=2
    )
    assert [load.runs for load in found.loads] == [2, 2]
    assert found.maximum is not None
    assert found.maximum.runs == 2
    # A pass over the whole ladder, then the next: a drift shows as a difference between them.
    assert [load.order for load in found.loads] == [2, 3]


@pytest.mark.in_turn
def test_a_curve_without_a_maximum_ends(tmp_path: Path) -> None:
    found = measure(tmp_path, CurveOptions(), simulated.device(error_ppm=1_000_000), seconds=2)
    assert found.maximum is None
    assert found.loads == ()
    assert found.knee is None
