"""What fio tells of its half seconds, a mean and a deviation, is an error of its figures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import loadstone
from loadstone.analysis.statistics.significance import Sample
from loadstone.comparison import matrix, pairing
from loadstone.comparison.compare import compare
from loadstone.comparison.metric import BANDWIDTH, IOPS, MEAN
from loadstone.comparison.side import side as read_side
from loadstone.report.comparison import charts
from loadstone.report.comparison.page import page
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from collections.abc import Mapping

FIO = Path(__file__).parents[1] / "data" / "foreign" / "fio"


def of_fio(
    path: Path,
    iops: float,
    *,
    runtime_s: int = 60,
    clones: int = 4,
    deviation: float = 100.0,
    told: Mapping[str, Any] | None = None,
) -> Path:
    """Write the JSON of one group of clones, each of which had two samples a second."""
    document = json.loads((FIO / "grouped.json").read_text())
    (job,) = document["jobs"][:1]
    document["jobs"] = [job]
    document["global options"] = {"ioengine": "libaio", "direct": "1", "iodepth": "8"}
    job["job options"] = {"rw": "read", "bs": "64k", "numjobs": str(clones), "filename": "data"}
    job["job_runtime"] = runtime_s * 1000 * clones
    mean_ns = 8 * clones / iops * 1e9
    job["read"] |= {
        "iops": iops, "bw": round(iops * 64), "bw_bytes": round(iops * 65536), "runtime": runtime_s * 1000,
        "total_ios": round(iops * runtime_s), "io_bytes": round(iops * runtime_s) * 65536,
        "io_kbytes": round(iops * runtime_s) * 64,
        "iops_mean": iops * 1.002, "iops_stddev": deviation, "iops_samples": 2 * runtime_s * clones,
        "lat_ns": job["read"]["lat_ns"] | {"mean": mean_ns, "min": mean_ns / 2, "max": 9 * mean_ns},
        **(told or {}),
    }  # fmt: skip
    path.write_text(json.dumps(document))
    return path


def values(path: Path) -> dict[str, Sample]:
    (phase,) = read_side(path).phases
    return {one.name: value for one, value in phase.values.items() if isinstance(value, Sample)}


def test_samples_of_one_run_tell_the_error_of_its_rate_and_latency(tmp_path: Path) -> None:
    known = values(of_fio(tmp_path / "a.json", 10_000.0))
    # Four clones that went up and down together would have four times the deviation of one.
    share = 4 * 100 / 10_020 / math.sqrt(12)
    for metric in (IOPS, BANDWIDTH, MEAN):
        one = known[metric.name]
        assert one.error == pytest.approx(share * one.value)
        # Ten samples count as one: nothing tells how they follow each other.
        assert one.freedom == pytest.approx(11.0)


def test_printed_rates_of_64k_blocks_are_compared_by_bandwidth(tmp_path: Path) -> None:
    """Their quotient is 65535.99999994: IOPS came first, and beside a run of ours there was no bandwidth."""
    printed = {"iops": 10_915.38974, "bw_bytes": 715_350_982}
    before = of_fio(tmp_path / "before.json", 10_915.4, told=printed)
    after = of_fio(tmp_path / "after.json", 10_000.0)
    (phase,) = read_side(before).phases
    assert phase.block_bytes is not None
    assert phase.block_bytes < 65536
    assert [one.metric for one in compare([before, after]).effects if one.first] == [BANDWIDTH]


def test_a_rate_that_fell_to_a_fifth_is_worse_than_that_of_one_old_result(tmp_path: Path) -> None:
    """One result of fio was never told apart from anything: the matrix of before and after was grey."""
    before = of_fio(tmp_path / "before.json", 10_000.0)
    worse, same = (of_fio(tmp_path / f"{iops:.0f}.json", iops) for iops in (2_000.0, 9_950.0))
    for after, judgement in ((worse, "worse"), (same, "same")):
        first = next(one for one in compare([before, after]).effects if one.first)
        assert first.judgement == judgement


def test_results_of_several_devices_are_repeats_of_one_load_and_said_to_be_of_others(tmp_path: Path) -> None:
    """Three LUNs, one after the other, were three repeats, and nothing said that they are not of one disk."""
    for side, devices in (("before", "bcd"), ("after", "bbb")):
        (tmp_path / side).mkdir()
        for at, device in enumerate(devices):
            path = of_fio(tmp_path / side / f"{at}.json", 10_000.0 + at)
            document = json.loads(path.read_text())
            document |= {"timestamp": 1_600_000_000 + 100 * at, "timestamp_ms": None}
            document["jobs"][0].pop("job_start", None)
            document["jobs"][0]["job options"]["filename"] = f"/dev/sd{device}"
            path.write_text(json.dumps(document))
    warnings = compare([tmp_path / "before", tmp_path / "after"]).warnings
    (differ,) = [one for one in warnings if "/dev/sdb" in one]
    assert differ.startswith("before: runs of 64k sequential read are not alike")
    assert "targets (/dev/sdb, /dev/sdc, /dev/sdd)" in differ


def test_a_gate_over_three_sides_says_which_of_them_is_worse(tmp_path: Path) -> None:
    """Two reasons with the same words were of two sides, and nobody could tell of which."""
    paths = [of_fio(tmp_path / f"{name}.json", iops) for name, iops in (("a", 1e4), ("b", 2e3), ("c", 9e3))]
    worse = loadstone.compare(*paths).decide()
    assert worse.outcome == "regression"
    assert {why[:7] for why in worse.why} == {"b.json:"}
    paths[1] = of_fio(tmp_path / "d.json", 9_990.0)
    weak = loadstone.compare(*paths).decide(detect=0.001)
    assert weak.outcome == "not_detectable"
    assert {why[:7] for why in weak.why} == {"d.json:", "c.json:"}


def test_the_spread_of_repeats_is_their_error(tmp_path: Path) -> None:
    for at, iops in enumerate((9_990.0, 10_000.0, 10_010.0)):
        path = of_fio(tmp_path / f"{at}.json", iops, deviation=1000.0)
        document = json.loads(path.read_text())
        # One after the other: at the same time they would be one load.
        document |= {"timestamp": 1_600_000_000 + 100 * at, "timestamp_ms": None}
        document["jobs"][0].pop("job_start", None)
        path.write_text(json.dumps(document))
    (cell,) = pairing.cells(read_side(tmp_path))
    known = matrix.entry(cell, IOPS)
    assert known is not None
    assert known.sample is not None
    assert known.sample.error == pytest.approx(10 / math.sqrt(3)), "which is above that of the digits printed"


@pytest.mark.parametrize(
    "told",
    [
        # A log made a sample of every I/O.
        {"iops_mean": 1.0, "iops_stddev": 0.0, "iops_samples": 600_000},
        {"iops_samples": 0},
        # Eight seconds have too few of them.
        {"iops_samples": 4 * 16},
        {"iops_samples": 4 * 12_000},
    ],
)
def test_samples_that_are_no_half_seconds_tell_nothing(tmp_path: Path, told: dict[str, float]) -> None:
    assert values(of_fio(tmp_path / "a.json", 10_000.0, told=told))[IOPS.name].error is None


def test_the_latency_of_a_load_that_was_not_always_outstanding_has_no_error(tmp_path: Path) -> None:
    told = {"lat_ns": {"min": 1000, "max": 900_000, "mean": 100_000.0, "stddev": 10.0, "N": 600_000}}
    known = values(of_fio(tmp_path / "a.json", 10_000.0, told=told))
    assert known[IOPS.name].error is not None
    assert known[MEAN.name].error is None


def test_fio_s_text_tells_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        "j: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=libaio, iodepth=4\n...\nfio-3.33\nStarting 4 processes\n\n"
        "j: (groupid=0, jobs=4): err= 0: pid=1: Sat Nov 28 20:58:01 2026\n"
        "  read: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(2344MiB/60001msec)\n"
        "    clat (usec): min=50, max=9000, avg=1598.00, stdev=12.00\n"
        "     lat (usec): min=51, max=9001, avg=1600.00, stdev=12.00\n"
        "   bw (  KiB/s): min=30000, max=50000, per=99.6%, avg=40000.00, stdev=400.00, samples=476\n"
        "   iops        : min= 7500, max=12500, avg=10000.00, stdev=100.00, samples=476\n"
        "  cpu          : usr=1.00%, sys=2.00%, ctx=1, majf=0, minf=1\n"
        "     issued rwts: total=600000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
    )
    known = values(path)
    assert known[IOPS.name].error == pytest.approx(4 * 100 / math.sqrt(11.9))
    assert known[MEAN.name].error == pytest.approx(1.6e6 * 4 * 0.01 / math.sqrt(11.9))


@pytest.mark.parametrize(
    ("name", "below"), [("fio-3.36.json", False), ("4096-byte-sectors-raid10.json", True)]
)
@pytest.mark.in_turn
def test_sides_with_long_names_stand_below_each_other_on_a_phone(
    tmp_path: Path, name: str, *, below: bool
) -> None:
    """A name that cannot be broken pushed the second side's figures off the screen."""
    sides = [of_fio(tmp_path / "before.json", 10_000.0), of_fio(tmp_path / name, 9_000.0)]
    classes = re.findall(r'<table class="([^"]*matrix[^"]*)"', page(compare(sides)))
    assert classes
    assert all(("labelled" in one.split()) is below for one in classes)


def percentiles(p50_ns: int, p99_ns: int, p999_ns: int) -> dict[str, Any]:
    return {"percentile": {"50.000000": p50_ns, "99.000000": p99_ns, "99.900000": p999_ns}}


@pytest.mark.in_turn
def test_what_fio_timed_after_submission_is_held_against_that_alone(tmp_path: Path) -> None:
    """A buffered libaio waits in submission: fio's p99 of 2 µs stood beside our p99 of the whole."""
    read = json.loads((FIO / "grouped.json").read_text())["jobs"][0]["read"]
    clat = {"clat_ns": read["clat_ns"] | {"mean": 900.0} | percentiles(800, 2_000, 9_000)}
    before = of_fio(tmp_path / "before.json", 10_000.0, told=clat)
    job = MadeJob("a", {"read": 1000.0}, block_bytes=65536, random_percent=0, iodepth=8, clones=4)
    table = compare([before, runs.make(tmp_path / "ours", job, seconds=20.0).path])
    names = {one.metric.name for one in table.effects}
    assert "clat p99" in names
    assert "latency p99" not in names
    (spec,) = charts.distributions(table)
    assert str(spec["title"]).startswith("clat distribution")
    drawn = spec["data"]["values"]
    assert [row["x"] for row in drawn if row["printed"]] == pytest.approx([2.0, 100.0, 1000.0])
    assert {row["line"] for row in drawn if not row["printed"]} == {"ours"}
    assert "Points are percentiles that another tool printed." in page(table)


def test_percentiles_of_the_whole_latency_keep_their_name(tmp_path: Path) -> None:
    read = json.loads((FIO / "grouped.json").read_text())["jobs"][0]["read"]
    lat = {"lat_ns": read["lat_ns"] | percentiles(800, 2_000, 9_000)}
    known = values(of_fio(tmp_path / "a.json", 10_000.0, told=lat))
    assert known["latency p99"].value == 2_000
    assert "clat p99" not in known


def test_a_percentile_that_fio_prints_of_too_few_is_not_compared(tmp_path: Path) -> None:
    read = json.loads((FIO / "grouped.json").read_text())["jobs"][0]["read"]
    clat = {"clat_ns": read["clat_ns"] | percentiles(800, 2_000, 9_000)}
    known = values(of_fio(tmp_path / "a.json", 100.0, told=clat))  # 6,000 I/Os
    assert known["clat p99"].value == 2_000
    assert "clat p99.9" not in known
