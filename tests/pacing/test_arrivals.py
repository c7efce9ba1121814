"""Arrivals are arrivals: the log of a run against the distribution that was asked for.

Virtual time, fixed seeds: these tests give the same p-value every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import scipy
from lab.steady_device import simulated

from tests.pacing.simulated import SECOND_NS, rate, run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LEAST_P = 0.01


def starts_s(directory: Path, paces: list[dict[str, Any]], seconds: float) -> NDArray[np.float64]:
    """When I/Os were handed to a device that is never busy, all streams together, ascending."""
    made = run(directory, simulated(1_000, servers=64), paces, seconds, iodepth=64, log_ios=True)
    log = made.bundle.ios()
    assert log is not None
    assert log["wait_ns"].max() == 0
    starts = log.select((pl.col("t_ns") - pl.col("clat_ns")).sort())["t_ns"].to_numpy()
    return np.asarray(starts, np.float64) / SECOND_NS


@pytest.mark.in_turn
def test_linear_arrivals_are_evenly_spaced(tmp_path: Path) -> None:
    gaps = np.diff(starts_s(tmp_path, [rate(7_000)], 2.0)) * 1e9
    assert len(gaps) == 13_999
    assert np.abs(gaps - 1e9 / 7_000).max() <= 1.0


@pytest.mark.in_turn
def test_clones_take_turns(tmp_path: Path) -> None:
    paces = [rate(1_000, phase=index / 4) for index in range(4)]
    gaps = np.diff(starts_s(tmp_path, paces, 1.0)) * 1e9
    assert np.abs(gaps - 250_000).max() <= 1.0


@pytest.mark.in_turn
@pytest.mark.parametrize("clones", [1, 3])
def test_poisson_arrivals_have_exponential_gaps(tmp_path: Path, clones: int) -> None:
    """Several Poisson processes together are one again."""
    starts = starts_s(tmp_path, [rate(10_000 / clones, "poisson")] * clones, 2.0)
    gaps = np.diff(starts)
    found = scipy.stats.kstest(gaps, scipy.stats.expon(scale=1e-4).cdf)
    assert found.pvalue > LEAST_P, found
    # And they are independent: neighbours do not tell about each other.
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 4 / np.sqrt(len(gaps))
    counts, _ = np.histogram(starts, bins=200, range=(0, 2))
    assert scipy.stats.chisquare(counts).pvalue > LEAST_P


@pytest.mark.in_turn
def test_uniform_arrivals_have_gaps_up_to_twice_their_mean(tmp_path: Path) -> None:
    starts = starts_s(tmp_path, [rate(10_000, "uniform")], 2.0)
    gaps = np.diff(starts)
    found = scipy.stats.kstest(gaps, scipy.stats.uniform(scale=2e-4).cdf)
    assert found.pvalue > LEAST_P, found
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 4 / np.sqrt(len(gaps))
    # A third of the variance of random arrivals: counts scatter less.
    assert len(starts) == pytest.approx(20_000, abs=4 * np.sqrt(20_000 / 3))


@pytest.mark.in_turn
def test_spikes_start_all_of_a_second_at_its_beginning(tmp_path: Path) -> None:
    """A rate that changes: 40 for a second, nothing for the next, and again."""
    steps = ((0, 1.0), (1, 1.0), (1, 0.0), (2, 0.0), (2, 1.0), (3, 1.0), (3, 0.0))
    profile = [{"at_ns": at * SECOND_NS, "share": share} for at, share in steps]
    starts = starts_s(tmp_path, [rate(40, "spike", profile=profile)], 4.0)
    assert len(starts) == 80
    assert starts == pytest.approx([0.0] * 40 + [2.0] * 40, abs=1e-5)


@pytest.mark.in_turn
def test_random_arrivals_follow_a_profile(tmp_path: Path) -> None:
    """From a tenth to all in 2 s, a step to a half: in rescaled time they are Poisson again."""
    profile = [
        {"at_ns": 0, "share": 0.1},
        {"at_ns": 2 * SECOND_NS, "share": 1.0},
        {"at_ns": 2 * SECOND_NS, "share": 0.5},
    ]
    starts = starts_s(tmp_path, [rate(10_000, "poisson", profile=profile)], 3.0)
    ramp = 0.1 * starts + 0.9 * starts**2 / 4
    rescaled = np.where(starts < 2, ramp, 1.1 + 0.5 * (starts - 2)) * 10_000
    found = scipy.stats.kstest(np.diff(rescaled), scipy.stats.expon().cdf)
    assert found.pvalue > LEAST_P, found
    assert len(starts) == pytest.approx(16_000, abs=4 * np.sqrt(16_000))


@pytest.mark.in_turn
def test_even_arrivals_follow_a_step(tmp_path: Path) -> None:
    profile = [
        {"at_ns": 0, "share": 0.25},
        {"at_ns": SECOND_NS, "share": 0.25},
        {"at_ns": SECOND_NS, "share": 1.0},
    ]
    starts = starts_s(tmp_path, [rate(1_000, profile=profile)], 2.0)
    first, second = starts[starts < 1], starts[starts >= 1]
    assert (len(first), len(second)) == (250, 1_000)
    assert np.diff(first) == pytest.approx(0.004, abs=2e-9)
    assert np.diff(second) == pytest.approx(0.001, abs=2e-9)
