"""Silence and slow ends, on a clock that the test moves."""

from __future__ import annotations

from loadstone.engine.watchdog import Watchdog, WatchdogAction


def watch(interval_s: float = 1.0, grace_s: float = 5.0) -> Watchdog:
    return Watchdog(interval_s=interval_s, grace_s=grace_s, heard_s=0.0)


def test_an_engine_that_speaks_is_left_alone() -> None:
    one = watch()
    one.heard("start", 0.0)
    for second in range(1, 1000):
        assert one.look(second - 0.5) is WatchdogAction.NOTHING
        one.heard("tick", float(second))


def test_ten_missing_intervals_warn_once_then_grace_then_kill() -> None:
    one = watch(interval_s=2.0, grace_s=5.0)
    one.heard("start", 0.0)
    assert one.look(19.9) is WatchdogAction.NOTHING
    assert one.look(20.0) is WatchdogAction.WARN
    assert one.look(21.0) is WatchdogAction.NOTHING
    assert one.look(34.9) is WatchdogAction.NOTHING
    assert one.look(35.0) is WatchdogAction.KILL


def test_short_intervals_still_wait_ten_seconds() -> None:
    one = watch(interval_s=0.1)
    one.heard("start", 0.0)
    assert one.look(9.9) is WatchdogAction.NOTHING
    assert one.look(10.0) is WatchdogAction.WARN


def test_a_word_after_a_warning_starts_anew() -> None:
    one = watch()
    one.heard("start", 0.0)
    assert one.look(10.0) is WatchdogAction.WARN
    one.heard("tick", 11.0)
    assert one.look(20.0) is WatchdogAction.NOTHING
    assert one.look(21.0) is WatchdogAction.WARN


def test_a_look_that_comes_late_warns_before_it_kills() -> None:
    """Found on an overloaded host: an engine was killed because nobody had looked for half a minute."""
    one = watch()
    one.heard("start", 0.0)
    assert one.look(40.0) is WatchdogAction.WARN
    assert one.look(41.0) is WatchdogAction.KILL
    one.heard("tick", 41.5)
    assert one.look(42.0) is WatchdogAction.NOTHING


def test_preparing_files_may_be_silent_for_an_hour() -> None:
    one = watch()
    one.heard("layout", 0.0)
    assert one.look(59.0) is WatchdogAction.NOTHING
    assert one.look(60.0) is WatchdogAction.WARN
    assert one.look(3599.0) is WatchdogAction.NOTHING
    assert one.look(3600.0) is WatchdogAction.KILL


def test_a_silent_preparation_ends_soon_when_the_user_asks() -> None:
    one = watch()
    one.heard("layout", 0.0)
    one.asked(40.0)
    assert one.look(69.0) is WatchdogAction.WARN
    assert one.look(69.9) is WatchdogAction.NOTHING
    assert one.look(70.0) is WatchdogAction.KILL
    one.heard("layout", 71.0)  # It was not silent for so long, only slow.
    assert one.look(100.9) is WatchdogAction.NOTHING
    assert one.look(101.0) is WatchdogAction.KILL


def test_an_engine_that_does_not_exit_after_its_end_is_killed_then_left() -> None:
    one = watch()
    one.heard("start", 0.0)
    one.heard("end", 10.0)
    assert one.look(14.9) is WatchdogAction.NOTHING
    assert one.look(15.0) is WatchdogAction.KILL
    one.killed(15.0)
    assert one.look(17.9) is WatchdogAction.NOTHING
    assert one.look(18.0) is WatchdogAction.LEAVE
