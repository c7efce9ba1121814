"""One run on namespace hosts while something goes wrong: how it is begun, watched and ended.

Knows no fault. Needs root and sshd.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.parts import LOADSTONE

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lab.hosts.namespaces import NamespaceHosts
    from lab.hosts.standing import StandingScheduler

JOB = (
    "[readers]\nioengine=psync\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime={seconds}\nfilename={file}\n"
)


WRITERS = "[writers]\nioengine=psync\nrw=randwrite\nbs=4k\nsize=1m\ntime_based\nruntime=3\nfilename={file}\n"
LONG_S = 120
"""A run that a fault ends."""


STANDING = "dask, standing scheduler"


PROGRESS = re.compile(r"(bundle|report|note|study|experiment|go on with): ?|run \d+ of |\d+ runs, ")
EVERY_WAY = ("dask", "pipe", STANDING)


@dataclass
class HostsTrial:
    """One run while something goes wrong."""

    hosts: NamespaceHosts
    directory: Path
    transport: str
    standing: StandingScheduler | None = None
    process: subprocess.Popen[str] | None = None
    said: str = ""
    told: str = ""
    code: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.directory / "out"

    def start(
        self,
        *more: str,
        run: str = "",
        hosts: dict[str, str] | None = None,
        job: str = JOB,
        seconds: int = 6,
        env: dict[str, str] | None = None,
        verb: tuple[str, ...] = ("run",),
    ) -> None:
        """Begin a run of a job, or what another verb does with the job file or `verb`'s own file."""
        data = self.directory / "data"
        data.write_bytes(bytes(1 << 20))
        path = self.directory / "job.fio"
        path.write_text(job.format(file=data, seconds=seconds))
        transport = f'transport = "{self.transport}"' if self.standing is None else self.standing.settings
        toml = self.hosts.hosts_toml(run=f"{transport}\n{run}", hosts=hosts)
        verb_words = [*verb, *([] if verb[0] == "experiment" else [str(path)])]
        words = [*LOADSTONE, *verb_words, "--hosts", str(toml)]
        self.begin([*words, "--out", str(self.out), "--no-report", "--no-calibration", *more], env)

    def begin(self, words: list[str], env: dict[str, str] | None = None) -> None:
        """Begin a command of the program, whose bundle or study will be `out`."""
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def last_words(self) -> str:
        """Return a cell of a page: the error that was told, or what was told beside progress."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        lines = [line for line in lines if not PROGRESS.match(line)]
        first = next((at for at, line in enumerate(lines) if line.startswith("loadstone: ")), -4)
        return "<br>".join(map(self._quoted, lines[first:]))

    def _quoted(self, line: str) -> str:
        """Return a line as code, without this run's paths and addresses."""
        for path in (self.directory, self.hosts.directory):
            line = line.replace(str(path), "DIR")
        for name in self.hosts.names:
            line = line.replace(self.hosts.address(name), f"ADDRESS-OF-{name}")
        return f"`` {line} ``" if "`" in line else f"`{line}`"

    def until(self, what: Callable[[], bool], seconds: float = 60) -> bool:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            if what():
                return True
            if self.process is not None and self.process.poll() is not None:
                return what()
            time.sleep(0.05)
        return False

    def reach(self, what: Callable[[], bool]) -> None:
        """Wait for the moment of a fault. Raises `LookupError` where it does not come: it is not staged."""
        if not self.until(what, 300):
            raise LookupError("the moment of the fault did not come")

    def running(self) -> bool:
        """Whether every host's engine does I/O."""
        return all(self.hosts.engines(name) and self._has_samples(name) for name in self.hosts.names)

    def begun(self, number: int) -> Callable[[], bool]:
        """Return what tells whether the run of this number, from 1 on, does I/O on every host.

        It is to be asked often: a run is known by its bundles while they are on the hosts.
        """
        runs: dict[str, set[Path]] = {name: set() for name in self.hosts.names}

        def look() -> bool:
            for name, known in runs.items():
                known.update(path.parent for path in self._samples(name))
            return all(len(known) >= number for known in runs.values()) and self.running()

        return look

    def _has_samples(self, name: str) -> bool:
        return bool(self._samples(name))

    def _samples(self, name: str) -> list[Path]:
        """Return the samples of runs that do I/O, or did, and are on the host still."""
        growing = []
        for path in (self.hosts.directory / name).rglob("samples.arrows"):
            # It may be collected meanwhile.
            with contextlib.suppress(OSError):
                if path.stat().st_size > 5000:
                    growing.append(path)
        return growing

    def armed(self, name: str) -> bool:
        return bool(self.hosts.engines(name))

    def finish(self, seconds: float = 240) -> None:
        assert self.process is not None
        try:
            self.told, self.said = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.told, self.said = self.process.communicate()
            self.notes.append("DID NOT END")
        self.code = self.process.returncode

    def coordinator(self) -> list[int]:
        """The process that a shell waits for, and the one that works."""
        if self.process is None:
            return []
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [self.process.pid, *(int(pid) for pid in children.stdout.split())]

    def gone_within(self, seconds: float) -> float | None:
        """Return how long it took until no engine is left; None: they are still there."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < seconds:
            if not any(self.hosts.engines(name) for name in self.hosts.names):
                return time.monotonic() - began_s
            time.sleep(0.02)
        return None

    def settle(self, seconds: float) -> None:
        """Give agents so long to be gone."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and "LEFT" in self.back():
            time.sleep(0.1)

    def record(self) -> dict[str, dict[str, object]]:
        path = self.out / "hosts.json"
        if not path.exists():
            return {}
        return {host["name"]: host for host in json.loads(path.read_text())["hosts"]}

    def kept(self) -> str:
        """Say what there is to read."""
        left = [
            path for name in self.hosts.names for path in (self.hosts.directory / name).rglob("manifest.json")
        ]
        readable = [path for path in left if opens(path.parent)]
        readable_share = f"{len(readable)} of {len(left)} bundles readable on the hosts" if left else ""
        if not (self.out / "manifest.json").exists():
            return readable_share or "nothing was begun"
        if not list((self.out / "hosts").glob("*/manifest.json")) and readable_share:
            return f"partial, without figures; {readable_share}"
        summary = summarise(Bundle.open(self.out))
        hosts = [
            part.name for part in (summary.bundle.hosts.hosts if summary.bundle.hosts else ()) if part.bundle
        ]
        data = summary.total.data
        ops = 0 if data is None else data.operations
        return f"{summary.status}: {ops} I/Os of {', '.join(hosts) or 'no host'}"

    def back(self) -> str:
        """Say what is left on the hosts."""
        left = [name for name in self.hosts.names if self.hosts.engines(name) or self.hosts.agents(name)]
        return "no process is left" if not left else f"PROCESSES LEFT on {', '.join(left)}"


def opens(path: Path) -> bool:
    try:
        return bool(Bundle.open(path).plan) and Bundle.open(path).samples() is not None
    except Exception:  # noqa: BLE001 # whatever is wrong with it, it does not open
        return False


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    """Raises `LookupError` where there is nobody: a fault that was not staged is no row."""
    struck = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            struck += 1
    if not struck:
        raise LookupError("nothing was there to strike")


def gone(trial: HostsTrial, name: str) -> str:
    began_s = time.monotonic()
    while time.monotonic() - began_s < 10:
        if not trial.hosts.engines(name):
            return f"{time.monotonic() - began_s:.1f} s"
        time.sleep(0.02)
    return "NEVER"
