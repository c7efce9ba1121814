"""Who else wrote to the targets of a run, however short: told by the kernel when they close one.

fanotify(7) names the process that closed a file or device it had open for writing. That needs
CAP_SYS_ADMIN and a file system whose files have handles; elsewhere nobody is seen.
What the kernel closes for a program (a file registered with a ring of io_uring) is not told apart from the
engine's own, nor is a process of another container. Knows files and block devices, and ends no run.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.plan.model import TargetKind
from loadstone.plan.safety.held import held_as_checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from loadstone.plan.model import Target

MOST_TARGETS: Final = 1000
"""A user may have 8,192 marks and more (fs.fanotify.max_user_marks)."""

_CLOSE_WRITE: Final = 0x8
_CLOEXEC, _NONBLOCK, _UNLIMITED_QUEUE, _REPORT_FID = 0x1, 0x2, 0x10, 0x200
"""A queue without limit is for those who are told the process, too: others are refused here."""
_MARK_ADD: Final = 0x1
_HEAD: Final = struct.Struct("=IBBHQii")
"""Length, version, -, length of the head, mask, descriptor, process."""
_INFO: Final = struct.Struct("=BBH8xIi")
"""Kind, -, length, file system, length of the handle, its type."""
_IS_HANDLE: Final = 1
_EVENTS_BYTES: Final = 1 << 16
_KERNEL_THREAD: Final = 0x200000
"""PF_KTHREAD of the ninth field of /proc/PID/stat."""
_libc = ctypes.CDLL(None, use_errno=True)


class ForeignWriters:
    """Hears of programs that had a target open for writing and closed it. Only `attend` touches a target."""

    def __init__(self) -> None:
        begin = getattr(_libc, "fanotify_init", None)
        flags = _CLOEXEC | _NONBLOCK | _UNLIMITED_QUEUE | _REPORT_FID
        self._descriptor = -1 if begin is None else begin(flags, os.O_RDONLY)
        self._written: set[bytes] = set()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a child must keep open that calls `attend`."""
        return () if self._descriptor < 0 else (self._descriptor,)

    def attend(self, targets: Iterable[Target]) -> None:
        """Have the kernel tell of files and devices from now on, where it can."""
        kinds = (TargetKind.FILE, TargetKind.BLOCK)
        for target in [one for one in targets if self.descriptors and one.kind in kinds][:MOST_TARGETS]:
            with held_as_checked(target) as path:
                if path is not None:
                    mask = ctypes.c_uint64(_CLOSE_WRITE)
                    _libc.fanotify_mark(self._descriptor, _MARK_ADD, mask, -1, os.fsencode(path))

    def note(self, engine: int = 0) -> None:
        """Take note of what was told since; what the engine's process closed is no news. 0: there is none."""
        while self.descriptors:
            try:
                told_events = os.read(self._descriptor, _EVENTS_BYTES)
            except OSError:
                return  # No more of them.
            for process, handle in _closed(told_events):
                if process not in (0, engine) and not _is_kernel_thread(process):
                    self._written.add(handle)

    @property
    def written(self) -> frozenset[bytes]:
        """Handles (`inode.handle`) of what others wrote to."""
        return frozenset(self._written)

    def __enter__(self) -> Self:
        """Return it; it hears until the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hear no longer."""
        if self.descriptors:
            os.close(self._descriptor)
            self._descriptor = -1


def _closed(told_events: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the process and the handle of the file of each event."""
    start = 0
    while start < len(told_events):
        length, _, _, head, _, _, process = _HEAD.unpack_from(told_events, start)
        if length >= head + _INFO.size:
            kind, _, _, size, handle_type = _INFO.unpack_from(told_events, start + head)
            if kind == _IS_HANDLE:
                first = start + head + _INFO.size
                yield process, struct.pack("=i", handle_type) + told_events[first : first + size]
        start += length


def _is_kernel_thread(process: int) -> bool:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False  # It is gone: programs end, and the kernel's threads hardly do.
    return bool(int(fields[6]) & _KERNEL_THREAD)
