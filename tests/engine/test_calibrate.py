from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from lab.steady_device import simulated

from loadstone.engine.binary import find
from loadstone.engine.calibrate import calibrate, null_plan
from loadstone.plan.model import Plan
from tests.pacing.simulated import rate
from tests.support.plans import plan, stream, target, worker

if TYPE_CHECKING:
    from pathlib import Path

LONG = {"runtime_ns": 60_000_000_000, "time_based": True}


def model(document: dict[str, Any]) -> Plan:
    return Plan.model_validate_json(json.dumps(document))


def test_nothing_is_left_of_targets_paces_and_flushes(tmp_path: Path) -> None:
    missing = target(tmp_path / "nobody-made-this", create=True)
    one = stream(pace={"read": rate(10)}, fsync_every=1, at_end=True, log_ios=True, ramp_ns=1, **LONG)
    made = null_plan(model(plan([missing], [one])))
    file = tmp_path / "plan.json"
    file.write_text(made.model_dump_json())
    done = subprocess.run([find(), "check", file], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    calibrate(model(plan([missing], [one])))
    assert not (tmp_path / "nobody-made-this").exists()


def test_a_namespace_and_its_commands_are_left_out_too(tmp_path: Path) -> None:
    namesake = {"path": "/dev/nvme0n1", "identity": None}
    one = target("/dev/ng0n1", "nvme", direct=True, exclusive=True, namesake=namesake)
    backend = {"type": "io_uring_cmd", "registered_files": True, "fixed_buffers": True}
    commands = worker(backend | {"iopoll": True, "sqpoll": False})
    found = calibrate(model(plan([one], [stream(read_percent=0, **LONG)], [commands])))
    assert found.get("skipped") is None
    assert found["ops"] > 0


def test_priorities_are_left_out_too(tmp_path: Path) -> None:
    share = {"op": "read", "block_bytes": None, "percent": 10.0, "priority": 8192}
    one = stream(**LONG) | {"priorities": [share]}
    ring = {"registered_files": True, "fixed_buffers": True, "iopoll": False, "sqpoll": False}
    found = calibrate(model(plan([target(tmp_path / "x")], [one], [worker({"type": "io_uring"} | ring)])))
    assert found.get("skipped") is None
    assert found["ops"] > 0


@pytest.mark.in_turn
def test_connections_are_left_out_too(tmp_path: Path) -> None:
    """What is nowhere cannot be opened again: the ceiling is that of a load whose targets stay open."""
    one = stream(connection={"ios": 3}, **LONG)
    ring = {"registered_files": False, "fixed_buffers": True, "iopoll": False, "sqpoll": False}
    found = calibrate(model(plan([target(tmp_path / "x")], [one], [worker({"type": "io_uring"} | ring)])))
    assert found.get("skipped") is None
    assert found["ops"] > 0


def test_it_tells_the_ceiling_of_each_stage(tmp_path: Path) -> None:
    files = [target(tmp_path / "a"), target(tmp_path / "b")]
    first = stream(**LONG)
    second = stream(**LONG) | {"worker": 1, "name": "later.0"}
    second["files"] = [{"target": 1, "cell": 1, "offset_bytes": 0, "length_bytes": 1 << 20}]
    found = calibrate(model(plan(files, [first, second], [worker(), worker(stage=1)])))
    assert "skipped" not in found
    assert [stage["stage"] for stage in found["stages"]] == [0, 1]
    for stage in found["stages"]:
        assert stage["ops"] > 0
        assert stage["ceiling_iops"] == pytest.approx(stage["ops"] * 1e9 / stage["measured_ns"])
    assert found["ops"] >= sum(stage["ops"] for stage in found["stages"])


@pytest.mark.parametrize(
    ("one", "backend", "why"),
    [
        (stream(runtime_ns=1_000_000_000, time_based=True), None, "is worth it from"),
        (stream(bytes=1 << 20), None, "is worth it from"),
        (stream(**LONG), simulated(1_000), "simulated"),
    ],
)
def test_it_is_skipped_where_it_would_not_help(
    tmp_path: Path, one: dict[str, Any], backend: dict[str, Any] | None, why: str
) -> None:
    found = calibrate(model(plan([target(tmp_path / "x")], [one], [worker(backend)])))
    assert why in found["skipped"]
    assert "stages" not in found


def test_a_run_does_not_depend_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\nexit 4\n")
    program.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))
    found = calibrate(model(plan([target(tmp_path / "x")], [stream(**LONG)])))
    assert found["skipped"].startswith("it failed")
