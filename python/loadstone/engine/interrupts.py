"""Signals that ask a run to end: the first asks, the second insists.

Knows which signals mean that. Does not know what stopping takes: it calls back.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SAME_REQUEST_S: Final = 0.25
ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, calls `on_first` for the first of the signals and `on_second` for the next.

    Outside the main thread Python cannot handle signals, and nothing is installed. A SIGHUP
    that was ignored before, as by `nohup`, stays ignored. SIGINT does not: every shell ignores
    it for `loadstone ... &` in a script, where it is still the way to ask for the end.
    """

    def __init__(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> None:
        self.count = 0
        self._caught_s = 0.0
        self._on_first = on_first
        self._on_second = on_second
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in ASKING:
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        # `timeout` and some shells send one request twice, to the process and to its group.
        now_s = time.monotonic()
        if self.count and now_s - self._caught_s < SAME_REQUEST_S:
            return
        self.count, self._caught_s = self.count + 1, now_s
        if self.count == 1:
            self._on_first()
        else:
            self._on_second()
