"""The agent alone, as a process: what it does when its coordinator is gone."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any

import pytest

from loadstone.api.jobs.job_changes import JobChanges
from loadstone.api.jobs.read_workload import workload as workload_of
from loadstone.hosts.assignment import HostWork
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def until(lines: IO[bytes], kind: str) -> dict[str, Any]:
    for line in lines:
        message: dict[str, Any] = json.loads(line)
        assert message["type"] != "refused", message
        if message["type"] == kind:
            return message
    raise AssertionError(f"it ended before {kind}")


@contextlib.contextmanager
def under_load(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give an agent whose engine has begun."""
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    job = "[r]\nioengine=psync\nrw=read\nsize=1m\ntime_based\nruntime=120\nrate_iops=1k\n"
    job += f"filename={tmp_path}/data\n"
    path = tmp_path / "job.fio"
    path.write_text(job)
    workload = workload_of(str(path), JobChanges())
    work = HostWork(workload=workload, calibration=False).model_dump(mode="json")
    pipe = subprocess.PIPE
    argv = [sys.executable, "-m", "loadstone.hosts.agent"]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None

        def tell(**order: Any) -> None:
            assert agent.stdin is not None
            agent.stdin.write(json.dumps(order).encode() + b"\n")
            agent.stdin.flush()

        directory = str(tmp_path / "d")
        hello = {
            "name": "h",
            "run": "r",
            "holder": "r",
            "by": "me",
            "directory": directory,
            "lost_after_s": 60,
        }
        tell(do="hello", version=__version__, **hello)
        until(agent.stdout, "hello")
        tell(do="check", work=work)
        until(agent.stdout, "checked")
        tell(do="arm", run="r", consent=[])
        until(agent.stdout, "armed")
        tell(do="start", monotonic_ns=time.monotonic_ns())
        until(agent.stdout, "started")
        yield agent


@pytest.mark.in_turn
def test_it_ends_its_engine_when_nobody_reads_it_any_more(tmp_path: Path) -> None:
    with under_load(tmp_path) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        # As a connection that broke leaves it: nothing comes in, and nothing can be said.
        agent.stderr.close()
        agent.stdout.close()
        agent.stdin.close()
        assert agent.wait(60) == 0
    manifest = json.loads((tmp_path / "d" / "r" / "h" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"


@pytest.mark.in_turn
def test_the_figures_of_a_second_tell_that_it_is_there(tmp_path: Path) -> None:
    """Two messages a second of each of 64 hosts were half of what the coordinator had to read."""
    with under_load(tmp_path) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        messages: list[dict[str, Any]] = []
        while sum(message["type"] == "event" for message in messages) < 5:
            messages.append(json.loads(agent.stdout.readline()))
        agent.stdin.close()
        agent.stdout.read()
    ticks = [message for message in messages if message["type"] == "event"]
    assert all(tick["event"]["type"] == "tick" for tick in ticks)
    assert all(0 <= tick["cpu_s"] <= tick["over_s"] for tick in ticks)
    assert len(messages) - len(ticks) < len(ticks)
    # What it took is told of the whole time, by whichever message.
    assert sum(tick["over_s"] for tick in ticks[1:]) == pytest.approx(4, abs=2)
