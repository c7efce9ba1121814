"""What a paced run reports is what queueing theory says an open system does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from lab.steady_device import simulated

from tests.pacing.simulated import rate, run

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


@pytest.mark.parametrize("iodepth", [1, 64])
@pytest.mark.in_turn
def test_a_stall_is_in_the_percentiles_as_it_is_in_the_truth(tmp_path: Path, iodepth: int) -> None:
    """10,000 reads a second of 20 us each; the device stands still for 1 s every 10 s.

    Of the 400,000 reads due in 40 s, those of a stall and of the time it takes to catch up
    are late. The one due n gaps of 100 us after a stall began waits for its end and for n
    services: 1 s + 20 us - n (100 - 20) us, until that is one service again, at n = 12,500.
    Three stalls fall into the time, so the share q of the slowest I/Os, up to 9.375 %, is
    spread evenly: the latency that q exceed is 1 s (1 - q 400,000 / 37,500).
    """
    backend = simulated(20_000, stall_every_ns=10_000 * MS, stall_ns=1_000 * MS)
    made = run(tmp_path, backend, [rate(10_000)], 40.0, iodepth=iodepth)
    latency = made.total.ops["read"].latencies["lat"]
    assert latency.count == 400_000
    for percent in (92.0, 95.0, 99.0, 99.9, 99.99):
        truth = 1e9 * (1 - (1 - percent / 100) * 400_000 / 37_500) + 20_000
        assert latency.percentile(percent) == pytest.approx(truth, rel=0.01), percent
    for percent in (10.0, 50.0, 90.0):
        assert latency.percentile(percent) == pytest.approx(20_000, rel=0.01)
    assert latency.max_ns == 1_000 * MS + 20_000
    # The mean of 37,500 latencies that fall evenly, and of the others: exact sums.
    mean = (3 * sum(1e9 + 20_000 - n * 80_000 for n in range(12_501)) + (400_000 - 3 * 12_501) * 20_000) / 4e5
    assert latency.mean_ns == pytest.approx(mean, rel=1e-6)
    (row,) = made.pacing
    assert row.held
    assert row.achieved_per_s == pytest.approx(10_000)


@pytest.mark.in_turn
def test_the_service_time_stands_beside_it(tmp_path: Path) -> None:
    """With one slot the device sees no queue: what a closed loop would call latency."""
    backend = simulated(20_000, stall_every_ns=10_000 * MS, stall_ns=1_000 * MS)
    made = run(tmp_path, backend, [rate(10_000)], 40.0, iodepth=1)
    parts = made.total.ops["read"].latencies
    assert parts["clat"].percentile(99.9) == pytest.approx(20_000, rel=0.01)
    assert parts["lat"].mean_ns == pytest.approx(
        sum(parts[kind].mean_ns or 0.0 for kind in ("wait", "slat", "clat"))
    )


@pytest.mark.parametrize(("load", "tolerance"), [(0.5, 0.03), (0.8, 0.08)])
@pytest.mark.in_turn
def test_an_m_m_1_queue_has_its_textbook_latencies(tmp_path: Path, load: float, tolerance: float) -> None:
    """Response times of M/M/1 are exponential with mean 1 / (mu - lambda) (Kleinrock, Queueing
    Systems 1, 1975, section 3.2). The tolerance is of the run's length, not of the tool."""
    service_ns = 100_000
    backend = simulated(service_ns, service="exponential")
    made = run(tmp_path, backend, [rate(load * 1e9 / service_ns, "poisson")], 40.0, iodepth=4096)
    latency = made.total.ops["read"].latencies["lat"]
    mean = service_ns / (1 - load)
    assert latency.mean_ns == pytest.approx(mean, rel=tolerance)
    for percent in (50.0, 90.0, 99.0):
        truth = -math.log(1 - percent / 100) * mean
        assert latency.percentile(percent) == pytest.approx(truth, rel=tolerance), percent


@pytest.mark.in_turn
def test_a_rate_above_the_device_is_reported_as_not_held(tmp_path: Path) -> None:
    """2,000 a second of a device that does 1,000: half, and the last I/O is half the time late."""
    made = run(tmp_path, simulated(1_000_000), [rate(2_000)], 10.0, iodepth=4)
    (row,) = made.pacing
    assert not row.held
    assert row.asked_per_s == pytest.approx(2_000, rel=0.001)
    assert row.achieved_per_s == pytest.approx(1_000, rel=0.01)
    assert row.wait is not None
    assert row.wait.max_ns == pytest.approx(5e9, rel=0.01)
    # Late in proportion to the time that has passed, so evenly from 0 to half the run.
    assert row.wait.percentile(50) == pytest.approx(2.5e9, rel=0.01)


@pytest.mark.in_turn
def test_chance_is_not_a_rate_that_was_missed(tmp_path: Path) -> None:
    made = run(tmp_path, simulated(1_000), [rate(100, "poisson")] * 2, 4.0)
    (row,) = made.pacing
    assert row.held
    assert row.process == "poisson"
