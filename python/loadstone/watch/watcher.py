"""One watched host during a run: a thread that looks, keeps time, and comes back after a loss.

Knows the clockwork, what a row is and what a gap is. Knows no protocol and no bundle. A row has
`t_ns` (since the run's origin), `dt_ns`, the increase of counters in that time, and levels as they
are. A group of counters that the host took over another time than the row's has its own
`GROUP.dt_ns`. What nobody saw has no row: no data is not zero.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import uncaught
from loadstone.messages import say
from loadstone.watch.source import WatchError
from loadstone.watch.watched_clock import ClockOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.watch.address import WatchedAddress
    from loadstone.watch.source import HostReading, HostSource

AGAIN_S: Final = (1.0, 1.0, 2.0, 4.0, 8.0)
"""Pauses between tries to reach a host again; the last one repeats."""
STOP_S: Final = 3.0
MOST_COLUMNS: Final = 20_000
"""All CPUs of the largest hosts, or some thousand disks and interfaces."""
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
NEW_BOOT_NS: Final = 1_000_000_000
IDLE: Final = "cpu.all.idle_ns"


@dataclass(slots=True)
class _CounterGroup:
    """When a group of counters was last told, and what it said."""

    t_ns: int
    values: dict[str, int]
    parts: dict[str, set[str]]


class Rows:
    """Readings in, rows out."""

    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._groups: dict[str, _CounterGroup] = {}
        self._before: HostReading | None = None
        self._columns: set[str] = set()
        self.left_out: str | None = None
        """A column that there was no room for, the first of them."""

    def forget(self) -> None:
        """Begin anew: what lies between is a gap."""
        self._groups.clear()
        self._before = None

    def take(self, reading: HostReading) -> dict[str, int] | None:
        """Return the row since the reading before; None for the first one."""
        before = self._before
        self._before = reading
        if before is not None and _restarted(before, reading):
            self._groups.clear()
            before = None
        now_ns = reading.middle_ns
        dt_ns = _passed_ns(before, reading) if before is not None else 0
        increases: dict[str, int] = {}
        by_group: dict[str, dict[str, int]] = {}
        for key, value in reading.counters.growing.items():
            by_group.setdefault(key.partition(".")[0], {})[key] = value
        for name, values in by_group.items():
            last = self._groups.get(name)
            self._groups[name] = _CounterGroup(now_ns, values, reading.counters.parts)
            if last is None:
                continue
            grown = {
                key: value - last.values[key]
                for key, value in values.items()
                if key in last.values
                and value >= last.values[key]
                and reading.counters.parts.get(key) == last.parts.get(key)
            }
            if before is not None and last.t_ns != before.middle_ns:
                grown[f"{name}.dt_ns"] = now_ns - last.t_ns
            increases |= grown
        if before is None or dt_ns <= 0:
            return None
        return {
            "t_ns": now_ns - self._origin_ns,
            "dt_ns": dt_ns,
            "error_ns": reading.error_ns,
            **self._with_room(increases | reading.counters.levels),
        }

    def _with_room(self, row: dict[str, int]) -> dict[str, int]:
        """Leave out new columns beyond those there may be: names that come and go are new ones each time."""
        new = sorted(row.keys() - self._columns)
        room = MOST_COLUMNS - len(self._columns)
        self._columns.update(new[:room])
        if len(new) <= room:
            return row
        self.left_out = self.left_out or new[room]
        return {key: value for key, value in row.items() if key in self._columns}


def _passed_ns(before: HostReading, after: HostReading) -> int:
    """Return the time between two readings: by the host's own clock, which no network delays."""
    if before.uptime_ns is not None and after.uptime_ns is not None:
        own_ns = after.uptime_ns - before.uptime_ns
        # Within what the exchange can explain; a host that was suspended counts otherwise.
        if abs(own_ns - (after.middle_ns - before.middle_ns)) <= (
            before.error_ns + after.error_ns + 20_000_000
        ):
            return own_ns
    return after.middle_ns - before.middle_ns


def _restarted(before: HostReading, after: HostReading) -> bool:
    ages = ((before.uptime_ns, after.uptime_ns), (before.age_ns, after.age_ns))
    if any(old is not None and new is not None and new + NEW_BOOT_NS < old for old, new in ages):
        return True
    # Where nothing tells since when it counts. Idle time goes back by a little at times, never to its half.
    idle_ns = [one.counters.growing.get(IDLE) for one in (before, after)]
    return idle_ns[0] is not None and idle_ns[1] is not None and idle_ns[1] < idle_ns[0] // 2


def same_host(facts: dict[str, Any], kind: str, boot_id: Path = BOOT_ID) -> bool | None:
    """Tell whether this is the machine we run on: by its boot, or else by its name and its memory."""
    if kind == "local":
        return True
    try:
        own_boot_id = boot_id.read_text().strip()
    except OSError:
        own_boot_id = None
    if own_boot_id and facts.get("boot_id"):
        return bool(facts["boot_id"] == own_boot_id)
    if facts.get("host") is None or facts.get("memory_bytes") is None:
        return None
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # What agents call the memory's size differs by less than what they round.
    return bool(facts["host"] == os.uname().nodename and abs(facts["memory_bytes"] - memory_bytes) < 1 << 20)


class Watcher:
    """Watches one host; connected before a run, started at its origin."""

    def __init__(self, address: WatchedAddress, source: HostSource) -> None:
        self.address = address
        self.facts: dict[str, Any] = {}
        self._source = source
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._clocks: dict[int, ClockOffset] = {}
        """By how finely they tell: two may differ by more than their errors, as in containers."""
        self._rows = 0
        self._errors_ns: list[int] = []
        self._gaps: list[dict[str, Any]] = []
        self._cpu_ns = 0
        self._there_ns = 0
        self._there_before_ns = 0
        self._began_ns = 0
        self._origin_ns = 0
        self._seen_ns = 0
        """Until when it was seen, from the run's origin on: a loss is noticed later."""
        self.latest: tuple[int, dict[str, int]] | None = None
        """The last row and when it came, for who wants to show it."""
        self._told_left_out = False
        self._let_go = threading.Event()
        """Nobody waits for it any more: what it still sees is not kept."""
        self.lost: str | None = None
        """Why it does not answer just now."""

    def connect(self) -> None:
        """Reach it. Raises `WatchError`."""
        self.facts = self._source.connect()
        self.facts["same_host"] = same_host(self.facts, self.address.kind)

    def start(
        self, origin_ns: int, write: Callable[[dict[str, int]], None], tell: Callable[[dict[str, Any]], None]
    ) -> None:
        """Begin to look, at once and then at every interval; `write` takes rows, `tell` events."""
        self._began_ns, self._origin_ns = time.monotonic_ns(), origin_ns
        self._thread = threading.Thread(
            target=self._loop, args=(origin_ns, write, tell), name=f"watch {self.address.name}", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            self._thread = None
            self._gaps.append({"from_ns": 0, "why": str(error)})

    def ask_to_stop(self) -> None:
        """Look a last time, and end; `stop` waits for it."""
        self._done.set()

    def stop(self, wait_s: float = STOP_S) -> dict[str, Any]:
        """End, and return the account: rows, gaps, clock, and what watching cost on both sides."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(wait_s)
            self._let_go.set()
            if self._thread.is_alive() and all("to_ns" in gap for gap in self._gaps):
                self._gaps.append(
                    {"from_ns": self._seen_ns, "why": f"the last look took more than {STOP_S:.0f} s"}
                )
        else:
            self._source.close()
        seconds = max(time.monotonic_ns() - self._began_ns, 1) if self._began_ns else 1
        errors = sorted(self._errors_ns)
        return {
            "name": self.address.name,
            "rows": self._rows,
            "gaps": self._gaps,
            "seconds": seconds / 1e9,
            "cpu_ns": self._cpu_ns,
            **({"there_cpu_ns": self._there_ns} if self._there_ns else {}),
            **({"aligned_within_ns": errors[int(0.95 * (len(errors) - 1))]} if errors else {}),
            **self._clock_account(),
        }

    def _clock_account(self) -> dict[str, Any]:
        if not self._clocks:
            return {}
        clock = self._clocks[min(self._clocks)]
        return {"clock_offset_ns": clock.offset_ns, "clock_error_ns": clock.error_ns}

    def close(self) -> None:
        """Let go without an account: the run came to nothing."""
        self._done.set()
        if self._thread is None:
            self._source.close()

    def _loop(
        self, origin_ns: int, write: Callable[[dict[str, int]], None], tell: Callable[[dict[str, Any]], None]
    ) -> None:
        interval_ns = round(self.address.interval_s * 1e9)
        rows, tries, connected = Rows(origin_ns), 0, True
        lost_ns: int | None = None
        while True:
            began_ns = time.thread_time_ns()
            try:
                if not connected:
                    self._source.connect()
                    connected, self._there_before_ns = True, 0
                reading = self._source.read()
            except WatchError as error:
                lost_ns, tries = self._failed(error, lost_ns, origin_ns, tell), tries + 1
                connected = False
                rows.forget()
                self._cpu_ns += self._source.close()
                pause_s = AGAIN_S[min(tries, len(AGAIN_S)) - 1]
            except Exception as error:  # noqa: BLE001 - the run goes on, and says from when it was not watched
                self._failed(WatchError(uncaught.words(error)), lost_ns, origin_ns, tell)
                break
            else:
                tries = 0
                if lost_ns is not None:
                    self._back(reading, origin_ns, tell)
                    lost_ns = None
                self._took(rows.take(reading), reading, write, tell)
                self._tell_left_out(rows.left_out, tell)
                pause_s = (interval_ns - (time.monotonic_ns() - origin_ns) % interval_ns) / 1e9
            self._cpu_ns += time.thread_time_ns() - began_ns
            if self._done.wait(pause_s):
                break
        if connected:
            self._last(rows, lost_ns, origin_ns, write, tell)
        self._cpu_ns += self._source.close()

    def _last(
        self,
        rows: Rows,
        lost_ns: int | None,
        origin_ns: int,
        write: Callable[[dict[str, int]], None],
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        """Look once more when the load is over: the row stands for its end."""
        try:
            reading = self._source.read()
            self._took(rows.take(reading), reading, write, tell)
        except WatchError as error:
            self._failed(error, lost_ns, origin_ns, tell)
        except Exception as error:  # noqa: BLE001 - as in the loop
            self._failed(WatchError(uncaught.words(error)), lost_ns, origin_ns, tell)

    def _took(
        self,
        row: dict[str, int] | None,
        reading: HostReading,
        write: Callable[[dict[str, int]], None],
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        if self._let_go.is_set():
            return
        self._hear_clock(reading, tell)
        self._errors_ns.append(reading.error_ns)
        self._seen_ns = max(0, reading.middle_ns - self._origin_ns)
        if reading.there_cpu_ns is not None:
            self._there_ns += max(0, reading.there_cpu_ns - self._there_before_ns)
            self._there_before_ns = reading.there_cpu_ns
        if row is not None:
            write(row)
            self._rows += 1
            self.latest = time.monotonic_ns(), row

    def _hear_clock(self, reading: HostReading, tell: Callable[[dict[str, Any]], None]) -> None:
        """Say that a wall clock was set meanwhile: times in the host's logs before it are others."""
        for one in filter(None, (reading.clock, reading.coarse_clock)):
            clock = self._clocks.setdefault(one.step_ns, ClockOffset())
            moved_ns = clock.heard(reading, clock=one)
            if moved_ns is not None:
                self._clocks = {one.step_ns: clock}
                self._tell_moved(moved_ns, reading, tell)

    def _tell_moved(
        self, moved_ns: int, reading: HostReading, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        direction = "ahead" if moved_ns > 0 else "back"
        at_s = max(0.0, (reading.middle_ns - self._origin_ns) / 1e9)
        text = say(f"watch.clock.{direction}", name=self.address.name, at_s=at_s, moved_s=abs(moved_ns) / 1e9)
        tell({"type": "note", "text": text})

    def _tell_left_out(self, column: str | None, tell: Callable[[dict[str, Any]], None]) -> None:
        """Say once that a host tells more than is kept."""
        if column is None or self._told_left_out:
            return
        self._told_left_out = True
        text = say("watch.rows.columns", name=self.address.name, most_count=MOST_COLUMNS, column=column)
        tell({"type": "note", "text": text})

    def _failed(
        self, error: WatchError, lost_ns: int | None, origin_ns: int, tell: Callable[[dict[str, Any]], None]
    ) -> int:
        now_ns = time.monotonic_ns() - origin_ns
        self.lost = error.message
        if lost_ns is not None:
            return lost_ns
        self._gaps.append({"from_ns": self._seen_ns, "why": error.message})
        tell({"type": "watch_lost", "name": self.address.name, "t_ns": max(0, now_ns), "text": error.message})
        return now_ns

    def _back(self, reading: HostReading, origin_ns: int, tell: Callable[[dict[str, Any]], None]) -> None:
        now_ns = reading.middle_ns - origin_ns
        self.lost = None
        self._gaps[-1]["to_ns"] = max(0, now_ns)
        tell({"type": "watch_back", "name": self.address.name, "t_ns": max(0, now_ns)})
