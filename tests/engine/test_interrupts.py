"""Signals that ask a run to end."""

from __future__ import annotations

import os
import signal

import pytest

from loadstone.engine import interrupts
from loadstone.engine.interrupts import Interrupts


def collect(number: signal.Signals, times: int) -> tuple[list[str], int]:
    said: list[str] = []
    with Interrupts(lambda: said.append("first"), lambda: said.append("second")) as caught:
        for _ in range(times):
            os.kill(os.getpid(), number)
    return said, caught.count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_asks_and_the_next_insists(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "SAME_REQUEST_S", 0.0)
    # Of a test that runs under nohup SIGHUP is ignored, and stays so.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert collect(number, 2) == (["first", "second"], 2)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_one_request_sent_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "SAME_REQUEST_S", 60.0)
    assert collect(signal.SIGINT, 2) == (["first"], 1)


def test_what_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert collect(signal.SIGHUP, 2) == ([], 0)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_request_inside_is_told_outside_and_calls_nobody_there() -> None:
    said: list[str] = []
    with Interrupts(lambda: said.append("outer"), lambda: said.append("outer insists")) as outer:
        with Interrupts(lambda: said.append("inner"), lambda: said.append("inner insists")):
            os.kill(os.getpid(), signal.SIGINT)
        assert outer.asked
        assert outer.count == 0
    assert said == ["inner"]


def test_a_request_before_a_block_is_taken_up_as_it_begins() -> None:
    said: list[str] = []
    with Interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        with Interrupts(lambda: said.append("first"), lambda: said.append("second")) as inner:
            assert inner.count == 1
    with Interrupts(lambda: said.append("later")) as after:
        assert not after.asked
    assert said == ["first"]
