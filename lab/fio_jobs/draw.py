"""Job files of fio drawn by seed: several kinds of option in each, on little files.

Knows fio's options and no program. What two options make of each other is the point: a file takes three to
seven kinds, in one to three sections.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_RW: Final = ("read", "write", "randread", "randwrite", "rw", "randrw", "randread", "randwrite", "write")


def _one(*lines: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(lines)


_KINDS: Final[dict[str, Callable[[random.Random], str]]] = {
    "block": _one(
        "bs=4k",
        "bs=512",
        "bs=64k,4k",
        "bs=,8k",
        "bs=4k,8k,16k",
        "bs=3k",
        "bs=4096B",
        "bs=0x1000",
        "bs=8KiB",
        "blocksize=16k",
        "bs=128k",
        "bs=1m",
    ),
    "block range": _one(
        "bsrange=1k-16k",
        "bsrange=4k-64k,8k-32k",
        "bsrange=512-8k\nbs_unaligned=1",
        "bsrange=4k-12k",
        "bsrange=2k-32k\nblockalign=4k",
    ),
    "split": _one(
        "bssplit=4k/50:64k/50",
        "bssplit=4k/10:64k/50:32k/40",
        "bssplit=4k/60:8k",
        "bssplit=512/20:4k/30:16k/50,64k/100",
        "bssplit=4k/:8k/:16k/",
        "bssplit=4k/50:1k/:32k/",
    ),
    "mix": _one(
        "rwmixread=70", "rwmixwrite=10", "rwmixread=0", "rwmixread=100", "rwmixread=33\nrwmixwrite=50"
    ),
    "distribution": _one(
        "random_distribution=zipf:1.2",
        "random_distribution=zipf",
        "random_distribution=pareto:0.2",
        "random_distribution=normal:15",
        "random_distribution=random",
        "random_distribution=zoned:60/10:30/20:8/30:2/40",
        "random_distribution=zoned:50/5:50/95,20/50:80/50",
        "random_distribution=zoned_abs:60/64k:30/64k:10/64k",
        "random_distribution=zipf:0.8:0.3",
    ),
    "map": _one(
        "norandommap",
        "random_generator=lfsr",
        "random_generator=tausworthe64",
        "randrepeat=0",
        "randseed=42",
        "softrandommap=1",
        "allrandrepeat=1",
        "norandommap=0",
    ),
    "percentage": _one(
        "percentage_random=50", "percentage_random=20,80", "percentage_random=100", "percentage_random=0"
    ),
    "zones": _one(
        "zonemode=strided\nzonesize=64k\nzonerange=256k\nzoneskip=64k",
        "zonemode=strided\nzonesize=128k\nzoneskip=128k",
        "zonesize=256k\nzoneskip=256k",
        "zonemode=strided\nzonesize=64k\nzonerange=128k\nzoneskip=0",
        "zonemode=strided\nzonesize=32k\nzonerange=512k",
    ),
    "offset": _one(
        "offset=64k",
        "filename=target\noffset=25%",
        "offset=100k\noffset_align=4k",
        "offset=1m\nio_size=512k",
        "offset_increment=256k",
        "offset=128k\noffset_increment=128k",
        "filename=target\noffset=50%",
        "filename=target\noffset=33%",
    ),
    "amount": _one(
        "io_size=512k",
        "io_size=3m",
        "io_limit=700k",
        "io_size=50%",
        "number_ios=77",
        "number_ios=2000\nio_size=4m",
        "io_size=1000000",
    ),
    "files": _one(
        "nrfiles=4",
        "nrfiles=7\nfile_service_type=random",
        "nrfiles=5\nfile_service_type=roundrobin:3",
        "nrfiles=3\nfile_service_type=sequential",
        "nrfiles=8\nopenfiles=2",
        "nrfiles=4\nfilesize=64k",
        "nrfiles=4\nfilesize=32k-128k",
        "filesize=300k",
        "nrfiles=3\nfilesize=1m\nfile_service_type=random:4",
        "filename_format=f.$jobnum.$filenum\nnrfiles=2",
    ),
    "think": _one(
        "thinktime=50",
        "thinktime=200\nthinktime_blocks=16",
        "thinktime=100us\nthinktime_spin=20",
        "thinktime=1ms\nthinktime_blocks=64\nthinktime_blocks_type=issue",
    ),
    "rate": _one(
        "rate=4m",
        "rate_iops=500",
        "rate=8m,2m",
        "rate_iops=1000,300",
        "rate=,3m",
        "rate_iops=800\nrate_process=poisson",
        "rate=2000k\nrate_cycle=500",
        "rate=2m\nrate_min=1k",
    ),
    "loops": _one("loops=2", "loops=3\nio_size=300k", "loops=2\nfile_service_type=sequential\nnrfiles=2"),
    "time": _one(
        "runtime=1",
        "runtime=1\ntime_based",
        "runtime=1500ms\ntime_based=1\nramp_time=500ms",
        "time_based\nruntime=1s\nstartdelay=200ms",
        "runtime=100s",
    ),
    "clones": _one(
        "numjobs=2",
        "numjobs=3\ngroup_reporting",
        "numjobs=2\nthread",
        "numjobs=2\nfilename=shared",
        "numjobs=3\nfilename=shared\noffset_increment=200k",
        "numjobs=2\nnew_group",
        "numjobs=2\ngroup_reporting\nunified_rw_reporting=1",
    ),
    "verify": _one(
        "verify=crc32c",
        "verify=md5\nverify_interval=512",
        "verify=pattern\nverify_pattern=0xdeadbeef",
        "verify=xxhash\nverify_backlog=16",
        "verify=sha1\nverify_backlog=8\nverify_backlog_batch=4",
        "verify=meta\ndo_verify=0",
        "verify=crc64\nverify_offset=16\nverify_interval=1k",
        "verify=pattern\nverify_pattern=%o\nverify_fatal=1",
        "verify=crc16\nverify_async=2",
        "verify=sha512\nserialize_overlap=1",
        "verify=crc32c\nexperimental_verify=1",
        "verify=null",
    ),
    "flush": _one(
        "fsync=8",
        "fdatasync=5",
        "end_fsync=1",
        "fsync_on_close=1",
        "fsync=3\nfdatasync=4",
        "sync=1",
        "sync=dsync",
        "fsync=1",
        "create_fsync=0",
    ),
    "layout": _one(
        "fallocate=none",
        "fallocate=native",
        "fallocate=keep",
        "fallocate=truncate",
        "fallocate=posix",
        "overwrite=1",
        "create_on_open=1",
        "unlink=1",
        "allow_file_create=1",
        "create_serialize=0",
        "overwrite=1\nfallocate=none",
        "fadvise_hint=sequential",
        "invalidate=0",
    ),
    "units": _one(
        "kb_base=1000\nbs=4k",
        "kb_base=1000\nsize=1m\nbs=1k",
        "kb_base=1024\nbs=4kb",
        "kb_base=1000\nbs=4KiB",
        "unit_base=8",
        "bs=4Ki\nkb_base=1000",
    ),
    "depth": _one(
        "iodepth=8",
        "iodepth=16\niodepth_batch=4",
        "iodepth=8\niodepth_batch_complete_min=2",
        "iodepth=16\niodepth_low=4",
        "iodepth=32\niodepth_batch=8\niodepth_batch_complete_min=4\niodepth_batch_complete_max=8",
        "iodepth=4\nio_submit_mode=offload",
    ),
    "direct": _one("direct=1", "direct=0", "buffered=0", "buffered=1"),
    "order": _one(
        "rw=read:8k",
        "rw=write:64k",
        "rw=randread:4",
        "rw=randwrite:8",
        "rw=randrw:6\nrw_sequencer=identical",
        "rw=randread:3\nrw_sequencer=sequential",
        "rw=read:-8k",
        "rw=rw:16k",
        "rw=readwrite\nrw_sequencer=identical",
    ),
    "buffers": _one(
        "zero_buffers",
        "refill_buffers",
        "buffer_compress_percentage=50",
        "buffer_pattern=0xabcd",
        "dedupe_percentage=30",
        "scramble_buffers=0",
        'buffer_pattern="hello"',
    ),
    "errors": _one(
        "continue_on_error=all", "ignore_error=EIO", "error_dump=1", "exitall", "exitall_on_error"
    ),
    "reporting": _one(
        "disable_clat=1",
        "disable_lat=1",
        "gtod_reduce=0",
        "lat_percentiles=1",
        "percentile_list=50:99:99.9",
        "unified_rw_reporting=mixed",
        "unified_rw_reporting=both",
        "slat_percentiles=1",
        "significant_figures=6",
        "clat_percentiles=0\nlat_percentiles=1",
        "disable_slat=1\ndisable_bw_measurement=1",
    ),
}
_PLACES: Final[dict[str, Callable[[random.Random], str]]] = {
    "block": _one("bs=4k", "bs=8k", "bs=4k,8k", "bs=16k", "bs=512", "bs=64k", "bs=12k"),
    "split": _one(
        "bssplit=4k/50:16k/50",
        "bssplit=4k/60:8k/30:32k/10",
        "bsrange=4k-16k",
        "bsrange=1k-9k\nbs_unaligned=1",
        "bssplit=2k/50:6k/50,4k/100",
    ),
    "map": _one("norandommap", "random_generator=lfsr", "random_generator=tausworthe64", "randrepeat=0"),
    "percentage": _one("percentage_random=50", "percentage_random=20", "percentage_random=80,10"),
    "zones": _one(
        "zonemode=strided\nzonesize=64k\nzonerange=128k\nzoneskip=64k",
        "zonemode=strided\nzonesize=128k\nzonerange=128k\nzoneskip=128k",
        "zonesize=256k\nzoneskip=256k",
        "zonemode=strided\nzonesize=256k\nzonerange=64k\nzoneskip=64k",
        "zonemode=strided\nzonesize=32k\nzonerange=512k",
        "zonemode=strided\nzonesize=64k\nzoneskip=1m",
    ),
    "offset": _one(
        "offset=64k",
        "offset_increment=256k",
        "offset=128k\noffset_increment=128k",
        "offset=100k\noffset_align=4k",
    ),
    "part": _one(
        "filename=target\nsize=10%", "filename=target\noffset=25%\nsize=5%", "filename=target\nsize=2m"
    ),
    "amount": _one(
        "io_size=512k",
        "io_size=3m",
        "io_size=50%",
        "io_size=150%",
        "number_ios=77",
        "number_ios=900\nio_size=9m",
    ),
    "files": _one(
        "nrfiles=4",
        "nrfiles=3\nfile_service_type=sequential",
        "nrfiles=5\nfile_service_type=roundrobin:3",
        "nrfiles=7\nfile_service_type=random",
        "nrfiles=3\nfile_service_type=random:8",
        "nrfiles=4\nfilesize=128k",
        "nrfiles=6\nopenfiles=2",
    ),
    "loops": _one("loops=2", "loops=3", "loops=2\nio_size=300k"),
    "clones": _one("numjobs=2", "numjobs=3\ngroup_reporting", "numjobs=2\nfilename=shared"),
    "verify": _one("verify=crc32c", "verify=md5\nverify_backlog=32", "verify=xxhash\nverify_interval=4k"),
    "flush": _one("fsync=8", "fdatasync=5", "end_fsync=1", "fsync=3\nend_fsync=1", "fsync_on_close=1"),
    "depth": _one("iodepth=8", "iodepth=16\niodepth_batch=4", "iodepth=4"),
    "order": _one(
        "rw=read:8k",
        "rw=write:16k",
        "rw=randread:4",
        "rw=randwrite:8",
        "rw=randrw:6\nrw_sequencer=identical",
        "rw=randread:3\nrw_sequencer=sequential",
        "rw=write:-8k",
        "rw=rw:4k",
        "rw=read:4\nrw_sequencer=identical",
    ),
    "mix": _one("rw=randrw\nrwmixread=70", "rw=rw\nrwmixwrite=30", "rw=readwrite"),
}
"""What decides which places are touched, and how often."""
ABOUT: Final = {"all": _KINDS, "places": _PLACES}
_EXCLUDE: Final = (
    {"block", "block range", "split", "units"},
    {"rate", "think", "time"},
    {"distribution", "map"},
)
"""Of each only one is drawn for a section: the last of them alone would count."""
_EXCLUDE_PLACES: Final = ({"block", "split"}, {"offset", "part"}, {"part", "files"}, {"order", "mix"})
_ENGINES: Final = ("psync", "sync", "libaio", "io_uring", "pvsync", "pvsync2", "mmap", "posixaio", "vsync")
_SIZES: Final = ("256k", "1m", "2m", "1000k", "777k", "4m", "1536k", "1m", "0x100000", "1MiB", "500000")


def drawn(seed: int, number: int, about: str = "all") -> str:
    """Return one job file, of all kinds of options or of those about places."""
    if about == "places":
        return _about_places(random.Random(f"{seed} {number}"))
    rng = random.Random(f"{seed} {number}")
    kinds = _some(rng, rng.choice((2, 3, 4, 5)))
    engine = rng.choice([one for one in _ENGINES if one != "mmap" or "direct" not in kinds])
    shared = [f"ioengine={engine}", f"size={rng.choice(_SIZES)}", f"rw={rng.choice(_RW)}"]
    lines = ["[global]", *shared, *(_KINDS[kind](rng) for kind in kinds)]
    for job in range(rng.choice((1, 1, 1, 2, 3))):
        own = _some(rng, rng.choice((0, 0, 1, 2)), kinds)
        lines += [f"[job{job}]", *(_KINDS[kind](rng) for kind in own)]
        if job and rng.random() < 0.6:
            lines.append("stonewall")
    return "\n".join(lines) + "\n"


def _about_places(rng: random.Random) -> str:
    kinds = _some(rng, rng.choice((2, 3, 4)), of="places")
    engine, size = rng.choice(("psync", "libaio", "io_uring", "sync")), rng.choice(("1m", "2m", "777k", "4m"))
    lines = ["[global]", f"ioengine={engine}", f"size={size}", f"rw={rng.choice(_RW)}"]
    lines += [_PLACES[kind](rng) for kind in kinds]
    for job in range(rng.choice((1, 1, 2))):
        own = _some(rng, rng.choice((0, 0, 1)), kinds, of="places")
        lines += [f"[job{job}]", *(_PLACES[kind](rng) for kind in own)]
        if job and rng.random() < 0.6:
            lines.append("stonewall")
    return "\n".join(lines) + "\n"


def _some(rng: random.Random, count: int, before: list[str] | None = None, of: str = "all") -> list[str]:
    """Return kinds that go together, and with those before them."""
    kinds: list[str] = []
    exclude = _EXCLUDE_PLACES if of == "places" else _EXCLUDE
    for kind in rng.sample(sorted(ABOUT[of]), len(ABOUT[of])):
        occupied = {*kinds, *(before or ())}
        if (
            len(kinds) < count
            and kind not in occupied
            and not any(kind in some and some & occupied for some in exclude)
        ):
            kinds.append(kind)
    return kinds
