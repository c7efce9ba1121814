"""The monitors' rows on disk: lines while a run goes on, a table once it is sealed.

Knows that all values are whole numbers and that a row leaves out what the host did not have.
Knows no column's meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.bundle import layout
from loadstone.bundle.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

TIMES: Final = ("t_ns", "dt_ns")
GROUP_ROWS: Final = 600
"""Rows that are in memory at a time when a table is written: a run may last for days."""


def host_to_parquet(lines: Path, out: Path, columns: Collection[str]) -> None:
    """Write the lines as zstd Parquet, in memory that does not grow with them."""
    try:
        rows = pl.scan_ndjson(lines, schema=_schema(columns))
        rows.sink_parquet(out, compression="zstd", row_group_size=GROUP_ROWS)
    except pl.exceptions.PolarsError:
        # A full disk cut the last line off: what is whole is kept.
        _table(read_lines(lines)).write_parquet(out, compression="zstd")


def host_rows(directory: Path, starts: Sequence[str]) -> pl.DataFrame:
    """Return the rows of a bundle, sealed or not; with `starts` only columns that begin with one of them."""
    sealed = directory / layout.HOST_TABLE
    if sealed.exists():
        names = list(pl.read_parquet_schema(sealed))
        return pl.read_parquet(sealed, columns=_chosen(names, starts))
    rows = read_lines(directory / layout.HOST)
    table = _table(rows) if rows else pl.DataFrame(schema=dict.fromkeys(TIMES, pl.Int64))
    return table.select(_chosen(table.columns, starts))


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.from_dicts(rows, schema=_schema({name for row in rows for name in row}), strict=False)


def _schema(columns: Collection[str]) -> dict[str, type[pl.Int64]]:
    return dict.fromkeys([*TIMES, *sorted(set(columns) - set(TIMES))], pl.Int64)


def _chosen(names: Sequence[str], starts: Sequence[str]) -> list[str]:
    return [name for name in names if not starts or name in TIMES or name.startswith(tuple(starts))]
