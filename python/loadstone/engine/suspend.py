"""Ctrl-Z while a load runs: the engine stops with us, and goes on with us.

It is in a process group of its own, so the terminal does not reach it: a load would go on that its
user believes to be stopped. Knows signals. Does not know what a pause means for the figures.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


class Pauses:
    """While entered, SIGTSTP stops the group of the engine and then this process, until SIGCONT."""

    def __init__(self, engine_pid: int) -> None:
        self._engine_pid = engine_pid
        self._before: Any = None
        self._paused_s = 0.0

    def __enter__(self) -> Pauses:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTSTP, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTSTP, self._before)

    def taken_s(self) -> float:
        """Return for how long all was stopped since this was asked last."""
        paused_s, self._paused_s = self._paused_s, 0.0
        return paused_s

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        began_s = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._engine_pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._engine_pid, signal.SIGCONT)
        self._paused_s += time.monotonic() - began_s
