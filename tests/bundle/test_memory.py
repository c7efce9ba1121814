"""What a table may take in memory to be read, and a want of memory that is not taken for damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest

from loadstone.bundle import arrows, layout, parquet_footer, sealed_tables
from loadstone.bundle.read import Bundle
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.in_turn
def test_tables_are_written_in_groups_that_can_be_read_one_at_a_time(tmp_path: Path) -> None:
    """Found by damaging bundles: a reader holds a whole group, and groups had 262,144 rows of 2 KiB each."""
    path = runs.make(tmp_path / "b", seconds=2.0, seal=None).path
    stream = path / "samples.arrows"
    with stream.open("rb") as file:
        messages = list(arrows._messages(file, stream.stat().st_size))
    stream.write_bytes(b"".join([messages[0], *(messages[1:] * 2100)]))
    arrows.to_parquet(stream, path / "out.parquet", layout.SAMPLES)
    told = pq.read_metadata(path / "out.parquet")
    rows = [told.row_group(at).num_rows for at in range(told.num_row_groups)]
    assert sum(rows) > 2 * arrows.GROUP_ROWS
    assert max(rows) <= arrows.GROUP_ROWS


def test_a_group_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by damaging bundles: 200,000 equal rows in one group took 1,156 MiB."""
    path = runs.make(tmp_path / "b", seconds=2.0).path
    whole = pl.read_parquet(path / "samples.parquet")
    with (path / "samples.parquet").open("rb") as file:
        bytes_ = parquet_footer.read(file, sealed_tables.BUCKETS).largest_group_bytes
    monkeypatch.setattr(sealed_tables, "MOST_GROUP_BYTES", 4 * bytes_)
    many = pl.concat([whole] * 10)
    many.write_parquet(path / "samples.parquet", row_group_size=whole.height)
    assert Bundle.open(path, unverified=True).samples().height == many.height
    many.write_parquet(path / "samples.parquet")
    opened = Bundle.open(path, unverified=True)
    assert opened.samples().height == 0
    assert "a group of its rows takes" in opened.faults[0]


@pytest.mark.parametrize("error", [MemoryError(), OSError(12, "Cannot allocate memory")])
def test_a_want_of_memory_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Found by failing allocations: a complete run said 'nothing was measured' and ended with 0."""
    path = runs.make(tmp_path / "b", seconds=2.0).path

    def short(*_: object) -> None:
        raise error

    monkeypatch.setattr(parquet_footer, "_checked", short)
    with pytest.raises(type(error)):
        Bundle.open(path).samples()

    def damage(*_: object) -> None:
        raise ValueError("its footer cannot be read")

    monkeypatch.setattr(parquet_footer, "_checked", damage)
    damaged = Bundle.open(path)
    assert damaged.samples().height == 0
    assert "not a table" in damaged.faults[0]
