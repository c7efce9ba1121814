from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import Latency
from loadstone.analysis.study.repeats import lines, narrow, repeated
from loadstone.analysis.study.run_figures import WHOLE, LineFigures, RunFigures
from loadstone.bundle.study import Point


def measured(iops: float, error: float | None = 1.0, p99: int | None = 500, job: str = "a") -> LineFigures:
    counts = np.array([100_000 if p99 else 0])
    latency = Latency(
        mean_ns=1e9 / iops,
        min_ns=p99,
        max_ns=p99,
        histogram=Histogram.of(np.array([100]), counts),
        intervals=10,
    )
    return LineFigures(
        job=job,
        op="read",
        operations=1000,
        errors=0,
        iops=Estimate(iops, error, 10, "1/s"),
        bandwidth=Estimate(iops * 4096, error, 10, "B/s"),
        latency=latency,
        intervals_ns={},
        block_bytes=4096,
        asked_iops=None,
        held=None,
    )


def with_histogram(line: LineFigures, histogram: Histogram, only_ns: int | None = None) -> LineFigures:
    """Give a line another latency; `only_ns`: every percentile is this."""
    assert line.latency is not None
    latency = replace(line.latency, histogram=histogram, min_ns=only_ns, max_ns=only_ns)
    return replace(line, latency=latency)


def run(*found: LineFigures, whole: LineFigures | None = None) -> RunFigures:
    return RunFigures(Point(name="r"), whole, found)


def test_the_interval_is_students() -> None:
    """Five values by hand: mean 10, deviation sqrt(2.5), t(0.975, 4) = 2.776445."""
    found = repeated([8, 9, 10, 11, 12], [None] * 5, "1/s")
    assert found is not None
    assert found.mean.value == 10
    assert found.mean.error == pytest.approx(math.sqrt(2.5 / 5))
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(0.5), rel=1e-6)
    assert found.half_width_share == pytest.approx(0.196325, rel=1e-4)
    assert (found.low, found.high) == (8, 12)
    assert (found.within_error, found.chance_p, found.differ) == (None, None, False)


def test_one_run_has_no_error_between_runs_and_none_is_nothing() -> None:
    found = repeated([8.0], [0.5], "1/s")
    assert found is not None
    assert (found.mean.error, found.half_width, found.chance_p) == (None, None, None)
    assert found.within_error == 0.5
    assert repeated([], [], "1/s") is None


def test_runs_that_differ_by_more_than_their_noise_are_told_from_runs_that_do_not() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(400):
        found = repeated(list(rng.normal(100, 2, 5)), [2.0] * 5, "1/s")
        assert found is not None
        alarms += found.differ
    assert alarms <= 12
    apart = repeated([100.0, 104.0, 96.0, 103.0, 97.0], [0.5] * 5, "1/s")
    assert apart is not None
    assert apart.differ


def test_lines_are_by_job_and_a_percentile_some_run_lacks_is_missing() -> None:
    runs = [run(measured(100), measured(50, job="b", p99=None)), run(measured(110), measured(52, job="b"))]
    found = lines(runs)
    assert [(line.job, line.rate.mean.value if line.rate else None) for line in found] == [
        ("a", 105),
        ("b", 51),
    ]
    assert found[0].percentiles_ns[99.0] is not None
    assert found[1].percentiles_ns[99.0] is None
    assert lines([]) == []
    assert lines([run()]) == []


def test_narrow_looks_at_the_whole_where_there_is_one() -> None:
    def of(*rates: float) -> list[RunFigures]:
        return [
            run(measured(rate), measured(200 - rate, job="b"), whole=measured(200, job=WHOLE))
            for rate in rates
        ]

    assert narrow(of(90, 110, 95), 0.02)
    apart = [run(measured(rate), measured(100, job="b")) for rate in (90, 110, 95)]
    assert not narrow(apart, 0.02)
    assert narrow([run(measured(rate)) for rate in (100, 100.1, 99.9)], 0.02)
    assert not narrow([run(measured(100))], 0.02)
    assert not narrow([], 0.02)
