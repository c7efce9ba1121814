"""Waiting for signals with a time limit, told as the kernel tells them.

`signal.sigtimedwait` cannot be used by a process that may be stopped. Where SIGSTOP and SIGCONT come while
it waits, and its time is over by then, it returns memory that nobody wrote: a signal that nobody sent.
"""

from __future__ import annotations

import ctypes
import errno
import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIBC = ctypes.CDLL(None, use_errno=True)


class ReceivedSignal(NamedTuple):
    """A signal, and who sent it: 0 and below is a process (`si_code` of sigaction(2))."""

    number: int
    code: int


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def wait_for(signals: Iterable[int], timeout_s: float) -> ReceivedSignal | None:
    """Return the first of these blocked signals; None where none came in time or the wait was broken off.

    Raises `OSError` where the kernel refuses.
    """
    # As large as sigset_t and siginfo_t of Linux, in words of 8 bytes and numbers of 4.
    wanted, received = (ctypes.c_ulong * 16)(), (ctypes.c_int * 32)()
    _LIBC.sigemptyset(wanted)
    for number in signals:
        _LIBC.sigaddset(wanted, int(number))
    part_s, whole_s = math.modf(timeout_s)
    limit = _Time(int(whole_s), int(part_s * 1e9))
    if _LIBC.sigtimedwait(wanted, received, ctypes.byref(limit)) >= 0:
        return ReceivedSignal(number=received[0], code=received[2])
    if (number := ctypes.get_errno()) in (errno.EAGAIN, errno.EINTR):
        return None
    raise OSError(number, "sigtimedwait")
