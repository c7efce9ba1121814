"""What was asked for and what was moved are of the same seconds, whatever the monitors missed."""

from __future__ import annotations

import polars as pl
import pytest

from loadstone.audit import monitor_readings
from loadstone.path.layers import DataPath, Layer
from tests.audit.cases import DEVICE, disk, run

SECOND_NS = 10**9


def test_what_lies_below_another_carrier_moves_its_bytes_again_and_is_not_added() -> None:
    case = run(1000.0)
    assert case.host is not None
    assert case.series is not None
    path = DataPath(
        target="/dev/loop0",
        layers=(
            Layer(name="loop0", kind="loop", below=("sda",), counters=DEVICE),
            Layer(name="sda", kind="disk", counters="block.sda"),
        ),
    )
    rows = case.host.with_columns(pl.col("^block.loop0.*$").name.replace("loop0", "sda"))
    above, beside = disk(path_layers=path), disk(path="/mnt/f", carriers=("block.sda",))
    bounds = (0, 10 * SECOND_NS)
    assert monitor_readings.traffic(rows, case.series, (above,), bounds) is not None
    assert monitor_readings.traffic(rows, case.series, (above, beside), bounds) is None


def test_both_sides_are_cut_at_the_monitors_seconds() -> None:
    case = run([1000.0] * 50 + [3000.0] * 50)
    assert case.host is not None
    assert case.series is not None
    # The monitors began at 4 s: what was asked for before is of no concern.
    late = case.host.filter(pl.col("t_ns") > 4 * SECOND_NS)
    found = monitor_readings.traffic(late, case.series, (disk(),), (0, 10 * SECOND_NS))
    assert found is not None
    assert found.seconds == pytest.approx(6.0)
    assert found.asked["read"].ios == pytest.approx(1000 + 5 * 3000)
    assert found.share("read") == pytest.approx(1.0)


def test_a_second_that_was_missed_is_missed_on_both_sides() -> None:
    case = run([1000.0] * 50 + [3000.0] * 50)
    assert case.host is not None
    assert case.series is not None
    holes = case.host.filter(pl.col("t_ns") != 7 * SECOND_NS)
    found = monitor_readings.traffic(holes, case.series, (disk(),), (0, 10 * SECOND_NS))
    assert found is not None
    assert found.asked["read"].ios == pytest.approx(5 * 1000 + 4 * 3000)
    assert found.share("read") == pytest.approx(1.0)


def test_seconds_of_the_ramp_are_left_out() -> None:
    case = run(1000.0)
    assert case.host is not None
    assert case.series is not None
    found = monitor_readings.traffic(case.host, case.series, (disk(),), (2_500_000_000, 10 * SECOND_NS))
    assert found is not None
    assert found.seconds == pytest.approx(7.0)


def test_failed_ios_were_asked_for_too() -> None:
    case = run(1000.0)
    assert case.host is not None
    assert case.series is not None
    failing = case.series.with_columns(pl.col("ops") / 2, pl.col("bytes") / 2, errors=pl.col("ops") / 2)
    found = monitor_readings.traffic(case.host, failing, (disk(),), (0, 10 * SECOND_NS))
    assert found is not None
    assert found.asked["read"].ios == pytest.approx(10_000)
    assert found.share("read") == pytest.approx(1.0)


def test_one_target_that_nobody_counts_leaves_the_whole_open() -> None:
    case = run(1000.0)
    assert case.host is not None
    assert case.series is not None
    bounds = (0, 10 * SECOND_NS)
    assert monitor_readings.traffic(case.host, case.series, (disk(), disk(carriers=())), bounds) is None
    assert (
        monitor_readings.traffic(case.host.drop(f"{DEVICE}.read_bytes"), case.series, (disk(),), bounds)
        is None
    )
    assert monitor_readings.traffic(case.host, case.series, (disk(),), (0, SECOND_NS // 3)) is None


def test_in_flight_is_what_the_device_says() -> None:
    case = run(1000.0, device_ns=4e6)
    assert case.traffic is not None
    assert case.traffic.inflight == pytest.approx(4.0)


def test_monitors_that_ended_early_saw_nothing_of_what_came_later() -> None:
    host = pl.DataFrame({"t_ns": [1_000_000_000, 2_000_000_000], "dt_ns": [1_000_000_000] * 2})
    ended = {"failed": {"all": "out of memory"}}
    for cost, bounds, rows in (
        (ended, (0, 9_000_000_000), 0),
        (ended, (0, 2_500_000_000), 2),
        ({"failed": {"net": "gone"}}, (0, 9_000_000_000), 2),
        (None, (0, 9_000_000_000), 2),
    ):
        assert monitor_readings.to_the_end(host, cost, bounds).height == rows, (cost, bounds)
