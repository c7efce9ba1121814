"""fio's results for people: what its text tells of jobs, their depths and their disks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone.audit.foreign import fio_disks
from loadstone.audit.judge import judge_case
from tests.audit.foreign_files import FIO, MIB, cases, close

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case

TEXT = """\
j: (g=0): rw={rw}, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1
fio-3.28
Starting 1 process

j: (groupid=0, jobs=1): err= 0: pid=1: Wed Aug 12 01:04:39 2020
  {op}: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(391MiB/10000msec)
    clat (usec): min=40, max=900, avg=95.00, stdev=20.00
     lat (usec): min=40, max=901, avg=96.00, stdev=20.00
    clat percentiles (usec):
     | 50.00th=[   90], 99.00th=[  200]
  fsync/fdatasync/sync_file_range:
    sync (msec): min=1, max=9, avg= 2.00, stdev= 0.50
    sync percentiles (usec):
     | 50.00th=[ 2000], 99.00th=[ 4000]
  cpu          : usr=1.00%, sys=2.00%, ctx=1, majf=0, minf=1
     issued rwts: total={issued},{syncs} short=0,0,0,0 dropped=0,0,0,0

Disk stats (read/write):
{disks}
"""


def printed(tmp_path: Path, *disks: str, write: bool = False, rw: str = "", syncs: int = 0) -> Case:
    issued = "0,100000,0" if write else "100000,0,0"
    told = {"op": "write" if write else "read", "rw": rw or ("randwrite" if write else "randread")}
    path = tmp_path / "fio.txt"
    path.write_text(TEXT.format(disks="\n".join(disks), issued=issued, syncs=syncs, **told))
    return cases(path)[0]


def disk_line(name: str, reads: int, writes: int = 0, sectors: str = "", above: str = "") -> str:
    told = f", sectors={sectors}" if sectors else ""
    return f"  {name}: ios={reads}/{writes}{told}, merge=0/0, ticks=9/9, in_queue=9, util=99.00%{above}"


def reached(case: Case) -> float | None:
    return None if case.traffic is None else case.traffic.share("read")


def test_the_text_of_fio_tells_what_its_disks_did(tmp_path: Path) -> None:
    rules = {one.rule: one for one in judge_case(printed(tmp_path, disk_line("sda", 0))).causes}
    assert rules["page_cache_read"].effect == "not_valid"
    unseen = fio_disks.UNSEEN_S / 10
    assert close(reached(printed(tmp_path, disk_line("sda", 50_000))), 0.5 + unseen)
    # What is missing is what fio did not see any more.
    assert close(reached(printed(tmp_path, disk_line("sda", 97_600, 11))), 1.0)
    # The disk above others is the one under the file.
    above = ", aggrios=1/0, aggrmerge=0/0, aggrticks=1/0, aggrin_queue=1, aggrutil=9.00%"
    stack = printed(tmp_path, disk_line("md0", 50_000, above=above), disk_line("sda", 9), disk_line("sdb", 9))
    assert stack.traffic is not None
    assert stack.traffic.carriers == ("md0",)
    assert close(reached(stack), 0.5 + unseen)
    # With sectors nothing has to be worked out.
    sectors = printed(tmp_path, disk_line("sda", 7, sectors="200000/0"), rw="read")
    assert close(reached(sectors), 200_000 * 512 / (391 * MIB) + unseen)
    # More than was asked for may be of a ramp, of which this output says nothing.
    assert printed(tmp_path, disk_line("sda", 7, sectors="1600000/0"), rw="read").traffic is None


def test_ios_that_do_not_tell_the_bytes_tell_nothing(tmp_path: Path) -> None:
    """Reads in a row are read ahead, and cached writes go out together."""
    assert printed(tmp_path, disk_line("sda", 3000), rw="read").traffic is None
    assert printed(tmp_path, disk_line("sda", 0, 3000), write=True).traffic is None
    assert printed(tmp_path).traffic is None
    # Half as many writes as reads: somebody else's.
    assert printed(tmp_path, disk_line("sda", 90_000, 45_000)).traffic is None


def test_flushes_in_the_text_of_fio_are_flushes_and_no_percentiles_of_writes(tmp_path: Path) -> None:
    case = printed(tmp_path, write=True, syncs=50_000)
    assert case.flush is not None
    assert case.flush.iops is not None
    assert case.flush.latency is not None
    assert (case.flush.operations, case.flush.iops.value) == (50_000, 5_000.0)
    assert close(case.flush.latency.mean_ns, 2e6)
    assert case.total.latency is not None
    assert case.total.latencies["clat"].printed == {50.0: 90e3, 99.0: 200e3}
    assert printed(tmp_path, write=True).flush is None


FIO_2 = """\
old: (g=0): rw=randread, bs=8K-8K/8K-8K/8K-8K, ioengine=libaio, iodepth=4
fio-2.2.10
Starting 2 processes

old: (groupid=0, jobs=2): err= 0: pid=7: Tue Apr  4 17:21:33 2017
  read : io=80000KB, bw=8000.0KB/s, iops=1000, runt= 10000msec
    slat (usec): min=1, max=50, avg= 5.00, stdev= 1.00
    clat (msec): min=1, max=90, avg= 7.90, stdev= 2.00
     lat (msec): min=1, max=90, avg= 8.00, stdev= 2.00
    clat percentiles (msec):
     | 99.00th=[   20]
  cpu          : usr=1.00%, sys=2.00%, ctx=1, majf=0, minf=2
     issued    : total=r=10000/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
"""


def test_the_text_of_fio_2_is_read_in_units_of_1024(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text(FIO_2)
    (case,) = cases(tmp_path / "old.log")
    read = case.ops["read"]
    assert (read.operations, read.bytes) == (10000, 80000 * 1024)
    assert read.iops is not None
    assert read.iops.value == 1000
    assert read.latency is not None
    assert (read.latency.mean_ns, read.latencies["clat"].printed) == (8e6, {99.0: 20e6})
    (job,) = case.jobs
    assert (job.clones, job.iodepth, job.block_bytes) == (2, 4, {8192: 1.0})


def test_runs_that_one_file_holds_are_not_added(tmp_path: Path) -> None:
    (tmp_path / "twice.log").write_text(FIO_2 + FIO_2.replace("iops=1000", "iops=1010"))
    rates = [case.total.iops.value for case in cases(tmp_path / "twice.log") if case.total.iops is not None]
    assert rates == [1000, 1010]


def rates_of(tmp_path: Path, *parts: str) -> list[float]:
    (tmp_path / "notes.log").write_text("\n".join(parts))
    return [case.total.iops.value for case in cases(tmp_path / "notes.log") if case.total.iops is not None]


END = "Run status group 0 (all jobs):"


def test_results_that_a_process_tells_again_are_not_added(tmp_path: Path) -> None:
    """With `--status-interval` each later result holds those before it."""
    result = FIO_2[FIO_2.index("old: (groupid") :]
    later = result.replace("iops=1000", "iops=1010")
    assert rates_of(tmp_path, FIO_2, END, later, END) == [1010]


def test_parts_of_other_runs_among_notes_belong_to_no_job(tmp_path: Path) -> None:
    pasted = "  read : io=9MB, bw=900KB/s, iops=77, runt= 10000msec"
    assert rates_of(tmp_path, FIO_2, pasted) == [1000]
    assert rates_of(tmp_path, FIO_2, END, pasted) == [1000]
    other = FIO_2[FIO_2.index("old: (groupid") :].replace("pid=7", "pid=8").replace("iops=1000", "iops=9")
    (tmp_path / "two.log").write_text("\n".join([FIO_2, END, other]))
    with_head, without = cases(tmp_path / "two.log")
    assert (with_head.jobs[0].iodepth, without.jobs[0].iodepth) == (4, None)


def depths(tmp_path: Path, table: str, *disks: str) -> Case:
    text = TEXT.format(disks="\n".join(disks), issued="100000,0,0", syncs=0, op="read", rw="randread")
    text = text.replace("ioengine=psync, iodepth=1", "ioengine=libaio, iodepth=8")
    path = tmp_path / "fio.txt"
    path.write_text(text.replace("  cpu   ", f"  IO depths    : {table}\n  cpu   "))
    return cases(path)[0]


@pytest.mark.parametrize(("table", "is_found"), [({"1": 100.0}, True), ({"4": 0.3, "8": 99.7}, False)])
@pytest.mark.parametrize("rate", [{}, {"rate_iops": "100"}])
def test_the_table_of_depths_tells_that_a_depth_was_not_kept(
    tmp_path: Path, table: dict[str, float], rate: dict[str, str], is_found: bool
) -> None:
    document = json.loads((FIO / "shared.json").read_text())
    for job in document["jobs"]:
        job["iodepth_level"] = table
        job["job options"] |= {"ioengine": "libaio", "iodepth": "8", "direct": "1"} | rate
    path = tmp_path / "fio.json"
    path.write_text(json.dumps(document))
    rules = {one.rule for one in judge_case(cases(path)[0]).causes}
    assert ("depth_not_reached" in rules) == (is_found and not rate)


def test_no_depth_is_missed_where_a_text_may_hide_a_rate(tmp_path: Path) -> None:
    """Round trip of a vdbench list, seed 1: a paced load was told that it kept 5.92 of 16 I/Os."""
    found = judge_case(depths(tmp_path, "1=100.0%, 2=0.0%, >=64=0.0%"))
    assert "depth_not_reached" not in {one.rule for one in found.causes}


@pytest.mark.parametrize(
    ("mean_us", "op", "is_found"), [(800, "read", True), (500, "read", False), (800, "write", False)]
)
def test_no_wait_above_a_device_is_told_of_a_text_that_may_hide_a_rate_or_flushes(
    tmp_path: Path, mean_us: int, op: str, is_found: bool
) -> None:
    """Round trip on real files, seed 5404: paced and durable writes were 'held above the device'."""
    reads, writes = (100_000, 0) if op == "read" else (0, 100_000)
    line = disk_line("sda", reads, writes, sectors=f"{8 * reads}/{8 * writes}")
    text = TEXT.format(
        disks=line.replace("ticks=9/9", "ticks=500/500"),
        issued=f"{reads},{writes},0",
        syncs=0,
        op=op,
        rw=f"rand{op}",
    ).replace("ioengine=psync, iodepth=1", "ioengine=libaio, iodepth=8")
    text = text.replace("max=901, avg=96.00", f"max=901, avg={mean_us}.00")
    path = tmp_path / "fio.txt"
    path.write_text(text.replace("  cpu   ", "  IO depths    : 8=100.0%\n  cpu   "))
    found = judge_case(cases(path)[0])
    assert ("depth_not_reached" in {one.rule for one in found.causes}) == is_found


def test_shares_of_more_than_all_are_named(tmp_path: Path) -> None:
    for table, is_found in (("8=108.2%", True), ("1=0.1%, 2=0.1%, 8=100.0%", False)):
        rules = {one.rule: one.text for one in judge_case(depths(tmp_path, table)).causes}
        assert ("108 %" in rules["littles_law"] if "littles_law" in rules else False) == is_found, table


def test_disks_tell_how_many_ios_they_had(tmp_path: Path) -> None:
    traffic = printed(tmp_path, disk_line("sda", 97_000).replace("ticks=9/9", "ticks=5000/0")).traffic
    assert traffic is not None
    assert traffic.inflight is not None
    assert abs(traffic.inflight - 0.5) < 0.5 * fio_disks.UNSEEN_S


BY_PRIORITY = """\
    clat prio 2/0 (30.00% of IOs) percentiles (msec):
     | 50.00th=[    7], 99.00th=[    9]
"""


def test_percentiles_of_one_priority_are_not_those_of_all(tmp_path: Path) -> None:
    """The last table of a direction stood for all of its I/Os."""
    bare = TEXT.format(op="read", rw="randread", issued="100000,0,0", syncs=0, disks="")
    (tmp_path / "fio.txt").write_text(bare.replace("  fsync/", BY_PRIORITY + "  fsync/"))
    (case,) = cases(tmp_path / "fio.txt")
    assert case.total.latencies["clat"].printed == {50.0: 90e3, 99.0: 200e3}


def test_percentiles_stand_with_the_latency_they_are_of(tmp_path: Path) -> None:
    """fio prints those of clat, those of lat, or both; those of the whole latency go first."""
    case = printed(tmp_path)
    assert case.total.kind == "lat"
    assert case.total.latencies["lat"].printed == {}
    assert case.total.printed == ("clat", case.total.latencies["clat"])
    bare = TEXT.format(op="read", rw="randread", issued="100000,0,0", syncs=0, disks="")
    both = "    lat percentiles (usec):\n     | 50.00th=[   91], 99.00th=[  201]\n"
    (tmp_path / "both.txt").write_text(bare.replace("  fsync/", both + "  fsync/"))
    (case,) = cases(tmp_path / "both.txt")
    assert case.total.printed == ("lat", case.total.latencies["lat"])
    assert case.total.latencies["lat"].printed == {50.0: 91e3, 99.0: 201e3}
    assert case.total.latencies["clat"].printed == {50.0: 90e3, 99.0: 200e3}


def test_a_mean_of_several_jobs_is_of_one_kind_of_latency(tmp_path: Path) -> None:
    """Of a job with disable_lat beside one without it clat was added to lat, and called unknown."""
    bare = TEXT.format(op="read", rw="randread", issued="100000,0,0", syncs=0, disks="")
    head, whole, rest = bare.partition("j: (groupid=0")
    other = (whole + rest).replace("avg=95.00", "avg=105.00").replace("j: (", "k: (")
    other = "".join(line for line in other.splitlines(keepends=True) if " lat (usec)" not in line)
    (tmp_path / "two.txt").write_text(head + whole + rest.partition("\nDisk stats")[0] + other)
    (case,) = cases(tmp_path / "two.txt")
    assert case.by_job["j"]["read"].kind == "lat"
    assert case.by_job["k"]["read"].kind == "clat"
    assert (case.total.kind, list(case.total.latencies)) == ("clat", ["clat"])
    assert case.total.latency is not None
    assert close(case.total.latency.mean_ns, 100e3)
