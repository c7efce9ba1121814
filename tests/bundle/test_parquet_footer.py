"""What a Parquet file promises is held against its size before Polars allocates it."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadstone.bundle import parquet_footer

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 3000
MOST_VALUES = 8


def _table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": range(ROWS),
            "list": [[at % 7, at % 9, at][: at % 4] for at in range(ROWS)],
            "flag": [at % 3 == 0 for at in range(ROWS)],
            "share": [None if at % 5 == 0 else at * 0.5 for at in range(ROWS)],
        },
        schema={"number": pl.UInt32, "list": pl.List(pl.UInt16), "flag": pl.Boolean, "share": pl.Float64},
    )


WRITTEN: dict[str, Any] = {
    "zstd": lambda path: _table().write_parquet(path, compression="zstd", row_group_size=500),
    "plain": lambda path: _table().write_parquet(path, compression="uncompressed"),
    "sink": lambda path: _table().lazy().sink_parquet(path, compression="zstd"),
    "arrow 1": lambda path: pq.write_table(_table().to_arrow(), path, row_group_size=700),
    "arrow 2": lambda path: pq.write_table(_table().to_arrow(), path, data_page_version="2.0"),
    "small pages": lambda path: pq.write_table(_table().to_arrow(), path, data_page_size=64),
    "structures": lambda path: pq.write_table(
        pa.table({"number": pa.array([{"a": 1, "b": [1]}] * ROWS), "flag": pa.array([True] * ROWS)}), path
    ),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_whole_file_says_what_it_holds(how: str, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    WRITTEN[how](path)
    metadata = pq.read_metadata(path)
    with path.open("rb") as file:
        footer = parquet_footer.read(file, MOST_VALUES)
    assert footer.rows == ROWS
    assert footer.columns == tuple(pl.read_parquet_schema(path))
    groups = range(metadata.num_row_groups)
    assert footer.largest_group_bytes >= max(metadata.row_group(at).total_byte_size for at in groups)
    assert footer.expanded_bytes >= footer.largest_group_bytes
    assert footer.expanded_bytes >= sum(metadata.row_group(at).total_byte_size for at in groups) > 0


def test_an_empty_table_and_what_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    _table().clear().write_parquet(path)
    with path.open("rb") as file:
        assert parquet_footer.read(file, MOST_VALUES).rows == 0
    for content in (b"", b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(20) + b"PAR1", b"\xff" * 4096):
        path.write_bytes(content)
        with path.open("rb") as file, pytest.raises(ValueError, match=r"^(it|its footer) "):
            parquet_footer.read(file, MOST_VALUES)


def test_more_values_than_a_row_may_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"list": [[1] * 9] * 10}).write_parquet(path)
    with path.open("rb") as file, pytest.raises(ValueError, match="10 rows have 90 values"):
        parquet_footer.read(file, MOST_VALUES)
    with path.open("rb") as file:
        assert parquet_footer.read(file, 9).rows == 10


READ_DAMAGED = """
import sys
from pathlib import Path
import polars as pl
from loadstone.bundle import sealed_tables
from loadstone.errors import BundleError
schema = pl.Schema({"number": pl.UInt32, "list": pl.List(pl.UInt16), "flag": pl.Boolean, "share": pl.Float64})
read = refused = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        for piece in sealed_tables.pieces(path.parent, path.name, schema):
            piece.select(pl.col("list").list.max(), pl.col("share").sum())
        read += 1
    except BundleError:
        refused += 1
print(read, refused)
"""


@pytest.mark.in_turn
def test_damage_never_ends_the_process(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    WRITTEN["zstd"](whole)
    directory = tmp_path / "damaged"
    directory.mkdir()
    count = 300
    for seed in range(count):
        rng = random.Random(seed)
        data = bytearray(whole.read_bytes())
        for _ in range(rng.choice([1, 1, 2, 8, 64])):
            back = rng.randrange(3000 if rng.random() < 0.5 else len(data))
            data[len(data) - 1 - back] ^= 1 << rng.randrange(8)
        (directory / f"{seed}.parquet").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", READ_DAMAGED, str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    read, refused = map(int, done.stdout.split())
    assert read + refused == count
    assert refused > count / 2


def test_an_amount_that_a_page_or_the_footer_promises_and_does_not_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    numbers = pl.DataFrame({"number": pl.Series(range(100), dtype=pl.UInt32)})
    numbers.write_parquet(path, compression="uncompressed", statistics=False)
    whole = path.read_bytes()
    # 100 as the compact protocol writes it: of values and rows, in the head of pages and the footer.
    hundred = b"\xc8\x01"
    places = [at for at in range(len(whole)) if whole.startswith(hundred, at)]
    # Between them is an index, which nobody needs.
    assert len(places) == 9
    for at in places[:4] + places[-3:]:
        path.write_bytes(whole[:at] + b"\xc8\x7f" + whole[at + 2 :])
        with path.open("rb") as file, pytest.raises(ValueError, match=r"rows|values|pages|entries"):
            parquet_footer.read(file, MOST_VALUES)
