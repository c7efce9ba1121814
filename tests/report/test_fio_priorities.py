"""Latencies by I/O priority in fio's outputs, from samples and I/Os chosen by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from loadstone.report.fio import collect, document, logs, normal

from . import fio_small_run

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.report.fio.collect import Source

REAL_TIME, IDLE_HINTED = 0x2001, 0x6000 | 3 << 3
JOB = fio_small_run.JOB


def source(job: str = JOB) -> Source:
    """The first clone's reads: 30 of real time at 10 us, 10 of no priority at 20 us, 60 idle at 1 ms."""
    rows = [
        fio_small_run.row(0, 0, 0, 0, [1000] * 30, [10_000] * 30, REAL_TIME),
        fio_small_run.row(0, 0, 0, 0, [1000] * 10, [20_000] * 10),
        fio_small_run.row(0, 0, 0, 0, [1000] * 60, [1_000_000] * 60, IDLE_HINTED),
        fio_small_run.row(0, 0, 1, 0, [1000] * 5, [30_000] * 5),
        fio_small_run.row(0, 1, 0, 0, [1000] * 4, [40_000] * 4),
    ]
    return replace(fio_small_run.source(job), samples=fio_small_run.frame(rows))


def reads(job: str = JOB, *, plus: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = document.document(collect.report(source(job)), plus=plus)["jobs"][0]["read"]
    return found


def test_each_priority_has_its_latencies_and_they_add_up() -> None:
    found = reads(plus=True)
    assert [(one["prioclass"], one["prio"], one["priohint"]) for one in found["prios"]] == [
        (0, 0, 0),
        (1, 1, 0),
        (3, 0, 3),
    ]
    latencies = [one["clat_ns"] for one in found["prios"]]
    assert [one["N"] for one in latencies] == [10, 30, 60]
    assert [one["mean"] for one in latencies] == [20_000, 10_000, 1_000_000]
    assert found["clat_ns"]["N"] == 100
    bins: dict[str, int] = {}
    for one in latencies:
        for value, count in one["bins"].items():
            bins[value] = bins.get(value, 0) + count
    assert bins == found["clat_ns"]["bins"]


def test_total_latencies_are_shown_where_their_percentiles_are_asked_for() -> None:
    found = reads(JOB.replace("iodepth=4", "iodepth=4\nlat_percentiles=1"))
    assert [one["lat_ns"]["mean"] for one in found["prios"]] == [21_000, 11_000, 1_001_000]
    assert "clat_ns" not in found["prios"][0]


def test_one_priority_alone_is_not_told_apart() -> None:
    jobs = document.document(collect.report(source()), plus=False)["jobs"]
    assert "prios" not in jobs[0]["write"]
    assert "prios" not in jobs[1]["read"]


@pytest.mark.parametrize(
    ("option", "name"), [("group_reporting", "read"), ("unified_rw_reporting=1", "mixed")]
)
def test_priorities_add_up_over_clones_and_directions(option: str, name: str) -> None:
    report = collect.report(source(JOB.replace("iodepth=4", f"iodepth=4\n{option}")))
    found = document.document(report, plus=False)["jobs"][0][name]
    assert sum(one["clat_ns"]["N"] for one in found["prios"]) == found["clat_ns"]["N"]
    assert found["prios"][0]["clat_ns"]["N"] == (14 if name == "read" else 15)


def test_the_text_has_a_line_and_percentiles_for_each() -> None:
    text = normal.text(collect.report(source()))
    assert "    clat prio 1/1/0 (nsec): min=10000, max=10000, avg=10000.00, stdev= 0.00\n" in text
    assert "    clat prio 3/0/3 (60.00% of IOs) percentiles (" in text


@pytest.mark.in_turn
def test_logs_tell_the_priority_of_each_io(tmp_path: Path) -> None:
    given = fio_small_run.ios().with_columns(
        pl.Series("priority", [0, REAL_TIME, IDLE_HINTED, REAL_TIME], pl.UInt16)
    )

    def last_column(job: str) -> list[str]:
        logs.write(fio_small_run.source(job), given, tmp_path)
        lines = (tmp_path / "after_iops.3.log").read_text().splitlines()
        return [line.rpartition(", ")[2] for line in lines]

    assert last_column(JOB) == ["0", "1", "0", "1"]
    assert last_column(JOB + "log_prio=1\n") == ["0x0000", "0x2001", "0x6018", "0x2001"]
