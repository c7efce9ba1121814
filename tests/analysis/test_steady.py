from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone.analysis.statistics.steady import rounds, steady, steady_from, trend_p


def test_the_rule_is_snias_to_the_last_percent() -> None:
    """Ranges and slopes by hand: five values around 100."""
    flat = steady([100, 100, 100, 100, 100])
    assert (flat.range_share, flat.slope_share, flat.steady, flat.trend_p) == (0, 0, True, None)
    # Range 20 % exactly, and a line that falls 5 % over the five.
    edge = steady([110, 90, 100, 100, 100])
    assert edge.range_share == pytest.approx(0.20)
    assert edge.slope_share == pytest.approx(4 * 0.01)
    assert edge.steady
    assert not steady([111, 90, 100, 100, 99]).steady
    # A straight rise of 10 % is the most there may be.
    assert steady([95, 97.5, 100, 102.5, 105]).slope_share == pytest.approx(0.10)
    assert steady([95.01, 97.5, 100, 102.5, 104.99]).steady
    assert not steady([94.5, 97.25, 100, 102.75, 105.5]).steady


def test_only_the_last_five_count_and_fewer_are_never_steady() -> None:
    assert steady([1, 1000, 7, 100, 100, 100, 100, 100]).steady
    few = steady([100, 100, 100, 100])
    assert not few.steady
    assert math.isnan(few.range_share)
    assert not steady([0, 0, 0, 0, 0]).steady
    assert not steady([]).steady


def test_a_trend_is_told_from_noise() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(100, 5, 60)
    found = [trend_p(noise), trend_p(noise + 0.3 * np.arange(60)), trend_p([7.0] * 20)]
    assert found[0] is not None
    assert found[0] > 0.05
    assert found[1] is not None
    assert found[1] < 0.001
    assert found[2] == 1.0
    assert trend_p(noise[:9]) is None


@pytest.mark.in_turn
def test_series_that_follow_themselves_are_not_taken_for_trends_as_often() -> None:
    """False alarms at 5 % on AR(1) noise: the plain test has about a third, the corrected far fewer."""
    rng = np.random.default_rng(2)
    alarms = plain = 0
    for _ in range(300):
        series = np.empty(60)
        series[0] = rng.normal()
        for at in range(1, 60):
            series[at] = 0.6 * series[at - 1] + rng.normal()
        found = trend_p(series)
        assert found is not None
        alarms += found < 0.05
        signs = np.triu(np.sign(series[None, :] - series[:, None]), 1).sum()
        plain += abs(signs) / math.sqrt(60 * 59 * 125 / 18) > 1.96
    assert plain > 75
    assert alarms < 45


def test_rounds_are_means_of_equal_parts() -> None:
    assert rounds([9, 1, 3, 5, 7], 2) == [2, 6]
    assert rounds([1, 2], 5) == []


def test_the_window_begins_where_the_start_no_longer_shows() -> None:
    rng = np.random.default_rng(3)
    # A fresh drive: fast, falling for 60 intervals, then settled.
    fall = np.concatenate([np.linspace(300, 100, 60), np.full(140, 100.0)]) + rng.normal(0, 3, 200)
    start = steady_from(list(fall))
    assert start is not None
    assert 45 <= start <= 75
    assert steady_from(list(np.full(100, 50.0))) == 0
    assert steady_from(list(np.linspace(100, 300, 200))) is None
    assert steady_from([1.0] * 20) is None
