"""The programs that are compared, each run on the same job.

Knows how fio, `loadstone fio` and the bare engine are started on a job given as fio's
options, and how each one's result is read. The engine's Plan is the one `loadstone plan`
makes of those options. Knows no target and no clock.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import measure
import polars as pl

from loadstone.engine.binary import find

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Job = dict[str, str]
"""Options of a fio job; an empty value for one that takes none."""

BATCH = {
    "iodepth_batch_submit": "32",
    "iodepth_batch_complete_min": "32",
    "iodepth_batch_complete_max": "32",
}
"""By hand, at depth 32 and more."""
TUNED = {"fixedbufs": "", "registerfiles": "", "norandommap": ""}
NO_LATENCY = {"gtod_reduce": "1"}
LOADSTONE = [sys.executable, "-m", "loadstone"]


@dataclass(frozen=True)
class Program:
    """One side of a comparison: a command for a length in seconds, and a reader of its output."""

    name: str
    command: Callable[[float], list[str]]
    read: Callable[[str], measure.ProgramResult]

    def run(self, seconds: float, patience_s: float = 0) -> measure.MeasuredRun:
        """Run it once, on an idle machine if that comes within `patience_s`."""
        command = self.command(seconds)
        measure.wait_for_quiet(patience_s)
        return measure.run(command, self.read)

    def shown(self, seconds: float) -> str:
        """The command as one would type it."""
        command = self.command(seconds)
        if command[:3] == LOADSTONE:
            command = ["loadstone", *command[3:]]
        return shlex.join([Path(command[0]).name, *command[1:]])


def fio(name: str, job: Job) -> Program:
    """Return fio itself."""
    return Program(name, lambda seconds: ["fio", *arguments(job, seconds)], from_fio)


def fio_tuned(name: str, job: Job, *, latency: bool = True) -> Program:
    """Return fio with every lever it has on one worker, with or without its latency."""
    batch = BATCH if int(job.get("iodepth", "1")) >= 32 else {}
    return fio(name, job | TUNED | batch | ({} if latency else NO_LATENCY))


def loadstone(name: str, job: Job) -> Program:
    """Return the whole product in fio's place, Python included."""
    return Program(name, lambda seconds: [*LOADSTONE, "fio", *arguments(job, seconds)], from_fio)


def loadstone_ring(name: str, job: Job) -> Program:
    """Return the product kept on the ring, where it would choose plain system calls by itself."""
    return loadstone(name, job | {"fixedbufs": "", "registerfiles": ""})


def engine(name: str, job: Job, folder: Path, *, io: bool = True) -> Program:
    """Return the engine alone with the Plan of this job; with `io` false on its null backend."""

    stem = "engine" if io else "null"
    out = folder / f"{stem}.out"

    def command(seconds: float) -> list[str]:
        shutil.rmtree(out, ignore_errors=True)  # The engine replaces no samples.
        file = folder / f"{stem}.fio"
        file.write_text(section(job, seconds))
        # Without I/O the depth is what is measured: no other way to the target may end it.
        document = json.loads(plan(file) if io else plan(file, "--keep-ioengine"))
        if not io:
            for worker in document["workers"]:
                worker["backend"] = {"type": "null"}
        (folder / f"{stem}.json").write_text(json.dumps(document))
        return [str(find()), "run", str(folder / f"{stem}.json"), "--out", str(out)]

    return Program(name, command, lambda text: from_engine(text, out))


def plan(file: Path, *options: str) -> str:
    """Return the Plan `loadstone` makes of a job file, as JSON; raises with its words if it refuses."""
    command = [*LOADSTONE, "plan", str(file), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"loadstone plan {file}: {done.stderr[-600:]}"
        raise RuntimeError(message)
    return done.stdout


def arguments(job: Job, seconds: float) -> list[str]:
    """Return fio's command line for a job."""
    options = [f"--{key}={value}" if value else f"--{key}" for key, value in timed(job, seconds).items()]
    return ["--name=a", *options, "--output-format=json"]


def section(job: Job, seconds: float, name: str = "a") -> str:
    """Return a job file for it. How fio runs the job (`thread`) is nothing the engine has."""
    options = {key: value for key, value in timed(job, seconds).items() if key != "thread"}
    return "\n".join([f"[{name}]", *(f"{k}={v}" if v else k for k, v in options.items()), ""])


def timed(job: Job, seconds: float) -> Job:
    """Return the job cut off after `seconds`."""
    return job | {"time_based": "", "runtime": f"{round(seconds * 1000)}ms"}


def from_fio(text: str) -> measure.ProgramResult:
    """Read fio's JSON, all jobs of it."""
    sides = [
        side for job in json.loads(text[text.index("{") :])["jobs"] for side in (job["read"], job["write"])
    ]
    ios = sum(side["total_ios"] for side in sides)
    weighted = sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides)
    return measure.ProgramResult(ios, sum(side["iops"] for side in sides), weighted / ios)


def from_engine(text: str, out: Path) -> measure.ProgramResult:
    """Read the engine's events, and its samples for the mean latency."""
    end = events(text, "end")[0]
    sums = latency_sums(out / "samples.arrows")
    return measure.ProgramResult(end["ops"], end["ops"] / end["t_ns"] * 1e9, sums / end["ops"])


def events(text: str, kind: str) -> list[dict[str, int]]:
    """Return the engine's events of one type."""
    return [event for line in text.splitlines() if (event := json.loads(line))["type"] == kind]


def latency_sums(samples: Path) -> float:
    """Sum of all `lat` in a samples file, ns."""
    return float(pl.read_ipc_stream(samples)["lat_sum_ns"].sum())


def versions() -> Sequence[str]:
    """What was compared, one line each."""
    commands = (["fio", "--version"], [*LOADSTONE, "--version"], [str(find()), "--version"])
    return [subprocess.run(c, capture_output=True, text=True, check=True).stdout.strip() for c in commands]
