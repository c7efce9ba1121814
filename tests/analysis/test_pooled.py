"""Runs taken together: errors are the larger of two kinds, percentiles those of all I/Os."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from loadstone.analysis.histogram import BUCKETS, Histogram, lows_of
from loadstone.analysis.study.pooled import pooled
from tests.analysis.test_repeats import measured, with_histogram


def test_errors_are_what_runs_show_or_tell_whichever_is_larger() -> None:
    alike = pooled([measured(100.0, 4.0), measured(100.0, 4.0)])
    assert alike is not None
    assert alike.iops.error == pytest.approx(4 / math.sqrt(2))
    apart = pooled([measured(90.0, 1.0), measured(110.0, 1.0)])
    assert apart is not None
    assert apart.iops.value == 100
    assert apart.iops.error == pytest.approx(10.0)
    unknown = pooled([measured(100.0, None)])
    assert unknown is not None
    assert unknown.iops.error is None
    assert pooled([]) is None
    assert pooled([replace(measured(1.0), latency=None)]) is None


def test_percentiles_are_of_all_ios_and_no_mean_of_percentiles() -> None:
    """One run at 1 µs, one at 1 ms with nine times the I/Os: the median of all is 1 ms."""

    def of(value_ns: int, count: int) -> Histogram:
        buckets = np.arange(BUCKETS)
        bucket = int(np.searchsorted(lows_of(buckets), value_ns, side="right")) - 1
        return Histogram.of(np.array([bucket]), np.array([count]))

    runs = [
        with_histogram(measured(100.0), of(1_000, 100)),
        with_histogram(measured(100.0), of(1_000_000, 900)),
    ]
    found = pooled(runs)
    assert found is not None
    assert found.percentiles_ns[50.0] == pytest.approx(1_000_000, rel=0.01)
    # Two runs a thousandfold apart leave everything open.
    assert found.intervals_ns[50.0] is None


def test_the_interval_of_a_percentile_is_a_factor_and_never_below_zero() -> None:
    counts = np.zeros(BUCKETS, np.int64)
    counts[1000] = 1000
    value = Histogram(counts).percentile(50)
    assert value is not None
    runs = [
        replace(
            with_histogram(measured(100.0), Histogram(counts), round(value * factor)),
            intervals_ns={50.0: (round(value * factor * 0.9), round(value * factor * 1.1))},
        )
        for factor in (1.0, 1.2, 0.8)
    ]
    found = pooled(runs)
    assert found is not None
    interval = found.intervals_ns[50.0]
    assert interval is not None
    low, high = interval
    assert 0 < low < value < high
    # Student's t of three runs: 4.303 standard errors of the logarithms.
    logs = np.log([1.0, 1.2, 0.8])
    assert high / value == pytest.approx(math.exp(4.3027 * logs.std(ddof=1) / math.sqrt(3)), rel=0.01)
