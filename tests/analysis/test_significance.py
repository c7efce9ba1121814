from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.estimate import ratio
from loadstone.analysis.statistics.significance import (
    MIN_WINDOWS,
    Sample,
    contrast,
    failures,
    first_reaching,
    holm,
    of_runs,
    percentile_errors,
)


def test_a_change_is_a_factor_with_an_interval_around_it() -> None:
    found = contrast(Sample(100.0, 1.0, 1e9), Sample(110.0, 1.1, 1e9))
    assert found is not None
    assert found.change == pytest.approx(0.10)
    reach = 1.959964 * math.hypot(0.01, 0.01)
    assert found.low == pytest.approx(1.1 * math.exp(-reach) - 1)
    assert found.high == pytest.approx(1.1 * math.exp(reach) - 1)
    assert found.p == pytest.approx(1.6e-11, rel=0.1)


def test_swapping_the_sides_turns_the_factor_around() -> None:
    one, other = Sample(50.0, 2.0, 12.0), Sample(60.0, 1.0, 20.0)
    there, back = contrast(one, other), contrast(other, one)
    assert there is not None
    assert back is not None
    assert (1 + there.change) * (1 + back.change) == pytest.approx(1.0)
    assert there.p == pytest.approx(back.p)


def test_without_an_error_there_is_a_change_and_no_test() -> None:
    found = contrast(Sample(100.0, None, None), Sample(120.0, 1.0, 9.0))
    assert found is not None
    assert found.change == pytest.approx(0.2)
    assert (found.low, found.high, found.p) == (None, None, None)


def test_zero_has_no_factor() -> None:
    assert contrast(Sample(0.0, 0.0, 9.0), Sample(1.0, 0.1, 9.0)) is None


def test_equal_numbers_without_any_spread_do_not_differ() -> None:
    found = contrast(Sample(7.0, 0.0, 9.0), Sample(7.0, 0.0, 9.0))
    assert found is not None
    assert found.p == 1.0


def test_repeats_replace_the_error_from_within_by_that_between_runs() -> None:
    found = of_runs([Sample(10.0, 0.001, 99.0), Sample(12.0, 0.001, 99.0), Sample(14.0, 0.001, 99.0)])
    assert (found.value, found.freedom, found.runs) == (12.0, 2, 3)
    assert found.error == pytest.approx(2 / math.sqrt(3))


@pytest.mark.in_turn
def test_correlated_runs_that_do_not_differ_are_rarely_told_apart() -> None:
    # What the estimator is for: with the errors of independent intervals it would be one in three.
    rng = np.random.default_rng(11)
    told = 0
    for _ in range(300):
        sides = []
        for _ in range(2):
            noise = rng.normal(0, 1, 240)
            for at in range(1, 240):
                noise[at] += 0.7 * noise[at - 1]
            found = ratio(100 + noise[40:], np.ones(200), np.zeros(200, np.int64), "1/s")
            assert found is not None
            sides.append(Sample(found.value, found.error, found.count - 1))
        result = contrast(sides[0], sides[1])
        assert result is not None
        assert result.p is not None
        told += result.p < 0.05
    assert told / 300 < 0.10


def windows(rng: np.random.Generator, count: int, spread: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lognormal latencies in `count` windows of 400, whose medians differ by `spread`."""
    values = np.exp(np.linspace(math.log(20.0), math.log(2000.0), 400))
    table = np.zeros((count, 400))
    every = []
    for row in table:
        drawn = np.exp(rng.normal(math.log(200.0) + rng.normal(0, spread), 0.3, 400))
        every.append(drawn)
        np.add.at(row, np.clip(np.searchsorted(values, drawn), 0, 399), 1.0)
    return table, values, np.concatenate(every)


@pytest.mark.in_turn
@pytest.mark.parametrize(("percent", "spread"), [(50.0, 0.0), (50.0, 0.2), (99.0, 0.1)])
def test_the_error_of_a_percentile_is_its_real_spread(percent: float, spread: float) -> None:
    rng = np.random.default_rng(5)
    logs, said = [], []
    for _ in range(60):
        table, values, every = windows(rng, 60, spread)
        error = percentile_errors(table, values, (percent,)).get(percent)
        assert error is not None
        said.append(error)
        logs.append(math.log(np.percentile(every, percent)))
    real = float(np.std(logs))
    # Never much too sure; a little too careful because buckets have a width.
    assert 0.75 * real < float(np.mean(said)) < 1.4 * math.hypot(real, 0.0079)


def test_a_percentile_of_few_windows_or_few_samples_has_no_error() -> None:
    table, values, _ = windows(np.random.default_rng(1), MIN_WINDOWS - 1, 0.0)
    assert percentile_errors(table, values, (50.0,)).get(50.0) is None
    table, values, _ = windows(np.random.default_rng(1), 20, 0.0)
    assert percentile_errors(table, values, (99.99,)).get(99.99) is None


@given(st.integers(0, 2**32 - 1))
@pytest.mark.in_turn
def test_the_bucket_of_a_percentile_is_where_the_running_sum_reaches_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, buckets = int(rng.integers(1, 40)), int(rng.integers(1, 300))
    table = rng.poisson(rng.uniform(0.01, 20, buckets), (counts, buckets)).astype(float)
    weights = rng.multinomial(counts, np.full(counts, 1 / counts), 50).astype(float)
    running = np.cumsum(weights @ table, axis=1)
    share = float(rng.choice([0.5, 0.99, 0.999]))
    plainly = (running >= share * running[:, -1:]).argmax(axis=1)
    assert first_reaching(weights, np.cumsum(table, axis=1), share).tolist() == plainly.tolist()


def test_failures_differ_when_chance_does_not_explain_them() -> None:
    assert failures((0, 1000), (0, 1000)) == 1.0
    assert failures((0, 1000), (1, 1000)) == pytest.approx(1.0)
    many = failures((0, 1000), (20, 1000))
    assert many is not None
    assert many < 1e-5
    assert failures((0, 0), (1, 10)) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@pytest.mark.in_turn
def test_holm_never_makes_a_difference_more_significant_and_keeps_the_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(after >= before for before, after in zip(ps, corrected, strict=True))
    by_before = [after for _, after in sorted(zip(ps, corrected, strict=True))]
    assert by_before == sorted(by_before)
    assert min(corrected) == min(1.0, len(ps) * min(ps))
