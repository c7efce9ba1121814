"""A storage array by parameters, as a plugin of nbdkit's: what it hides is known, its host sees only a disk.

`program` returns the text that nbdkit runs; `Array` names each parameter. Knows no scenario.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

PROGRAM: Final = r"""
import collections, json, math, random, threading, time

API_VERSION = 2
A = json.loads('''@''')
BLOCK = 4096
SIZE = A["mib"] << 20
store = bytearray(random.Random(1).randbytes(1 << 20) * A["mib"])
chance = random.Random(2)
servers = threading.Semaphore(A["servers"] or 1 << 20)
guard = threading.Lock()
next_op = next_byte = 0.0
cached = collections.OrderedDict()
written = set(range(int(SIZE // BLOCK * A["written"])))
contents = set()
dirty, drained = 0.0, 0.0

def thread_model():
    import nbdkit
    return nbdkit.THREAD_MODEL_PARALLEL

def open(readonly):
    return 1

def get_size(handle):
    return SIZE

def can_multi_conn(handle):
    return True

def can_flush(handle):
    return True

def turn(free, now, cost, burst):
    # When it may begin, and from when on the next one may.
    start = max(now, free)
    return max(now, start - burst), start + cost

def wait_for_limits(length):
    global next_op, next_byte
    with guard:
        now = time.monotonic()
        begin = now
        if A["iops"]:
            at, next_op = turn(next_op, now, 1 / A["iops"], A["burst_s"])
            begin = max(begin, at)
        if A["bps"]:
            at, next_byte = turn(next_byte, now, length / A["bps"], A["burst_s"])
            begin = max(begin, at)
    time.sleep(max(0.0, begin - time.monotonic()))

def hold_up():
    if A["busy_every_s"]:
        phase = time.monotonic() % A["busy_every_s"]
        return A["busy_factor"] if phase < A["busy_s"] else 1.0
    return 1.0

def serve(ms, length):
    wait_for_limits(length)
    with servers:
        time.sleep(ms / 1000 * hold_up() * math.exp(chance.gauss(0, A["spread"])))

def blocks(offset, length):
    return range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)

def usual(offset, length):
    ms = A["ms"] * (1 + A["slope"] * offset / SIZE)
    if A["misaligned"] and (offset % BLOCK or length % BLOCK):
        ms *= A["misaligned"]
    return ms

def remember(mine):
    for block in mine:
        cached[block] = True
        cached.move_to_end(block)
    while len(cached) > A["cache_mib"] * 256:
        cached.popitem(last=False)

def pread(handle, buf, offset, flags):
    mine = blocks(offset, len(buf))
    ms = usual(offset, len(buf))
    with guard:
        if A["hole_ms"] and not any(one in written for one in mine):
            ms = A["hole_ms"]
        elif A["cache_mib"]:
            if all(one in cached for one in mine):
                ms = A["hit_ms"]
            remember(mine)
    serve(ms, len(buf))
    buf[:] = store[offset:offset + len(buf)]

def pwrite(handle, buf, offset, flags):
    global dirty, drained
    data, mine = bytes(buf), blocks(offset, len(buf))
    ms = usual(offset, len(data))
    with guard:
        if A["new_ms"] and not all(one in written for one in mine):
            ms = A["new_ms"]
        written.update(mine)
        if A["zero_ms"] and not any(data):
            ms = A["zero_ms"]
        if A["known_ms"]:
            parts = [hash(data[at:at + BLOCK]) for at in range(0, len(data), BLOCK)]
            if all(one in contents for one in parts):
                ms = A["known_ms"]
            contents.update(parts)
        if A["write_cache_mib"]:
            now = time.monotonic()
            dirty, drained = max(0.0, dirty - (now - drained) * A["drain"] * (1 << 20)), now
            if dirty + len(data) <= A["write_cache_mib"] << 20:
                dirty, ms = dirty + len(data), A["hit_ms"]
    serve(ms, len(data))
    store[offset:offset + len(data)] = data

def flush(handle, flags):
    time.sleep(A["flush_ms"] / 1000)
"""


@dataclass(frozen=True)
class Array:
    """What an array does. Zero: it does not have that."""

    mib: int = 64
    ms: float = 2.0
    """Time of an I/O, and `spread`: the deviation of its logarithm."""
    spread: float = 0.1
    servers: int = 0
    """Most I/Os at work at once."""
    slope: float = 0.0
    """How much slower the end is than the beginning, as a part of the beginning's time."""
    misaligned: float = 0.0
    """Times as long off the grid of 4 KiB."""
    iops: float = 0.0
    bps: float = 0.0
    burst_s: float = 0.0
    """So many seconds of a limit that may be used up at once."""
    cache_mib: int = 0
    write_cache_mib: int = 0
    drain: float = 0.0
    """MiB per second that leave the write cache."""
    hit_ms: float = 0.0
    written: float = 1.0
    """The part of the device, from its beginning, that was written before."""
    hole_ms: float = 0.0
    new_ms: float = 0.0
    zero_ms: float = 0.0
    known_ms: float = 0.0
    """For content that it has already."""
    busy_every_s: float = 0.0
    busy_s: float = 0.0
    busy_factor: float = 1.0
    flush_ms: float = 0.0


def program(array: Array) -> str:
    """Return the plugin's text."""
    return PROGRAM.replace("@", json.dumps(asdict(array)))
