"""What a stop of the engine takes out of a run, as spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone import units
from loadstone.analysis.stops import Stops, merged, outside, without
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


def test_spans_are_cut_where_something_is_left_out() -> None:
    assert without([(0, 100), (200, 300)], ((50, 60), (90, 210))) == [(0, 50), (60, 90), (210, 300)]
    assert without([(10, 20)], ((0, 30),)) == []
    assert merged([(5, 9), (0, 6), (20, 21)]) == [(0, 9), (20, 21)]


def test_rows_that_only_touch_what_is_left_out_count() -> None:
    rows = pl.DataFrame({"start_ns": [0, 10, 20, 30], "end_ns": [10, 20, 30, 40]})
    assert rows.filter(outside(((10, 30),)))["start_ns"].to_list() == [0, 30]
    assert rows.filter(outside(())).height == 4


def test_hosts_that_cut_their_rows_at_different_times_lose_as_much_as_the_time_that_goes() -> None:
    """All rows that touched the span went, and four hosts of 100/s made 389/s."""
    step, shifts = 250, (0, 60, 130, 200)
    bounds = [(shift + at * step, shift + (at + 1) * step) for shift in shifts for at in range(40)]
    rows = pl.DataFrame({"start_ns": [one[0] for one in bounds], "end_ns": [one[1] for one in bounds]})
    left_out = ((3000, 3630), (6000, 6380))
    kept = rows.filter(outside(left_out)).height
    gone = sum(last - first for first, last in left_out)
    assert kept / len(shifts) * step == pytest.approx(40 * step - gone, abs=step / 2)


def test_what_was_left_out_is_said() -> None:
    assert Stops().text is None
    text = Stops(((0, 2_000_000_000),), ((0, 3_000_000_000),)).text
    assert text == (
        f"the load generator stood still once, for {units.seconds(2)} in all: "
        f"{units.seconds(3)} around it are left out"
    )


def test_nothing_is_due_while_the_generator_stands_still(tmp_path: Path) -> None:
    stop = {"type": "stopped", "t_ns": 3_900_000_000, "stopped_ns": 1_300_000_000}
    job = runs.MadeJob("a", {"read": 1000}, paced=True)
    made = summarise(Bundle.open(runs.make(tmp_path / "b", job, seconds=10.0, extra_events=[stop]).path))
    assert made.measurement.stops.left_out == ((2_500_000_000, 4_000_000_000),)
    (row,) = made.pacing
    assert row.asked_per_s == pytest.approx(1000)
    assert row.achieved_per_s == pytest.approx(1000, rel=0.05)
    assert row.held
