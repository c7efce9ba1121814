from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone.analysis.statistics.knee import CurvePoint, knee


def m_d_1(loads: list[float], error: float = 0.0, seed: int = 1) -> list[CurvePoint]:
    """Mean latency of one server with a service time of 100 µs: s + rho s / 2 (1 - rho)."""
    rng = np.random.default_rng(seed)
    exact = [1e5 * (1 + rho / (2 * (1 - rho))) for rho in loads]
    noisy = [latency * (1 + error * rng.normal()) for latency in exact]
    return [CurvePoint(rho * 1e4, y, 0.0, error * y) for rho, y in zip(loads, noisy, strict=True)]


def test_the_knee_of_one_server_is_where_theory_has_it() -> None:
    found = knee(m_d_1([0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]))
    assert found is not None
    assert found.load == pytest.approx((2 - math.sqrt(2)) * 1e4, rel=0.02)
    assert found.low <= (2 - math.sqrt(2)) * 1e4 <= found.high


@pytest.mark.in_turn
def test_its_range_holds_the_truth_about_as_often_as_it_says() -> None:
    loads = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    hits = 0
    for seed in range(40):
        found = knee(m_d_1(loads, 0.02, seed))
        assert found is not None
        hits += found.low <= (2 - math.sqrt(2)) * 1e4 <= found.high
    assert hits >= 36


def test_a_flat_curve_a_short_one_and_one_beyond_its_knee_have_none() -> None:
    flat = [CurvePoint(load, 100.0, 0.0, 0.0) for load in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert knee(flat) is None
    assert knee(m_d_1([0.1, 0.5, 0.9])) is None
    assert knee(m_d_1([0.8, 0.85, 0.9, 0.95])) is None
    assert knee([]) is None


def test_points_that_turn_back_past_saturation_do_not_move_it() -> None:
    loads = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9]
    loop = [CurvePoint(8500.0, 2e6, 0.0, 0.0), CurvePoint(8700.0, 5e6, 0.0, 0.0)]
    assert knee([*m_d_1(loads), *loop]) == knee(m_d_1(loads))
