"""The monitors' rows on their way from lines to a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from loadstone.bundle import host, layout

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {"t_ns": 1, "dt_ns": 1, "cpu.0.user_ns": 5},
    {"t_ns": 2, "dt_ns": 1, "cpu.0.user_ns": 6, "net.eth0.rx_bytes": 1 << 40},
    {"t_ns": 3, "dt_ns": 1, "block.sda.reads": 0},
]
COLUMNS = {name for row in ROWS for name in row}


def lines(place: Path, tail: str = "") -> Path:
    path = place / layout.HOST
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + tail)
    return path


def test_lines_and_table_say_the_same_and_what_a_row_lacks_is_null(tmp_path: Path) -> None:
    source = lines(tmp_path)
    before = host.host_rows(tmp_path, ())
    host.host_to_parquet(source, tmp_path / layout.HOST_TABLE, COLUMNS)
    source.unlink()
    after = host.host_rows(tmp_path, ())
    assert after.equals(before)
    assert after.columns == ["t_ns", "dt_ns", "block.sda.reads", "cpu.0.user_ns", "net.eth0.rx_bytes"]
    assert after["net.eth0.rx_bytes"].to_list() == [None, 1 << 40, None]
    assert after["block.sda.reads"].to_list() == [None, None, 0]


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    host.host_to_parquet(lines(tmp_path, '{"t_ns": 4, "dt_'), tmp_path / layout.HOST_TABLE, COLUMNS)
    assert host.host_rows(tmp_path, ())["t_ns"].to_list() == [1, 2, 3]


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    source = lines(tmp_path)
    wanted = ["t_ns", "dt_ns", "cpu.0.user_ns"]
    assert host.host_rows(tmp_path, ["cpu."]).columns == wanted
    host.host_to_parquet(source, tmp_path / layout.HOST_TABLE, COLUMNS)
    assert host.host_rows(tmp_path, ["cpu."]).columns == wanted


def test_more_rows_than_are_held_at_a_time(tmp_path: Path) -> None:
    count = 2 * host.GROUP_ROWS + 7
    path = tmp_path / layout.HOST
    path.write_text("".join(f'{{"t_ns":{at},"dt_ns":1,"a.b":{at}}}\n' for at in range(count)))
    host.host_to_parquet(path, tmp_path / layout.HOST_TABLE, {"t_ns", "dt_ns", "a.b"})
    found = host.host_rows(tmp_path, ())
    assert found["t_ns"].to_list() == list(range(count)) == found["a.b"].to_list()


def test_no_rows_are_an_empty_table(tmp_path: Path) -> None:
    found = host.host_rows(tmp_path, ())
    assert found.height == 0
    assert found.schema == {"t_ns": pl.Int64, "dt_ns": pl.Int64}


def test_what_no_table_takes_is_left_out_and_keeps_nothing_from_being_sealed(tmp_path: Path) -> None:
    assert host.that_fit({"t_ns": 1, "disk.a.reads": 2**63, "load.one_milli": 5}) == {
        "t_ns": 1,
        "load.one_milli": 5,
    }
    source = lines(tmp_path, json.dumps({"t_ns": 4, "dt_ns": 1, "cpu.0.user_ns": 10**30}) + "\n")
    host.host_to_parquet(source, tmp_path / layout.HOST_TABLE, COLUMNS)
    source.unlink()
    assert host.host_rows(tmp_path, ())["t_ns"].to_list() == [1, 2, 3]
