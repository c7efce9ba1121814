"""One trial: a target as somebody has it, a verb that could write there, and what was left afterwards.

Knows how a verb is called and how to tell what happened. Every verb runs in a process of its own, made
by fork: what is tried is the real program, without the time it takes to load. Whoever calls it must have
no threads and nothing of its own about warnings, signals and limits: `__main__` is made so, a test is not.
Knows no list of trials.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.plan.safety import holes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REFUSALS = (
    "consent does not lift|is refused|only files and block devices"
    "|did not make it|is not a directory|is a block device|is in use"
)
REFUSED, ASKED, WRITTEN, READ = "refused", "needs consent", "written", "left alone"
FAILED, NOT_TRIED = "failed", "not tried"


@dataclass(frozen=True, slots=True)
class Row:
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


def fingerprint(path: Path) -> str:
    """A digest of what a file or device holds; holes and zeros are the same."""
    content = hashlib.blake2b()
    piece = 1 << 20
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        content.update(str(size).encode())
        offsets = {
            at for start, length in holes.data(file.fileno(), size)
            for at in range(start // piece * piece, start + length, piece)
        }  # fmt: skip
        for offset in sorted(offsets):
            block = os.pread(file.fileno(), piece, offset)
            if block.strip(b"\0"):
                content.update(offset.to_bytes(8, "little") + block)
    return content.hexdigest()


def loadstone(words: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a verb; return its exit code and what it said."""
    log = folder / "said"
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            os.chdir(folder)
            os.environ.update(environment)
            nothing = os.open(os.devnull, os.O_RDONLY)
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number, descriptor in enumerate((nothing, out, out)):
                os.dup2(descriptor, number)
            # Whoever forked us may have put something else in their place, as pytest does.
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            from loadstone.cli.main import main  # noqa: PLC0415 - in the child

            code = main([str(word) for word in words])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:  # noqa: BLE001 - nothing else would tell of it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -9, "it did not end within 120 s"


def happened(code: int, said: str) -> str:
    """Tell from what a verb said what it did about the target."""
    if "would destroy existing data" in said:
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
    reason = reason or " ".join(said.split()[1:]).replace(path, "it")  # An output has no list of reasons.
    reason = re.sub(
        r"/dev/shm/\S*/|/dev/loop\d+|loop\d+", lambda found: "" if "/shm" in found[0] else "loop", reason
    )
    return re.sub(r"process \d+ \(.*?\)", "a process", reason.replace(path, "it"))[:110]
