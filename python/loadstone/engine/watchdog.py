"""Is the engine alive? Times of its events in, what to do out.

Pure: it is told the time and never reads a clock, so every rule is tested without waiting.
Knows how often an engine speaks in each phase. Does not talk to the engine.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class WatchdogAction(enum.Enum):
    """What the coordinator should do now."""

    NOTHING = "nothing"
    WARN = "warn"
    """Say once that the engine is silent."""
    KILL = "kill"
    """It was silent for too long, or did not end: kill it."""
    LEAVE = "leave"
    """Even killing did not end it: it waits in the kernel; go on without it."""


SILENT_INTERVALS = 10
SILENT_FLOOR_S = 10.0
PREPARE_WARN_S = 60.0
PREPARE_KILL_S = 3600.0
"""One fsync of a large memory's dirty pages may take many minutes, and nothing takes hours."""
STOP_S = 30.0
"""After the user asked for the end of a preparation."""
EXIT_S = 5.0
REAP_S = 3.0


@dataclass
class Watchdog:
    """Silence and slow ends. All times are seconds of one clock that never goes back.

    While I/O runs a `tick` comes every interval; ten missing intervals (and at least ten
    seconds) are worth a warning, and `grace_s` more are worth a kill. While files are laid
    out one `fsync` may rightly take many minutes: it gets an hour, unless the user asks for the
    end. After `end`
    or a kill the process has a few seconds to be gone: a thread that waits in the kernel for
    a dead device cannot be killed, and the results must not wait for it. One that is armed waits
    for an order, for as long as that takes.
    """

    interval_s: float
    grace_s: float
    heard_s: float
    running: bool = False
    ended_s: float | None = None
    killed_s: float | None = None
    asked_s: float | None = None
    warned: bool = False
    armed: bool = False

    def heard(self, kind: str, now_s: float) -> None:
        """Take note of an event of this type."""
        self.heard_s = now_s
        self.warned = False
        self.armed = kind == "armed"
        if kind == "start":
            self.running = True
        elif kind in {"end", "fatal"}:
            self.ended_s = now_s

    def asked(self, now_s: float) -> None:
        """Take note that the user asked for the end."""
        self.asked_s = self.asked_s if self.asked_s is not None else now_s

    def paused(self, seconds: float) -> None:
        """Take note that nobody could speak or listen for so long."""
        self.heard_s += seconds
        self.ended_s = None if self.ended_s is None else self.ended_s + seconds
        self.killed_s = None if self.killed_s is None else self.killed_s + seconds

    def killed(self, now_s: float) -> None:
        """Take note that the engine was killed."""
        self.killed_s = self.killed_s if self.killed_s is not None else now_s

    def look(self, now_s: float) -> WatchdogAction:
        """Decide. `WARN` and `KILL` come once per silence."""
        if self.killed_s is not None:
            return WatchdogAction.LEAVE if now_s - self.killed_s >= REAP_S else WatchdogAction.NOTHING
        if self.ended_s is not None:
            return WatchdogAction.KILL if now_s - self.ended_s >= EXIT_S else WatchdogAction.NOTHING
        if self.armed and self.asked_s is None:
            return WatchdogAction.NOTHING
        silent_s = now_s - self.heard_s
        limit_s = max(SILENT_FLOOR_S, SILENT_INTERVALS * self.interval_s)
        # The warning comes first also where this look is late: then it was we who did not get to look, and
        # what the engine has said since is read before the next one.
        if not self.warned and silent_s >= (limit_s if self.running else PREPARE_WARN_S):
            self.warned = True
            return WatchdogAction.WARN
        return WatchdogAction.KILL if self._for_too_long(silent_s, limit_s, now_s) else WatchdogAction.NOTHING

    def _for_too_long(self, silent_s: float, limit_s: float, now_s: float) -> bool:
        if self.running:
            return silent_s >= limit_s + self.grace_s + SILENT_FLOOR_S
        asked_for_s = 0.0 if self.asked_s is None else now_s - self.asked_s
        return silent_s >= PREPARE_KILL_S or min(silent_s, asked_for_s) >= STOP_S
