"""Changes of a stream that probes are made of: depth, size, place, direction, content, flushes.

Knows the Plan's fields. Each takes a stream and returns another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.plan.model import (
    FillPattern,
    FillRandom,
    FillZero,
    Flush,
    OpPattern,
    RandomOrderUniform,
    SizesFixed,
    Stream,
)

if TYPE_CHECKING:
    from loadstone.plan.model import Fill

MOST_DEPTH: Final = 4096


def depth(stream: Stream, times: float) -> Stream:
    """Change how many I/Os are in flight; batches follow."""
    new = max(1, min(MOST_DEPTH, round(stream.iodepth * times)))
    return stream.model_copy(update={"iodepth": new, "batch": None})


def one_at_a_time(stream: Stream) -> Stream:
    """One I/O in flight."""
    return stream.model_copy(update={"iodepth": 1, "batch": None})


def block_bytes(stream: Stream, size: int) -> Stream:
    """Let all I/Os have this size, at addresses that are multiples of it."""

    def sized(op: OpPattern) -> OpPattern:
        return op.model_copy(update={"sizes": SizesFixed(bytes=size), "align_bytes": size, "stride_bytes": 0})

    original = stream.pattern
    pattern = original.model_copy(update={"read": sized(original.read), "write": sized(original.write)})
    return stream.model_copy(update={"pattern": pattern})


def slice_of(stream: Stream, start: float, share: float, unit: int) -> Stream:
    """Let it use a part of its own range: from a share of it on, as long as a share of it."""
    files = []
    for use in stream.files:
        length = max(unit, int(use.length_bytes * share) // unit * unit)
        first = min(int(use.length_bytes * start) // unit * unit, max(0, use.length_bytes - length))
        first = first // unit * unit
        files.append(
            use.model_copy(
                update={
                    "offset_bytes": use.offset_bytes + first,
                    "length_bytes": min(length, use.length_bytes - first),
                }
            )
        )
    return stream.model_copy(update={"files": tuple(files)})


def only_reads(stream: Stream, size: int | None = None) -> Stream:
    """Read at random where it read or wrote, and nothing else."""
    original = stream.pattern
    of = original.read if original.read_percent else original.write
    op = of.model_copy(
        update={"random_percent": 100, "random": RandomOrderUniform(repeat=True), "stride_bytes": 0}
    )
    if size is not None:
        op = op.model_copy(update={"sizes": SizesFixed(bytes=size), "align_bytes": size})
    pattern = original.model_copy(
        update={"read": op, "read_percent": 100, "write_percent": 0, "trim_percent": 0, "strided": None}
    )
    return stream.model_copy(update={"pattern": pattern, "flush": _no_flush(stream.flush)})


def only_writes(stream: Stream) -> Stream:
    """Write where it wrote, and nothing else."""
    pattern = stream.pattern.model_copy(update={"read_percent": 0, "write_percent": 100})
    return stream.model_copy(update={"pattern": pattern})


def in_order(stream: Stream) -> Stream:
    """One after the other, from the beginning of its range."""

    def ordered(op: OpPattern) -> OpPattern:
        return op.model_copy(update={"random_percent": 0, "stride_bytes": 0, "run_length": 1})

    pattern = stream.pattern
    return stream.model_copy(
        update={
            "pattern": pattern.model_copy(
                update={"read": ordered(pattern.read), "write": ordered(pattern.write)}
            )
        }
    )


def content(stream: Stream, kind: str) -> Stream:
    """Write new content every time, a short text again and again, or zeros."""
    fill: Fill = FillRandom()
    if kind == "zeros":
        fill = FillZero()
    elif kind == "repeat":
        fill = FillPattern(bytes=tuple(range(1, 65)))
    payload = stream.payload.model_copy(
        update={
            "fill": fill,
            "refill": kind == "unique",
            "stamp": False,
            "compress_percent": 0,
            "dedupe_percent": 0,
            "dedupe_set": None,
            "dedupe_unit_bytes": 0,
        }
    )
    return stream.model_copy(update={"payload": payload})


def flush_every(stream: Stream, writes: int) -> Stream:
    """Flush after so many writes; 0: never."""
    flush = Flush(fsync_every=0, fdatasync_every=writes, at_end=False, on_close=False)
    return stream.model_copy(update={"flush": flush})


def unpaced(stream: Stream) -> Stream:
    """As fast as it goes."""
    none = {"read": None, "write": None, "trim": None, "think": None}
    return stream.model_copy(update={"pace": stream.pace.model_copy(update=none)})


def _no_flush(flush: Flush) -> Flush:
    return flush.model_copy(
        update={"fsync_every": 0, "fdatasync_every": 0, "at_end": False, "on_close": False}
    )
