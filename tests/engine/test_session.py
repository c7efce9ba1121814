"""A run with engines that misbehave as a real one must not: silent, undying, lying, gone."""

from __future__ import annotations

import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle.read import Bundle
from loadstone.engine import binary, watchdog
from loadstone.errors import EngineError, RefusedError, RunError
from loadstone.session import Orders, Outcome, RunRequest, Steer, run_plan
from tests.guard.plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.plan.model import Plan

START = """
say() { printf '%s\\n' "$1"; }
say '{"type":"hello","pid":'$$'}'
say '{"type":"start","unix_ns":'$(date +%s%N)',"startup_ns":1}'
"""
STREAM_END = """say '{"type":"stream_end","stream":0,"reason":"bytes","failed":[0,0,0,0]}'"""
TICK = """{"type":"tick","t_ns":1,"rows":[]}"""
DONE = (
    STREAM_END
    + """
say '{"type":"end","t_ns":1,"reason":"done"}'"""
)


class RememberedProgress:
    """A `Progress` that remembers."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.finished = 0

    def begin(self, plan: Plan, bundle: Path) -> None:
        assert (bundle / "plan.json").exists()
        assert plan.targets

    def event(self, event: Mapping[str, Any]) -> None:
        self.kinds.append(event["type"])

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "SILENT_FLOOR_S", 0.5)
    monkeypatch.setattr(watchdog, "EXIT_S", 0.5)
    monkeypatch.setattr(watchdog, "REAP_S", 0.5)


def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    seen: RememberedProgress | None = None,
    steer: Steer | None = None,
) -> Outcome:
    program = tmp_path / "engine"
    program.write_text(f"#!/bin/sh\n{START}\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv(binary.OVERRIDE, str(program))
    (tmp_path / "data").write_bytes(b"x" * 4096)
    one = plan(target(str(tmp_path / "data"), read_only=True, size_bytes=4096), read=100, write=0)
    one = one.model_copy(update={"grace_ns": 100_000_000, "interval_ns": 10_000_000})
    asked = RunRequest({"argv": ["x"]}, {"j.fio": b"[x]"}, "{}", [])
    return run_plan(one, request=asked, out_dir=tmp_path / "b", progress=seen, steer=steer)


@pytest.mark.in_turn
def test_all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = RememberedProgress()
    outcome = run(tmp_path, monkeypatch, DONE, seen)
    assert (outcome.status, outcome.exit_code, outcome.error) == ("complete", 0, None)
    # On a host with too much to do an engine that means well is silent for a while, too.
    events = [kind for kind in seen.kinds if kind != "silent"]
    assert events == ["hello", "start", "stream_end", "end", "engine_exit"]
    assert seen.finished == 1
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.manifest["exit_code"] == 0
    assert bundle.inputs == {"j.fio": b"[x]"}


@pytest.mark.in_turn
def test_who_steers_sees_events_and_may_end_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def steer(event: Mapping[str, Any], orders: Orders) -> None:
        if event["type"] == "start":
            orders.end_stage(0)

    seen = RememberedProgress()
    body = f"""read line; say '{{"type":"note","text":"'"$line"'"}}'; {DONE}"""
    assert run(tmp_path, monkeypatch, body, seen, steer).status == "complete"
    events = [e for e in Bundle.open(tmp_path / "b").events if e["type"] in {"order", "note"}]
    assert [e["text"] for e in events] == ["end-stage 0", "end-stage 0"]
    assert "order" in seen.kinds


@pytest.mark.in_turn
def test_silence_is_told_then_ended_and_what_was_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = RememberedProgress()
    outcome = run(tmp_path, monkeypatch, "exec sleep 600", seen)
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert isinstance(outcome.error, EngineError)
    assert "stopped answering and was killed" in str(outcome.error)
    assert seen.kinds.index("silent") < seen.kinds.index("kill")
    assert Bundle.open(tmp_path / "b").status == "failed"


@pytest.mark.in_turn
def test_a_slow_exit_after_the_end_does_not_spoil_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run(tmp_path, monkeypatch, DONE + "\nexec sleep 600")
    assert (outcome.status, outcome.exit_code, outcome.error) == ("complete", 0, None)
    assert "kill" in [event["type"] for event in Bundle.open(tmp_path / "b").events]


@pytest.mark.in_turn
def test_a_broken_contract_fails_the_run_and_seals_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run(tmp_path, monkeypatch, "say 'thread panicked'; exec sleep 600")
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert "broke the contract" in str(outcome.error)
    assert Bundle.open(tmp_path / "b").status == "failed"


@pytest.mark.in_turn
def test_no_engine_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binary.OVERRIDE, str(tmp_path / "nothing"))
    (tmp_path / "data").write_bytes(b"x" * 4096)
    one = plan(target(str(tmp_path / "data"), read_only=True), read=100, write=0)
    outcome = run_plan(one, request=RunRequest({}, {}, "{}", []), out_dir=tmp_path / "b")
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert "not an executable file" in str(outcome.error)


def test_a_refusal_leaves_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 4096)
    with pytest.raises(RefusedError):
        run_plan(
            plan(target(str(tmp_path / "data"))), request=RunRequest({}, {}, "{}", []), out_dir=tmp_path / "b"
        )
    assert not (tmp_path / "b").exists()


@pytest.mark.in_turn
def test_a_full_disk_under_the_bundle_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = """i=0; while [ $i -lt 20000 ]; do say '{"type":"note","text":"%s"}'; i=$((i+1)); done""" % (
        "x" * 80
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        outcome = run(tmp_path, monkeypatch, talk + "\n" + DONE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert isinstance(outcome.error, RunError)
    assert "cannot be written any more: File too large" in str(outcome.error)
    assert "ulimit -f" in str(outcome.error.hint)
    assert Bundle.open(tmp_path / "b").status == "partial"


def count_wake_ups(where: Path, seconds: int) -> int:
    """Of this whole process, in a run whose engine says a word every half second for so many seconds."""
    ticks = f"sleep 0.5; say '{TICK}'; " * 2 * seconds
    where.mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watchdog, "SILENT_FLOOR_S", 60.0)
        run(where, patch, ticks + DONE)
    assert (where / "b" / "host.parquet").exists()
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before


@pytest.mark.in_turn
def test_waiting_for_an_engine_costs_next_to_nothing(tmp_path: Path) -> None:
    """Counted in wake-ups, which are ours, not in time, which is the machine's.

    In a process of its own, for a worker still has threads of the tests before this one. The first run
    is not counted: what it imports may have to be read from the disk. Alone it is 10 a second, on a busy
    host 30.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
        seconds = (0, 0, 2)
        _, without, with_wait = (
            alone.submit(count_wake_ups, tmp_path / str(number), length).result()
            for number, length in enumerate(seconds)
        )
    assert with_wait - without < 70 * seconds[-1], (without, with_wait)
