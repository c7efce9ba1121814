"""Distributions beside printed tables; our curves, ranks and test of a share beside SciPy's."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from scipy import interpolate, stats

from loadstone.analysis.statistics import distributions, interpolation, ranks

RNG = random.Random(20260101)


def test_quantiles_and_shares_are_those_of_printed_tables() -> None:
    assert distributions.t_quantile(0.975, 10) == pytest.approx(2.228139, abs=1e-6)
    assert distributions.t_upper(2.228139, 10) == pytest.approx(0.025, abs=1e-8)
    assert distributions.t_upper(-2.228139, 10) == pytest.approx(0.975, abs=1e-8)
    assert distributions.f_upper(4.102821, 2, 10) == pytest.approx(0.05, abs=1e-7)
    assert distributions.chi_square_upper(5.991465, 2) == pytest.approx(0.05, abs=1e-7)


def test_with_no_end_of_freedom_students_t_is_normal() -> None:
    assert distributions.t_quantile(0.975, 1e9) == pytest.approx(1.959964, abs=1e-6)
    assert distributions.t_upper(8.0, 1e9) == pytest.approx(distributions.normal_upper(8.0), rel=1e-5)


def test_the_binomial_test_is_scipys() -> None:
    cases = [(0, 1, 0.5), (1, 1, 0.5), (5, 5, 1.0), (3, 5, 1.0), (7, 20, 0.35), (0, 30, 0.01), (30, 30, 0.9)]
    for _ in range(300):
        tries = int(10 ** RNG.uniform(0, 6))
        chance = RNG.uniform(0.001, 0.999)
        spread = (tries * chance * (1 - chance)) ** 0.5
        found = min(tries, max(0, round(RNG.gauss(tries * chance, 2 * spread + 0.5))))
        cases.append((found, tries, chance))
    for found, tries, chance in cases:
        expected = float(stats.binomtest(found, tries, chance).pvalue)
        assert distributions.binomial_p(found, tries, chance) == pytest.approx(expected, rel=1e-6), (
            found,
            tries,
            chance,
        )


def test_a_billion_failures_are_tested_at_once() -> None:
    began = time.process_time()
    assert distributions.binomial_p(500_050_000, 1_000_000_000, 0.5) == pytest.approx(0.001565, rel=0.01)
    assert time.process_time() - began < 10


def test_monotone_interpolation_is_scipys() -> None:
    for count in [2, 3, 4, 9, 30]:
        for _ in range(20):
            x = np.cumsum([RNG.uniform(0.01, 3) for _ in range(count)])
            y = np.array([RNG.choice([0.0, RNG.gauss(0, 1), RNG.gauss(0, 1)]) for _ in range(count)])
            grid = np.linspace(x[0], x[-1], 101)
            expected = interpolate.PchipInterpolator(x, y)(grid)
            assert interpolation.monotone(x, y, grid) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ranks_and_slopes_are_scipys() -> None:
    for count in [2, 5, 10, 60]:
        for _ in range(20):
            y = np.array([RNG.choice([1.0, 2.0, RNG.gauss(0, 1)]) for _ in range(count)])
            assert ranks.average_ranks(y).tolist() == stats.rankdata(y).tolist()
            assert ranks.sen_slope(y) == pytest.approx(float(stats.theilslopes(y).slope), abs=1e-12)
