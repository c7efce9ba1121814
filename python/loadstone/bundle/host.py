"""The rows of the monitors and of watched hosts on disk: lines while a run goes on, then a table.

Knows that all values are whole numbers and that a row leaves out what the host did not have.
Knows no column's meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone import messages
from loadstone.bundle import layout, members, sealed_tables
from loadstone.bundle.arrows import for_polars, told_by_the_system
from loadstone.bundle.json_lines import read_lines
from loadstone.bundle.schemas import TEN_YEARS_NS
from loadstone.bundle.table_rows import rows_where
from loadstone.errors import BundleError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

TIMES: Final = ("t_ns", "dt_ns")
GROUP_ROWS: Final = 600
"""Rows that are in memory at a time when a table is written: a run may last for days."""


def host_to_parquet(lines: Path, out: Path, columns: Collection[str]) -> None:
    """Write the lines as zstd Parquet, in memory that does not grow with them."""
    try:
        with for_polars(lines, "rb") as source, for_polars(out, "wb") as table:
            rows = pl.scan_ndjson(source, schema=_schema(columns))
            rows.sink_parquet(table, compression="zstd", row_group_size=GROUP_ROWS, statistics=False)
    except pl.exceptions.PolarsError:
        # A full disk cut the last line off: what is whole is kept.
        with told_by_the_system(out), for_polars(out, "wb") as table:
            _table(read_lines(lines, right=_is_row)).write_parquet(table, compression="zstd")


def host_rows(
    directory: Path,
    starts: Sequence[str],
    say: Callable[[str], None] | None = None,
    *,
    sealed: str = layout.HOST_TABLE,
    growing: str = layout.HOST,
) -> pl.DataFrame:
    """Return the rows of a bundle, sealed or not; with `starts` only columns that begin with one of them.

    Rows that have no time are left out, and `say` is told. Raises `BundleError`.
    """
    if members.exists(directory, sealed):
        table = sealed_tables.whole(directory, sealed, lambda names: _chosen(names, starts))
    else:
        rows = read_lines(directory / growing, say=say, right=_is_row)
        table = _table(rows) if rows else pl.DataFrame(schema=dict.fromkeys(TIMES, pl.Int64))
        table = table.select(_chosen(table.columns, starts))
    if not set(TIMES) <= set(table.columns):
        raise make_error(
            BundleError, "bundle.host.columns", path=directory / sealed, columns=" and ".join(TIMES)
        )
    end_ns, length_ns = (table[name].to_numpy() for name in TIMES)
    timed = (end_ns >= 0) & (end_ns <= TEN_YEARS_NS) & (length_ns >= 1) & (length_ns <= TEN_YEARS_NS)
    right = rows_where(table, timed)
    lost = table.height - right.height
    if lost and say is not None:
        say(messages.say("bundle.fault.no_time", file=sealed, count=lost, rows=table.height))
    return right


def that_fit(row: dict[str, int]) -> dict[str, int]:
    """Leave out what no table takes: what a watched host tells may be anything."""
    return {name: value for name, value in row.items() if -(2**63) <= value < 2**63}


def watched_files(name: str) -> tuple[str, str]:
    """Return where the rows of a watched host are: once sealed, and while the run goes on."""
    return f"{layout.WATCHED}/{name}.parquet", f"{layout.WATCHED}/{name}.jsonl"


def _is_row(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, int) and -(2**63) <= one < 2**63 for one in value.values()
    )


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.from_dicts(rows, schema=_schema({name for row in rows for name in row}), strict=False)


def _schema(columns: Collection[str]) -> dict[str, type[pl.Int64]]:
    return dict.fromkeys([*TIMES, *sorted(set(columns) - set(TIMES))], pl.Int64)


def _chosen(names: Sequence[str], starts: Sequence[str]) -> list[str]:
    return [name for name in names if not starts or name in TIMES or name.startswith(tuple(starts))]
