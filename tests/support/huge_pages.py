"""Puts what a process has collected into huge pages, as it forks hundreds of times and copies its page table.

What looks at a target does so in a child (`path/child.py`). A fork of a process that has collected all tests
takes 30 ms of CPU time, half of it where its memory is in large pieces. A kernel before 6.1 refuses, and
nothing else is different then.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

HUGE_BYTES: Final = 2 << 20
MADV_COLLAPSE: Final = 25
"""Linux include/uapi/asm-generic/mman-common.h."""


def collapse() -> int:
    """Collapse the memory of this process that belongs to no file; return how many bytes were."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    collapsed_bytes = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, *_, last = line.split()
        if not rights.startswith("rw-p") or last not in ("0", "[heap]"):
            continue
        first, end = (int(one, 16) for one in span.split("-"))
        first = -(-first // HUGE_BYTES) * HUGE_BYTES
        size = end // HUGE_BYTES * HUGE_BYTES - first
        if size > 0 and libc.madvise(first, size, MADV_COLLAPSE) == 0:
            collapsed_bytes += size
    return collapsed_bytes
