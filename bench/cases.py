"""What is compared: jobs, the targets they need, and the ratios that were asked for.

Knows how to make a page-cached file, a file read past the cache and a loop device, and to
remove them. Knows no program.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import measure
from loops import loop_devices, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_BYTES = 512 << 20
LOOP_BYTES = 256 << 20
SHM = Path("/dev/shm")
CPU = 0
"""Where everything is put that is to be together."""
FIO, TUNED, BARE = "fio", "fio tuned", "fio tuned, no latency"
PRODUCT, RING, ENGINE, NULL = "loadstone fio", "loadstone fio, ring", "engine", "engine, no I/O"


@dataclass(frozen=True)
class Goal:
    """A ratio to reach: `what` is `iops`, `cpu` (theirs over ours) or `lat` (ours over theirs)."""

    what: str
    against: str
    asked: float


@dataclass(frozen=True)
class BenchCase:
    """A job and who runs it. `{file}`, `{direct}` and `{loop}` in options stand for made targets."""

    name: str
    options: dict[str, str]
    programs: tuple[str, ...]
    goals: tuple[Goal, ...]
    together: bool = False
    """The job and the kernel's workers share one CPU. Where the scheduler may choose, it
    sends a loop device's thread there or to another one, and that decides the latency of an I/O
    at a time (11 or 60 us in a virtual machine), whoever asks."""

    @property
    def needs(self) -> str:
        """The target that must be made: `file`, `loop`, or nothing."""
        return self.options["filename"].strip("{}") if "{" in self.options["filename"] else ""

    def job(self, target: str) -> dict[str, str]:
        """The options with the target in place."""
        pinned = {"cpus_allowed": str(CPU)} if self.together else {}
        return self.options | pinned | ({"filename": target} if self.needs else {})


URING = {"bs": "4k", "ioengine": "io_uring", "thread": ""}
ALL = (FIO, TUNED, BARE, PRODUCT, RING, ENGINE, NULL)
LIMIT_GOALS = (Goal("iops", FIO, 3.5), Goal("iops", TUNED, 1.9), Goal("iops", BARE, 1.5))
BOUND = (FIO, TUNED, PRODUCT)
BOUND_GOALS = (Goal("iops", TUNED, 1.0), Goal("cpu", FIO, 1.5))
CHAR = URING | {"size": "4g", "iodepth": "128"}
DIRECT = URING | {"direct": "1", "rw": "randread"}
CASES = (
    BenchCase("null", CHAR | {"filename": "/dev/null", "rw": "randwrite"}, ALL, LIMIT_GOALS),
    BenchCase("zero", CHAR | {"filename": "/dev/zero", "rw": "randread"}, ALL, LIMIT_GOALS),
    BenchCase(
        "refill",
        CHAR | {"filename": "/dev/null", "rw": "randwrite", "refill_buffers": ""},
        BOUND,
        (Goal("iops", FIO, 1.0), Goal("iops", TUNED, 1.0)),
    ),
    BenchCase(
        "cached",
        URING | {"filename": "{file}", "rw": "randread", "iodepth": "128", "invalidate": "0"},
        (FIO, TUNED, BARE, PRODUCT, ENGINE),
        (Goal("iops", TUNED, 1.3),),
    ),
    BenchCase("loop32", DIRECT | {"filename": "{loop}", "iodepth": "32"}, BOUND, BOUND_GOALS[:1]),
    BenchCase("loop128", DIRECT | {"filename": "{loop}", "iodepth": "128"}, BOUND, BOUND_GOALS),
    BenchCase("direct", DIRECT | {"filename": "{file}", "iodepth": "128"}, BOUND, BOUND_GOALS),
    BenchCase(
        "psync",
        {
            "filename": "/dev/null",
            "rw": "randwrite",
            "size": "4g",
            "bs": "4k",
            "ioengine": "psync",
            "thread": "",
        },
        (FIO, PRODUCT, ENGINE),
        (Goal("iops", FIO, 2.0),),
    ),
    BenchCase(
        "qd1-zero",
        CHAR | {"filename": "/dev/zero", "rw": "randread", "iodepth": "1"},
        BOUND,
        (Goal("lat", FIO, 1.0),),
    ),
    BenchCase(
        "qd1-loop",
        DIRECT | {"filename": "{loop}", "iodepth": "1"},
        BOUND,
        (Goal("lat", FIO, 1.0),),
        together=True,
    ),
    BenchCase("qd1-direct", DIRECT | {"filename": "{file}", "iodepth": "1"}, BOUND, (Goal("lat", FIO, 1.0),)),
)


@contextlib.contextmanager
def targets(folder: str | None) -> Iterator[dict[str, str]]:
    """Yield a path for each kind of made target; one that cannot be made here is left out."""
    with contextlib.ExitStack() as stack:
        paths = {}
        directory = Path(stack.enter_context(measure.scratch(folder=folder)))
        paths["file"] = str(directory / "data")
        write(directory / "data", FILE_BYTES)
        if reason := unavailable() or (None if SHM.is_dir() else f"there is no {SHM}"):
            print(f"no loop device: {reason}", file=sys.stderr)
        else:
            memory = Path(stack.enter_context(measure.scratch(folder=str(SHM))))
            paths["loop"] = stack.enter_context(loop_devices(memory, 1, LOOP_BYTES))[0]
        yield paths


def write(path: Path, size_bytes: int) -> None:
    """Write a file that does not compress, down to the disk."""
    with path.open("wb") as out:
        for _ in range(size_bytes >> 20):
            out.write(os.urandom(1 << 20))
        out.flush()
        os.fsync(out.fileno())
