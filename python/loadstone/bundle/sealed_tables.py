"""Tables of a sealed bundle, and the rows of any table that can be of the run.

Knows what a table's file says of its size before it is read, and the bounds of each column: what
names a part the Plan does not have, or a time or an amount that cannot be, is no row of the run.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Final

import polars as pl

from loadstone.bundle import layout, members, parquet_footer
from loadstone.bundle.arrows import UNREADABLE, exactly
from loadstone.bundle.schemas import TEN_YEARS_NS
from loadstone.bundle.table_rows import columns_of
from loadstone.errors import BundleError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from loadstone.plan.model import Plan

    Footers = dict[tuple[int, ...], parquet_footer.Footer]
    """By what changes with a file."""

PIECE_ROWS: Final = 8192
NUMBERS_ROWS: Final = 1 << 16
"""Of a piece without histograms, a row of which is as large as a hundred numbers."""
SMALL_BYTES: Final = parquet_footer.SMALL_BYTES
MOST_EXPANDED: Final = 1000
"""Our tables take a tenth of their size; a file that promises more than this is made to fill memory."""
MOST_GROUP_BYTES: Final = 256 << 20
"""A group of rows is in memory as a whole; those of our tables have some MiB."""
FREE_BYTES: Final = 64 << 20
ROWS_PER_BYTE: Final = 1
"""A row has times of its own, which take some bytes however well they are packed."""
FREE_ROWS: Final = 1 << 16
MOST_AMOUNT: Final = 2**52
"""Operations or bytes of one row: more than any storage does in an interval, and rows can be added up."""
MOST_SUM: Final = 1e60
"""Of nanoseconds, or of their squares."""
BUCKETS: Final = 2496
"""Of the engine's histograms (`histogram.rs`)."""


def pieces(
    directory: Path,
    name: str,
    schema: pl.Schema,
    columns: Collection[str] | None = None,
    *,
    known: Footers | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield a sealed table a piece at a time, with the columns of a schema or some of them.

    `known` are the footers of files that were looked at before, and gets this one's. Raises
    `BundleError` for what is no such table.
    """
    wanted = pl.Schema({key: kind for key, kind in schema.items() if columns is None or key in columns})
    path = directory / name
    for piece in _pieces(
        directory, name, lambda there: [key for key in there.names() if key in wanted], known
    ):
        yield exactly(piece, wanted, path)


def whole(directory: Path, name: str, chosen: Callable[[Sequence[str]], list[str]]) -> pl.DataFrame:
    """Return the chosen columns of a sealed table of whole numbers. Raises `BundleError`."""
    tables = list(
        _pieces(
            directory,
            name,
            lambda there: [column for column in chosen(there.names()) if there[column] == pl.Int64],
        )
    )
    return pl.concat(tables) if tables else pl.DataFrame()


def _pieces(
    directory: Path,
    name: str,
    chosen: Callable[[pl.Schema], list[str]],
    known: Footers | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the chosen columns of a table; one piece without rows where it has none."""
    path = directory / name
    with members.open_member(directory, name) as file:
        try:
            small = os.fstat(file.fileno()).st_size <= SMALL_BYTES
            footer = _checked(file, path, known)
            # Of what is in memory Polars makes no map of its own: a study has hundreds of small tables.
            table = pl.scan_parquet(file.read() if small else file, glob=False)
            schema = table.collect_schema()
            columns = chosen(schema)
            if not footer.rows or not columns:
                yield pl.DataFrame(schema={column: schema[column] for column in columns})
                return
            if small and 2 * len(columns) > len(schema):
                # To choose most of a small table's columns takes longer than to read all of them.
                whole_table = table.collect(engine="in-memory")
                yield columns_of(whole_table, columns)
                return
            chosen_columns = table.select(columns)
            if footer.rows <= PIECE_ROWS:
                # What gives batches takes longer to begin, and a study has hundreds of small tables.
                yield chosen_columns.collect(engine="in-memory")
                return
            lists = any(isinstance(schema[column], pl.List) for column in columns)
            rows = PIECE_ROWS if lists else NUMBERS_ROWS
            yield from chosen_columns.collect_batches(chunk_size=rows, maintain_order=True)
        except UNREADABLE as error:
            if members.is_shortage(error):
                raise
            raise make_error(
                BundleError, "bundle.file.unreadable", path=path, reason=_first_line(error)
            ) from error


def _checked(file: BinaryIO, path: Path, known: Footers | None) -> parquet_footer.Footer:
    """Return a footer that was checked, once for each file of those that know theirs."""
    if known is None:
        return _footer(file, path)
    status = os.fstat(file.fileno())
    of = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if of not in known:
        known[of] = _footer(file, path)
    return known[of]


def _footer(file: BinaryIO, path: Path) -> parquet_footer.Footer:
    try:
        footer = parquet_footer.read(file, BUCKETS)
    except (OSError, ValueError) as error:
        if members.is_shortage(error):
            raise
        raise make_error(BundleError, "bundle.table.none", path=path, reason=_first_line(error)) from error
    if len(set(footer.columns)) != len(footer.columns):
        raise make_error(BundleError, "bundle.table.twice", path=path)
    bytes_ = file.seek(0, os.SEEK_END)
    file.seek(0)
    if (
        footer.expanded_bytes > FREE_BYTES + MOST_EXPANDED * bytes_
        or footer.rows > FREE_ROWS + ROWS_PER_BYTE * bytes_
    ):
        raise make_error(
            BundleError,
            "bundle.table.promises",
            path=path,
            size=bytes_,
            rows=footer.rows,
            expanded=footer.expanded_bytes,
        )
    if footer.largest_group_bytes > MOST_GROUP_BYTES:
        raise make_error(
            BundleError,
            "bundle.table.group",
            path=path,
            group_mib=footer.largest_group_bytes >> 20,
            most_mib=MOST_GROUP_BYTES >> 20,
        )
    return footer


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


NAMED: Final = ("cell", "op", "stage")
CHECKED: Final = (*NAMED, "interval", "start_ns", "end_ns", "ops", "bytes", "errors", "shorts")
"""Columns that decide whether a row of the samples counts, whichever of them are asked for."""
OF_LATENCIES: Final = ("_sum_ns", "_sumsq_ns2", "_min_ns", "_max_ns", "_samples")
"""How columns of numbers of a latency end."""
WITHOUT_NULLS: Final = frozenset(("interval", "priority", "ramp"))
"""The engine leaves them out of no row."""


def named_by(plan: Plan | None, rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Tell which rows name what a run of this Plan has, by their columns `NAMED`; nothing names nothing."""
    right = rows["op"].to_numpy() < len(layout.OPS)
    if plan is not None:
        stages = max((worker.stage for worker in plan.workers), default=0)
        right &= (rows["cell"].to_numpy() < len(plan.cells)) & (rows["stage"].to_numpy() <= stages)
    return right


def possible_samples(plan: Plan | None, rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Tell which rows of the samples can be of a run of this Plan, by their columns `CHECKED`."""
    begin, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    right = named_by(plan, rows) & (begin <= end) & (end <= TEN_YEARS_NS)
    for name in ("ops", "bytes", "errors", "shorts"):
        right &= rows[name].to_numpy() <= MOST_AMOUNT
    for name in WITHOUT_NULLS & set(rows.columns):
        right &= rows[name].is_not_null().to_numpy()
    return right


def possible_ios(plan: Plan | None) -> pl.Expr:
    """Tell which rows can be I/Os of a run of this Plan."""
    times = ("t_ns", "wait_ns", "slat_ns", "clat_ns", "lat_ns")
    named = pl.lit(value=True)
    if plan is not None:
        named = (pl.col("stream") < len(plan.streams)) & (pl.col("target") < len(plan.targets))
    return (
        named
        & (pl.col("op") < len(layout.OPS))
        & pl.all_horizontal(pl.col(times) <= TEN_YEARS_NS)
        & (pl.col("offset") < 2**63)
        & pl.all_horizontal(pl.col("priority", "bytes", "error", "ramp").is_not_null())
    ).fill_null(value=False)


def mended(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return samples whose latencies can be computed with, and in how many rows they could not.

    Those rows keep what they count and lose the latency that is wrong: sums that are no numbers,
    histograms whose parts do not fit together.
    """
    if _is_plain(table):
        return table, 0
    wrong = _wrong_latencies(tuple(table.columns))
    if not wrong:
        return table, 0
    flags = table.select(wrong)
    rows = sum(flags[name].any() for name in flags.columns)
    if not rows:
        return table, 0
    count = flags.select(pl.any_horizontal(pl.all())).to_series().sum()
    emptied = [
        pl.when(flags[latency]).then(_nothing(table.schema[name])).otherwise(pl.col(name)).alias(name)
        for latency in flags.columns
        for name in table.columns
        if name.startswith(f"{latency}_")
    ]
    return table.with_columns(emptied), int(count)


def _is_plain(table: pl.DataFrame) -> bool:
    """Tell of a table whether nothing in it can be wrong by `_wrong`, from what columns come to as a whole.

    Nearly always that is so, and much is asked at once where `_wrong` would ask row by row.
    """
    for name in table.columns:
        if name.endswith(OF_LATENCIES) and table[name].null_count():
            return False
        if name.endswith(("_sum_ns", "_sumsq_ns2")):
            bounds = (table[name].sum(), table[name].min(), table[name].max())
            whole, least, most = (float(one) if isinstance(one, int | float) else 0.0 for one in bounds)
            if not (math.isfinite(whole) and least >= 0 and most < MOST_SUM):
                return False
        elif name.endswith(("_min_ns", "_max_ns")):
            longest = table[name].max()
            if isinstance(longest, int) and longest > TEN_YEARS_NS:
                return False
        elif name.endswith("_samples"):
            ends = (table[name].min(), table[name].max())
            if any(isinstance(one, int) and not 0 <= one <= MOST_AMOUNT for one in ends):
                return False
    lists = _of_lists(tuple(name for name in table.columns if name.endswith(("_bucket", "_count"))))
    return not lists or not any(table.select(lists).row(0))


@cache
def _of_lists(names: tuple[str, ...]) -> list[pl.Expr]:
    """Return what is true where a list of a table may be wrong: its length, a value, or that it is none."""
    doubts = []
    for name in names:
        parts = pl.col(name).explode(empty_as_null=False, keep_nulls=True)
        doubts.append((parts.null_count() > 0).alias(name))
        if name.endswith("_bucket"):
            doubts.append((parts.max() >= BUCKETS).fill_null(value=False).alias(f"{name} beyond"))
            counts = name.replace("_bucket", "_count")
            if counts in names:
                lengths = pl.col(name).list.len() != pl.col(counts).list.len()
                doubts.append(lengths.any(ignore_nulls=True).alias(f"{name} lengths"))
    return doubts


@cache
def _wrong_latencies(names: tuple[str, ...]) -> list[pl.Expr]:
    """Return for each latency what is true of a row where it is wrong. Kept: a study has many pieces."""
    return [
        _wrong(latency, columns).alias(latency)
        for latency in layout.LATENCIES
        if (columns := [name for name in names if name.startswith(f"{latency}_")])
    ]


def _nothing(kind: pl.DataType) -> pl.Expr:
    return pl.lit([], dtype=kind) if isinstance(kind, pl.List) else pl.lit(0, dtype=kind)


def _wrong(latency: str, names: Collection[str]) -> pl.Expr:
    sums = [pl.col(name) for name in (f"{latency}_sum_ns", f"{latency}_sumsq_ns2") if name in names]
    limits = [pl.col(name) for name in (f"{latency}_min_ns", f"{latency}_max_ns") if name in names]
    samples = [pl.col(name) for name in (f"{latency}_samples",) if name in names]
    conditions = [~(one.is_finite() & (one >= 0) & (one < MOST_SUM)).fill_null(value=False) for one in sums]
    conditions += [~(one <= TEN_YEARS_NS).fill_null(value=False) for one in limits]
    conditions += [~one.is_between(0, MOST_AMOUNT).fill_null(value=False) for one in samples]
    bucket, count = pl.col(f"{latency}_bucket"), pl.col(f"{latency}_count")
    if f"{latency}_bucket" in names and f"{latency}_count" in names:
        conditions.append((bucket.list.len() != count.list.len()).fill_null(value=True))
    if f"{latency}_bucket" in names:
        conditions.append((bucket.list.max() >= BUCKETS).fill_null(value=False) | _has_null(bucket))
    if f"{latency}_count" in names:
        conditions.append(_has_null(count))
    return pl.any_horizontal(conditions) if conditions else pl.lit(value=False)


def _has_null(column: pl.Expr) -> pl.Expr:
    return column.is_null() | (column.list.len() != column.list.drop_nulls().list.len())
