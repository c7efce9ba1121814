"""Any value that a column of the samples can hold, in some rows: the others are read, and it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from loadstone.analysis.summary import summarise
from loadstone.audit.run import audit
from loadstone.bundle import layout
from loadstone.bundle.hosts import HostPart, shifted_samples
from loadstone.bundle.read import Bundle
from tests.support import runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 10.0
COLUMNS = pl.Schema({**layout.SAMPLES, **layout.COUNTED})
NUMBERS = {name: kind for name, kind in COLUMNS.items() if not isinstance(kind, pl.List)}
NEVER_MISSING = sorted(NUMBERS.keys() - layout.COUNTED.keys())


def largest(kind: pl.DataType) -> int:
    bits = int(str(kind).removeprefix("UInt").removeprefix("Int"))
    return (1 << (bits - 1 if kind.is_signed_integer() else bits)) - 1


def extremes() -> Iterator[tuple[str, Any]]:
    for name, kind in NUMBERS.items():
        if kind.is_float():
            yield from ((name, value) for value in (float("nan"), float("inf"), -1.0, 1e300))
        elif kind.is_integer():
            yield name, largest(kind)
            if kind.is_signed_integer():
                yield name, -1


def with_values(path: Path, name: str, value: float | None) -> int:
    """Give every third row of a run's samples a value, and return how many those are."""
    table = pl.read_parquet(path / "samples.parquet")
    changed = pl.int_range(pl.len()) % 3 == 1
    value_of_kind = pl.lit(value, dtype=COLUMNS[name])
    table.with_columns(
        pl.when(changed).then(value_of_kind).otherwise(pl.col(name)).alias(name)
    ).write_parquet(path / "samples.parquet")
    return len(range(1, table.height, 3))


def faults(path: Path) -> list[str]:
    """Add a damaged run up and judge it; return what could not be read."""
    summary = summarise(Bundle.open(path, unverified=True))
    document = summary.document(audit(summary))
    assert document["total"]["operations"] > 0
    return summary.bundle.faults


@pytest.mark.parametrize("name", NEVER_MISSING)
def test_rows_with_a_value_that_is_missing_are_told_and_the_others_read(tmp_path: Path, name: str) -> None:
    """A longest slat that was missing became no number in NumPy: no verb could read the run any more."""
    path = runs.make(tmp_path / "b", seconds=SECONDS).path
    rows = with_values(path, name, None)
    assert any(fault.startswith(f"{rows} rows of the samples") for fault in faults(path))


@pytest.mark.parametrize(("name", "value"), [*extremes()])
def test_rows_with_a_value_that_cannot_be_are_read_or_told(tmp_path: Path, name: str, value: float) -> None:
    path = runs.make(tmp_path / "b", seconds=SECONDS).path
    with_values(path, name, value)
    faults(path)


@pytest.mark.parametrize("name", ["cell", "interval", "start_ns", "end_ns"])
def test_a_host_s_rows_that_are_out_of_range_have_no_value_on_the_run_s_clock(name: str) -> None:
    """A time of 2^64 ended every verb; a cell of 2^32 - 1 would have begun again at the first host's."""
    part = HostPart(name="b", bundle=None, status="complete", shift_ns=10**9, first_cell=2)
    row: dict[str, int] = {"cell": 0, "interval": 1, "start_ns": 0, "end_ns": 10**9}
    rows = pl.DataFrame(
        [row, {**row, name: largest(NUMBERS[name])}], schema={one: NUMBERS[one] for one in row}
    )
    moved = shifted_samples(rows, part, 10**9)
    assert moved.schema == rows.schema
    assert moved.row(0, named=True) == {"cell": 2, "interval": 2, "start_ns": 10**9, "end_ns": 2 * 10**9}
    assert moved[name][1] is None
