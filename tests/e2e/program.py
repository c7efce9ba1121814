"""The real program as a process: started, signalled, read. Nothing is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine import binary
from loadstone.errors import EngineError
from tests.support.started import COMMAND, StartedProgram

if TYPE_CHECKING:
    from collections.abc import Callable

READ_FOR = "[reader]\nrw=randread\nbs=4k\nsize=8m\ntime_based\nruntime={}\nfilename={}/data\niodepth=4\n"
READ_FOR += "rate_iops=1k\n"
"""Reads for a while; as fast as it can would take a CPU from the tests beside it, and say no more."""
OVERLOAD = 8.0
"""Processes that want each CPU; the suite itself and two that spin are three."""
MEASURING = ("run", "rerun", "sweep", "curve")
COSTLY = ("calibration", "report")
PATIENCE_S = 60.0
"""A bound on waiting for what will happen, far above what it takes; no test measures with it."""
END_S = 60.0
"""So long a program may take to end in order."""
_started: list[subprocess.Popen[str]] = []


@dataclass(frozen=True)
class EndedProgram:
    """A finished program."""

    code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document it must be."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def needs_engine() -> None:
    try:
        binary.find()
    except EngineError as error:
        pytest.skip(f"the engine is not built: {error.message}")


def quick(words: list[str]) -> list[str]:
    """Leave out what takes a second of both CPUs and few tests look at: `--report`, `--calibration` ask."""
    if words[:1] and words[0] not in MEASURING:
        return words
    return [*words, *(f"--no-{one}" for one in COSTLY if not {f"--{one}", f"--no-{one}"} & set(words))]


def start(*words: str | Path, cwd: Path, control_group: Path | None = None) -> subprocess.Popen[str]:
    """Start `loadstone WORDS` with pipes, in a process group of its own; see `quick`."""
    needs_engine()
    _started[:] = [one for one in _started if one.poll() is None]
    given = quick([*map(str, words)])
    inside: Callable[..., subprocess.Popen[str]] = partial(StartedProgram, given)
    if control_group is not None:
        enter = f'echo $$ > "{control_group}/cgroup.procs" && exec "$@"'
        inside = partial(subprocess.Popen, ["sh", "-c", enter, "sh", *COMMAND, *given])
    process = inside(
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        process_group=0,
    )
    _started.append(process)
    return process


def give_up() -> dict[int, str]:
    """End every program that a test started, and put back what those had set that did not end in order.

    A test that goes on without its program leaves layouts and loop devices behind otherwise. Returns what
    each printed, by its pid.
    """
    printed, killed = {}, False
    while _started:
        process = _started.pop()
        process.terminate()
        try:
            ended = process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            killed = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            ended = process.communicate()
        printed[process.pid] = "\n".join(ended)
    if killed:
        StartedProgram(["restore"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).wait()
    return printed


def overloaded() -> str | None:
    """Say why nothing can be told of time here: far more is waiting for a CPU than there are CPUs."""
    waiting, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if waiting <= OVERLOAD * cpus:
        return None
    return f"{waiting:.0f} processes wait for {cpus} CPUs: an end in time would be luck"


def finish(process: subprocess.Popen[str]) -> EndedProgram:
    """Wait for the end and collect what it said."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        printed = give_up()
        if why := overloaded():
            pytest.skip(why)
        pytest.fail(f"did not end within {PATIENCE_S} s; it said:\n{printed.get(process.pid)}")
    return EndedProgram(process.returncode, out, err)


def run(*words: str | Path, cwd: Path) -> EndedProgram:
    """Run `loadstone WORDS` to its end."""
    return finish(start(*words, cwd=cwd))


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait for something to become true and return it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = true()
        if value:
            return value
        time.sleep(0.02)
    give_up()
    if why := overloaded():
        pytest.skip(why)
    pytest.fail(f"waited {PATIENCE_S} s in vain for {what}")


def events(bundle: Path) -> list[dict[str, Any]]:
    """Events written so far; a last line without its end is left out."""
    try:
        lines = (bundle / "events.jsonl").read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def kinds(bundle: Path) -> list[str]:
    return [event["type"] for event in events(bundle)]


def ticks(bundle: Path, count: int = 2) -> None:
    """Wait until the run has measured something."""
    until(lambda: kinds(bundle).count("tick") >= count, f"{count} ticks in {bundle}")


def engine_pid(bundle: Path) -> int:
    hello = until(lambda: [e for e in events(bundle) if e["type"] == "hello"], "hello")
    return int(hello[0]["pid"])


def state(pid: int) -> str:
    """The letter of what a process does: T for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def alive(pid: int) -> bool:
    """Whether the process exists and is more than an entry waiting to be reaped."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def job(path: Path, text: str) -> Path:
    """Write a job file."""
    path.write_text(text)
    return path


INTERRUPT = signal.SIGINT
