"""Events in, verdict out."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from loadstone import exitcodes
from loadstone.engine.event_summary import EventSummary
from loadstone.errors import EngineError, InputError, RunError


def ended(reason: str = "done") -> dict[str, Any]:
    return {"type": "end", "t_ns": 5, "reason": reason}


def stream_end(failed: int = 0, reason: str = "runtime") -> dict[str, Any]:
    return {"type": "stream_end", "stream": 0, "reason": reason, "failed": [failed, 0, 0, 0]}


def io_error(**changes: Any) -> dict[str, Any]:
    event = {"type": "io_error", "target": 0, "op": "write", "offset": 8192, "bytes": 4096}
    return event | {"errno": errno.EIO, "moved": 0} | changes


def ledger(*events: dict[str, Any]) -> EventSummary:
    one = EventSummary(["/dev/sdx", "/dev/sdy"])
    for event in events:
        one.heard(event)
    return one


def test_a_clean_run() -> None:
    verdict = ledger(stream_end(), ended()).verdict(0)
    assert (verdict.status, verdict.exit_code, verdict.error) == ("complete", exitcodes.DONE, None)


def test_errors_name_target_offset_and_reason_once_per_kind() -> None:
    events = [io_error(), io_error(offset=4096), io_error(target=1, errno=errno.ENOSPC), stream_end(failed=3)]
    verdict = ledger(*events, ended()).verdict(0)
    assert (verdict.status, verdict.exit_code) == ("failed", exitcodes.FAILED)
    assert isinstance(verdict.error, RunError)
    assert str(verdict.error).splitlines() == [
        "3 I/Os failed",
        "  /dev/sdx: write of 4096 bytes at offset 8192: Input/output error (EIO)",
        "  /dev/sdy: write of 4096 bytes at offset 8192: No space left on device (ENOSPC)",
    ]


def test_damage_is_told_once_for_a_file_that_is_opened_in_two_ways() -> None:
    damage = {"type": "damage", "offset": 4096, "bytes": 4096, "kind": "bit_flip", "message": "expected a"}
    one = EventSummary(["/t/a", "/t/a"])
    for event in ({**damage, "target": 0}, {**damage, "target": 1}, {"type": "verified", "found": {"a": 1}}):
        one.heard(event)
    one.heard(ended())
    assert str(one.verdict(0).error).splitlines() == [
        "1 block does not hold what was written",
        "  /t/a: bit flip of 4096 bytes at offset 4096: expected a",
    ]


def test_an_ignored_error_is_no_failure() -> None:
    assert ledger(stream_end(failed=0), ended()).verdict(0).exit_code == exitcodes.DONE


def test_a_hung_io_fails_the_run() -> None:
    hung = {"type": "hung", "target": 1, "op": "read", "offset": 0, "bytes": 512, "age_ns": 2_500_000_000}
    verdict = ledger(hung, stream_end(reason="hung"), ended("failed")).verdict(0)
    assert verdict.exit_code == exitcodes.FAILED
    assert "/dev/sdy: read of 512 bytes at offset 0: did not come back within 2.5 s" in str(verdict.error)


def test_a_thread_that_does_not_end_is_told_as_such() -> None:
    """On an overloaded host a run had "failed", and nobody said why."""
    error = ledger(stream_end(reason="hung"), ended("failed")).verdict(0).error
    assert error is not None
    assert str(error).startswith("a thread of the engine did not end in time")
    assert error.hint is not None


def test_a_missed_rate_fails_the_run() -> None:
    verdict = ledger(stream_end(reason="rate_minimum"), ended()).verdict(0)
    assert verdict.exit_code == exitcodes.FAILED
    assert "fell below the rate" in str(verdict.error)


@pytest.mark.parametrize(
    ("code", "said"), [(-9, "was killed by SIGKILL"), (-11, "was killed by SIGSEGV"), (4, "exit code 4")]
)
def test_a_death_says_how(code: int, said: str) -> None:
    verdict = ledger({"type": "talk", "text": "thread panicked"}).verdict(code)
    assert (verdict.status, verdict.exit_code) == ("failed", exitcodes.FAILED)
    assert isinstance(verdict.error, EngineError)
    assert said in str(verdict.error)
    assert "thread panicked" in str(verdict.error)


def test_exit_code_zero_without_an_end_is_a_death() -> None:
    assert ledger(stream_end()).verdict(0).status == "failed"


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [(2, InputError, exitcodes.USAGE), (3, RunError, exitcodes.FAILED), (4, EngineError, exitcodes.FAILED)],
)
def test_fatal_keeps_message_and_hint(code: int, kind: type[Exception], exit_code: int) -> None:
    fatal = {"type": "fatal", "code": code, "message": "it is wrong", "hint": "do that"}
    verdict = ledger(fatal).verdict(code)
    assert (verdict.status, verdict.exit_code) == ("failed", exit_code)
    assert isinstance(verdict.error, kind)
    assert verdict.error is not None
    assert (str(verdict.error), verdict.error.hint) == ("it is wrong", "do that")


def test_an_interrupt_wins_and_keeps_the_problems() -> None:
    one = ledger(io_error(), stream_end(failed=1), ended("stopped"))
    one.stopped = True
    verdict = one.verdict(0)
    assert (verdict.status, verdict.exit_code) == ("interrupted", exitcodes.INTERRUPTED)
    assert "EIO" in str(verdict.error)


def test_many_problems_are_cut() -> None:
    one = EventSummary([f"/dev/sd{n}" for n in range(100)])
    for number in range(100):
        one.heard(io_error(target=number))
    assert len(one.problems) == 21
    assert one.problems[-1] == "and 80 more; see events.jsonl"
