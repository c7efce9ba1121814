"""Signals that ask a run to end: the first asks, the second insists.

Knows which signals mean that. Does not know what stopping takes: it calls back.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from loadstone import crash_note

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SAME_REQUEST_S: Final = 0.25
ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave() -> None:
    """End what is being done at once, blocks left in order."""
    raise KeyboardInterrupt


class Interrupts:
    """While entered, calls `on_first` for the first of the signals and `on_second` for the next.

    Outside the main thread Python cannot handle signals, and nothing is installed. A SIGHUP
    that was ignored before, as by `nohup`, stays ignored. SIGINT does not: every shell ignores
    it for `loadstone ... &` in a script, where it is still the way to ask for the end.

    Blocks may stand in each other: a run in a study, a probe in a run. The inner one is called, the
    outer ones are told (`asked`), and one that begins after the request takes it up at once.
    """

    _entered: ClassVar[list[Interrupts]] = []

    def __init__(
        self, on_first: Callable[[], None] = lambda: None, on_second: Callable[[], None] = leave
    ) -> None:
        self.count = 0
        self.asked = False
        """Somebody asked for the end, of this block or of one inside it."""
        self._caught_s = 0.0
        self._on_first = on_first
        self._on_second = on_second
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in ASKING:
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._caught)
            pending = self.pending()
            self._entered.append(self)
            crash_note.end_in_order(needed=True)
            if pending and not self.count:
                self._take()
        return self

    def __exit__(self, *_: object) -> None:
        if self in self._entered:
            self._entered.remove(self)
            crash_note.end_in_order(needed=bool(self._entered))
        for number, before in self._before.items():
            signal.signal(number, before)

    @classmethod
    def pending(cls) -> bool:
        """Return whether somebody asked for the end of anything that is under way."""
        return any(one.asked for one in cls._entered)

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        # `timeout` and some shells send one request twice, to the process and to its group.
        now_s = time.monotonic()
        if self.count and now_s - self._caught_s < SAME_REQUEST_S:
            return
        self._caught_s = now_s
        self._take()

    def _take(self) -> None:
        self.count += 1
        for one in (self, *self._entered):
            one.asked = True
        if self.count == 1:
            self._on_first()
        else:
            self._on_second()
