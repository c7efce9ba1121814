"""A host's own part of targets that several hosts write.

Knows ranges in a Plan. Parts have equal length, are whole blocks and do not overlap; what does not
divide is left at the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.errors import RefusedError
from loadstone.messages import say
from loadstone.plan.derived import targets_of
from loadstone.plan.model import SizesFixed, SizesRange

if TYPE_CHECKING:
    from loadstone.hosts.assignment import Division
    from loadstone.plan.model import FileUse, Plan, Sizes, Stream

PAGE_BYTES = 4096


def divided(plan: Plan, division: Division) -> Plan:
    """Return the Plan with every range on the divided targets cut down to this host's part."""
    shared = {at for at, target in enumerate(plan.targets) if target.path in division.paths}
    streams = tuple(
        _of_stream(stream, shared, division) if set(targets_of(plan, stream)) & shared else stream
        for stream in plan.streams
    )
    return plan.model_copy(update={"streams": streams})


def _of_stream(stream: Stream, shared: set[int], division: Division) -> Stream:
    if stream.tree is not None:
        raise RefusedError(say("hosts.divide.tree", stream=stream.name), hint=say("hosts.divide.tree_hint"))
    files = tuple(_part(stream, use, division) if use.target in shared else use for use in stream.files)
    before = sum(use.length_bytes for use in stream.files)
    limits = stream.limits
    if limits.bytes:
        share = sum(use.length_bytes for use in files) / before if before else 1.0
        limits = limits.model_copy(update={"bytes": max(1, round(limits.bytes * share))})
    return stream.model_copy(update={"files": files, "limits": limits})


def _part(stream: Stream, use: FileUse, division: Division) -> FileUse:
    block = math.lcm(PAGE_BYTES, *_largest(stream))
    length = use.length_bytes // division.count // block * block
    if not length:
        raise RefusedError(
            say(
                "hosts.divide.small",
                stream=stream.name,
                size_bytes=use.length_bytes,
                hosts=division.count,
                block_bytes=block,
            ),
            hint=say("hosts.divide.small_hint"),
        )
    return use.model_copy(
        update={"offset_bytes": use.offset_bytes + division.index * length, "length_bytes": length}
    )


def _largest(stream: Stream) -> list[int]:
    pattern = stream.pattern
    shares = (
        (pattern.read_percent, pattern.read.sizes),
        (pattern.write_percent, pattern.write.sizes),
        (pattern.trim_percent, pattern.trim.sizes),
    )
    return [size for percent, sizes in shares if percent for size in _sizes(sizes)] or [PAGE_BYTES]


def _sizes(sizes: Sizes) -> list[int]:
    if isinstance(sizes, SizesFixed):
        return [sizes.bytes]
    if isinstance(sizes, SizesRange):
        return [sizes.max_bytes]
    return [entry.bytes for entry in sizes.table]
