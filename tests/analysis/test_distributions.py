"""Our distributions and curves beside SciPy's, which the installed program does without."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
import scipy

from loadstone.analysis.statistics import distributions, interpolation, ranks

RNG = random.Random(20260101)
FREEDOMS = [0.7, 1, 1.5, 2, 3, 4.2, 10, 99, 1234.5, 1e6, 1e9]


@pytest.mark.in_turn
@pytest.mark.parametrize("freedom", FREEDOMS)
def test_students_t_is_scipys(freedom: float) -> None:
    for value in [
        0.0,
        1e-6,
        -1.3,
        *(min(RNG.lognormvariate(0, 1.5), 6.0) for _ in range(40)),
        *([1e3] if freedom < 1e3 else []),
    ]:
        expected = float(scipy.stats.t.sf(value, freedom))
        assert distributions.t_upper(value, freedom) == pytest.approx(expected, rel=1e-6, abs=1e-300)
    for share in (0.6, 0.9, 0.975, 0.995, 0.9999):
        expected = float(scipy.stats.t.ppf(share, freedom))
        assert distributions.t_quantile(share, freedom) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 40, 301])
def test_chi_square_is_scipys(freedom: int) -> None:
    for value in [0.0, *(freedom * RNG.lognormvariate(0, 1) for _ in range(40))]:
        expected = float(scipy.stats.chi2.sf(value, freedom))
        assert distributions.chi_square_upper(value, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.in_turn
def test_the_binomial_test_is_scipys() -> None:
    cases = [(0, 1, 0.5), (1, 1, 0.5), (5, 5, 1.0), (3, 5, 1.0), (7, 20, 0.35), (0, 30, 0.01), (30, 30, 0.9)]
    for _ in range(300):
        tries = int(10 ** RNG.uniform(0, 6))
        chance = RNG.uniform(0.001, 0.999)
        spread = (tries * chance * (1 - chance)) ** 0.5
        found = min(tries, max(0, round(RNG.gauss(tries * chance, 2 * spread + 0.5))))
        cases.append((found, tries, chance))
    for found, tries, chance in cases:
        expected = float(scipy.stats.binomtest(found, tries, chance).pvalue)
        assert distributions.binomial_p(found, tries, chance) == pytest.approx(expected, rel=1e-6), (
            found,
            tries,
            chance,
        )


def test_a_billion_failures_are_tested_at_once() -> None:
    began = time.process_time()
    assert distributions.binomial_p(500_050_000, 1_000_000_000, 0.5) == pytest.approx(0.001565, rel=0.01)
    assert time.process_time() - began < 10


@pytest.mark.in_turn
def test_monotone_interpolation_is_scipys() -> None:
    for count in [2, 3, 4, 9, 30]:
        for _ in range(20):
            x = np.cumsum([RNG.uniform(0.01, 3) for _ in range(count)])
            y = np.array([RNG.choice([0.0, RNG.gauss(0, 1), RNG.gauss(0, 1)]) for _ in range(count)])
            grid = np.linspace(x[0], x[-1], 101)
            expected = scipy.interpolate.PchipInterpolator(x, y)(grid)
            assert interpolation.monotone(x, y, grid) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ranks_and_slopes_are_scipys() -> None:
    for count in [2, 5, 10, 60]:
        for _ in range(20):
            y = np.array([RNG.choice([1.0, 2.0, RNG.gauss(0, 1)]) for _ in range(count)])
            assert ranks.average_ranks(y).tolist() == scipy.stats.rankdata(y).tolist()
            assert ranks.sen_slope(y) == pytest.approx(float(scipy.stats.theilslopes(y).slope), abs=1e-12)
