"""Which files a clone of a job uses, and which bytes of them.

Knows how names, sizes, offsets and totals of a job come together. Knows no backend and no other job.
Sizes in bytes.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone import file_kind
from loadstone.errors import as_text
from loadstone.messages import say
from loadstone.plan import special_engines
from loadstone.plan.aging import pass_bytes
from loadstone.plan.model import TargetKind
from loadstone.plan.pattern import (
    is_random,
    max_block,
    min_block,
    shares,
    smallest_block,
    strided_zones,
    walks_only,
)
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from loadstone.plan.host_facts import HostFacts, TargetFacts
    from loadstone.plan.model import Strided
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

DEFAULT_FORMAT: Final = "$jobname.$jobnum.$filenum"
_UNKNOWN: Final = 2**63
"""Size of what has none (a missing file, a character device) while it is not clamped."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes `offset` to `offset + length` of the target at `path`."""

    path: str
    facts: TargetFacts
    offset_bytes: int
    length_bytes: int
    name: special_engines.Name | None = None
    """Its name is what is used of it."""

    @property
    def end_bytes(self) -> int:
        """First byte after the range."""
        return self.offset_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class CloneFiles:
    """What one clone uses, and how many bytes it moves in one loop."""

    ranges: tuple[FileRange, ...]
    total_bytes: int
    """In whole blocks."""
    asked_bytes: int
    """As the job says it."""


def names(job: Job, clone: int, base_directory: str, host: HostFacts, notes: Notes) -> list[str]:
    """Absolute paths of a clone's files."""
    if job.placement.targets:
        if job.placement.nrfiles is not None and job.placement.nrfiles != len(job.placement.targets):
            count, files = len(job.placement.targets), job.placement.nrfiles
            notes.info(job, "placement.nrfiles", say("plan.notes.names_files", files=files, names=count))
    elif (job.placement.nrfiles or 1) == 1 and _is_device(job.stem, base_directory, host):
        return [_join(base_directory, job.stem)]
    return [_join(base_directory, name) for name in names_as_given(job, clone)]


def names_as_given(job: Job, clone: int) -> list[str]:
    """Names of a clone's files as the job gives them; what is relative stays so."""
    place = _directory(job, clone)
    file_names = [target.path for target in job.placement.targets] or [
        _format(job, clone, number) for number in range(job.placement.nrfiles or 1)
    ]
    return [os.path.join(place, name) for name in file_names]  # noqa: PTH118 - text, as open(2) gets it


def _directory(job: Job, clone: int) -> str:
    """Return the directory that a clone works in as the job names it; empty for none."""
    directories = job.placement.directories
    return directories[clone % len(directories)] if directories else ""


def _join(place: str, name: str) -> str:
    return os.path.normpath(os.path.join(place, name))  # noqa: PTH118 - text, as open(2) gets it


def _is_device(name: str, base_directory: str, host: HostFacts) -> bool:
    """Whether a job's name is a device: then that is its target."""
    path = _join(base_directory, name)
    if path in host.known:
        return host.known[path].kind is not TargetKind.FILE
    return "/" in name and os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)  # noqa: PTH110, PTH112, PTH113 - as above


def _format(job: Job, clone: int, number: int) -> str:
    values = {"jobname": job.stem, "jobnum": str(clone), "filenum": str(number), "clientuid": ""}
    return re.sub(
        r"\$(jobname|jobnum|filenum|clientuid)",
        lambda match: values[match[1].lower()],
        job.placement.filename_format or DEFAULT_FORMAT,
        flags=re.IGNORECASE,
    )


def resolve_files(
    job: Job, clone: int, *, base_directory: str, host: HostFacts, notes: Notes, seed: int
) -> CloneFiles:
    """Resolve a clone's files. Raises InputError when no size is known, or none fits."""
    virtual = job.engine.ioengine == "null"
    paths = names(job, clone, base_directory, host, notes)
    if virtual:
        paths = [as_text(path) for path in paths]
    facts = [_virtual() if virtual else _facts(job, path, host) for path in paths]
    if not all(fact.exists or path in host.known for path, fact in zip(paths, facts, strict=True)):
        _check_directory(job, _join(base_directory, _directory(job, clone)))
    _check_size_known(job, facts)
    chance = random.Random(seed)  # noqa: S311 - a drawn size is no secret
    ranges = _ranges(job, clone, list(zip(paths, facts, strict=True)), chance, notes)
    special_engines.check(job, ranges)
    if job.engine.ioengine in special_engines.BY_NAME:
        ranges = [_by_name(job, part, notes) for part in ranges]
    size = _bytes_of_pass(job, ranges)
    moved = _whole_blocks(job, ranges, size)
    if moved < max_block(job) and not job.limits.time_based:
        notes.info(job, "placement.size", say("plan.notes.less_than_block", moved=moved))
    return CloneFiles(tuple(ranges), moved, size)


def _check_directory(job: Job, named: str) -> None:
    """Refuse a directory that was named and is not there; those that names of files lead to are made."""
    if job.placement.directories and not file_kind.is_directory(Path(named)):
        raise job.error("plan.files.no_directory", "placement.directories", path=named)


def _bytes_of_pass(job: Job, ranges: list[FileRange]) -> int:
    """Return how many bytes one pass over the ranges moves. Refuses ranges without room for a block."""
    total = sum(part.length_bytes for part in ranges)
    requested_bytes = job.placement.size.bytes if job.placement.size and job.placement.size.bytes else 0
    smallest = min_block(job)
    if _has_zones(job) and not requested_bytes:
        requested_bytes = sum(
            _percent_of(job, part.length_bytes, part.offset_bytes, smallest) for part in ranges
        )
    size = min(requested_bytes, total) if requested_bytes else total
    if size < max(smallest, 1) or total == 0:
        raise job.error(
            "plan.files.no_block",
            "placement.size" if job.placement.size else "placement.targets",
            length=total,
            block=smallest,
            size=job.option("placement.size"),
            bs=job.option("sizes.bs"),
            offset=job.option("placement.offset"),
        )
    _check_room(job, ranges)
    aged_bytes = pass_bytes(job, ranges)
    if aged_bytes is not None:
        return aged_bytes
    if job.limits.io_size is None:
        return min(size, _walked_bytes(job, ranges))
    if job.limits.io_size.percent is not None:
        return job.limits.io_size.of(total)
    return job.limits.io_size.bytes or size


def _check_room(job: Job, ranges: list[FileRange]) -> None:
    """Refuse a file in which not every block has room."""
    largest = max_block(job)
    short = next((part for part in ranges if part.length_bytes < largest), None)
    if short is not None:
        raise job.error(
            "plan.files.short",
            "placement.size" if job.placement.size else "placement.targets",
            length=short.length_bytes,
            path=short.path,
            block=largest,
            size=job.option("placement.size"),
            bs=job.option("sizes.bs"),
        )


def _facts(job: Job, path: str, host: HostFacts) -> TargetFacts:
    """Say what stands at a path; of a directory that is made or removed nothing is known beforehand."""
    if job.engine.ioengine in special_engines.DIRECTORIES:
        host.check_name(path, job.at("placement.targets"))
        return _nothing(TargetKind.FILE)
    return host.target(path, job.at("placement.targets"))


def _by_name(job: Job, part: FileRange, notes: Notes) -> FileRange:
    bytes_each, name = special_engines.one_io_each(job, part, notes)
    return FileRange(part.path, part.facts, 0, bytes_each, name)


def _whole_blocks(job: Job, ranges: list[FileRange], size: int) -> int:
    """Bytes of the I/Os that are issued for `size`, where all have one size.

    They are while less than `size` was, so the last I/O goes beyond it. But a pass over files whose
    blocks are each used once ends with the last whole block of each file; in zones none is.
    """
    block = max_block(job)
    uneven = smallest_block(job) != block or any(shares(job)[2:])
    if (
        size < block
        or uneven
        or (job.placement.zone_mode == "strided" and not is_random(job))
        or job.blocks is None
        or job.engine.ioengine in special_engines.BY_NAME
    ):
        return size
    addresses = job.blocks.addresses
    walks = walks_only(job)
    if not walks and any(share != 100 for share in addresses.percentage_random):
        return size
    blocks = -(-size // block)
    one_way = sorted(shares(job))[1] == 0
    free = addresses.norandommap or any(one.kind != "random" for one in addresses.random_distribution)
    holes = addresses.stride_bytes or addresses.run_length > 1 or _has_zones(job)
    maps = not holes and (one_way if walks else not free)
    if job.limits.io_size is None and maps:
        blocks = min(blocks, sum(part.length_bytes // block for part in ranges))
    return blocks * block


def _walked_bytes(job: Job, ranges: list[FileRange]) -> int:
    """Bytes of a walk with holes, where it ends with the file.

    It goes on from the front where the next block would begin past the end of the file, and so is
    unbounded. Elsewhere it ends: after a block that ends with the file, and before one that has no
    room in the range. It is taken for unbounded where sizes vary or directions are mixed, too.
    """
    block = max_block(job)
    if job.blocks is None or is_random(job) or sorted(shares(job))[1] > 0 or smallest_block(job) != block:
        return _UNKNOWN
    hole, zones = job.blocks.addresses.stride_bytes, strided_zones(job)
    if zones is not None:
        part_bytes = [_zoned_bytes(part, zones, block) for part in ranges]
    elif hole > 0:
        part_bytes = [_holed_bytes(part, hole, block) for part in ranges]
    else:
        return _UNKNOWN
    return min(_UNKNOWN, sum(part_bytes))


def _holed_bytes(part: FileRange, hole: int, block: int) -> int:
    count = (part.length_bytes - block) // (block + hole) + 1
    ended = count * (block + hole) - hole
    file_bytes = max(part.facts.size_bytes, part.end_bytes) if part.facts.exists else part.end_bytes
    # The next block's place in the range is held against the size of the file.
    goes_on = part.offset_bytes + ended < file_bytes <= ended + hole
    return _UNKNOWN if goes_on else count * block


def _zoned_bytes(part: FileRange, zones: Strided, block: int) -> int:
    """Bytes until a zone that the end of the file cuts off is done."""
    step = zones.range_bytes + zones.skip_bytes
    begun, rest = divmod(part.length_bytes, step)
    whole = -(-zones.zone_bytes // block) * block
    if rest == 0 or rest >= whole or zones.zone_bytes > zones.range_bytes:
        return _UNKNOWN
    return begun * whole + rest // block * block


def _virtual() -> TargetFacts:
    return _nothing(TargetKind.VIRTUAL, exists=True)


def _nothing(kind: TargetKind, *, exists: bool = False) -> TargetFacts:
    from loadstone.plan.host_facts import TargetFacts as Facts  # noqa: PLC0415 - only types are imported above

    return Facts(kind, exists=exists)


def _real_size(facts: TargetFacts) -> int:
    known = facts.exists and (facts.is_device or facts.kind is TargetKind.FILE)
    return facts.size_bytes if known else _UNKNOWN


def _check_size_known(job: Job, facts: list[TargetFacts]) -> None:
    real = [_real_size(f) for f in facts]
    if job.placement.fill_device and not all(f.is_device for f in facts):
        raise job.refusal("plan.files.fill", "placement.fill_device")
    if job.placement.filesize_bytes or (job.placement.size and job.placement.size.bytes):
        return
    if all(0 < size < _UNKNOWN for size in real):
        return
    percent = (
        ""
        if job.placement.size is None
        else f" (a percentage of what does not exist: {job.placement.size.percent:g}%)"
    )
    raise job.error(
        "plan.files.no_size",
        "placement.size",
        name=job.name,
        percent=percent,
        example=job.setting("placement.size", "1g"),
    )


def _ranges(
    job: Job, clone: int, files: list[tuple[str, TargetFacts]], chance: random.Random, notes: Notes
) -> list[FileRange]:
    smallest = min_block(job)
    whole = job.placement.size.bytes if job.placement.size and job.placement.size.bytes else 0
    each = whole // len(files)
    extra = (whole - each * len(files)) // smallest
    ranges = []
    for path, fact in files:
        real = _real_size(fact)
        offset = _offset(job, clone, path, fact, smallest)
        length = each
        if job.placement.filesize_bytes is None and extra > 0:
            length += smallest
            extra -= 1
        if job.placement.filesize_bytes is not None:
            length = _from_file_size(job, job.placement.filesize_bytes, real, offset, chance)
        elif length == 0:
            length = real - offset
        if length < 0 or (real < _UNKNOWN and fact.is_device and offset >= real):
            raise job.error(
                "plan.files.offset",
                "placement.offset",
                offset=offset,
                path=path,
                option=job.option("placement.offset"),
            )
        if _has_zones(job) and real < _UNKNOWN and not job.placement.filesize_bytes:
            length = max(length, real - offset)  # zones go on to the end, however little is moved
        else:
            length = _percent_of(job, length, offset, smallest)
        ranges.append(FileRange(path, fact, offset, _clamped(job, path, fact, (offset, length), notes)))
    return ranges


def _has_zones(job: Job) -> bool:
    return bool(job.placement.zone_size_bytes) and job.placement.zone_mode != "none"


def _from_file_size(job: Job, bounds: tuple[int, int], real: int, offset: int, chance: random.Random) -> int:
    low, high = bounds
    if low <= real <= high:
        return real - offset
    if offset > low:
        raise job.error("plan.files.offset_of_file", "placement.offset", offset=offset, filesize=low)
    if low == high:
        return low - offset
    smallest = min_block(job)
    drawn = chance.randint(low, high)
    return max(low, drawn - drawn % smallest) - offset


def _percent_of(job: Job, length: int, offset: int, smallest: int) -> int:
    percent = job.placement.size.percent if job.placement.size else None
    if percent is None or percent == 100:
        return length
    whole = length + offset
    part = min(int(whole * percent // 100), whole - offset)
    return part - part % smallest


def _clamped(job: Job, path: str, fact: TargetFacts, span: tuple[int, int], notes: Notes) -> int:
    """Cut a range at the end of a device; files grow instead, unless they may not be made."""
    offset, length = span
    if fact.is_device and offset + length > fact.size_bytes:
        text = say("plan.notes.ends_there", path=path, size=fact.size_bytes)
        notes.info(job, "placement.size", text)
        return fact.size_bytes - offset
    if (
        fact.kind is TargetKind.FILE
        and job.files.allow_file_create is False
        and offset + length > fact.size_bytes
    ):
        raise job.error(
            "plan.files.too_small",
            "files.allow_file_create",
            path=path,
            size=fact.size_bytes if fact.exists else "no",
            needed=offset + length,
        )
    return length


def _offset(job: Job, clone: int, path: str, fact: TargetFacts, smallest: int) -> int:
    """Start of a clone's range: `offset` and `clone` times `offset_increment`.

    Percentages are of the existing size and rounded up to `offset_align` or a block.
    """
    start, step = job.placement.offset or Amount(bytes=0), job.placement.offset_increment or Amount(bytes=0)
    percents = start.percent is not None or step.percent is not None
    real = _real_size(fact)
    if percents and real == _UNKNOWN:
        name = "placement.offset_increment" if start.percent is None else "placement.offset"
        raise job.error(
            "plan.files.percentage",
            name,
            name=job.name,
            share=f"{start.percent or step.percent:g}%",
            path=path,
            option=job.option(name),
        )
    offset = start.of(real) + clone * step.of(real)
    if percents:
        unit = job.placement.offset_align_bytes or smallest
        offset = -(-offset // unit) * unit
    return offset


def writes(job: Job) -> bool:
    """Whether a job writes or trims."""
    _, write, trim = shares(job)
    return write + trim > 0
