"""Pipes and ends, with programs that misbehave in ways a real engine must not."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from loadstone import engine_groups
from loadstone.engine import binary
from loadstone.engine.plan_check import memory_bytes
from loadstone.engine.process import EngineProcess, probe
from loadstone.errors import EngineError
from loadstone.plan.model import Plan
from tests.support import plans


def program(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "engine"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def start(tmp_path: Path, body: str) -> EngineProcess:
    return EngineProcess(tmp_path / "plan.json", tmp_path, program=program(tmp_path, body))


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.EAGAIN, "ulimit -u"),
        (errno.ENOMEM, "free memory"),
        (errno.ENOENT, "make build"),
        (errno.EIO, None),
    ],
)
def test_why_the_engine_cannot_be_started_is_told_alike_for_the_check_and_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str | None
) -> None:
    """The check of a Plan took every want for a broken installation."""

    def fails(*_given: object, **_named: object) -> None:
        raise OSError(number, os.strerror(number))

    written = plans.plan([plans.target("null", "virtual")], [plans.stream()])
    plan = Plan.model_validate_json(json.dumps(written))
    monkeypatch.setattr("loadstone.engine.plan_check.find", lambda: tmp_path)
    monkeypatch.setattr(subprocess, "Popen", fails)
    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(EngineError) as checking:
        memory_bytes(plan)
    with pytest.raises(EngineError) as running:
        EngineProcess(tmp_path / "plan.json", tmp_path, program=tmp_path)
    assert str(checking.value) == str(running.value)
    assert checking.value.hint == running.value.hint
    assert (checking.value.hint is None) if remedy is None else (remedy in str(checking.value.hint))


def test_events_come_whole_and_in_order(tmp_path: Path) -> None:
    body = """printf '{"type":"hel'; printf 'lo"}\\n{"type":"end"}\\n'; echo words >&2"""
    with start(tmp_path, body) as engine:
        events = [event for event in engine.events(60.0) if event is not None]
        assert engine.wait(60.0) == 0
    assert [e for e in events if e["type"] != "talk"] == [{"type": "hello"}, {"type": "end"}]
    assert {"type": "talk", "text": "words"} in events


def test_it_gets_the_plan_and_the_directory(tmp_path: Path) -> None:
    body = """printf '{"type":"args","words":"%s"}\\n' "$*" """
    with start(tmp_path, body) as engine:
        events = list(engine.events(60.0))
    assert events == [{"type": "args", "words": f"run {tmp_path}/plan.json --out {tmp_path}"}]


def test_half_an_object_of_a_killed_engine_is_dropped(tmp_path: Path) -> None:
    with start(tmp_path, """printf '{"type":"hello"}\\n{"type":"ti'; kill -9 $$""") as engine:
        assert list(engine.events(60.0)) == [{"type": "hello"}]
        assert engine.wait(60.0) == -9


@pytest.mark.parametrize("line", ["not json", "[1]", "7"])
def test_what_is_no_event_breaks_the_contract(tmp_path: Path, line: str) -> None:
    with start(tmp_path, f"echo '{line}'; exec cat") as engine, pytest.raises(EngineError, match="contract"):
        list(engine.events(60.0))
    assert engine.state() in {None, "Z"}


def test_silence_yields_none_and_stop_reaches_standard_input(tmp_path: Path) -> None:
    with start(tmp_path, """read word; printf '{"type":"%s"}\\n' "$word" """) as engine:
        events = engine.events(0.01)
        assert next(events) is None
        engine.stop()
        assert next(event for event in events if event is not None) == {"type": "stop"}


def test_parts_of_a_run_are_ended_by_a_line_each(tmp_path: Path) -> None:
    body = """for _ in 1 2; do read line; printf '{"type":"%s"}\\n' "$line"; done"""
    with start(tmp_path, body) as engine:
        engine.end_stage(2)
        engine.end_stream(7)
        assert list(engine.events(60.0)) == [{"type": "end-stage 2"}, {"type": "end-stream 7"}]


def test_standard_input_closes_with_us(tmp_path: Path) -> None:
    with start(tmp_path, "cat > /dev/null; touch ended; sleep 60") as engine:
        pid = engine.pid
    assert not Path(f"/proc/{pid}").exists()


def test_stopping_what_has_ended_is_quiet(tmp_path: Path) -> None:
    with start(tmp_path, "exit 3") as engine:
        assert engine.wait(60.0) == 3
        engine.stop()
        engine.kill()


def test_leaving_takes_a_stubborn_engine_along(tmp_path: Path) -> None:
    with start(tmp_path, "trap '' TERM INT; while :; do sleep 1; done") as engine:
        pid = engine.pid
    assert not Path(f"/proc/{pid}").exists()


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    broken = tmp_path / "engine"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(EngineError, match="cannot be started"):
        EngineProcess(tmp_path / "plan.json", tmp_path, program=broken)


def test_probe_reads_one_object_and_tells_what_went_wrong(tmp_path: Path) -> None:
    good = program(tmp_path, """echo '{"io_uring":{"available":true}}'""")
    assert probe(program=good) == {"io_uring": {"available": True}}
    bad = program(tmp_path, "echo no ring >&2; exit 4")
    with pytest.raises(EngineError, match="exit code 4: no ring"):
        probe(program=bad)


def test_the_override_must_be_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binary.OVERRIDE, str(tmp_path / "none"))
    with pytest.raises(EngineError, match="not an executable file"):
        binary.find()
    good = program(tmp_path, "exit 0")
    monkeypatch.setenv(binary.OVERRIDE, str(good))
    assert binary.find() == good


def test_a_group_made_for_the_load_is_the_engines_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole program was in it, and its judging and watching took the CPU time of the load."""
    group = tmp_path / "cpu" / "group"
    group.mkdir(parents=True)
    monkeypatch.setattr(engine_groups, "_JOINED", {})
    engine_groups.join({"cpu": group})
    body = """printf '{"type":"pid","pid":%s,"plan":"%s"}\\n' $$ "$2" """
    with start(tmp_path, body) as engine:
        events = [event for event in engine.events(1) if event]
        assert engine.wait(5) == 0
    assert events == [{"type": "pid", "pid": engine.pid, "plan": str(tmp_path / "plan.json")}]
    assert (group / "cgroup.procs").read_text().split() == [str(engine.pid)], "no process of ours"
    engine_groups.leave("group")
    (group / "cgroup.procs").unlink()
    with start(tmp_path, body) as engine:
        assert [event for event in engine.events(1) if event]
    assert not (group / "cgroup.procs").exists()


def test_the_groups_of_an_engine_are_those_that_hold_for_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_groups, "_JOINED", {})
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("4:memory:/a\n2:cpu,cpuacct:/b\n0::/c\n")
    engine_groups.join({"cpu": tmp_path / "mine"})
    assert engine_groups.lines(tmp_path) == ["4:memory:/a", "2:cpu,cpuacct:/mine", "0::/c"]
    first = min(os.sched_getaffinity(0))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "cpuset.cpus").write_text(f"{first}\n")
    engine_groups.join({"cpuset": tmp_path / "mine"})
    assert engine_groups.cpus() == {first}
    engine_groups.leave("mine")
    assert engine_groups.lines(tmp_path) == ["4:memory:/a", "2:cpu,cpuacct:/b", "0::/c"]
    assert engine_groups.cpus() == os.sched_getaffinity(0)
