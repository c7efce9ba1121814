"""Least squares, its errors and their degrees of freedom, against formulas and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.effects import diagnostics, fit
from loadstone.effects.joint_test import JointTest


def two_groups(sizes: tuple[int, int]) -> np.ndarray:
    group = np.repeat([0.0, 1.0], sizes)
    return np.column_stack([np.ones(len(group)), group])


@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 10**6))
@pytest.mark.in_turn
def test_errors_by_group_of_two_groups_are_welchs(first: int, second: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    a, b = chance.normal(0, 1, first), chance.normal(1, 4, second)
    fitted = fit.fit(two_groups((first, second)), np.concatenate([a, b]))
    noise = fit.GroupNoise.of(fitted, np.repeat([0, 1], (first, second)))
    assert noise is not None
    error = noise.error(np.array([0.0, 1.0]) @ fitted.solver)
    found = scipy.stats.ttest_ind(b, a, equal_var=False)
    assert (b.mean() - a.mean()) / error.error == pytest.approx(found.statistic)
    assert error.freedom == pytest.approx(found.df)


def test_a_group_whose_runs_the_fit_goes_through_has_no_noise_of_its_own() -> None:
    fitted = fit.fit(two_groups((1, 4)), np.array([1.0, 2.0, 2.1, 1.9, 2.2]))
    assert fit.GroupNoise.of(fitted, np.array([0, 1, 1, 1, 1])) is None


@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 10**6))
@pytest.mark.in_turn
def test_pooled_errors_of_two_groups_are_students(first: int, second: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    a, b = chance.normal(0, 1, first), chance.normal(0.5, 1, second)
    fitted = fit.fit(two_groups((first, second)), np.concatenate([a, b]))
    error = fit.pooled_error(fitted, np.array([0.0, 1.0]))
    assert error is not None
    found = scipy.stats.ttest_ind(b, a)
    assert (b.mean() - a.mean()) / error.error == pytest.approx(found.statistic)
    assert JointTest(fitted, (1,), (), 0.0, 1.0).p == pytest.approx(found.pvalue, abs=1e-12)


@pytest.mark.in_turn
@settings(max_examples=60)
@given(st.floats(0.01, 50), st.integers(1, 20), st.integers(1, 200))
def test_fishers_f_is_scipys(value: float, first: int, second: int) -> None:
    assert fit.f_upper(value, first, second) == pytest.approx(
        scipy.stats.f.sf(value, first, second), rel=1e-8, abs=1e-14
    )


@settings(max_examples=60)
@given(st.floats(0.001, 0.2), st.integers(1, 8), st.integers(2, 60), st.floats(0.01, 500))
@pytest.mark.in_turn
def test_fishers_f_with_something_to_find_is_scipys(
    share: float, first: int, second: int, shift: float
) -> None:
    beyond = scipy.stats.ncf.sf(scipy.stats.f.isf(share, first, second), first, second, shift)
    assert fit.f_beyond(share, first, second, shift) == pytest.approx(beyond, rel=1e-5, abs=1e-7)
    assert fit.f_beyond(share, first, second, 0.0) == pytest.approx(share, rel=1e-6)


def test_without_repeats_there_is_no_error() -> None:
    fitted = fit.fit(np.eye(3), np.array([1.0, 2.0, 3.0]))
    assert fit.pooled_error(fitted, np.array([1.0, -1.0, 0.0])) is None


def test_huber_is_least_squares_where_nothing_is_far_and_stays_where_one_run_is() -> None:
    matrix = two_groups((8, 8))
    chance = np.random.default_rng(5)
    values = matrix @ np.array([1.0, 0.1]) + chance.uniform(-0.01, 0.01, 16)
    plain = fit.fit(matrix, values).coefficients
    resistant, _ = fit.huber(matrix, values[:, None])
    assert resistant[:, 0] == pytest.approx(plain, abs=0.003)
    values[3] -= 1.0
    pulled = fit.fit(matrix, values).coefficients
    resistant, _ = fit.huber(matrix, values[:, None])
    assert abs(pulled[1] - 0.1) > 0.1
    assert abs(resistant[1, 0] - 0.1) < 0.01


@pytest.mark.in_turn
def test_normal_errors_are_called_odd_as_often_as_said() -> None:
    size = (5, 5)
    matrix = two_groups(size)
    group = np.repeat([0, 1], size)
    chance = np.random.default_rng(11)
    ps = []
    for _ in range(120):
        fitted = fit.fit(matrix, chance.normal(0, 1, sum(size)))
        found = diagnostics.shape(fitted, [group], chance)
        assert found.normal_p is not None
        assert found.equal_noise_p is not None
        ps.append((found.normal_p, found.equal_noise_p))
    for column in zip(*ps, strict=True):
        # 120 tries at 10 %: 12 ± 3.3, three deviations.
        assert 2 <= sum(p < 0.1 for p in column) <= 22


def test_a_far_run_and_unequal_noise_are_seen() -> None:
    matrix, group = two_groups((12, 12)), np.repeat([0, 1], 12)
    chance = np.random.default_rng(4)
    values = chance.normal(0, 0.01, 24)
    values[5] += 0.2
    far = diagnostics.shape(fit.fit(matrix, values), [group], chance)
    assert far.furthest == 5
    assert far.normal_p is not None
    assert far.normal_p < 0.01
    noisy = chance.normal(0, 1, 24) * np.repeat([0.1, 3], 12)
    found = diagnostics.shape(fit.fit(matrix, noisy), [group], chance)
    assert found.equal_noise_p is not None
    assert found.equal_noise_p < 0.01


@settings(max_examples=20)
@given(st.integers(3, 6), st.integers(2, 4), st.integers(0, 10**6))
def test_errors_of_plots_are_those_of_their_means(blocks: int, runs: int, seed: int) -> None:
    """A factor set once for several runs: the paired t-test of the means of its settings."""
    chance = np.random.default_rng(seed)
    block, level = (part.ravel() for part in np.meshgrid(np.arange(blocks), [0.0, 1.0], indexing="ij"))
    block, level = np.repeat(block, runs), np.repeat(level, runs)
    plots = np.repeat(np.arange(2 * blocks), runs)
    values = chance.normal(0, 1, 2 * blocks)[plots] + chance.normal(0, 0.1, len(plots))
    matrix = np.column_stack([np.eye(blocks)[block.astype(int)], level])
    fitted = fit.fit(matrix, values)
    contrast = np.append(np.zeros(blocks), 1.0)
    error = fit.cluster_error(fitted, contrast, plots)
    assert error is not None
    means = values.reshape(-1, runs).mean(axis=1)
    paired = scipy.stats.ttest_rel(means[1::2], means[0::2])
    assert fitted.coefficients[-1] / error.error == pytest.approx(paired.statistic, rel=1e-6)
    assert error.freedom == pytest.approx(blocks - 1, rel=1e-6)
    assert fit.between_plots(fitted, contrast, plots) == pytest.approx(1.0)


@pytest.mark.in_turn
def test_a_noisy_level_is_about_as_noisy_as_it_is_although_its_blocks_are_shared() -> None:
    chance, blocks = np.random.default_rng(5), 60
    group = np.tile([0, 1, 2], blocks)
    matrix = np.column_stack([np.eye(3)[group], np.repeat(np.eye(blocks), 3, axis=0)[:, 1:]])
    found = []
    for _ in range(20):
        values = chance.normal(0, 1, 3 * blocks) * np.where(group == 2, 4.0, 1.0)
        noise = fit.GroupNoise.of(fit.fit(matrix, values), group)
        assert noise is not None
        found.append(noise.variances[2])
    # By its residuals alone it looks like 11: two thirds of its own 16, and a third of the others' noise.
    # Levels as unequal as these look, 11 and twice 3.5, would make 11 look like 8.5.
    assert np.mean(found) == pytest.approx(11 * 11 / 8.5, rel=0.1)
