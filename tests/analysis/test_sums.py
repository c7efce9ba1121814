"""The sums that are sealed beside the samples of a long run give what the samples give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from loadstone.analysis.measurement import Measurement
from loadstone.bundle import layout, sums
from loadstone.bundle.read import Bundle
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

JOBS = (MadeJob("a", {"read": 300, "write": 90}, ramp_s=20.0), MadeJob("b", paced=True, clones=2))


def both(path: Path) -> tuple[Measurement, Measurement]:
    """A run that is read with its sums, and without: they are not believed of what is not verified."""
    runs.make(path, *JOBS, seconds=70)
    return Measurement(Bundle.open(path)), Measurement(Bundle.open(path, unverified=True))


@pytest.mark.in_turn
def test_a_long_run_is_read_from_its_sums_as_from_its_samples(tmp_path: Path) -> None:
    quick, slow = both(tmp_path / "b")
    assert (quick.bundle.sums_window, slow.bundle.sums_window) == (2, None)
    assert quick.window == slow.window == 2
    assert_frame_equal(quick.samples.select(slow.samples.columns), slow.samples)
    for latency in layout.LATENCIES:
        found, expected = quick.histograms(latency), slow.histograms(latency)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[pair].counts, expected[pair].counts) for pair in expected)
    for every in (2, 6):
        for ramp in (True, False):
            one, other = (m.windows("job", "lat", every, ramp=ramp) for m in (quick, slow))
            assert list(one) == list(other)
            assert all(np.array_equal(one[key], other[key]) for key in other)


@pytest.mark.in_turn
def test_windows_finer_than_the_sums_come_from_the_samples(tmp_path: Path) -> None:
    quick, slow = both(tmp_path / "b")
    found, expected = quick.windows("all", "lat", 1), slow.windows("all", "lat", 1)
    assert len(found) == len(expected) == 140 * 2
    assert all(np.array_equal(found[key], expected[key]) for key in expected)


@pytest.mark.in_turn
def test_a_run_whose_start_is_left_out_is_added_up_anew(tmp_path: Path) -> None:
    path = tmp_path / "b"
    stopped = {"type": "stopped", "t_ns": 40_000_000_000, "stopped_ns": 900_000_000}
    runs.make(path, MadeJob(), seconds=70, extra_events=[stopped])
    counted, whole = Measurement(Bundle.open(path)), Bundle.open(path)
    total = sum(int(piece["ops"].sum()) for piece in whole.sample_pieces(["ops"]))
    assert whole.sums_window == 2
    assert 0 < sum(one.count for one in counted.histograms("lat").values()) < total


@pytest.mark.in_turn
def test_rows_of_the_sums_that_name_no_part_of_the_run_are_left_out(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", MadeJob(), seconds=70).path
    table = pl.read_parquet(path / layout.SUMS)
    assert table.schema == sums.SCHEMA
    wrong = table.head(1).with_columns(pl.lit(9, pl.UInt32).alias("cell"))
    before = table.height
    pl.concat([table, wrong]).write_parquet(path / layout.SUMS)
    bundle = Bundle(path, Bundle.open(path, unverified=True).manifest)
    assert sum(piece.height for piece in bundle.sums(["cell", "lat_count"])) == before


def test_a_short_run_has_no_sums(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", MadeJob(), seconds=5).path
    assert not (path / layout.SUMS).exists()
    assert Bundle.open(path).sums_window is None
