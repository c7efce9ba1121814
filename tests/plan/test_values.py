"""Job files of every construct, and what their Plans hold, value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from tests.plan.conftest import Planner

K, M, G = 1 << 10, 1 << 20, 1 << 30
MS, S = 10**6, 10**9


def plain(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(plain(part) for part in found)
    return found.model_dump() if hasattr(found, "model_dump") else found


def value(plan: Plan, path: str) -> Any:
    """Follow a dotted path with indexes; the shorthand `s` is the first stream, `t` the first target."""
    root, _, rest = path.partition(".")
    found: Any = {"s": plan.streams[0], "t": plan.targets[0], "w": plan.workers[0]}.get(root)
    if found is None:
        found, rest = plan, path
    for part in filter(None, rest.split(".")):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return plain(found)


FIXED_4K = {"type": "fixed", "bytes": 4096}
ONCE = {"type": "uniform", "repeat": False}
RING = {
    "type": "io_uring",
    "registered_files": True,
    "fixed_buffers": True,
    "iopoll": False,
    "sqpoll": False,
}

CASES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "defaults",
        "[a]\nfilename=/t/1g\n",
        {
            "s.pattern.read_percent": 100,
            "s.pattern.read.sizes": FIXED_4K,
            "s.pattern.read.random_percent": 0,
            "s.iodepth": 1,
            "s.limits.bytes": G,
            "s.files.0.length_bytes": G,
            "w.backend": {"type": "psync"},
            "t.read_only": True,
            "t.direct": False,
            "t.layout": None,
            "t.invalidate": True,
            "t.advice": "sequential",
            "s.payload.stamp": True,
            "s.limits.runtime_ns": 0,
            "s.batch": None,
            "s.log_ios": False,
        },
    ),
    (
        "random read",
        "[a]\nfilename=/t/1g\nrw=randread\n",
        {"s.pattern.read.random_percent": 100, "s.pattern.read.random": ONCE, "t.advice": "random"},
    ),
    (
        "readwrite is rw",
        "[a]\nfilename=/t/1g\nrw=readwrite\n",
        {"s.pattern.read_percent": 50, "s.pattern.write_percent": 50, "t.read_only": False},
    ),
    (
        "read mix",
        "[a]\nfilename=/t/1g\nrw=randrw\nrwmixread=70\n",
        {"s.pattern.read_percent": 70, "s.pattern.write_percent": 30},
    ),
    (
        "write mix",
        "[a]\nfilename=/t/1g\nrw=rw\nrwmixwrite=20\n",
        {"s.pattern.read_percent": 80, "s.pattern.write_percent": 20},
    ),
    (
        "trim",
        "[a]\nfilename=/dev/sda\nrw=randtrim\nsize=1g\n",
        {"s.pattern.trim_percent": 100, "t.read_only": False, "t.exclusive": True, "s.limits.bytes": G},
    ),
    (
        "trim then write",
        "[a]\nfilename=/dev/sda\nrw=trimwrite\nsize=1m\nnumber_ios=8\n",
        {
            "s.pattern.trim_then_write": True,
            "s.pattern.trim_percent": 100,
            "s.limits.bytes": 2 * M,
            "s.limits.ops": 16,
        },
    ),
    (
        "no random map",
        "[a]\nfilename=/t/1g\nrw=randread\nnorandommap\n",
        {"s.pattern.read.random": {"type": "uniform", "repeat": True}},
    ),
    (
        "holes",
        "[a]\nfilename=/t/1g\nrw=read:8k\n",
        {"s.pattern.read.stride_bytes": 8 * K, "s.pattern.read.run_length": 1},
    ),
    ("backwards", "[a]\nfilename=/t/1g\nrw=read:-8k\n", {"s.pattern.read.stride_bytes": -8 * K}),
    (
        "runs",
        "[a]\nfilename=/t/1g\nrw=randread:8\n",
        {
            "s.pattern.read.run_length": 8,
            "s.pattern.read.stride_bytes": 0,
            "s.pattern.read.run_identical": False,
        },
    ),
    (
        "identical",
        "[a]\nfilename=/t/1g\nrw=randread:4\nrw_sequencer=identical\n",
        {"s.pattern.read.run_length": 4, "s.pattern.read.run_identical": True},
    ),
    (
        "triplet",
        "[a]\nfilename=/t/1g\nrw=randrw\nbs=4k,16k\n",
        {
            "s.pattern.read.sizes.bytes": 4 * K,
            "s.pattern.write.sizes.bytes": 16 * K,
            "s.pattern.trim.sizes.bytes": 16 * K,
        },
    ),
    (
        "range",
        "[a]\nfilename=/t/1g\nbsrange=4k-32k\n",
        {
            "s.pattern.read.sizes": {
                "type": "range",
                "min_bytes": 4 * K,
                "max_bytes": 32 * K,
                "step_bytes": 4 * K,
            }
        },
    ),
    (
        "uneven range",
        "[a]\nfilename=/t/1g\nbsrange=4k-10k\n",
        {
            "s.pattern.read.sizes.table": (
                {"bytes": 4 * K, "weight": 4.0 * K},
                {"bytes": 8 * K, "weight": 4.0 * K},
                {"bytes": 10 * K, "weight": 2.0 * K},
            )
        },
    ),
    (
        "unaligned range",
        "[a]\nfilename=/t/1g\nbsrange=4k-9k\nbs_unaligned\n",
        {"s.pattern.read.sizes": {"type": "range", "min_bytes": 4 * K, "max_bytes": 9 * K, "step_bytes": 1}},
    ),
    (
        "split",
        "[a]\nfilename=/t/1g\nbssplit=4k/60:64k/,8k/50:16k/50\nrw=rw\n",
        {
            "s.pattern.read.sizes.table": (
                {"bytes": 4 * K, "weight": 60.0},
                {"bytes": 64 * K, "weight": 40.0},
            ),
            "s.pattern.write.sizes.table": (
                {"bytes": 8 * K, "weight": 50.0},
                {"bytes": 16 * K, "weight": 50.0},
            ),
        },
    ),
    (
        "split below 100",
        "[a]\nfilename=/t/1g\nbssplit=4k/20:8k/30\n",
        {"s.pattern.read.sizes.table": ({"bytes": 4 * K, "weight": 20.0}, {"bytes": 8 * K, "weight": 80.0})},
    ),
    (
        "sequential and random sizes",
        "[a]\nfilename=/t/1g\nrw=randread\nbs=4k,64k\nbs_is_seq_rand=1\n",
        {"s.pattern.read.sizes.bytes": 64 * K},
    ),
    (
        "alignment",
        "[a]\nfilename=/t/1g\nrw=randread\nba=16k\n",
        {"s.pattern.read.align_bytes": 16 * K, "s.pattern.read.random": {"type": "uniform", "repeat": True}},
    ),
    (
        "percentage random",
        "[a]\nfilename=/t/1g\nrw=randrw\npercentage_random=50,20\n",
        {"s.pattern.read.random_percent": 50, "s.pattern.write.random_percent": 20},
    ),
    (
        "zipf",
        "[a]\nfilename=/t/1g\nrw=randread\nrandom_distribution=zipf:1.2:0.5\n",
        {"s.pattern.read.random": {"type": "zipf", "theta": 1.2, "center": 0.5}},
    ),
    (
        "pareto",
        "[a]\nfilename=/t/1g\nrw=randread\nrandom_distribution=pareto\n",
        {"s.pattern.read.random": {"type": "pareto", "h": 0.2, "center": None}},
    ),
    (
        "normal",
        "[a]\nfilename=/t/1g\nrw=randread\nrandom_distribution=normal:20\n",
        {"s.pattern.read.random": {"type": "normal", "deviation_percent": 20.0, "center": None}},
    ),
    (
        "zones",
        "[a]\nfilename=/t/1g\nrw=randread\nsize=1000k\nrandom_distribution=zoned:60/10:30/20:10/\n",
        {
            "s.pattern.read.random.zones": (
                {"access_percent": 60.0, "length_bytes": 100 * K},
                {"access_percent": 30.0, "length_bytes": 200 * K},
                {"access_percent": 10.0, "length_bytes": 700 * K},
            )
        },
    ),
    (
        "zones in bytes",
        "[a]\nfilename=/t/1g\nrw=randread\nrandom_distribution=zoned_abs:60/1m:40/2m\n",
        {
            "s.pattern.read.random.zones": (
                {"access_percent": 60.0, "length_bytes": M},
                {"access_percent": 40.0, "length_bytes": 2 * M},
            )
        },
    ),
    (
        "new file to read",
        "[a]\nfilename=new\nsize=8m\n",
        {
            "t.path": "/t/new",
            "t.create": True,
            "t.size_bytes": 8 * M,
            "t.layout.size_bytes": 8 * M,
            "t.layout.write": True,
            "t.layout.fallocate": "native",
            "t.read_only": True,
        },
    ),
    (
        "new file to write",
        "[a]\nfilename=new\nrw=write\nsize=8m\nfallocate=none\n",
        {"t.create": True, "t.layout.write": False, "t.layout.fallocate": "none", "t.read_only": False},
    ),
    ("overwrite", "[a]\nfilename=new\nrw=write\nsize=8m\noverwrite=1\n", {"t.layout.write": True}),
    (
        "file to make longer",
        "[a]\nfilename=small\nsize=8m\n",
        {"t.create": False, "t.layout.size_bytes": 8 * M, "t.layout.write": True},
    ),
    (
        "own files",
        "[a]\nsize=8m\nnrfiles=2\nrw=write\n",
        {
            "t.path": "/t/a.0.0",
            "targets.1.path": "/t/a.0.1",
            "s.files.1.length_bytes": 4 * M,
            "s.limits.bytes": 8 * M,
        },
    ),
    (
        "parts that are no whole blocks",
        "[a]\nsize=12k\nnrfiles=2\nrw=write\n",
        {"s.files.0.length_bytes": 6 * K, "s.files.1.length_bytes": 6 * K},
    ),
    (
        "file list",
        "[a]\nfilename=a:b\nsize=2m\n",
        {"targets.1.path": "/t/b", "s.files.0.length_bytes": M, "s.limits.bytes": 2 * M},
    ),
    (
        "name format",
        "[a]\nfilename_format=$filenum/../$jobname-$jobnum.$filenum\nsize=1m\ndirectory=.\n".replace(
            "$filenum/../$jobname-$jobnum.$filenum", "$jobname.$jobnum.$filenum"
        ),
        {"t.path": "/t/a.0.0"},
    ),
    (
        "random files",
        "[a]\nnrfiles=4\nsize=4m\nfile_service_type=random:8\n",
        {"s.file_choice": {"type": "random", "every": 8}},
    ),
    (
        "sequential files",
        "[a]\nnrfiles=4\nsize=4m\nfile_service_type=sequential\n",
        {"s.file_choice": {"type": "sequential"}},
    ),
    (
        "some files at a time",
        "[a]\nnrfiles=4\nsize=4m\nopenfiles=2\nfile_service_type=random\n",
        {"s.file_choice": {"type": "random", "every": 1}, "s.open_files": 2},
    ),
    (
        "as many files at a time as there are",
        "[a]\nnrfiles=4\nsize=4m\nopenfiles=9\n",
        {"s.open_files": None},
    ),
    (
        "one file after the other needs no limit",
        "[a]\nnrfiles=4\nsize=4m\nopenfiles=2\nfile_service_type=sequential\n",
        {"s.file_choice": {"type": "sequential"}, "s.open_files": None},
    ),
    (
        "percent of a device",
        "[a]\nfilename=/dev/sda\nsize=80%\n",
        {
            "s.files.0.length_bytes": 80 * G,
            "s.limits.bytes": 80 * G,
            "t.kind": "block",
            "t.size_bytes": 100 * G,
            "t.identity": {"device": 5, "inode": 77, "special": 2048, "born_ns": None},
            "t.exclusive": False,
        },
    ),
    (
        "larger than a device",
        "[a]\nfilename=/dev/sda\nsize=200g\n",
        {"s.files.0.length_bytes": 100 * G, "s.limits.bytes": 100 * G},
    ),
    (
        "offset",
        "[a]\nfilename=/t/1g\noffset=256m\n",
        {"s.files.0.offset_bytes": 256 * M, "s.files.0.length_bytes": 768 * M},
    ),
    (
        "offset and filesize",
        "[a]\nfilename=new\noffset=1m\nsize=1m\nfilesize=4m\n",
        {
            "s.files.0.offset_bytes": M,
            "s.files.0.length_bytes": 3 * M,
            "s.limits.bytes": M,
            "t.layout.size_bytes": 4 * M,
        },
    ),
    (
        "offset in percent",
        "[a]\nfilename=/t/1g\noffset=25%\nsize=25%\n",
        {"s.files.0.offset_bytes": 256 * M, "s.files.0.length_bytes": 256 * M},
    ),
    (
        "offset aligned",
        "[a]\nfilename=/t/1g\noffset=10%\noffset_align=1m\n",
        {"s.files.0.offset_bytes": 103 * M},
    ),
    (
        "increments",
        "[a]\nfilename=/t/1g\nsize=1m\noffset=1m\noffset_increment=2m\nnumjobs=3\n",
        {
            "streams.0.files.0.offset_bytes": M,
            "streams.1.files.0.offset_bytes": 3 * M,
            "streams.2.files.0.offset_bytes": 5 * M,
        },
    ),
    (
        "smaller io_size",
        "[a]\nfilename=/t/1g\nsize=8m\nio_size=1m\n",
        {"s.limits.bytes": M, "s.files.0.length_bytes": 8 * M},
    ),
    ("larger io_size", "[a]\nfilename=/t/1g\nsize=8m\nio_size=80m\n", {"s.limits.bytes": 80 * M}),
    ("io_size in percent", "[a]\nfilename=/t/1g\nsize=8m\nio_size=50%\n", {"s.limits.bytes": 4 * M}),
    # fio 3.33 does as many: passes end at the end of the file, or of the map.
    (
        "io_size in whole passes",
        "[a]\nfilename=/t/1g\nsize=1m\nio_size=4m\nloops=2\n",
        {"s.limits.bytes": 4 * M},
    ),
    # 990300-013: 38 blocks in the first pass, 37 in the second.
    (
        "passes that end within a block",
        "[a]\nfilename=/t/1g\nrw=write\nbs=8k\nsize=1m\nio_size=300k\nloops=2\n",
        {"s.limits.bytes": 75 * 8192},
    ),
    # 992300-000: random directions of which no block is at a random place are a walk, each to its end.
    (
        "passes of a random job that only walks",
        "[a]\nfilename=/t/1g\nrw=randrw\npercentage_random=0\nsize=777k\nloops=2\n",
        {"s.limits.bytes": 389 * 4096},
    ),
    (
        "a pass of a random job that only walks",
        "[a]\nfilename=/t/1g\nrw=randrw\npercentage_random=0\nsize=777k\n",
        {"s.limits.bytes": 195 * 4096},
    ),
    # 990300-020: an address comes six times before the next.
    (
        "passes at identical addresses",
        "[a]\nfilename=/t/1g\nrw=randrw:6\nrw_sequencer=identical\nsize=512k\nio_size=3m\nloops=3\n",
        {"s.limits.bytes": 9 * M},
    ),
    # 882200-030: fio ends a pass at the first run that comes to the quarter of a block at the end.
    (
        "runs go on past the part of a block at the end",
        "[a]\nfilename=/t/1g\nrw=randwrite:8\nsize=777k\nloops=2\n",
        {"s.limits.bytes": 2 * 777 * 1024},
    ),
    # 990300-077: in a file that is longer fio goes on past `size` for the last block.
    (
        "no block goes past the size",
        "[a]\nfilename=/t/1g\nrw=write\nbs=64k\nsize=777k\n",
        {"s.limits.bytes": 12 * 65536},
    ),
    (
        "more passes than io_size needs",
        "[a]\nfilename=/t/1g\nrw=randrw\nsize=1m\nio_size=4m\nloops=6\n",
        {"s.limits.bytes": 6 * M},
    ),
    (
        "io_size ends within a pass",
        "[a]\nfilename=/t/1g\nrw=randread\nsize=1m\nio_size=1500k\nloops=2\n",
        {"s.limits.bytes": 2 * M},
    ),
    (
        "passes without a map",
        "[a]\nfilename=/t/1g\nrw=randread\nsize=1m\nio_size=4m\nloops=2\nnorandommap\n",
        {"s.limits.bytes": 8 * M},
    ),
    (
        "loops",
        "[a]\nfilename=/t/1g\nsize=8m\nloops=3\nnumber_ios=10\n",
        {"s.limits.bytes": 24 * M, "s.limits.ops": 30},
    ),
    (
        "time based",
        "[a]\nfilename=/t/1g\nruntime=30\ntime_based\nramp_time=2s\nstartdelay=500ms\n",
        {
            "s.limits": {
                "start_delay_ns": 500 * MS,
                "ramp_ns": 2 * S,
                "runtime_ns": 30 * S,
                "time_based": True,
                "bytes": 0,
                "ops": 0,
                "ends_stage": False,
                "ends_stage_on_error": False,
                "max_latency_ns": (0, 0, 0),
                "prepare_only": False,
            }
        },
    ),
    (
        "runtime and size",
        "[a]\nfilename=/t/1g\nsize=1m\nruntime=1m\n",
        {"s.limits.runtime_ns": 60 * S, "s.limits.time_based": False, "s.limits.bytes": M},
    ),
    (
        "fills a device",
        "[a]\nfilename=/dev/sda\nrw=write\nfill_device=1\n",
        {"s.files.0.length_bytes": 100 * G, "s.limits.bytes": 100 * G},
    ),
    (
        "io_uring",
        "[a]\nfilename=/t/1g\nioengine=io_uring\niodepth=32\n",
        {"w.backend": RING, "s.iodepth": 32},
    ),
    (
        "direct io_uring",
        "[a]\nfilename=/dev/sda\nioengine=io_uring\niodepth=32\ndirect=1\n",
        {"w.backend.fixed_buffers": True, "t.direct": True, "t.advice": None},
    ),
    (
        "polled",
        "[a]\nfilename=/dev/sda\nioengine=io_uring\ndirect=1\nhipri\nsqthread_poll=1\nfixedbufs=0\n",
        {"w.backend.iopoll": True, "w.backend.sqpoll": True, "w.backend.fixed_buffers": False},
    ),
    ("libaio on io_uring", "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=16\n", {"w.backend": RING}),
    (
        "psync ignores depth",
        "[a]\nfilename=/t/1g\nioengine=psync\niodepth=16\n",
        {"w.backend": {"type": "psync"}, "s.iodepth": 1},
    ),
    (
        "mmap",
        "[a]\nfilename=new\nioengine=mmap\nrw=write\nsize=1m\n",
        {"w.backend": {"type": "mmap"}, "t.layout.write": True},
    ),
    (
        "null",
        "[a]\nioengine=null\nsize=1g\niodepth=4\n",
        {
            "w.backend": {"type": "null"},
            "t.kind": "virtual",
            "s.iodepth": 4,
            "t.invalidate": False,
            "t.create": False,
        },
    ),
    (
        "memory",
        "[a]\nfilename=/dev/zram0\nioengine=libaio\niodepth=64\ndirect=1\n",
        {"w.backend": {"type": "psync"}, "s.iodepth": 1},
    ),
    (
        "batches",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\niodepth_batch=8\niodepth_batch_complete_min=4\n"
        "iodepth_batch_complete_max=16\niodepth_low=16\n",
        {"s.batch": {"submit": 8, "complete_min": 4, "complete_max": 16, "low": 16}},
    ),
    (
        "one batch size",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\niodepth_batch=64\n",
        {"s.batch": {"submit": 32, "complete_min": 1, "complete_max": 1, "low": 32}},
    ),
    (
        "neighbours are not merged",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\nrw=read\ndirect=1\n",
        {"s.batch": {"submit": 2, "complete_min": 1, "complete_max": 32, "low": 32}},
    ),
    (
        "some neighbours are not merged",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\nrw=randread\npercentage_random=90\ndirect=1\n",
        {"s.batch": {"submit": 2, "complete_min": 1, "complete_max": 32, "low": 32}},
    ),
    (
        "random I/Os have no neighbours",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\nrw=randread\ndirect=1\n",
        {"s.batch": None},
    ),
    (
        "the page cache has no neighbours",
        "[a]\nfilename=/t/1g\nioengine=libaio\niodepth=32\nrw=read\n",
        {"s.batch": None},
    ),
    (
        "rates",
        "[a]\nfilename=/t/1g\nrw=randrw\nrate_iops=500,200\nrate_process=poisson\n",
        {
            "s.pace.read": {
                "amount": {"unit": "ops", "per_second": 500.0},
                "process": "poisson",
                "profile": (),
                "phase": 0.0,
                "minimum": 0.0,
                "min_window_ns": S,
            },
            "s.pace.write.amount.per_second": 200.0,
            "s.pace.trim": None,
        },
    ),
    (
        "bandwidth",
        "[a]\nfilename=/t/1g\nrw=write\nrate=2m\nrate_min=1m\nrate_cycle=500\n",
        {
            "s.pace.read": None,
            "s.pace.write": {
                "amount": {"unit": "bytes", "per_second": 2.0 * M},
                "process": "linear",
                "profile": (),
                "phase": 0.0,
                "minimum": 1.0 * M,
                "min_window_ns": 500 * MS,
            },
        },
    ),
    (
        "think time",
        "[a]\nfilename=/t/1g\nthinktime=2000\nthinktime_spin=500us\nthinktime_blocks=4\n"
        "thinktime_blocks_type=issue\n",
        {
            "s.pace.think": {
                "pause_ns": 2 * MS,
                "spin_ns": 500_000,
                "every_ios": 4,
                "count_issued": True,
                "every_ns": 0,
            }
        },
    ),
    (
        "bursts",
        "[a]\nfilename=/t/1g\nthinktime=1s\nthinktime_iotime=9\n",
        {
            "s.pace.think": {
                "pause_ns": 1000 * MS,
                "spin_ns": 0,
                "every_ios": 1,
                "count_issued": False,
                "every_ns": 9000 * MS,
            }
        },
    ),
    (
        "flushes",
        "[a]\nfilename=/t/1g\nrw=write\nfsync=8\nfdatasync=2\nend_fsync=1\nfsync_on_close=1\nsync=dsync\n",
        {
            "s.flush": {"fsync_every": 8, "fdatasync_every": 2, "at_end": True, "on_close": True},
            "t.sync": "dsync",
        },
    ),
    (
        "no flushes of reads",
        "[a]\nfilename=/t/1g\nfsync=8\nend_fsync=1\n",
        {"s.flush.fsync_every": 0, "s.flush.at_end": False},
    ),
    (
        "zeros",
        "[a]\nfilename=/t/1g\nrw=write\nzero_buffers\n",
        {"s.payload.fill": {"type": "zero"}, "s.payload.stamp": False},
    ),
    (
        "pattern",
        '[a]\nfilename=/t/1g\nrw=write\nbuffer_pattern=0xdeadbeef"ab"1\n',
        {"s.payload.fill.bytes": (0xDE, 0xAD, 0xBE, 0xEF, 0x61, 0x62, 1), "s.payload.stamp": False},
    ),
    (
        "refilled",
        "[a]\nfilename=/t/1g\nrw=write\nrefill_buffers\n",
        {"s.payload.refill": True, "s.payload.stamp": False},
    ),
    (
        "not stamped",
        "[a]\nfilename=/t/1g\nrw=write\nscramble_buffers=0\n",
        {"s.payload.refill": False, "s.payload.stamp": False},
    ),
    (
        "compressible",
        "[a]\nfilename=/t/1g\nrw=write\nbuffer_compress_percentage=50\n",
        {"s.payload.compress_percent": 50, "s.payload.compress_chunk_bytes": 512, "s.payload.refill": True},
    ),
    (
        "wholly compressible",
        "[a]\nfilename=/t/1g\nrw=write\nbuffer_compress_percentage=100\n",
        {"s.payload.fill": {"type": "zero"}},
    ),
    (
        "repeated",
        "[a]\nfilename=/t/1g\nrw=write\ndedupe_percentage=30\n",
        {"s.payload.dedupe_percent": 30, "s.payload.refill": True},
    ),
    ("CPUs", "[a]\nfilename=/t/1g\ncpus_allowed=1-2\nnice=5\n", {"w.cpus": (1, 2), "w.nice": 5}),
    ("CPU mask", "[a]\nfilename=/t/1g\ncpumask=5\n", {"w.cpus": (0, 2)}),
    (
        "errors",
        "[a]\nfilename=/t/1g\ncontinue_on_error=read\nignore_error=EIO:5,ENOSPC\n",
        {
            "s.errors": {
                "continue_read": True,
                "continue_write": False,
                "ignore_read": (5, 5),
                "ignore_write": (28,),
                "continue_after": (5, 84),
            }
        },
    ),
    (
        "unlinked and not dropped",
        "[a]\nfilename=new\nsize=1m\nunlink=1\ninvalidate=0\nfadvise_hint=0\n",
        {"t.unlink": True, "t.invalidate": False, "t.advice": None},
    ),
    ("log of every I/O", "[a]\nfilename=/t/1g\nwrite_lat_log=x\n", {"s.log_ios": True}),
    (
        "averaged log",
        "[a]\nfilename=/t/1g\nwrite_lat_log=x\nlog_avg_msec=30000\nruntime=60\n",
        {"s.log_ios": False, "interval_ns": S},
    ),
    (
        "log finer than the interval",
        "[a]\nfilename=/t/1g\nwrite_bw_log=x\nlog_avg_msec=700\n",
        {"interval_ns": 700 * MS},
    ),
    (
        "log not in seconds",
        "[a]\nfilename=/t/1g\nwrite_bw_log=x\nlog_avg_msec=1500\n",
        {"interval_ns": 750 * MS},
    ),
    ("short run", "[a]\nfilename=/t/1g\nruntime=3\n", {"interval_ns": 100 * MS}),
    ("longer run", "[a]\nfilename=/t/1g\nruntime=20\n", {"interval_ns": 250 * MS}),
    (
        "character device",
        "[a]\nfilename=/dev/null\nrw=write\nsize=4g\nioengine=io_uring\n",
        {"t.kind": "char", "t.create": False, "t.layout": None, "w.backend.type": "io_uring"},
    ),
    ("a device as the name", "[/dev/sda]\nrw=read\n", {"t.path": "/dev/sda", "s.limits.bytes": 100 * G}),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_plan_values(plan: Planner, text: str, expected: dict[str, Any]) -> None:
    found = plan(text).plan
    assert {path: value(found, path) for path in expected} == expected
    assert Plan.model_validate_json(found.model_dump_json()) == found
