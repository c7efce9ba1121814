"""The waterfalls of a mean latency and of p99, and the table of what each layer did."""

from __future__ import annotations

from loadstone.report.verdict import layers_table
from loadstone.report.verdict.layers_table import UNKNOWN, waterfall
from loadstone.verdict import LayerFlow, LayerTime, Time, TimeSplit, Verdict


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


def test_of_the_tail_the_page_shows_what_no_clock_tells() -> None:
    p99 = TimeSplit(measured_ns=4e6, generator_ns=1e6, layers=(), unknown_ns=3e6)
    time = Time(measured_ns=1e6, generator_ns=1e6, layers=(), unknown_ns=0.0, p99=p99)
    said = Verdict(
        kind="measures_storage", limited_by=None, confidence=0.9, sentences="", causes=(), missing=(),
        checked=(), advice=(), time=time,
    )  # fmt: skip
    mean, tail = layers_table.page(said)["times"]
    assert (mean["name"], tail["name"]) == ("the mean latency", "p99")
    assert [(part["name"], part["width"]) for part in tail["parts"]] == [
        ("load generator", 25),
        (UNKNOWN, 75),
    ]


def test_many_files_of_which_nothing_is_counted_are_one_row() -> None:
    fields = dict.fromkeys(LayerFlow.model_fields)
    plain = [fields | {"name": f"/mnt/{at}", "kind": "file", "state": (), "seconds": 4.0} for at in range(99)]
    told = plain[5] | {"name": "/mnt/odd", "state": ("compressed",)}
    disk = fields | {"name": "sda", "kind": "disk", "state": (), "seconds": 4.0, "read_bytes": 4096.0}
    flows = tuple(LayerFlow.model_validate(one) for one in (*plain, told, disk))
    said = Verdict(
        kind="measures_storage", limited_by=None, confidence=0.9, sentences="", causes=(), missing=(),
        checked=(), advice=(), layers=flows,
    )  # fmt: skip
    assert [row["name"] for row in layers_table.page(said)["layers"]] == [
        "/mnt/0 and 98 more files",
        "/mnt/odd",
        "sda",
    ]
