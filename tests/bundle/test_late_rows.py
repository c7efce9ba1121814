"""Rows of samples that lie far beyond all else that a bundle tells of the run's length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.bundle.read import FREE_NS, Bundle
from loadstone.report.vdbench.interval_totals import Counted
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

FAR_NS = 10**15
SECONDS = 3.0


def with_last_row(path: Path, **values: int) -> pl.DataFrame:
    """Change the last row of a run's samples; returns the table without it."""
    whole = pl.read_parquet(path / "samples.parquet")
    last = whole.tail(1).with_columns(
        pl.lit(value).cast(whole.schema[name]).alias(name) for name, value in values.items()
    )
    pl.concat([whole[:-1], last]).write_parquet(path / "samples.parquet")
    return whole[:-1]


@pytest.mark.parametrize(
    "values", [{"start_ns": FAR_NS, "end_ns": FAR_NS + 1}, {"interval": 2**31}, {"end_ns": 3 * FREE_NS}]
)
def test_a_row_that_is_far_too_late_is_left_out_and_told(tmp_path: Path, values: dict[str, int]) -> None:
    """Found by damaging bundles: vdbench's files had a row for each of a million seconds, in 2.3 GiB."""
    path = runs.make(tmp_path / "b", seconds=SECONDS).path
    expected = with_last_row(path, **values)
    opened = Bundle.open(path, unverified=True)
    samples = opened.samples()
    assert samples.select("start_ns", "end_ns", "interval").equals(
        expected.select("start_ns", "end_ns", "interval")
    )
    assert any("1 row of the samples is left out: far later" in one for one in opened.faults)
    assert len(Counted(opened).workloads[0].intervals) <= SECONDS + 1


def test_a_row_that_is_a_little_late_counts(tmp_path: Path) -> None:
    """Events may be lost and monitors may end before a run does."""
    path = runs.make(tmp_path / "b", seconds=SECONDS).path
    with_last_row(path, end_ns=FREE_NS)
    opened = Bundle.open(path, unverified=True)
    assert opened.samples()["end_ns"].max() == FREE_NS
    assert not opened.faults
