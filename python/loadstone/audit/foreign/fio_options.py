"""What fio's own record of a job's options says was asked for.

Knows the few options that matter to a judgement and fio's defaults for them; their values are read
by the reader of job files. A value that cannot be read is not known: fio ran it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.audit import job_options
from loadstone.audit.case import JobRequest, PayloadProperties, Range, TargetState
from loadstone.errors import LoadstoneError, Where
from loadstone.formats.fio.numbers import Reading
from loadstone.formats.fio.table import BY_NAME
from loadstone.workload.addresses import DIRECTIONS
from loadstone.workload.block_sizes import FixedSize, SizeRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.workload.addresses import Direction
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.placement import Amount

DEFAULT_BLOCK_BYTES: Final = 4096
DEFAULT_MIX_PERCENT: Final = 50
FLUSHES: Final = ("fsync_every", "fdatasync_every", "end_fsync", "fsync_on_close")
SYNCHRONOUS: Final = (
    *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "libpmem", "dev-dax", "mtd", "http"),
    *(
        "falloc",
        "ftruncate",
        "e4defrag",
        "filecreate",
        "filestat",
        "filedelete",
        "gfapi",
        "libhdfs",
        "libzbc",
    ),
    *("ime_psync", "ime_psyncv"),
)
"""Engines that do one I/O at a time, whatever the depth: fio caps it and says so."""
QUEUED: Final = (
    *("libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "xnvme", "libblkio"),
    *(
        "rbd",
        "rados",
        "nbd",
        "nfs",
        "dfs",
        "gfapi_async",
        "ime_aio",
        "libiscsi",
        "syslet-rw",
        "guasi",
        "null",
    ),
)
"""Engines that keep the depth they are given. Of others, such as `external`, it is not known."""
MAX_STEPS: Final = 64


def depth(engine: str, told: int | None) -> int | None:
    """Return how many I/Os a clone keeps outstanding with an engine."""
    if engine in SYNCHRONOUS:
        return 1
    return told if engine in QUEUED else None


def asked(name: str, options: Mapping[str, str], clones: int | None) -> JobRequest:
    """Return what a job asked for, fio's defaults in place of what it did not say."""
    fields = _fields(options)
    kind = (options.get("rw") or options.get("readwrite") or "read").partition(":")[0].strip()
    read_percent = _read_percent(kind, fields)
    engine = (options.get("ioengine") or "psync").strip()
    targets, ranges, size, shared = _places(name, fields, clones)
    sizes = [_sizes(fields, direction) for direction in (0, 1)]
    does = _directions(kind, read_percent)
    # Of random I/O that takes every block once, fio cuts what would reach into a block that is taken.
    whole = not kind.startswith("rand") or bool(fields.get("addresses.norandommap"))
    exact = [shares if whole or len(shares) == 1 else {} for shares in sizes]
    return JobRequest(
        job=name,
        clones=clones,
        iodepth=depth(engine, fields.get("engine.iodepth", 1)),
        asked_iodepth=fields.get("engine.iodepth") if engine in SYNCHRONOUS else None,
        read_percent=read_percent,
        random_percent=_random_percent(kind, fields),
        block_bytes=_mixed(sizes, read_percent),
        read_block_bytes=exact[0] if read_percent else {},
        write_block_bytes=exact[1] if read_percent is not None and read_percent < 100 else {},
        direct=bool(fields.get("engine.direct", False)),
        synchronous=fields.get("durability.sync") in ("sync", "dsync")
        or 1 in (fields.get("durability.fsync_every"), fields.get("durability.fdatasync_every")),
        end_fsync=bool(fields.get("durability.end_fsync", False)),
        flushes=any(fields.get(f"durability.{name}") for name in FLUSHES),
        backend=engine,
        rate_iops=_rate(fields.get("pacing.rate_iops", ()), does, clones),
        rate_bytes_per_s=_rate(fields.get("pacing.rate_bytes", ()), does, clones),
        targets=targets,
        ranges=ranges,
        clones_share=shared,
        size_bytes=size,
        payload=_payload(fields) if read_percent is not None and read_percent < 100 else None,
        runtime_s=_seconds(fields.get("limits.runtime_ns")),
        ramp_s=_seconds(fields.get("limits.ramp_ns")) or 0.0,
        paced=_paced(fields),
        thinks=bool(fields.get("pacing.thinktime_ns")),
        options=job_options.of_fields(fields),
    )


def targets(jobs: Sequence[JobRequest]) -> tuple[TargetState, ...]:
    """Return the targets of jobs: what lies in /dev is a device, and in /dev/shm a file in memory."""
    return tuple(_target(path) for path in dict.fromkeys(target for job in jobs for target in job.targets))


def _target(path: str) -> TargetState:
    if path in ("/dev/null", "/dev/zero", "/dev/full"):
        return TargetState(path, kind="char")
    if path.startswith("/dev/shm/"):  # noqa: S108 - a name in a result, not a file of ours
        return TargetState(path, kind="file", file_system="tmpfs")
    return TargetState(path, kind="block" if path.startswith("/dev/") else "file")


def _fields(options: Mapping[str, str]) -> dict[str, Any]:
    """Read options as the job-file reader does, and leave out what it cannot read."""
    fields: dict[str, Any] = {}
    reading = Reading(Where("fio"))
    for name, value in options.items():
        option = BY_NAME.get(name)
        if option is None or option.read is None or option.verdict != "honoured":
            continue
        try:
            fields |= option.read(value or None, reading, fields)
        except LoadstoneError:
            continue
    return fields


def _read_percent(kind: str, fields: Mapping[str, Any]) -> float | None:
    if "trim" in kind:
        return None
    if (
        fields.get("verification.verify") is not None
        and not kind.endswith("read")
        and fields.get("verification.do_verify") is not False
    ):
        # What was written is read back, and fio counts both: the mix is not the one of `rw`.
        return None
    if kind in ("rw", "readwrite", "randrw"):
        return float(fields.get("mix.read_percent", DEFAULT_MIX_PERCENT))
    return 0.0 if kind.endswith("write") else 100.0


def _random_percent(kind: str, fields: Mapping[str, Any]) -> float:
    if not kind.startswith("rand"):
        return 0.0
    percents = [value for value in fields.get("addresses.percentage_random", ()) if value is not None]
    return float(percents[0]) if percents else 100.0


def _sizes(fields: Mapping[str, Any], direction: int) -> dict[int, float]:
    for name in ("sizes.bssplit", "sizes.bsrange", "sizes.bs"):
        sizes = fields.get(name, (None, None, None))[direction]
        if sizes is not None:
            return _shares(sizes)
    return {DEFAULT_BLOCK_BYTES: 1.0}


def _shares(sizes: BlockSizes) -> dict[int, float]:
    if isinstance(sizes, FixedSize):
        return {sizes.bytes: 1.0}
    if isinstance(sizes, SizeRange):
        block_sizes = range(sizes.min_bytes, sizes.max_bytes + 1, max(1, sizes.min_bytes))[:MAX_STEPS]
        return dict.fromkeys(block_sizes, 1 / len(block_sizes)) if block_sizes else {}
    shares: dict[int, float] = {}
    for entry in sizes.entries:
        shares[entry.bytes] = shares.get(entry.bytes, 0.0) + entry.percent / 100
    return shares


def _mixed(sizes: list[dict[int, float]], read_percent: float | None) -> dict[int, float]:
    if read_percent is None:
        return sizes[1]
    mixture: dict[int, float] = {}
    for shares, share in zip(sizes, (read_percent / 100, 1 - read_percent / 100), strict=True):
        for size, part in shares.items() if share else ():
            mixture[size] = mixture.get(size, 0.0) + part * share
    return mixture


def _paced(fields: Mapping[str, Any]) -> bool:
    """Whether anything holds a job back: pauses, or a rate of one of its directions."""
    rates = (*fields.get("pacing.rate_iops", ()), *fields.get("pacing.rate_bytes", ()))
    return bool(fields.get("pacing.thinktime_ns")) or any(rates)


def _directions(kind: str, read_percent: float | None) -> list[Direction]:
    if "trim" in kind or read_percent is None:
        return [op for op in DIRECTIONS if op in kind]
    shares = zip(DIRECTIONS, (read_percent, 100 - read_percent), strict=False)
    return [op for op, share in shares if share]


def _rate(told: Sequence[float | None], does: Sequence[Direction], clones: int | None) -> float | None:
    """Return the rate of all clones and directions together, None where one of them has none."""
    rates = [rate for op, rate in zip(DIRECTIONS, told, strict=False) if op in does]
    return sum(rate or 0.0 for rate in rates) * (clones or 1) if rates and all(rates) else None


def _seconds(value_ns: Any) -> float | None:
    return value_ns / 1e9 if value_ns else None


def _payload(fields: Mapping[str, Any]) -> PayloadProperties:
    kind: Any = "random"
    if fields.get("payload.zero_buffers"):
        kind = "zero"
    elif fields.get("payload.buffer_pattern"):
        kind = "pattern"
    scrambled = fields.get("payload.scramble_buffers", True)
    return PayloadProperties(
        kind=kind,
        repeats=not (fields.get("payload.refill_buffers") or (scrambled and kind == "random")),
        compress_percent=fields.get("payload.compress_percent"),
        dedupe_percent=fields.get("payload.dedupe_percent"),
    )


def _bytes(amount: Amount | None) -> int | None:
    return None if amount is None else amount.bytes


def _of_files(fields: Mapping[str, Any], files: int) -> int | None:
    """Return what `filesize` alone makes of a job's size: fio works on all of each file."""
    smallest, largest = fields.get("placement.filesize_bytes", (None, None))
    begins_later = fields.get("placement.offset") or fields.get("placement.offset_increment")
    if smallest is None or smallest != largest or begins_later:
        return None
    return int(smallest) * max(1, files)


def _places(
    name: str, fields: Mapping[str, Any], clones: int | None
) -> tuple[tuple[str, ...], tuple[tuple[Range, ...], ...], int | None, bool | None]:
    """Return targets, where each clone works, the whole working set, and whether clones share it.

    Named files are shared by all clones; files that fio names itself are one for each clone.
    """
    named = tuple(str(one["path"]) for one in fields.get("placement.targets", ()))
    size, count = _bytes(fields.get("placement.size")) or _of_files(fields, len(named)), clones or 1
    if not named:
        targets = tuple(f"{name}.{clone}.0" for clone in range(count))
        own = tuple((Range(target, 0, size),) for target in targets) if size else ()
        return targets, own, size * count if size else None, False
    step, start = fields.get("placement.offset_increment"), _bytes(fields.get("placement.offset")) or 0
    apart = _bytes(step)
    together = step is None or apart == 0
    if size is None or (step is not None and apart is None):
        return named, (), None, together if count > 1 else None
    each = size // len(named)
    ranges = tuple(
        tuple(Range(target, start + clone * (apart or 0), each) for target in named) for clone in range(count)
    )
    whole = size if together else min(size, apart or 0) * (count - 1) + size
    return named, ranges, whole, together if count > 1 else None
