from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pytest

from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import counted
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError
from loadstone.report.vdbench import (
    anchor_pages,
    buckets,
    flatfile,
    interval_lines,
    interval_lines_fs,
    pages,
    skew,
)
from loadstone.report.vdbench.directory import Directory, Page
from loadstone.report.vdbench.interval_totals import READ, Counted, CpuUse, IntervalTotals, OneWay, runs_of
from loadstone.report.vdbench.wording import run_line
from loadstone.workload.trees import TreeShape
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

FACTS = {
    "rd": "rd1",
    "loops": "xfersize=64k",
    "iorate": "max",
    "controlled": "no",
    "warmup": "20",
    "interval": "10",
}


def ways(count: int, mean_ms: float, deviation_ms: float, max_ms: float, size: int) -> OneWay:
    mean_ns = mean_ms * 1e6
    square = (deviation_ms * 1e6) ** 2 * (count - 1) / count + mean_ns**2
    return OneWay(count * size, counted(count, count * mean_ns, count * square, 0, round(max_ms * 1e6)))


def test_a_line_of_5_04_06_is_the_one_vdbench_printed() -> None:
    tally = IntervalTotals(700.0, reads=ways(11_339_111, 0.490, 0.107, 5.080, 65536))
    assert interval_lines.line("50406", "13:21:27.009", "avg_3-72", tally, CpuUse(0.3, 1.4, 0, 98.3)) == (
        "13:21:27.009  avg_3-72   16198.73  1012.42   65536 100.00    0.490    0.490    0.000    5.080"
        "    0.107   7.9   1.7   1.4"
    )
    assert interval_lines.header("50406", "Nov 11, 2016", cpu=True)[1] == (
        "Nov 11, 2016  interval        i/o   MB/sec   bytes   read     resp     read    write     resp"
        "     resp queue  cpu%  cpu%"
    )


def test_a_line_of_5_04_07_is_the_one_vdbench_printed() -> None:
    tally = IntervalTotals(1.0, writes=ways(320, 0.739, 2.466, 32.50, 131072))
    assert interval_lines.line("50407", "16:24:30.156", "1", tally, CpuUse(11.5, 25.0, 0, 63.5)) == (
        "16:24:30.156           1      320.0    40.00  131072   0.00    0.739    0.000    0.739     0.00"
        "    32.50    2.466    0.2  36.5  25.0"
    )
    assert interval_lines.header("50407", "Jan 24, 2019", cpu=True) == [
        "",
        "Jan 24, 2019    interval        i/o   MB/sec   bytes   read     resp     read    write     read"
        "    write     resp  queue  cpu%  cpu%",
        "                               rate  1024**2     i/o    pct     time     resp     resp      max"
        "      max   stddev  depth sys+u   sys",
    ]


def test_a_run_begins_with_the_words_vdbench_uses() -> None:
    assert run_line({**FACTS, "elapsed": "700"}) == (
        "Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=700 warmup=20; For loops: xfersize=64k"
    )


def test_a_histogram_is_the_one_vdbench_printed() -> None:
    counted = [1_676_027, 8_498_194, 1_338_586, 127_247, 15_003, 3276, 4]
    middles_ns = np.array([300, 500, 700, 900, 1500, 3000, 5000]) * 1000
    histogram = Histogram.of(runs.bucket_of(middles_ns), np.array(counted))
    found = buckets.table("Only reads done for this workload:", histogram, layout="50406")
    assert found[1] == (
        "  min(ms) <     max(ms)        count       %%    cum%%  '+': Individual%; '+-': Cumulative%"
    )
    assert found[8:16] == [
        "    0.100 <       0.200            0   0.0000   0.0000  ",
        "    0.200 <       0.400    1,676,027  14.3762  14.3762  +++++++",
        "    0.400 <       0.600    8,498,194  72.8937  87.2699  " + "+" * 36 + "-" * 7,
        "    0.600 <       0.800    1,338,586  11.4818  98.7517  " + "+" * 5 + "-" * 43,
        "    0.800 <       1.000      127,247   1.0915  99.8432  " + "-" * 49,
        "    1.000 <       2.000       15,003   0.1287  99.9719  " + "-" * 49,
        "    2.000 <       4.000        3,276   0.0281 100.0000  " + "-" * 49,
        "    4.000 <       6.000            4   0.0000 100.0000  " + "-" * 49,
    ]
    assert found[-3:] == [
        " 1000.000 <    2000.000            0   0.0000 100.0000  " + "-" * 50,
        " 2000.000 <         max            0   0.0000 100.0000  " + "-" * 50,
        "",
    ]


def test_a_histogram_of_5_04_07_has_a_wider_count() -> None:
    histogram = Histogram.of(runs.bucket_of(np.array([5_000])), np.array([1_102_320]))
    found = buckets.table("Reads:", histogram)
    assert found[1] == (
        "  min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%; '+-': Cumulative%"
    )
    assert found[3].startswith("    0.000 <       0.020     1,102,320 100.0000 100.0000  ")


def test_buckets_of_ones_own_leave_empty_ends_out() -> None:
    histogram = Histogram.of(runs.bucket_of(np.array([700_000, 5_000_000])), np.array([1, 3]))
    found = buckets.table("Reads:", histogram, "100u,500u,1m,2m,10m,1s,suppress")
    assert [line[:24].strip() for line in found[3:-1]] == [
        "0.100 <       0.500",
        "0.500 <       1.000",
        "1.000 <       2.000",
        "2.000 <      10.000",
        "10.000 <    1000.000",
    ]
    assert [int(line.split()[3]) for line in found[3:-1]] == [0, 1, 0, 3, 0]


def made(
    path: Path, *jobs: MadeJob, warmup: int = 0, elapsed: int = 5, interval: int = 1, **options: Any
) -> Counted:
    """Return a made-up run of a parameter file: one WD per job, one SD per target."""
    seconds = float(warmup + elapsed)
    found = runs.make(path, *jobs, seconds=seconds, interval_ns=500_000_000, **options)
    workload = {
        "name": "rd1",
        "global_options": {
            **FACTS,
            "elapsed": str(elapsed),
            "warmup": str(warmup),
            "interval": str(interval),
        },
        "jobs": [
            {
                "name": job.name,
                "work": {"kind": "blocks"},
                "own_options": {
                    "wd": job.name,
                    "sd": f"sd{at}",
                    "lun": f"/mnt/test/data{at}",
                    "threads": "8",
                },
                "placement": {"targets": [{"path": f"/mnt/test/data{at}", "written": f"/mnt/test/data{at}"}]},
            }
            for job in jobs
            for at in job.targets
        ],
    }
    (found.path / "workload.json").write_text(json.dumps(workload))
    runs.reseal(found.path)
    return Counted(Bundle.open(found.path))


def test_averages_leave_out_the_first_interval_or_the_warmup(tmp_path: Path) -> None:
    job = MadeJob(ops_hz={"read": 700.0, "write": 300.0}, ramp_s=1.0)
    run = made(tmp_path / "a", job)
    assert run.average_name == "avg_2-5"
    total = summarise(run.bundle).total.data
    assert total is not None
    average = run.average(run.whole)
    assert average.both.count == total.operations
    assert average.both.response_ms * 1e6 == pytest.approx(total.latencies["clat"].mean_ns)
    assert average.deviation_ms * 1e6 == pytest.approx(total.latencies["clat"].stddev_ns)
    assert average.both.latency.max_ns == total.latencies["clat"].max_ns
    assert average.seconds == pytest.approx(4.0)
    warm = made(tmp_path / "b", MadeJob(ramp_s=2.0), warmup=2, elapsed=6, interval=2)
    assert warm.average_name == "avg_2-4"
    assert [tally.seconds for tally in warm.whole.intervals] == [2.0, 2.0, 2.0, 2.0]


def test_intervals_add_up_to_what_was_measured(tmp_path: Path) -> None:
    run = made(
        tmp_path / "a",
        MadeJob("w1", {"read": 500.0}, targets=(0,)),
        MadeJob("w2", {"write": 200.0}, targets=(1,)),
        targets=2,
    )
    rows = run.measurement.samples
    assert sum(tally.both.count for tally in run.whole.intervals) == rows["ops"].sum()
    assert [part.name for part in run.storages] == ["sd0", "sd1"]
    assert [part.name for part in run.workloads] == ["w1", "w2"]
    for at, whole in enumerate(run.whole.intervals):
        assert sum(part.intervals[at].both.count for part in run.storages) == whole.both.count
    assert all(tally.writes.count == 0 for tally in run.storages[0].intervals)


def test_the_queue_is_as_deep_as_rate_times_response(tmp_path: Path) -> None:
    tally = made(tmp_path / "a", MadeJob()).whole.intervals[1]
    assert tally.queue_depth == pytest.approx(tally.rate * tally.both.response_ms / 1000)


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</pre><h1>PASSED</h1>",
        "\x1b[2J",
        "a\n<p>",
    ],
)
def test_a_name_is_never_more_than_text(name: str, tmp_path: Path) -> None:
    """A job's name was a tag on its own page and in skew.html."""
    run = runs.make(tmp_path / "b", MadeJob(name, {"read": 700.0}), MadeJob("b", {"write": 50.0}), seconds=2)
    pages.export(run.path, tmp_path / "out")
    known = {"title", "pre", "a", "i", "b"}
    for page in (tmp_path / "out").iterdir():
        text = page.read_text()
        assert set(re.findall(r"</?([A-Za-z]\w*)", text.lower())) <= known, page.name
        assert "\x1b" not in text


def test_a_link_leads_to_a_page_of_the_directory(tmp_path: Path) -> None:
    name = "javascript:alert(1)/?a#b"
    run = runs.make(tmp_path / "b", MadeJob(name, {"read": 700.0}), seconds=2)
    pages.export(run.path, tmp_path / "out")
    links = re.findall(r'HREF="([^"#]+)"', (tmp_path / "out" / "summary.html").read_text())
    assert "javascript%3Aalert%281%29_%3Fa%23b.html" in links
    there = {page.name for page in (tmp_path / "out").iterdir()}
    assert {unquote(link) for link in links} <= there


def test_a_run_of_another_language_is_written_too(tmp_path: Path) -> None:
    runs.make(tmp_path / "a", MadeJob("seq", ramp_s=2.0), seconds=6.0)
    pages.export(tmp_path / "a", tmp_path / "out")
    text = (tmp_path / "out" / "totals.html").read_text()
    assert "avg_3-6" in text
    assert "I/O rate: Uncontrolled MAX; elapsed=4 warmup=2" in text


@pytest.mark.in_turn
def test_phases_one_after_the_other_are_runs_of_their_own(tmp_path: Path) -> None:
    reads, writes = MadeJob("reads", {"read": 1000.0}), MadeJob("writes", {"write": 200.0}, stage=1, group=1)
    made = runs.make(tmp_path / "a", reads, writes, targets=1)
    pages.export(tmp_path / "a", tmp_path / "out")
    first, second = runs_of(Bundle.open(made.path))
    assert (first.facts["rd"], second.facts["rd"]) == ("reads", "writes")
    assert [len(one.whole.intervals) for one in (first, second)] == [5, 5]
    assert first.average(first.whole).rate == pytest.approx(1000, rel=0.05)
    assert second.average(second.whole).rate == pytest.approx(200, rel=0.1)
    assert [part.name for part in second.workloads] == ["writes"]
    assert first.started_unix_ns is not None
    assert second.started_unix_ns == first.started_unix_ns + 5_000_000_000
    averages = [row for row in table_of(tmp_path / "out" / "flatfile.html") if row["Interval"] == "avg_2-5"]
    assert [row["Run"] for row in averages] == ["reads", "writes"]
    assert (tmp_path / "out" / "totals.html").read_text().count("Starting RD=") == 2


def table_of(path: Path) -> list[dict[str, str]]:
    """Read a flat file as parsers do: names in the line that begins with a blank."""
    rows = [line for line in path.read_text().splitlines() if not line.startswith(("*", "<"))]
    head = next(line for line in rows if line.startswith(" ") and "Interval" in line).split()
    return [
        dict(zip(head, row.split(), strict=True))
        for row in rows[rows.index(next(r for r in rows if "Interval" in r)) + 1 :]
    ]


def test_the_files_are_those_of_vdbench_and_agree(tmp_path: Path) -> None:
    run = made(
        tmp_path / "a",
        MadeJob("w1", {"read": 500.0}, targets=(0, 1)),
        MadeJob("w2", {"write": 200.0}, targets=(1,)),
        targets=2,
    )
    pages.export(run.bundle.path, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {
        "summary.html", "totals.html", "flatfile.html", "histogram.html", "skew.html", "logfile.html",
        "status.html", "errorlog.html", "parmfile.html", "localhost.html", "sd0.html", "sd1.html",
        "sd0.histogram.html", "w1.html", "w2.html",
    }  # fmt: skip
    table = table_of(tmp_path / "out" / "flatfile.html")
    assert [row["Interval"] for row in table] == ["1", "2", "3", "4", "5", "avg_2-5"]
    summary = (tmp_path / "out" / "summary.html").read_text()
    shown = [
        line.split() for line in summary.splitlines() if re.match(r"\d\d:\d\d:\d\d\.\d{3} +(\d|avg)", line)
    ]
    assert [f"{float(row['rate']):.1f}" for row in table] == [line[2] for line in shown]
    assert [f"{float(row['resp']):.3f}" for row in table] == [line[6] for line in shown]
    assert {row["reqrate"] for row in table} == {f"{flatfile.MAX_RATE:.0f}"}
    assert {row["threads"] for row in table} == {"8"}
    assert {row["xfersize"] for row in table} == {"n/a"}
    for link in re.findall(r'<A HREF="([^"#]+)">', summary):
        assert (tmp_path / "out" / link).is_file()
    for number in re.findall(r'<A HREF="#_(\d+)">', summary):
        assert f'<a name="_{number}">' in summary


@pytest.mark.in_turn
def test_the_header_comes_again_every_30_lines(tmp_path: Path) -> None:
    run = made(tmp_path / "a", MadeJob(ops_hz={"read": 20.0}), elapsed=65)
    pages.export(run.bundle.path, tmp_path / "out", "50406")
    text = (tmp_path / "out" / "sd0.html").read_text()
    assert text.count("interval        i/o") == 3
    assert "cpu%" not in text


def test_histograms_count_what_the_averages_count(tmp_path: Path) -> None:
    run = made(tmp_path / "a", MadeJob(ramp_s=1.0))
    histogram = run.histogram(run.whole, READ)
    assert sum(buckets.counts(histogram, buckets.DEFAULT_US)) == run.average(run.whole).both.count


@pytest.mark.in_turn
def test_shares_are_told_against_what_was_asked(tmp_path: Path) -> None:
    run = made(tmp_path / "a", MadeJob("w1", {"read": 600.0}), MadeJob("w2", {"read": 200.0}))
    workload = json.loads((run.bundle.path / "workload.json").read_text())
    workload["jobs"][0]["own_options"]["skew"] = "80"
    (run.bundle.path / "workload.json").write_text(json.dumps(workload))
    runs.reseal(run.bundle.path)
    pages.export(run.bundle.path, tmp_path / "out")
    text = (tmp_path / "out" / "skew.html").read_text()
    w1 = next(line for line in text.splitlines() if " w1 " in line).split()[-3:]
    assert w1[0] == "80.00%"
    assert float(w1[1].rstrip("%")) == pytest.approx(75, abs=3)
    assert float(w1[2].rstrip("%")) == pytest.approx(80 - float(w1[1].rstrip("%")), abs=0.011)
    assert next(line for line in text.splitlines() if " w2 " in line).split()[-3] == "20.00%", "the rest"
    whole = next(line for line in text.splitlines() if " Total " in line).split()
    assert float(whole[2]) == pytest.approx(run.average(run.whole).rate, abs=0.006)


@pytest.mark.parametrize(
    ("name", "filled", "label"),
    [
        ("sd1", ("sd1",), "SD_format_sd1"),
        ("Disk1", ("Disk1", "sd1"), "SD_format_Disk1"),
        ("sd1", (), "localhost-0"),
        ("averyverylongname", (), "averyverylongname"),
    ],
)
def test_the_label_of_skew_has_room_for_the_slave_and_what_fills_an_sd(
    tmp_path: Path, name: str, filled: tuple[str, ...], label: str
) -> None:
    run = made(tmp_path / "a", MadeJob())
    run.storages[0].name = name
    head = next(line for line in skew.skew(run, "T", (), filled) if line.startswith("T SD:"))
    assert head.removeprefix("T ").index("rate") == len(f"{label} ") + 10 - len("rate")


def test_without_monitors_the_processors_are_not_known(tmp_path: Path) -> None:
    run = made(tmp_path / "a", MadeJob(), host=False)
    pages.export(run.bundle.path, tmp_path / "out")
    assert table_of(tmp_path / "out" / "flatfile.html")[0]["cpu_used"] == "n/a"
    line = next(
        line for line in (tmp_path / "out" / "totals.html").read_text().splitlines() if "avg_2-5" in line
    )
    assert line.endswith("  n/a   n/a")


def test_a_run_that_measured_nothing_is_no_report(tmp_path: Path) -> None:
    runs.make(tmp_path / "a", MadeJob(), seconds=0.0)
    with pytest.raises(BundleError, match="no run has measured anything"):
        pages.export(tmp_path / "a", tmp_path / "out")


FILE_OPS = ("mkdir", "rmdir", "create", "open", "close", "delete")


def test_a_line_of_file_systems_is_the_one_vdbench_printed() -> None:
    mib = 1 << 20
    others = {"open": ways(14, 0.049, 0, 0, 0), "close": ways(14, 0.018, 0, 0, 0)}
    reads, writes = ways(1995, 6.6, 0, 0, mib), ways(1339, 37.75, 0, 0, mib)
    tally = IntervalTotals(1.0, reads, writes, others, frozenset(("read", "write")))
    assert interval_lines_fs.header(
        "50406", "Dec 11, 2020", interval_lines_fs.shown((), "50406"), cpu=True
    ) == [
        "",
        "Dec 11, 2020 .Interval. .ReqstdOps... ...cpu%...  read ....read..... ....write.... ..mb/sec... "
        "mb/sec .xfer.. ...mkdir.... ...rmdir.... ...create... ....open.... ...close.... ...delete...",
        "                          rate   resp total  sys   pct   rate   resp   rate   resp  read write  "
        "total    size  rate   resp  rate   resp  rate   resp  rate   resp  rate   resp  rate   resp",
    ]
    cpu = CpuUse(24.99, 3.81, 0, 0)
    assert interval_lines_fs.line(
        "50406", "16:18:58.063", "590", tally, interval_lines_fs.shown((), "50406"), cpu=cpu
    ) == (
        "16:18:58.063        590 3334.0 19.110  28.8 3.81  59.8 1995.0  6.600 1339.0 37.750  1995  1339 "
        "3334.0 1048576   0.0  0.000   0.0  0.000   0.0  0.000  14.0  0.049  14.0  0.018   0.0  0.000"
    )


@pytest.mark.parametrize(
    ("number", "width", "digits", "text"),
    [(7876, 6, 1, "7876.0"), (10744, 6, 1, " 10744"), (143.61, 6, 3, "143.61"), (7527, 6, 3, "7527.0")],
)
def test_a_number_that_does_not_fit_loses_digits(number: float, width: int, digits: int, text: str) -> None:
    assert interval_lines_fs.fitted(number, width, digits) == text


def test_operations_are_shown_where_one_was_asked_for() -> None:
    assert interval_lines_fs.shown((), "50406") == FILE_OPS
    used = {"setattr", "read", "getattr"}
    assert interval_lines_fs.shown(used, "50406") == (*FILE_OPS, "getattr", "setattr")
    assert interval_lines_fs.shown({*used, "rmdir"}, "50407") == (
        *("rmdir", "open", "close"),
        *("getattr", "setattr"),
    )


def on_files(path: Path, *jobs: MadeJob, rd: str = "rd1") -> Counted:
    """Return a made-up run on file systems: one FWD per job, one FSD per target."""
    run = made(path, *jobs, seed=3, targets=1 + max(at for job in jobs for at in job.targets))
    workload = json.loads((path / "workload.json").read_text())
    told = workload["global_options"]
    del told["iorate"]
    told |= {"rd": rd, "fwdrate": "max", "loops": ""}
    for job in workload["jobs"]:
        own = job["own_options"]
        own |= {"fwd": own.pop("wd"), "fsd": f"f{own.pop('sd')}", "anchor": own.pop("lun")}
    (path / "workload.json").write_text(json.dumps(workload))
    runs.reseal(path)
    return Counted(Bundle.open(run.bundle.path))


LOOK = MadeJob("look", {"getattr": 800.0}, tree="getattr", clones=2)
WORK = MadeJob(
    "work",
    {"read": 300.0, "write": 100.0, "open": 20.0, "close": 20.0},
    tree="transfer",
    targets=(1,),
)


def test_only_what_was_asked_for_is_in_the_rate(tmp_path: Path) -> None:
    run = on_files(tmp_path / "a", LOOK, WORK)
    assert run.asked == frozenset({"getattr", "read", "write"})
    average = run.average(run.whole)
    counts = {op: average.of(op).count for op in ("getattr", "read", "write", "open", "close")}
    assert average.requested.count == counts["getattr"] + counts["read"] + counts["write"]
    assert average.rate == pytest.approx(2000, rel=0.1)
    assert counts["open"] > 0
    total = summarise(run.bundle).total
    assert total.requested == ("read", "write", "getattr")
    assert total.data is not None
    assert total.data.operations == sum(total.ops[op].operations for op in total.requested)


def test_a_run_that_makes_trees_counts_writes(tmp_path: Path) -> None:
    job = MadeJob("format", {"create": 50.0, "write": 200.0}, tree="create")
    run = on_files(tmp_path / "a", job, rd="format_for_rd1")
    assert run.asked == frozenset({"write"})
    assert run.average(run.whole).rate == pytest.approx(200, rel=0.1)
    jobs = summarise(run.bundle).totals("job")
    assert jobs[0].requested == ("create",)


@pytest.mark.in_turn
def test_the_files_of_a_run_on_file_systems(tmp_path: Path) -> None:
    run = on_files(tmp_path / "a", LOOK, WORK)
    pages.export(run.bundle.path, tmp_path / "out")
    names = {path.stem for path in (tmp_path / "out").iterdir()}
    assert names >= {"summary", "totals", "flatfile", "histogram", "fsd0", "fsd1", "look", "work"}
    assert names >= {"fsd0.histogram", "look.histogram", "work.histogram"}
    totals = (tmp_path / "out" / "totals.html").read_text()
    assert "std_" not in totals, "averages alone"
    summary = (tmp_path / "out" / "summary.html").read_text()
    lines_ = {line.split()[1]: line.split() for line in summary.splitlines() if re.search("_2-5 ", line)}
    assert set(lines_) == {"avg_2-5", "std_2-5", "max_2-5"}
    assert float(lines_["avg_2-5"][2]) == pytest.approx(run.average(run.whole).rate, abs=0.06)
    std = next(line for line in summary.splitlines() if "std_2-5" in line)
    assert std[25:49] == " " * 24, "several operations have no deviation in common"
    assert "..getattr..." in totals
    look = (tmp_path / "out" / "look.html").read_text()
    averages = next(line.split() for line in look.splitlines() if "avg_2-5" in line)
    assert float(averages[2]) == pytest.approx(1600, rel=0.1)
    assert float(averages[6]) == 0.0, "behind what the CPUs did"
    histogram = (tmp_path / "out" / "histogram.html").read_text()
    assert "Total of all requested operations since warmup: " in histogram


def test_one_operation_has_a_deviation_and_a_maximum(tmp_path: Path) -> None:
    run = on_files(tmp_path / "a", LOOK)
    counted = run.whole.intervals[1:]
    std, highest = interval_lines_fs.spread(
        "50407", "10:00:00.000", "avg_2-5", counted, ("getattr",), cpu=False
    )
    assert std.split()[1] == "std_2-5"
    average = run.average(run.whole)
    assert float(std.split()[3]) == pytest.approx(average.of("getattr").deviation_ms, abs=1e-3)
    assert float(highest.split()[2]) == pytest.approx(max(one.rate for one in counted), abs=0.06)
    assert (
        interval_lines_fs.spread("50406", "10:00:00.000", "avg_2-5", counted, ("getattr",), cpu=False) == []
    )


@pytest.mark.parametrize("layout", ["50407", "50406"])
@pytest.mark.in_turn
def test_the_flat_file_is_read_by_its_header(tmp_path: Path, layout: interval_lines.Layout) -> None:
    run = on_files(tmp_path / "a", LOOK, WORK)
    pages.export(run.bundle.path, tmp_path / "out", layout)
    text = (tmp_path / "out" / "flatfile.html").read_text().splitlines()
    at, names = next(
        (at, line.split()) for at, line in enumerate(text) if line.startswith(" ") and "tod" in line
    )
    rows = [dict(zip(names, line.split(), strict=False)) for line in text[at + 1 :] if line.strip()]
    assert [row["Interval"] for row in rows] == ["1", "2", "3", "4", "5", "avg_2-5"]
    last = rows[-1]
    average = run.average(run.whole)
    rate = "Rate" if layout == "50407" else "rate"
    assert float(last[rate]) == pytest.approx(average.rate, abs=1e-3)
    assert float(last["Getattr_rate"]) == pytest.approx(1600, rel=0.1)
    assert float(last["Open_resp"]) == pytest.approx(average.of("open").response_ms, abs=1e-3)
    assert float(last["MB_read"]) == pytest.approx(300 * 4096 / 2**20, rel=0.1)
    assert ("Getattr_rate_std" in names) is (layout == "50407")
    assert float(last["Mkdir_rate"]) == 0.0


def test_shares_of_file_workloads_are_told(tmp_path: Path) -> None:
    run = on_files(tmp_path / "a", LOOK, WORK)
    for job in run.jobs:
        job["own_options"]["skew"] = "80" if job["name"] == "look" else "20"
    told = "\n".join(skew.skew(run, "10:00:00.000", ("open", "getattr"), ()))
    assert "FWD:" in told
    assert "FSD:" in told
    assert re.search(r"look .* 80.00% +(79|80|81)", told)
    totals = [line.split() for line in told.splitlines() if " Total " in line]
    assert totals
    assert all(float(one[2]) == pytest.approx(run.average(run.whole).rate, abs=0.06) for one in totals)


REAL_FLAT = (
    "tod timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max "
    "read_max write_max resp_std read_std write_std xfersize threads rdpct rhpct whpct seekpct lunsize "
    "version compratio dedupratio queue_depth cpu_used cpu_user cpu_kernel cpu_wait cpu_idle"
)
"""The names in vdbench 5.04.07's own flatfile.html."""


@pytest.mark.in_turn
def test_the_flat_file_of_5_04_07_has_its_34_columns(tmp_path: Path) -> None:
    run = made(tmp_path / "a", MadeJob(ops_hz={"read": 500.0, "write": 200.0}))
    for layout, missing in (("50407", 0), ("50406", 4)):
        pages.export(run.bundle.path, tmp_path / layout, layout)  # type: ignore[arg-type] # both are layouts
        table = table_of(tmp_path / layout / "flatfile.html")
        assert len(table[0]) == 34 - missing
        assert [name for name in REAL_FLAT.split() if name in table[0]] == list(table[0])
    row = table_of(tmp_path / "50407" / "flatfile.html")[-1]
    assert list(row) == REAL_FLAT.split()
    average = run.average(run.whole)
    assert float(row["read_max"]) == pytest.approx(average.reads.longest_ms, abs=1e-4)
    assert float(row["write_std"]) == pytest.approx(average.writes.deviation_ms, abs=1e-4)


def test_a_tree_is_told_as_vdbench_tells_it() -> None:
    trees = {
        "/t1": TreeShape(depth=2, width=2, files=5, sizes=((65536, 100.0),)),
        "/t22": TreeShape(depth=1, width=2, files=5, sizes=((65536, 100.0),)),
    }
    assert anchor_pages.sizes(trees) == [
        "Anchor size: anchor=/t1: dirs:            6; files:           20; bytes:     1.250m (1,310,720)",
        "Anchor size: anchor=/t22: dirs:            2; files:           10; bytes:   640.000k (655,360)",
        "Estimated totals for all 2 anchors: dirs: 8; files: 30; bytes: 1.875m ",
    ]
    assert anchor_pages.first(trees)[0] == (
        "/t1        20        6   1.3m        0        0      0        0        0      0        0        0"
        "      0        0      0"
    )


def test_the_size_of_an_anchor_is_that_of_all_its_files_and_the_total_is_less() -> None:
    tree = TreeShape(depth=1, width=2, files=8, sizes=((16384, 100.0),), total_bytes=65536)
    (line,) = anchor_pages.sizes({"/t": tree})
    assert line.endswith("files:           16; bytes:   256.000k (262,144)")
    small = anchor_pages.sizes({"/t": TreeShape(depth=1, width=2, files=3, sizes=((16384, 100.0),))})[0]
    assert small.endswith("bytes:      98304 (98,304)")
    told = anchor_pages.first({"/t": tree})[0].split()
    assert told[1:7] == ["16", "2", "256.0k", "4", "2", "64.0k"]


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(10239, "10239"), (10240, "10.0k"), (1 << 20, "1.0m"), (1310720, "1.3m")]
)
def test_bytes_of_an_anchor_round_half_up(size_bytes: int, text: str) -> None:
    tree = TreeShape(depth=1, width=1, files=1, sizes=((size_bytes, 100.0),))
    assert anchor_pages.first({"/t": tree})[0].split()[3] == text


def test_a_page_grows_and_is_never_taken_back(tmp_path: Path) -> None:
    directory, page = Directory(tmp_path / "out"), Page("summary", ["head"])
    directory.grow([page])
    page.body.append("1")
    directory.grow([page])
    path = tmp_path / "out" / "summary.html"
    inode = path.stat().st_ino
    assert path.read_text() == "head\n1\n"
    directory.settle([Page("summary", ["head", "1", "avg"])])
    assert (path.read_text(), path.stat().st_ino) == ("head\n1\navg\n", inode)
    directory.settle([Page("summary", ["another"])])
    assert path.read_text() == "another\n"


def test_shares_of_one_rate_are_chance(tmp_path: Path) -> None:
    job = MadeJob("work", {"read": 290.0, "write": 110.0}, tree="transfer", paced=True)
    run = on_files(tmp_path / "a", job)
    rows = {row.op: row for row in summarise(run.bundle).pacing}
    assert rows["read"].asked_per_s == pytest.approx(400 * 0.72, rel=0.01)
    assert rows["write"].asked_per_s == pytest.approx(400 * 0.28, rel=0.01)
    assert rows["read"].held
    assert rows["write"].held


def test_a_job_with_a_path_for_a_name_stays_in_the_directory(tmp_path: Path) -> None:
    Directory(tmp_path / "out").settle([Page("../up /mnt/a", ["x"]), Page("../up /mnt/a.histogram", ["y"])])
    assert sorted(path.name for path in tmp_path.rglob("*.html")) == [
        ".._up _mnt_a.histogram.html",
        ".._up _mnt_a.html",
    ]
