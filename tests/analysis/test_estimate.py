from __future__ import annotations

import numpy as np
import pytest

from loadstone.analysis.estimate import MIN_INTERVALS, long_run_variance, ratio


def test_without_time_there_is_no_rate() -> None:
    assert ratio(np.zeros(3), np.zeros(3), np.zeros(3, np.int64), "1/s") is None


def test_with_few_intervals_there_is_a_value_and_no_error() -> None:
    few = ratio(
        np.ones(MIN_INTERVALS - 1), np.ones(MIN_INTERVALS - 1), np.zeros(MIN_INTERVALS - 1, np.int64), "u"
    )
    assert few is not None
    assert (few.value, few.error, few.count, few.unit) == (1.0, None, MIN_INTERVALS - 1, "u")


def test_intervals_count_by_their_length() -> None:
    found = ratio(np.array([100.0, 10.0]), np.array([1.0, 0.1]), np.zeros(2, np.int64), "1/s")
    assert found is not None
    assert found.value == pytest.approx(100.0)


def test_constant_intervals_have_no_error() -> None:
    found = ratio(np.full(10, 7.0), np.full(10, 0.5), np.zeros(10, np.int64), "1/s")
    assert found is not None
    assert found.value == 14.0
    assert found.error == pytest.approx(0.0)


def coverage(correlation: float, seed: int) -> tuple[float, float]:
    """Real spread of the mean of 400 intervals over 400 runs, and the mean error that was said."""
    rng = np.random.default_rng(seed)
    means, errors = [], []
    for _ in range(400):
        noise = rng.normal(0, 1, 450)
        for i in range(1, 450):
            noise[i] += correlation * noise[i - 1]
        found = ratio(100 + noise[50:], np.ones(400), np.zeros(400, np.int64), "1/s")
        assert found is not None
        assert found.error is not None
        means.append(found.value)
        errors.append(found.error)
    return float(np.std(means)), float(np.mean(errors))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
@pytest.mark.in_turn
def test_the_error_is_the_real_spread_of_means_of_correlated_intervals(correlation: float) -> None:
    spread, said = coverage(correlation, 7)
    assert said == pytest.approx(spread, rel=0.2)


def test_ignoring_the_correlation_would_be_far_off() -> None:
    # The point of the estimator: at 0.8 independent intervals would claim a third of the error.
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1, 4000)
    for i in range(1, 4000):
        noise[i] += 0.8 * noise[i - 1]
    assert long_run_variance(noise) > 4 * noise.var()


def test_never_less_than_independent_values_would_have() -> None:
    alternating = np.array([1.0, -1.0] * 10)
    assert long_run_variance(alternating) >= alternating.var()


def test_stages_differ_on_purpose_and_that_is_no_error() -> None:
    values = np.array([100.0] * 10 + [900.0] * 10)
    stages = np.array([0] * 10 + [1] * 10)
    apart = ratio(values, np.ones(20), stages, "1/s")
    together = ratio(values, np.ones(20), np.zeros(20, np.int64), "1/s")
    assert apart is not None
    assert together is not None
    assert apart.value == together.value == 500.0
    assert apart.error == pytest.approx(0.0)
    assert together.error is not None
    assert together.error > 50
