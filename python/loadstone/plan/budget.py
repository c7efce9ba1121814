"""What a Plan costs before it runs: memory, disk, time; and the interval of its samples.

Knows sizes of the engine's structures well enough for an upper bound; the engine itself
states the exact memory. Knows no job.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.plan.model import VerifyExpect
from loadstone.plan.patterns import RandomOrderUniform, SizesFixed, SizesRange
from loadstone.plan.payloads import FillPattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.plan.model import Plan, Stream
    from loadstone.plan.patterns import OpPattern, Sizes
    from loadstone.plan.trees import FileOperation, Tree

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000
MIN_MEMORY_LIMIT_BYTES: Final = 64 << 20
MEMORY_MARGIN: Final = 1.25
_PAGE_BYTES: Final = 4096

_BASE_BYTES: Final = 8 << 20
"""The program, its tables and its output buffers."""
_ENTRY_BYTES: Final = 4
"""What a verified block may hold."""
_CHAIN_BYTES: Final = 80
"""What follows an I/O in flight, and what is due."""
_PIECE_BYTES: Final = 96
"""A write that is to be read back by headers."""
_SLOT_BYTES: Final = 160
"""One I/O in flight besides its buffer, completions included."""
_ROW_BYTES_IN_TABLES: Final = 2 * 4 * 2496 * 4 + 2048
"""A (worker, cell, operation, priority), and once more in the ramp where a stream of the worker has
one: two tables, four latencies of 2,496 counts of 4 bytes, and totals."""
_WORKER_BYTES: Final = 320 << 10
_STREAM_BYTES: Final = 4 << 10
_USE_BYTES: Final = 1 << 10
_LOG_BYTES: Final = 16 * 8192 * 72
"""Records of a stream that logs every I/O, on their way to the disk."""
_DIRECTORY_BYTES: Final = 4
_FILE_BYTES: Final = 16
_TREE_STREAM_BYTES: Final = 12 << 10
"""Paths of a stream that works in a tree."""
_ON_THE_WAY: Final = {
    "transfer": ("open", "close"),
    "create": ("write", "open", "close"),
    "open": ("close",),
    "close": ("open",),
    "copy": ("read", "write", "create", "open", "close", "delete"),
}
"""What a stream may do in a tree to get to what it was asked for."""
_ROW_BYTES: Final = 1024
"""One row of samples with its histograms, compressed little."""


def interval_ns(duration_ns: int | None, log_windows_msec: Iterable[int]) -> int:
    """Choose the length of a sample: 1 s, less for short runs, a divisor of log windows."""
    longest = SECOND_NS
    if duration_ns is not None and duration_ns <= 30 * SECOND_NS:
        longest = (100 if duration_ns <= 5 * SECOND_NS else 250) * MILLISECOND_NS
    windows = [msec * MILLISECOND_NS for msec in log_windows_msec if msec]
    if not windows:
        return longest
    common = math.gcd(*windows)
    parts = -(-common // longest)
    while common % parts or (common // parts) % MILLISECOND_NS:
        parts += 1
    return common // parts


def duration_ns(streams: Sequence[Stream], stages: Sequence[int]) -> int | None:
    """Longest time a Plan may take, or None when some stream ends only by its bytes."""
    ends: list[int] = []
    longest: dict[int, int] = {}
    for stream, stage in zip(streams, stages, strict=True):
        limits = stream.limits
        if not limits.runtime_ns:
            return None
        # Those it waits for come before it.
        waits = max((ends[other] for other in stream.wait_for), default=0)
        ends.append(waits + limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns)
        longest[stage] = max(longest.get(stage, 0), ends[-1])
    return sum(longest.values())


def memory_bytes(plan: Plan) -> int:
    """Upper bound of what the engine holds at one time: its largest stage."""
    stages: dict[int, int] = {}
    rows: set[tuple[int, int, str, int]] = set()
    ramping = {stream.worker for stream in plan.streams if stream.limits.ramp_ns or stream.search}
    for stream in plan.streams:
        stage = plan.workers[stream.worker].stage
        own = stream.iodepth * (_block_bytes(stream) + _SLOT_BYTES) + _STREAM_BYTES
        own += len(stream.files) * _USE_BYTES + stream.log_ios * _LOG_BYTES + _map_bytes(stream)
        row_bytes = _ROW_BYTES_IN_TABLES * (1 + (stream.worker in ramping))
        for cell in stream.cells:
            for op, priority in _kinds(stream, plan.workers[stream.worker].io_priority):
                own += 0 if (stream.worker, cell, op, priority) in rows else row_bytes
                rows.add((stream.worker, cell, op, priority))
        own += _verify_bytes(stream) + _history_bytes(stream) + _pattern_bytes(stream)
        own += _TREE_STREAM_BYTES if stream.tree else 0
        stages[stage] = stages.get(stage, 0) + own
    for worker in plan.workers:
        stages[worker.stage] += _WORKER_BYTES
    return (
        _BASE_BYTES
        + _table_bytes(plan)
        + sum(_tree_bytes(tree) for tree in plan.trees)
        + max(stages.values())
        + (len(plan.targets) + len(plan.streams)) * 512
    )


def _table_bytes(plan: Plan) -> int:
    """Bytes of the tables of verified targets: from the first to the last byte used of each."""
    ranges: dict[int, tuple[int, int, int]] = {}
    for stream in plan.streams:
        if stream.verify is None or stream.verify.expect is not VerifyExpect.TABLE:
            continue
        for use in stream.files:
            start, end = use.offset_bytes, use.offset_bytes + use.length_bytes
            first, last, block = ranges.get(use.target, (start, end, stream.verify.block_bytes))
            ranges[use.target] = (min(first, start), max(last, end), block)
    return sum(-(-(last - first) // block) * _ENTRY_BYTES for first, last, block in ranges.values())


def _tree_bytes(tree: Tree) -> int:
    """Bytes of the table of a tree's directories and files."""
    lowest = int(tree.width**tree.depth) + 1
    directories = sum(int(tree.width**level) for level in range(1, tree.depth)) + lowest
    return (
        directories * _DIRECTORY_BYTES
        + (directories if tree.everywhere else lowest) * tree.files * _FILE_BYTES
    )


def _verify_bytes(stream: Stream) -> int:
    """Bytes that keep what reads in flight may return."""
    if stream.verify is None:
        return 0
    chained = stream.verify.reads_beside_writes
    if not stream.pattern.read_percent and not chained:
        return 0
    entries = stream.iodepth * (_block_bytes(stream) // stream.verify.block_bytes) * _ENTRY_BYTES
    return entries + (stream.iodepth * _CHAIN_BYTES if chained else 0)


def _history_bytes(stream: Stream) -> int:
    """Bytes that keep what is to be read back by headers."""
    headers = stream.headers
    if headers is None or not (headers.read_back or headers.trim):
        return 0
    room = sum(use.length_bytes for use in stream.files)
    asked = stream.limits.bytes or room
    writes = (min(asked, room) if headers.by_address else asked) // _smallest(stream.pattern.write.sizes)
    if stream.limits.ops:
        writes = min(writes, stream.limits.ops)
    return (writes + stream.iodepth) * _PIECE_BYTES


def _pattern_bytes(stream: Stream) -> int:
    """Bytes of a pattern: in the Plan, in the payload and in what verifies."""
    fill = stream.payload.fill
    return 3 * len(fill.bytes) if isinstance(fill, FillPattern) else 0


def _block_bytes(stream: Stream) -> int:
    """Bytes of one buffer: the largest block in whole pages."""
    pattern = stream.pattern
    writes = pattern.write_percent or pattern.trim_then_write
    used = (
        (pattern.read_percent, pattern.read),
        (writes, pattern.write),
        (pattern.trim_percent, pattern.trim),
    )
    return -(-max(_largest(op.sizes) for share, op in used if share) // _PAGE_BYTES) * _PAGE_BYTES


def _largest(sizes: Sizes) -> int:
    if isinstance(sizes, SizesFixed):
        return sizes.bytes
    return sizes.max_bytes if isinstance(sizes, SizesRange) else max(entry.bytes for entry in sizes.table)


def _smallest(sizes: Sizes) -> int:
    if isinstance(sizes, SizesFixed):
        return sizes.bytes
    return sizes.min_bytes if isinstance(sizes, SizesRange) else min(entry.bytes for entry in sizes.table)


def _map_bytes(stream: Stream) -> int:
    """Memory of maps of touched blocks (where sizes vary and no block comes twice): 65/64 bits each."""
    pattern = stream.pattern
    shares = (pattern.read_percent, pattern.write_percent, pattern.trim_percent)
    ops = (pattern.read, pattern.write, pattern.trim)
    return sum(
        (-(-use.length_bytes // op.align_bytes) // 64 + 128) * 8 * 65 // 64
        for share, op in zip(shares, ops, strict=True)
        if share and _needs_map(op)
        for use in stream.files
    )


def _needs_map(op: OpPattern) -> bool:
    once = isinstance(op.random, RandomOrderUniform) and not op.random.repeat
    varies = _smallest(op.sizes) < _largest(op.sizes)
    return op.random_percent > 0 and once and varies and op.align_bytes == _smallest(op.sizes)


def _kinds(stream: Stream, priority: int) -> list[tuple[str, int]]:
    """Operations and their priorities: each has rows of its own."""
    usual = [(op, priority) for op in _operations(stream)]
    return [*usual, *((share.op, share.priority) for share in stream.priorities)]


def _operations(stream: Stream) -> list[str]:
    if stream.tree is not None:
        return _operations_in_tree(stream, stream.tree.operation)
    pattern, flush = stream.pattern, stream.flush
    used = {
        "read": pattern.read_percent
        or (stream.verify is not None and stream.verify.reads_beside_writes)
        or (stream.headers is not None and stream.headers.read_back),
        "write": pattern.write_percent or pattern.trim_then_write,
        "trim": pattern.trim_percent or (stream.headers is not None and stream.headers.trim),
        "sync": flush.fsync_every or flush.fdatasync_every or flush.at_end,
    }
    return [op for op, share in used.items() if share]


def _operations_in_tree(stream: Stream, operation: FileOperation) -> list[str]:
    found = [*stream.asks_for, *_ON_THE_WAY.get(operation.type, ())]
    if operation.type == "transfer" and not operation.random and stream.pattern.write_percent:
        found += ["create", *(["delete"] if operation.delete_before else [])]
    return [*found, *(["sync"] if stream.flush.on_close else [])]


def memory_limit_bytes(needed_bytes: int) -> int:
    """Bytes the engine may hold: what it needs and a margin."""
    return max(int(needed_bytes * MEMORY_MARGIN), MIN_MEMORY_LIMIT_BYTES)


def samples_bytes(plan: Plan, duration: int | None) -> int:
    """Bytes the samples take on disk; for an unknown duration those of an hour.

    A log of every I/O cannot be told before the run: it grows by 61 bytes per I/O.
    """
    intervals = -(-(duration or 3600 * SECOND_NS) // plan.interval_ns)
    rows = sum(len(stream.cells) for stream in plan.streams)
    cells = min(rows, len(plan.cells))
    return intervals * max(cells, 1) * _ROW_BYTES
