"""Job files drawn by a seed, of options that change what a job is asked to do, and their Workloads and Plans.

In every language; blocks in fio's and vdbench's, rows in Iometer's, trees in vdbench's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import LoadstoneError
from loadstone.formats import vdbench
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.anchors import Found
from loadstone.plan.host_facts import AnchorFacts, HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from tests.audit import generated
from tests.support import simulated

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from loadstone.workload.model import Workload

KINDS: Final = ("fio", "vdbench", "trees", "iometer")
GIB: Final = 1 << 30
_DISK: Final = TargetFacts(TargetKind.BLOCK, size_bytes=100 * GIB)
_TREE: Final = AnchorFacts(Found(True, True, True, 1), free_bytes=None, free_files=None)
HOST: Final = HostFacts(
    cpus=(0, 1),
    memory_bytes=64 * GIB,
    known={f"/dev/sd{letter}": _DISK for letter in "abcd"}
    | {"/t/file": TargetFacts(TargetKind.FILE, size_bytes=GIB)},
    known_anchors={"/t/tree": _TREE, "/t/other": _TREE},
)
_RW: Final = ("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim", "trimwrite")
_SIZES: Final = (
    "bs=4k", "bs=64k", "bs=4k,64k", "bs=8k,4k,16k", "bssplit=4k/60:64k/40", "bssplit=4k/50:8k/50,64k/100",
    "bsrange=4k-64k", "bsrange=4k-10k", "bsrange=4k-64k,8k-16k", "bs=3g",
)  # fmt: skip
_OPTIONS: Final = (
    "iodepth=7", "numjobs=3", "direct=1", "ioengine=io_uring", "ioengine=mmap", "ioengine=libaio", "hipri=1",
    "percentage_random=30", "percentage_random=30,80", "norandommap=1", "random_generator=lfsr",
    "random_distribution=zipf:1.1", "random_distribution=zipf:0", "random_distribution=normal:20",
    "random_distribution=random,zipf:1.2", "blockalign=8k", "bs_unaligned=1", "rwmixread=30", "rwmixread=100",
    "fsync=1", "fsync=8", "fdatasync=1", "end_fsync=1", "fsync_on_close=1", "sync=dsync", "zero_buffers=1",
    "refill_buffers=1", "buffer_pattern=0xabcd", "buffer_compress_percentage=50", "dedupe_percentage=30",
    "buffer_compress_percentage=100", "scramble_buffers=0", "rate_iops=100", "rate_iops=100,50", "rate=1m",
    "rate=1m,,1m", "thinktime=1ms", "flow=3", "ramp_time=2", "runtime=0", "size=512m",
    "latency_target=1ms\nlatency_window=1s\nramp_time=3",
    "offset=64k", "offset_increment=1g", "loops=2", "number_ios=100", "stonewall=1", "name=twin", "rw=randrw",
    "zonesize=1m", "verify=crc32c", "verify=crc32c", "verify=md5\nverify_only=1",
    "verify=md5\ndo_verify=0",
    "group_reporting=1", "create_only=1", "filename=/t/file",
)  # fmt: skip
_OPERATIONS: Final = (
    "read", "write", "mkdir", "rmdir", "create", "delete", "open", "close", "getattr", "setattr", "access",
    "copy", "move",
)  # fmt: skip


def planned(kind: str, rng: random.Random) -> Iterator[tuple[Workload, Plan]]:
    """Yield what becomes of one drawn file, unless it is refused."""
    draw = {"fio": _fio, "vdbench": _vdbench, "trees": _trees, "iometer": _iometer}[kind]
    try:
        yield from draw(rng)
    except LoadstoneError:
        return


def _fio(rng: random.Random) -> Iterator[tuple[Workload, Plan]]:
    lines = ["[global]", f"filename=/dev/sd{rng.choice('abcd')}", "time_based", "runtime=9"]
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        lines += [f"[job{number}]", f"rw={rng.choice(_RW)}", rng.choice(_SIZES)]
        lines += rng.sample(_OPTIONS, rng.choice((1, 2, 3, 5)))
    strict = rng.random() < 0.5
    asked = ReadOptions(strict_fio_reading=strict, environment={})
    workload = read_jobfiles([TextSource("\n".join(lines), "drawn.fio", Path("/nonexistent"))], options=asked)
    options = ResolveOptions(
        base_directory="/t", per_clone_units=rng.random() < 0.5, keep_ioengine=rng.random() < 0.3
    )
    yield workload, resolve(workload, host=HOST, options=options).plan


def _on_the_device(workload: Workload) -> tuple[Workload, Plan]:
    jobs = tuple(simulated.on_the_device(job, GIB) for job in workload.jobs)
    asked = workload.model_copy(update={"jobs": jobs, "needs_targets": False})
    return asked, resolve(asked, host=HOST).plan


def _vdbench(rng: random.Random) -> Iterator[tuple[Workload, Plan]]:
    yield from (
        _on_the_device(made) for made, _ in generated.workloads("vdbench", rng.randrange(1 << 32))[:3]
    )


def _iometer(rng: random.Random) -> Iterator[tuple[Workload, Plan]]:
    yield from (
        _on_the_device(made) for made, _ in generated.workloads("iometer", rng.randrange(1 << 32))[:3]
    )


def _trees(rng: random.Random) -> Iterator[tuple[Workload, Plan]]:
    sizes = rng.choice(("64k", "(4k,50,64k,50)", "0", "(64k,0)"))
    text = f"fsd=default,depth=1,width=2,files=50,size={sizes}" + rng.choice(("", ",openflags=o_direct"))
    text += rng.choice(("", ",workingsetsize=1m", ",totalsize=1m")) + "\n"
    text += "fsd=one,anchor=/t/tree\nfsd=two,anchor=/t/other\n"
    works = rng.choice((1, 1, 2))
    for number in range(works):
        operation = rng.choice(_OPERATIONS)
        goal = ",target=two" if operation in ("copy", "move") else ""
        size = rng.choice(("4k", "(4k,30,8k,70)"))
        text += f"fwd=w{number},fsd=one{goal},operation={operation},xfersize={size}"
        text += rng.choice(("", ",fileio=random", ",fileio=sequential,fileselect=random")) + "\n"
    text += "fwd=mixed,fsd=one,rdpct=30,fileio=random,xfersize=4k\n"
    text += (
        f"rd=r,fwd={rng.choice(('w*', 'mixed'))},fwdrate={rng.choice(('max', '100'))},elapsed=4,interval=1"
    )
    text += f",threads={rng.choice((1, 3))}" + rng.choice(("", ",format=yes", ",format=restart")) + "\n"
    file = vdbench.read([vdbench.ParameterText(text.encode(), "drawn.parm")])
    for run in vdbench.expand(file):
        workload = vdbench.lower(file, run)
        yield workload, resolve(workload, host=HOST).plan
