"""A directory in which an experiment is run as somebody would, and what the machine must look like after it.

Knows how the verb is started, what it may end with and say, and what it may have changed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.parts import LOADSTONE

if TYPE_CHECKING:
    import random

    from lab.parts import Stage

PATIENCE_S: Final = 240
BEGINNING: Final = """title = "Attack"
repeats = 2
runtime = "{runtime}"
size = "4m"
targets = ["{target}"]
"""
LOAD: Final = """
[[patterns]]
name = "load"
options = { ioengine = "psync", rw = "randrw", bs = "4k", rate_iops = 400 }
"""
VARIED: Final = """
[[factors]]
name = "pressure"
control = "sysctl"
subject = "vm.stat_interval"
levels = [1, 7]
"""


class WrongError(AssertionError):
    """Something was not as it should be."""


@dataclass(slots=True)
class EndedVerb:
    """A verb that ended."""

    code: int
    out: str
    err: str

    def ends(self, *codes: int) -> EndedVerb:
        """Hold the exit code against what it may be; a traceback is never right."""
        if self.code not in codes or "Traceback" in self.err:
            raise WrongError(f"exit code {self.code}, expected {codes}: {self.err[-800:]}")
        return self

    def ends_asked(self, number: int) -> EndedVerb:
        """Hold the end after a signal against what it may be: before the program has begun it is Python's."""
        return self if number and self.code == -number else self.ends(130, 0)

    def says(self, *patterns: str) -> EndedVerb:
        """Look for words in what was said on the error stream."""
        for pattern in patterns:
            if not re.search(pattern, " ".join(self.err.split())):
                raise WrongError(f"does not say {pattern!r}: {self.err[-800:]}")
        return self


@dataclass(slots=True)
class AttackBench:
    """A directory, and what the machine looked like before."""

    stage: Stage
    draw: random.Random
    before: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Return where everything is."""
        return self.stage.folder

    @property
    def state(self) -> Path:
        """Return where the journal is."""
        return self.folder / "state"

    @property
    def small(self) -> Path:
        """Return where an attack mounts a disk of its own that gets full."""
        return self.folder / "small"

    def text(self, factors: str = VARIED, *, target: str = "", runtime: str = "1s", load: str = LOAD) -> str:
        """Return a file."""
        return BEGINNING.format(runtime=runtime, target=target or self.folder / "data") + load + factors

    def file(self, text: str) -> Path:
        """Write a file."""
        path = self.folder / "attack.toml"
        path.write_text(text)
        return path

    def start(self, action: str, path: Path, *words: str, state: Path | None = None) -> subprocess.Popen[str]:
        """Start the verb."""
        command = [*LOADSTONE, "experiment", action, str(path), *words]
        if action in ("run", "resume"):
            command += ["--no-calibration", "--no-report", "--no-progress"]
        if action == "run" and "--out" not in words:
            command += ["--out", str(self.folder / "out")]
        environment = os.environ | {"LOADSTONE_STATE": str(state or self.state)}
        return subprocess.Popen(
            command, env=environment, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ran(self, action: str, path: Path, *words: str, state: Path | None = None) -> EndedVerb:
        """Run the verb to its end."""
        return self.ended(self.start(action, path, *words, state=state))

    def restore(self, *words: str) -> EndedVerb:
        """Run `loadstone restore`."""
        command = [*LOADSTONE, "restore", *words]
        environment = os.environ | {"LOADSTONE_STATE": str(self.state)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return EndedVerb(done.returncode, done.stdout, done.stdout + done.stderr)

    @staticmethod
    def ended(process: subprocess.Popen[str]) -> EndedVerb:
        """Wait for a verb; one that does not end is asked to, so that it puts the machine back."""
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, err = process.communicate()
            raise WrongError(f"it did not end in {PATIENCE_S} s: {err[-800:]}") from None
        return EndedVerb(process.returncode, out, err)

    def resumed(self, out: Path, *words: str) -> EndedVerb:
        """Go on with an experiment that was killed, with consent to lose what its last run left."""
        ran = self.ran("resume", out, *words)
        consents = re.findall(r"--i-accept-data-loss \S+", ran.err)
        return (
            self.ran("resume", out, *words, *(word for one in consents for word in one.split()))
            if consents
            else ran
        )

    def snapshot(self) -> dict[str, str]:
        """Read what an experiment may have changed."""
        mounts = [
            line for line in Path("/proc/self/mounts").read_text().splitlines()
            if str(self.folder) in line
        ]  # fmt: skip
        groups = [
            str(path) for path in Path("/sys/fs/cgroup").glob("*/ls????????-*") if self._is_ours(path.name)
        ]
        queues = {
            f"{device.name} {file}": (device / "queue" / file).read_text().strip()
            for device in sorted(Path("/sys/block").glob("loop*"))
            for file in ("scheduler", "read_ahead_kb")
            if str(self.folder) in _backing(device)
        }
        journals = sorted(path.name for path in (self.state / "changes").glob("*.jsonl"))
        return queues | {
            "sysctl": Path("/proc/sys/vm/stat_interval").read_text().strip(),
            "mounts": "\n".join(line for line in mounts if str(self.small) not in line),
            "groups": " ".join(groups),
            "journals": " ".join(journals),
            "fills": " ".join(str(path) for path in self.folder.glob("*/.loadstone-fill")),
        }

    def _is_ours(self, group: str) -> bool:
        return not Path("/proc", group.partition("-")[2]).exists()

    def is_put_back(self) -> None:
        """Raise where the machine is not as it was."""
        now = self.snapshot()
        for name in sorted(set(self.before) | set(now)):
            if name in self.before and now.get(name) != self.before[name]:
                raise WrongError(f"{name} was {self.before[name]!r} and is {now.get(name)!r}")

    def runs(self, out: Path) -> dict[str, str | None]:
        """Return the status of each point of a study."""
        document = json.loads((out / "study.json").read_text())
        return {point["name"]: point["status"] for point in document["points"]}

    def complete(self, out: Path, count: int) -> None:
        """Raise where not every run completed, or where anything that was measured is lost."""
        done = [name for name, status in self.runs(out).items() if status == "complete"]
        if len(done) != count:
            raise WrongError(f"{len(done)} of {count} runs are complete: {self.runs(out)}")


def _backing(device: Path) -> str:
    try:
        return (device / "loop/backing_file").read_text()
    except OSError:
        return ""


def line_of(path: Path, words: str) -> str:
    """Return the pattern of a message about the line that has these words."""
    lines = path.read_text().splitlines()
    number = next(at for at, line in enumerate(lines, start=1) if words in line)
    return rf"{re.escape(path.name)}:{number}\b"


def begun(process: subprocess.Popen[str], out: Path, runs: int) -> None:
    """Wait until so many runs have begun."""
    until_s = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until_s:
        if len(list(out.glob("runs/*"))) >= runs:
            return
        time.sleep(0.02)
