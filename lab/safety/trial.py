"""One trial: a target as somebody has it, a verb that could write there, and what was left afterwards.

Knows how a verb is called and how to tell what happened. Every verb is the real program in a process of
its own (`Started`). Knows no list of trials.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.started import StartedProgram

from loadstone import holes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.synchronize import Event
    from pathlib import Path

REFUSALS = (
    "consent does not lift|is refused|only files and block devices"
    "|did not make it|is not a directory|is a block device|is in use"
)
ASKING = "would destroy existing data|these would be overwritten"
REFUSED, ASKED, WRITTEN, READ = "refused", "needs consent", "written", "left alone"
FAILED, NOT_TRIED = "failed", "not tried"
PATIENCE_S = 120
PIECE = bytes(1 << 20)
CLONE_NEWNET = 0x40000000


class StoppedError(Exception):
    """No more is to be tried: what is staged is taken down on the way out."""


_asked: list[Event] = []
"""Of a process that tries cases: set when it is to stop."""


def on_a_host_of_its_own(stop: Event) -> None:
    """Leave the network of this host: a run on hosts has the host for itself, and each network is one.

    And its terminal: Ctrl-C would end the very programs that take down what is staged. `stop` says it.
    """
    _asked.append(stop)
    os.setsid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network of its own can be had")


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A line of the table."""

    target: str
    holds: str
    verb: str
    happened: str
    intact: bool | None
    """None where nothing was there to be lost."""
    said: str
    right: bool

    @property
    def key(self) -> tuple[str, str, str]:
        """What was tried."""
        return self.target, self.holds, self.verb

    def line(self) -> str:
        """The line in Markdown."""
        intact = {True: "yes", False: "no", None: "–"}[self.intact]
        mark = "" if self.right else " **wrong**"
        cells = (self.target, self.holds, self.verb, self.happened + mark, intact, self.said)
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


def go_on() -> None:
    """Raise StoppedError when somebody has asked to stop."""
    if any(stop.is_set() for stop in _asked):
        raise StoppedError


def fingerprint(path: Path) -> str:
    """A digest of what a file or device holds; holes and zeros are the same."""
    content = hashlib.blake2b()
    piece = len(PIECE)
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        content.update(str(size).encode())
        offsets = {
            at for start, length in holes.data(file.fileno(), size)
            for at in range(start // piece * piece, start + length, piece)
        }  # fmt: skip
        for offset in sorted(offsets):
            block = os.pread(file.fileno(), piece, offset)
            if block != PIECE[: len(block)]:
                content.update(offset.to_bytes(8, "little") + block)
    return content.hexdigest()


def loadstone(words: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a verb; return its exit code and what it said."""
    log = folder / "said"
    with (
        log.open("w") as output,
        StartedProgram(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, **environment},
            start_new_session=True,
        ) as process,
    ):
        end_s = time.monotonic() + PATIENCE_S
        while (code := _waited(process)) is None:
            if time.monotonic() > end_s:
                process.kill()
                return -9, f"it did not end within {PATIENCE_S} s"
    return code, log.read_text(errors="replace")


def _waited(process: StartedProgram) -> int | None:
    """Wait a moment for the end of a verb; end it when no more is to be tried."""
    try:
        go_on()
        return process.wait(1)
    except subprocess.TimeoutExpired:
        return None
    except StoppedError:
        process.terminate()
        process.wait()
        raise


def happened(code: int, said: str) -> str:
    """Tell from what a verb said what it did about the target."""
    if re.search(ASKING, said):
        return ASKED
    if re.search(REFUSALS, said):
        return REFUSED
    return WRITTEN if code in (0, 98) else FAILED


def shortened(text: str) -> str:
    """Both ends of what was said, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:80]} … {line[-320:]}"


def evidence(said: str, path: str) -> str:
    """The first reason that was given for a target, without its name."""
    lines = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    reasons = [line.partition(": ")[2] for line in lines if ": " in line]
    reason = next((one for one in reasons if one.startswith("it carries")), None)
    reason = reason or next((one for one in reasons if not one.startswith("it exists, holds")), "")
    if not reason:  # An output has no list of reasons.
        message = re.search(r"^\w+: (.*?)(?:\nhint: |\Z)", said, re.MULTILINE | re.DOTALL)
        reason = " ".join((message[1] if message else said).split()).replace(path, "it")
    reason = re.sub(
        r"/(?:dev/shm|var/tmp)/\S*/|/dev/loop\d+|loop\d+",
        lambda match: "loop" if "loop" in match[0].rpartition("/")[2] else "",
        reason,
    )
    reason = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", reason)
    return re.sub(r"process \d+ \(.*?\)", "a process", reason.replace(path, "it"))[:110]
