from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.study.slo import Slo, decide, read
from loadstone.analysis.summary import summarise
from loadstone.analysis.tail import beyond, percentile_intervals
from loadstone.bundle.read import Bundle
from loadstone.errors import InputError
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "percent", "limit_ns"),
    [
        ("p99<1ms", 99.0, 1_000_000),
        ("p99.9 <= 500us", 99.9, 500_000),
        ("P50<20µs", 50.0, 20_000),
        ("mean<1.5s", None, 1_500_000_000),
    ],
)
def test_limits_are_read(text: str, percent: float | None, limit_ns: int) -> None:
    assert read(text) == Slo(text, percent, limit_ns)


@pytest.mark.parametrize(
    "text", ["p99>1ms", "p100<1ms", "p0<1ms", "p99<1", "p99<0ms", "99<1ms", "max<1ms", ""]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read(text)


def test_a_measurement_decides_only_by_more_than_its_error() -> None:
    slo = read("mean<100us")

    def says(*values: tuple[float, float | None]) -> bool | None:
        return decide(slo, [Estimate(value, error, 9, "ns") for value, error in values])

    assert says((90_000, 4_000)) is True
    assert says((90_000, 6_000)) is None
    assert says((110_000, 4_000)) is False
    assert says((90_000, None)) is None
    assert decide(slo, [None]) is None
    assert decide(slo, []) is None
    # Two runs that agree decide what one of them does not, two that do not agree do not.
    assert says((90_000, 6_000), (90_000, 6_000)) is True
    assert says((70_000, 1_000), (110_000, 1_000)) is None


def test_the_share_beyond_a_limit_is_counted_from_the_histograms(tmp_path: Path) -> None:
    made = runs.make(
        tmp_path / "b", runs.MadeJob(ops_hz={"read": 2000.0, "write": 500.0}, ramp_s=1.0), seconds=6
    )
    summary = summarise(Bundle.open(made.path))
    latencies = np.concatenate([part for parts in made.latencies.values() for part in parts])
    for limit_ns in (80_000, 200_000):
        found = beyond(summary.measurement, [limit_ns])[0]
        assert found is not None
        assert found.value == pytest.approx(float((latencies > limit_ns).mean()), abs=0.01)
        assert found.error is not None
        # Independent I/Os: the error is near the binomial one.
        binomial = np.sqrt(found.value * (1 - found.value) / len(latencies))
        assert 0.3 * binomial < found.error < 4 * binomial


def test_each_limit_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a search for a limit read all samples of all its runs again before each of its runs."""
    made = runs.make(tmp_path / "b", runs.MadeJob(ops_hz={"read": 1000.0}), seconds=3)
    measurement = summarise(Bundle.open(made.path)).measurement
    first, second = beyond(measurement, [80_000, 200_000])
    fresh = summarise(Bundle.open(made.path)).measurement
    assert beyond(fresh, [200_000, 80_000]) == [second, first]
    monkeypatch.setattr(measurement, "pieces", pytest.fail)
    assert beyond(measurement, [200_000, 80_000, 200_000]) == [second, first, second]


def test_a_percentile_lies_in_its_interval_which_is_narrow_for_many_samples(tmp_path: Path) -> None:
    made = runs.make(tmp_path / "b", runs.MadeJob(ops_hz={"read": 5000.0}), seconds=10)
    summary = summarise(Bundle.open(made.path))
    data = summary.total.data
    assert data is not None
    histogram = data.latencies["lat"].histogram
    found = percentile_intervals(summary.measurement, histogram, (50.0, 99.0, 99.999))
    assert found[99.999] is None
    for percent in (50.0, 99.0):
        interval = found[percent]
        assert interval is not None
        low, high = interval
        exact = float(np.percentile(np.concatenate(made.latencies[0, "read"]), percent))
        assert low * 0.99 <= exact <= high * 1.01
        assert high < 1.2 * low


@pytest.mark.in_turn
def test_few_ios_prove_nothing_about_a_rare_one(tmp_path: Path) -> None:
    few = runs.make(tmp_path / "few", runs.MadeJob(ops_hz={"read": 20.0}), seconds=5)
    many = runs.make(tmp_path / "many", runs.MadeJob(ops_hz={"read": 2000.0}), seconds=5)
    slo = read("p99<10ms")
    decided = [decide(slo, [slo.value(summarise(Bundle.open(made.path)))]) for made in (few, many)]
    assert decided == [None, True]
