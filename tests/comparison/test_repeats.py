"""Which runs of a side are repeats: those of one load, by all that every run tells."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import loadstone
from loadstone.analysis.histogram import BUCKETS, Histogram, lows_of
from loadstone.analysis.statistics.significance import BUCKET_ERROR, Sample, of_runs
from loadstone.audit.case import Case, JobRequest, OpMeasurement
from loadstone.comparison import pairing
from loadstone.comparison.compare import compare
from loadstone.comparison.matrix import together
from loadstone.comparison.measured_values import TailSample, rounding_error
from loadstone.comparison.metric import BANDWIDTH, CLAT_P99, IOPS, Metric
from loadstone.comparison.pattern_name import pattern
from loadstone.comparison.side import side as read_side
from loadstone.report.comparison.words import headline

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"


def of_fio(path: Path, factor: float, **options: str) -> Path:
    """Write the fio JSON of one job with these options, at `factor` times the kept one's rate."""
    told = json.loads((FOREIGN / "fio" / "grouped.json").read_text())
    (one,) = told["jobs"][:1]
    one["job options"] = {"rw": "read", "bs": "64k", "numjobs": "4", "filename": "data", **options}
    told["jobs"], told["global options"] = (
        [one],
        {"ioengine": "libaio", "direct": "1", "iodepth": "8", "runtime": "2"},
    )
    told["global options"] = {
        key: value for key, value in told["global options"].items() if key not in options
    }
    for name in ("iops", "bw", "bw_bytes"):
        one["read"][name] *= factor
    one["read"]["total_ios"] = round(one["read"]["total_ios"] * factor)
    one["read"]["io_bytes"] = round(one["read"]["io_bytes"] * factor)
    # Each of them when no other one ran.
    told["timestamp"] = 1_600_000_000 + 1000 * next(_WRITTEN)
    told.pop("timestamp_ms", None)
    one.pop("job_start", None)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told))
    return path


_WRITTEN = itertools.count()
SIZES = {"small": {"filesize": "16m"}, "middle": {"size": "64m"}, "large": {"size": "256m"}}


def test_runs_over_other_working_sets_are_no_repeats(tmp_path: Path) -> None:
    """Three sizes, three runs each, were nine repeats of one pattern, and their scatter hid what differed."""
    for side, gain in (("before", 1.0), ("after", 1.05)):
        for at, (size, options) in enumerate(SIZES.items(), start=1):
            for number in range(3):
                of_fio(
                    tmp_path / side / f"{size}-{number}.json",
                    gain * (1 + at / 100) * (1 + number / 1000),
                    **options,
                )
    made = compare([tmp_path / "before", tmp_path / "after"])
    assert sorted(row.pattern for row in made.pairs) == [
        f"64k sequential read, working set {size}" for size in ("16.0 MiB", "256 MiB", "64.0 MiB")
    ]
    assert {len(cell.valid) for row in made.pairs for cell in row.cells if cell is not None} == {3}
    assert all(
        {phase.run.partition("-")[0] for phase in cell.phases} == {row.cells[0].first.run.partition("-")[0]}
        for row in made.pairs
        for cell in row.cells
        if cell is not None and row.cells[0] is not None
    )
    rates = [one for one in made.effects if one.metric.name == "bandwidth"]
    assert [one.judgement for one in rates] == ["better"] * 3
    assert [one.contrast.change for one in rates if one.contrast is not None] == pytest.approx([0.05] * 3)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"direct": "0"}, "direct I/O no"),
        ({"ioengine": "io_uring"}, "I/O backend io_uring"),
    ],
)
def test_a_side_with_two_kinds_of_runs_has_two_rows(
    tmp_path: Path, options: dict[str, str], name: str
) -> None:
    of_fio(tmp_path / "both" / "a.json", 1.0, size="64m")
    of_fio(tmp_path / "both" / "b.json", 2.0, size="64m", **options)
    of_fio(tmp_path / "one" / "c.json", 3.0, size="64m", **options)
    made = compare([tmp_path / "both", tmp_path / "one"])
    ((pattern, runs_of),) = [
        (row.pattern, [cell.first.run for cell in row.cells if cell is not None]) for row in made.pairs
    ]
    assert (pattern, runs_of) == ("64k sequential read", ["b.json", "c.json"])
    assert [one.what for one in made.alone if one.side == "both"] != []
    two = compare([tmp_path / "both", tmp_path / "both" / "b.json", tmp_path / "both" / "a.json"])
    assert name in " ".join(row.pattern for row in two.pairs)


def test_what_only_some_runs_tell_makes_no_other_load(tmp_path: Path) -> None:
    of_fio(tmp_path / "side" / "a.json", 1.0, size="64m")
    of_fio(tmp_path / "side" / "b.json", 1.1)
    (cell,) = pairing.cells(read_side(tmp_path / "side"))
    assert [phase.run for phase in cell.phases] == ["a.json", "b.json"]


def test_settings_that_differ_in_one_pattern_alone_are_told_with_it(tmp_path: Path) -> None:
    for side, direct in (("before", "0"), ("after", "1")):
        of_fio(tmp_path / side / "a.json", 1.0, size="64m")
        of_fio(tmp_path / side / "b.json", 2.0, size="64m", rw="randread", direct=direct)
    found = compare([tmp_path / "before", tmp_path / "after"]).differences
    assert [(one.key, one.values) for one in found] == [("direct I/O (64k random read)", ("no", "yes"))]


def test_what_differs_is_asked_of_sides_that_did_the_same(tmp_path: Path) -> None:
    """Where no pattern was done by all, the first phases of the sides were held against each other."""
    of_fio(tmp_path / "a" / "a.json", 1.0, size="64m")
    of_fio(tmp_path / "b" / "a.json", 1.1, size="64m", ioengine="io_uring")
    of_fio(tmp_path / "a" / "r.json", 1.2, size="64m", rw="randread")
    of_fio(tmp_path / "c" / "r.json", 1.3, size="64m", rw="randread", ioengine="posixaio")
    found = compare([tmp_path / "a", tmp_path / "b", tmp_path / "c"]).differences
    assert [(one.key, one.values) for one in found] == [("I/O backend", ("libaio", "io_uring", "posixaio"))]


def test_a_load_that_no_other_side_has_is_named_by_its_settings(tmp_path: Path) -> None:
    of_fio(tmp_path / "both" / "a.json", 1.0, size="64m")
    of_fio(tmp_path / "both" / "b.json", 1.1, size="256m", iodepth="8")
    of_fio(tmp_path / "one" / "c.json", 1.2, size="64m")
    assert (
        "only both has 64k sequential read, working set 256 MiB"
        in compare([tmp_path / "both", tmp_path / "one"]).warnings
    )


FIO_TEXT = """\
{name}: (g={group}): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
ioengine=libaio, iodepth={depth}
fio-3.33
Starting 1 process

{name}: (groupid={group}, jobs=1): err= 0: pid={pid}: Sat Nov 28 20:58:{pid:02d} 2026
  read: IOPS={iops}, BW={mib}MiB/s ({mib}MB/s)({mib}MiB/1000msec)
    clat (usec): min=50, max={slowest}, avg={mean}.00, stdev=12.00
     lat (usec): min=50, max={slowest}, avg={mean}.50, stdev=12.00
  cpu          : usr=1.00%, sys=2.00%, ctx=1, majf=0, minf=1
     issued rwts: total={iops},0,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group {group} (all jobs):
"""


def fio_text(path: Path, runs: list[tuple[str, int, int]]) -> Path:
    """Write what fio printed of these runs of 1 s, one after the other: name, depth and IOPS of each."""
    texts = [
        FIO_TEXT.format(
            name=name,
            group=0,
            depth=depth,
            pid=at,
            iops=iops,
            mib=f"{iops / 256:.1f}",
            mean=1_000_000 * depth // iops,
            slowest=900 + at,
        )
        for at, (name, depth, iops) in enumerate(runs, start=1)
    ]
    path.write_text("\n".join(texts))
    return path


def test_runs_of_one_name_in_one_text_are_repeats(tmp_path: Path) -> None:
    """Twelve runs printed into one file were twelve patterns, of which nothing could be said."""
    before = fio_text(tmp_path / "before.txt", [("iops", 8, 30_000 + 10 * at) for at in range(12)])
    after = fio_text(tmp_path / "after.txt", [("iops", 8, 40_000 + 10 * at) for at in range(12)])
    compared = compare([before, after])
    (row,) = compared.pairs
    assert [len(cell.valid) for cell in row.cells if cell is not None] == [12, 12]
    assert {one.judgement for one in compared.effects if one.first} == {"better"}


def test_runs_of_one_name_without_a_depth_are_told_to_be_compared_one_by_one(
    tmp_path: Path,
) -> None:
    """Their heads are missing: they may be repeats, and "give several runs" did not say what to do."""
    sides = [tmp_path / "before.txt", tmp_path / "after.txt"]
    for at, path in enumerate(sides):
        text = fio_text(path, [("iops", 8, 30_000 + 9_000 * at + 10 * run) for run in range(3)]).read_text()
        path.write_text("\n".join(line for line in text.splitlines() if "(g=0): rw=" not in line))
    compared = compare(sides)
    assert len(compared.pairs) == 3
    assert [one for one in compared.warnings if "tells no depth" in one] == [
        f"{path.name}: {path.name} has 3 results of iops and tells no depth: each is compared for itself; "
        "in files of their own they are repeats"
        for path in sides
    ]


def test_loads_of_one_name_and_other_depths_in_one_text_are_no_repeats(tmp_path: Path) -> None:
    depths = [1, 2, 4, 1, 2, 4]
    side = read_side(fio_text(tmp_path / "a.txt", [("j", depth, 9000 * depth) for depth in depths]))
    assert [[phase.depth for phase in cell.phases] for cell in pairing.cells(side)] == [
        [1, 1],
        [2, 2],
        [4, 4],
    ]


def names_of(rows: list[pairing.PatternRow]) -> list[list[str]]:
    return [[cell.first.name for cell in row.cells if cell is not None] for row in rows]


def test_what_has_the_same_name_is_paired_whatever_place_it_has(tmp_path: Path) -> None:
    """A side without the first of three had its first held against that: pools were told to be others."""
    sides = [
        read_side(fio_text(tmp_path / f"{at}.txt", [(name, 8, 9000 + at) for name in names]))
        for at, names in enumerate([["fuse", "kernel", "rbd"], ["kernel", "rbd"]])
    ]
    rows, alone = pairing.rows(sides)
    assert names_of(rows) == [["kernel", "kernel"], ["rbd", "rbd"]]
    assert [[cell.first.name for cell in cells] for cells in alone] == [["fuse"], []]


def test_what_is_left_of_a_pattern_with_other_names_is_something_else(tmp_path: Path) -> None:
    sides = [
        read_side(fio_text(tmp_path / f"{at}.txt", [(name, 8, 9000 + at) for name in names]))
        for at, names in enumerate([["fuse", "kernel"], ["kernel", "rbd"]])
    ]
    rows, alone = pairing.rows(sides)
    assert names_of(rows) == [["kernel", "kernel"]]
    assert [[cell.first.name for cell in cells] for cells in alone] == [["fuse"], ["rbd"]]


def test_the_order_pairs_other_names_only_where_there_are_as_many(tmp_path: Path) -> None:
    sides = [
        read_side(fio_text(tmp_path / f"{at}.txt", [(name, 8, 9000 + at) for name in names]))
        for at, names in enumerate([["a", "b", "c"], ["x", "y", "z"], ["u", "v"]])
    ]
    rows, alone = pairing.rows(sides[:2])
    assert [row.pattern for row in rows] == [f"4k random read, {one}" for one in ("a → x", "b → y", "c → z")]
    rows, alone = pairing.rows([sides[0], sides[2]])
    assert not rows
    assert [len(cells) for cells in alone] == [3, 2]


def test_a_mix_of_which_only_the_directions_are_known_is_named_by_both() -> None:
    """fio's text does not tell the share of reads: its mixed loads were `4k sequential`."""
    one = OpMeasurement(operations=100)
    job = JobRequest(job="a", random_percent=0.0, block_bytes={4096: 1.0})
    case = Case(name="a", source="fio", jobs=(job,), total=one, ops={"read": one, "write": one})
    assert pattern(case) == "4k sequential read and write"


def test_settings_that_both_sides_vary_pair_where_one_that_only_one_side_varies_cannot(
    tmp_path: Path,
) -> None:
    """Each side had one and four clones at depth 4 and 16, one over other files: half was paired."""
    for side, sizes in (("before", {1: "64m", 4: "64m"}), ("after", {1: "16m", 4: "256m"})):
        for clones, size in sizes.items():
            for depth in (4, 16):
                path = of_fio(
                    tmp_path / side / f"{clones}-{depth}.json", clones + depth / 100 + len(side) / 1000,
                    numjobs=str(clones), iodepth=str(depth), size=size,
                )  # fmt: skip
                told = json.loads(path.read_text())
                (one,) = told["jobs"]
                one["job_runtime"] = clones * one["read"]["runtime"]
                path.write_text(json.dumps(told))
    made = compare([tmp_path / "before", tmp_path / "after"])
    runs = [[cell.first.run for cell in row.cells if cell is not None] for row in made.pairs]
    assert sorted(runs) == [[name, name] for name in ("1-16.json", "1-4.json", "4-16.json", "4-4.json")]
    # What only the sides differ in is told below; it is not what tells the rows apart.
    assert {row.pattern for row in made.pairs} == {
        f"64k sequential read, iodepth {depth}, clones {clones}" for depth in (4, 16) for clones in (1, 4)
    }


@pytest.mark.parametrize(
    ("factor", "judgements"),
    [(1.0, ["unknown", "unknown"]), (40.0, ["better", "better"]), (0.05, ["worse", "worse"])],
)
def test_with_other_block_sizes_a_side_is_faster_where_both_rates_are(
    tmp_path: Path, factor: float, judgements: list[str]
) -> None:
    """4k against 64k were told as 16 times the IOPS, in green, while a sixteenth was moved."""
    for number in range(3):
        of_fio(tmp_path / "large" / f"{number}.json", 1.0 + number / 500, size="64m")
        path = of_fio(tmp_path / "small" / f"{number}.json", factor * (1 + number / 500), size="64m", bs="4k")
        told = json.loads(path.read_text())
        (one,) = told["jobs"]
        one["read"]["iops"] *= 8
        one["read"]["total_ios"] *= 8
        for name in ("bw", "bw_bytes", "io_bytes"):
            one["read"][name] /= 2
        path.write_text(json.dumps(told))
    made = compare([tmp_path / "large", tmp_path / "small"])
    effects = {one.metric.name: one.judgement for one in made.effects}
    assert [effects["IOPS"], effects["bandwidth"]] == judgements
    assert effects["latency mean"] == "unknown"
    assert ("cannot say: block sizes or rates differ" in headline(made)) == (factor == 1.0)


def test_a_percentile_of_repeats_is_that_of_all_their_ios() -> None:
    """A study's page had that of all I/Os, the comparison the mean of the runs': two values of one name."""
    lows, samples, whole = lows_of(np.arange(BUCKETS)), [], Histogram.empty()
    for slow_ns, count in ((1_000_000, 5_000), (9_000_000, 20_000)):
        buckets = np.searchsorted(lows, [100_000, slow_ns], side="right") - 1
        counts = np.array([count * 49, count])
        whole += Histogram.of(buckets, counts)
        own = Histogram.of(buckets, counts).percentile(99.0)
        assert own is not None
        samples.append(TailSample(float(own), 10.0, 20.0, percent=99.0, counted=(buckets, counts)))
    joined = together(samples)
    of_all, mean = whole.percentile(99.0), of_runs(samples)
    assert of_all is not None
    assert joined.value == of_all > 1.5 * mean.value
    assert mean.error is not None
    assert joined.error == pytest.approx(mean.error * of_all / mean.value)
    assert (joined.runs, joined.freedom) == (2, 1)
    assert together(samples[:1]) == samples[0]
    printed = [Sample(one.value, None, None) for one in samples]
    assert together(printed).value == mean.value, "a tool that printed no histogram"


@pytest.mark.parametrize(
    ("values", "metric", "unit"),
    [
        ([12_300, 12_500, 12_000], IOPS, 100),  # 12.3k, 12.5k, 12k
        ([12_345.67, 12_345.6], IOPS, 0.01),
        ([2000, 2000], IOPS, 100),  # A figure may end with zeros: of two digits at least.
        ([48.1 * 2**20, 48.3 * 2**20], BANDWIDTH, 0.1 * 2**20),
        ([412e6, 415e6], BANDWIDTH, 1e6),
    ],
)
def test_the_least_error_of_printed_figures_is_that_of_their_last_digit(
    values: list[float], metric: Metric, unit: float
) -> None:
    """It was that of a bucket of a histogram, 0.46 %, however finely they were printed."""
    assert rounding_error(values, metric) == pytest.approx(unit / 12**0.5)
    alike = together([Sample(values[0], None, None)] * 2, metric)
    assert alike.error == pytest.approx(rounding_error(values[:1], metric))


def test_the_least_error_of_printed_percentiles_is_that_of_a_bucket() -> None:
    assert rounding_error([1_234_567.0, 1_234_567.0], CLAT_P99) == pytest.approx(BUCKET_ERROR * 1_234_567)


def test_a_gate_names_a_rate_once_whatever_its_unit(tmp_path: Path) -> None:
    """IOPS and bandwidth of one block size are one fact, and were two reasons."""
    for at, factor in enumerate((1.0, 1.01, 0.99)):
        of_fio(tmp_path / "a" / f"{at}.json", factor)
        of_fio(tmp_path / "b" / f"{at}.json", factor * 0.6)
    told = loadstone.compare(tmp_path / "a", tmp_path / "b").decide()
    assert told.outcome == "regression"
    rates = [one for one in told.why if "bandwidth is" in one or "IOPS is" in one]
    assert len(rates) == 1
    assert re.search(r"(bandwidth|IOPS) is worse by (39\.\d|40) %", rates[0])
