"""How much of a file lies in the page cache.

Knows cachestat(2), which Linux has from 6.5 on. Reads nothing of the file and changes no cache.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Final

CACHESTAT: Final = 451
"""Its number on every architecture: those after 423 are the same everywhere."""
PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent")
    )


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def cached_bytes(descriptor: int) -> int | None:
    """Return the bytes of an open file in the page cache; None where the kernel does not tell."""
    pages = _pages(descriptor, 0, 0)
    return None if pages is None else int(pages.cached) * PAGE_BYTES


def unsaved_bytes(descriptor: int, offset: int, length: int) -> int:
    """Return the bytes of a range that are in the page cache and not yet on the storage; 0 if unknown."""
    pages = _pages(descriptor, offset, length)
    return 0 if pages is None else int(pages.dirty + pages.writeback) * PAGE_BYTES


def _pages(descriptor: int, offset: int, length: int) -> _Pages | None:
    """Count the pages of a range; a length of 0 is up to the end."""
    part, pages = _Range(offset, length), _Pages()
    if _libc().syscall(CACHESTAT, descriptor, ctypes.byref(part), ctypes.byref(pages), 0):
        return None
    return pages
