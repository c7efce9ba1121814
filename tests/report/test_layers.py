"""The waterfall of a mean latency, and the table of what each layer did."""

from __future__ import annotations

from loadstone.report.verdict.layers import UNKNOWN, waterfall
from loadstone.verdict import LayerTime, Time


def test_the_parts_of_the_waterfall_follow_each_other_and_fill_the_latency() -> None:
    time = Time(
        measured_ns=1e6,
        generator_ns=1e5,
        layers=(LayerTime(name="loop0", ns=3e5), LayerTime(name="sda", ns=4e5), LayerTime(name="x", ns=1.0)),
        unknown_ns=2e5 - 1,
    )
    parts = waterfall(time)
    assert [part["name"] for part in parts] == ["load generator", "loop0", "sda", UNKNOWN]
    assert [part["left"] for part in parts] == [0, 10, 40, 80]
    assert [part["width"] for part in parts] == [10, 30, 40, 20]
