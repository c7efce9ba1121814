"""Rows from readings: what is told, for which time, and what is left out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.monitor.counters import Counters
from loadstone.watch import watcher
from loadstone.watch.address import WatchedAddress
from loadstone.watch.source import HostReading, WallClock
from loadstone.watch.watched_clock import ClockOffset
from loadstone.watch.watcher import Rows

if TYPE_CHECKING:
    import pytest

S = 1_000_000_000


def reading(
    at_s: float,
    growing: dict[str, int],
    levels: dict[str, int] | None = None,
    *,
    uptime_s: float | None = None,
    age_s: float | None = None,
    rtt_ns: int = 0,
    clock: WallClock | None = None,
    parts: dict[str, set[str]] | None = None,
) -> HostReading:
    at_ns = round(at_s * S)
    up, age = (None if one is None else round(one * S) for one in (uptime_s, age_s))
    counters = Counters(growing, levels or {}, parts or {})
    return HostReading(at_ns - rtt_ns // 2, at_ns + rtt_ns // 2, counters, up, age, clock=clock)


def test_counters_are_told_as_increase_and_levels_as_they_are() -> None:
    rows = Rows(10 * S)
    assert rows.take(reading(10, {"disk.a.reads": 100})) is None
    row = rows.take(
        reading(11, {"disk.a.reads": 150, "disk.b.reads": 7}, {"memory.free_bytes": 5}, rtt_ns=2000)
    )
    assert row == {"t_ns": S, "dt_ns": S, "error_ns": 1000, "disk.a.reads": 50, "memory.free_bytes": 5}


def test_names_that_come_and_go_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "MOST_COLUMNS", 3)
    rows = Rows(0)
    rows.take(reading(1, {}, {"net.a.mtu": 1, "net.b.mtu": 1}))
    kept = rows.take(reading(2, {}, {"net.a.mtu": 1, "net.b.mtu": 1}))
    assert kept is not None
    assert rows.left_out is None
    later = rows.take(reading(3, {}, {"net.b.mtu": 2, "net.c.mtu": 2, "net.d.mtu": 2}))
    assert later is not None
    assert {name: value for name, value in later.items() if name.startswith("net.")} == {
        "net.b.mtu": 2,
        "net.c.mtu": 2,
    }
    assert rows.left_out == "net.d.mtu"


def test_the_hosts_own_clock_gives_the_length_where_it_fits() -> None:
    rows = Rows(0)
    rows.take(reading(1, {"a.x": 0}, uptime_s=100))
    row = rows.take(reading(2.004, {"a.x": 1}, uptime_s=101, rtt_ns=10_000_000))
    assert row is not None
    assert row["dt_ns"] == S
    # A clock that runs away from what passed here is not believed.
    row = rows.take(reading(3, {"a.x": 2}, uptime_s=105))
    assert row is not None
    assert row["dt_ns"] == round(0.996 * S)


def test_a_host_that_started_anew_is_no_increase() -> None:
    rows = Rows(0)
    rows.take(reading(1, {"a.x": 1000}, uptime_s=500))
    assert rows.take(reading(2, {"a.x": 2000}, uptime_s=3)) is None
    row = rows.take(reading(3, {"a.x": 2001}, uptime_s=4))
    assert row is not None
    assert row["a.x"] == 1


def test_an_agent_or_a_host_that_counts_anew_without_a_steady_clock_is_no_increase() -> None:
    """Counters that had grown past their old values at the next look were told as work."""
    rows = Rows(0)
    rows.take(reading(1, {"a.x": 10}, age_s=500))
    assert rows.take(reading(61, {"a.x": 20}, age_s=30)) is None
    rows = Rows(0)
    idle = "cpu.all.idle_ns"
    rows.take(reading(1, {idle: 1000 * S, "a.x": 10}))
    assert rows.take(reading(2, {idle: 3 * S, "a.x": 20})) is None
    # A kernel's idle time goes back by a little now and then.
    row = rows.take(reading(3, {idle: 3 * S - 10**7, "a.x": 21}))
    assert row is not None
    assert (row.get(idle), row["a.x"]) == (None, 1)


def test_a_sum_has_not_grown_when_it_is_of_other_parts() -> None:
    """A processor that went and came back added the idle time of its life to one second."""
    rows = Rows(0)
    both, one = {"cpu.all.idle_ns": {"0", "1"}}, {"cpu.all.idle_ns": {"0"}}
    told = []
    for at, (idle_s, parts) in enumerate(((200, both), (202, both), (102, one), (103, one), (206, both))):
        row = rows.take(reading(at, {"cpu.all.idle_ns": idle_s * S}, parts=parts))
        told.append(None if row is None else row.get("cpu.all.idle_ns"))
    assert told == [None, 2 * S, None, S, None]


def test_a_clock_that_is_set_meanwhile_is_noticed_and_known_anew() -> None:
    clock = ClockOffset()
    now = 1000 * S, 0
    assert clock.heard(reading(10, {}, rtt_ns=10**6, clock=WallClock(1010 * S, 0)), *now) is None
    # A look that took long says less, and nothing against what is known.
    slow = reading(20, {}, rtt_ns=6 * S, clock=WallClock(1022 * S, 0))
    assert clock.heard(slow, *now) is None
    assert clock.offset_ns == 0
    hour_ahead = reading(30, {}, rtt_ns=2 * 10**6, clock=WallClock(1030 * S + 3600 * S, 0))
    assert clock.heard(hour_ahead, *now) == 3600 * S
    assert (clock.offset_ns, clock.error_ns) == (3600 * S, 10**6)


def test_a_counter_that_went_back_has_nothing_to_tell() -> None:
    rows = Rows(0)
    rows.take(reading(1, {"net.e.rx_bytes": 2**32 - 5}))
    row = rows.take(reading(2, {"net.e.rx_bytes": 5}))
    assert row is not None
    assert "net.e.rx_bytes" not in row


def test_a_group_that_stood_still_is_told_over_its_own_time() -> None:
    rows = Rows(0)
    rows.take(reading(1, {"net.e.rx_bytes": 0, "disk.a.reads": 0}))
    row = rows.take(reading(2, {"disk.a.reads": 10}))
    assert row is not None
    assert "net.e.rx_bytes" not in row
    assert "net.dt_ns" not in row
    row = rows.take(reading(4, {"net.e.rx_bytes": 300, "disk.a.reads": 30}))
    assert row is not None
    assert (row["net.e.rx_bytes"], row["net.dt_ns"], row["dt_ns"], row["disk.a.reads"]) == (
        300,
        3 * S,
        2 * S,
        20,
    )
    assert "disk.dt_ns" not in row


def test_after_a_loss_nothing_is_told_of_the_gap() -> None:
    rows = Rows(0)
    rows.take(reading(1, {"a.x": 0}))
    rows.forget()
    assert rows.take(reading(60, {"a.x": 10**6})) is None
    row = rows.take(reading(61, {"a.x": 10**6 + 5}))
    assert row is not None
    assert (row["a.x"], row["dt_ns"]) == (5, S)


def test_the_clocks_offset_is_that_of_the_shortest_exchange() -> None:
    clock = ClockOffset()
    clock.heard(
        reading(10, {}, rtt_ns=4_000_000, clock=WallClock(1000 * S + 3 * S, 0)),
        now_unix_ns=1000 * S,
        now_ns=10 * S,
    )
    assert (clock.offset_ns, clock.error_ns) == (3 * S, 2_000_000)
    clock.heard(
        reading(20, {}, rtt_ns=100_000_000, clock=WallClock(1010 * S + 3 * S + 40_000_000, 0)),
        now_unix_ns=1010 * S,
        now_ns=20 * S,
    )
    assert clock.offset_ns == 3 * S
    # Whole seconds: half of one is the middle of where it can be, and the error.
    seconds = ClockOffset()
    seconds.heard(reading(10, {}, clock=WallClock(1000 * S, S)), now_unix_ns=1000 * S, now_ns=10 * S)
    assert (seconds.offset_ns, seconds.error_ns) == (S // 2, S // 2)
    nothing = ClockOffset()
    nothing.heard(reading(10, {}))
    assert nothing.offset_ns is None


def test_what_two_clocks_of_a_host_tell_is_not_taken_for_one_that_was_set() -> None:
    """In a container the time of the boot may be the host's, and the uptime its own."""
    watched = watcher.Watcher(WatchedAddress("nas", "ssh", "ssh://nas"), None)  # type: ignore[arg-type]
    now_ns = time.time_ns() - time.monotonic_ns()
    told: list[dict[str, Any]] = []

    def look(at_s: float, ahead_s: float, step_ns: int) -> None:
        clock = WallClock(now_ns + round((at_s + ahead_s) * S) - step_ns // 2, step_ns)
        watched._hear_clock(reading(at_s, {}, clock=clock), told.append)

    look(1, 0, 0)
    look(2, -7200, S)
    look(3, -7200, S)
    assert not told
    look(4, -3600, S)
    look(5, 3600, 0)
    assert [one["text"].partition("the clock")[2] for one in told] == [
        " of nas moved 1\xa0h ahead of this host's: one of the two was set"
    ]
    assert round(watched._clock_account()["clock_offset_ns"] / S) == 3600


def test_a_clock_that_is_set_between_two_looks_that_ask_for_it_is_told_once() -> None:
    """It was asked at five looks: one set at the fifth was held against nothing until the thirtieth."""
    watched = watcher.Watcher(WatchedAddress("nas", "ssh", "ssh://nas"), None)  # type: ignore[arg-type]
    now_ns = time.time_ns() - time.monotonic_ns()
    told: list[dict[str, Any]] = []
    for at_s, ahead_s in ((4, 0), (5, 0), (6, -60), (7, -60)):
        unix_ns = now_ns + (at_s + ahead_s) * S
        exact = WallClock(unix_ns, 0) if at_s != 6 else None
        one = reading(at_s, {}, clock=exact)
        watched._hear_clock(replace(one, coarse_clock=WallClock(unix_ns - S // 2, S)), told.append)
    assert [one["text"].partition(" the clock")[0] for one in told] == ["at 6.00\xa0s"]
