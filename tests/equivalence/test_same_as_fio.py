"""The same job file issues the same I/O under Loadstone as under fio.

Each file in `jobs/` is run by the installed fio and by `loadstone fio` in directories of
their own, both with a log line per I/O. What must agree: the log files there are, how many
I/Os of each direction and size, how many bytes, which range of offsets, how much of it was
touched, and how much of it in sequence. Where chance decides (mixes, tables, distributions)
the shares must agree within what two samples of that size differ by.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import started

JOBS = Path(__file__).parent / "jobs"
LOG_EVERY_IO = "[global]\nwrite_lat_log=log\nlog_offset=1\n"
OUTPUT = ("--output=out.txt", "job.fio")
ENVIRONMENT = {**os.environ, "LS_NAME": "data", "LS_BS": "4k", "LOADSTONE_FIO_OVERWRITE": "1"}
EXISTING_BYTES = 8 << 20
SIGMAS = 5.0
"""How far two samples of the same chance may lie apart."""

RANDOM_SIZES = {"07-bs-triplet", "09-bsrange", "10-bssplit", "11-bssplit-two"}
"""Sizes are drawn, so counts differ and bytes agree to a block."""

CLOCKED = {"36-rate-iops", "37-rate-bandwidth", "41-time-based-wraps"}
"""The clock ends these, not the bytes."""

ANY_COVERAGE = {"29-rw-sequencer-identical", "33-normal", "36-rate-iops", "37-rate-bandwidth"}
"""How much is touched depends on a handful of draws or on the clock; or, for the normal
distribution, on fio's hash, which sends a third of the blocks to places already taken."""


@dataclass(frozen=True)
class IoLog:
    """One per-I/O log: the lines of one job, in the order they completed."""

    direction: tuple[int, ...]
    size: tuple[int, ...]
    offset: tuple[int, ...]
    priority: tuple[int, ...]

    @classmethod
    def read(cls, path: Path) -> IoLog:
        rows = [[int(x, 0) for x in line.split(",")[:6]] for line in path.read_text().splitlines()]
        return cls(*(tuple(row[column] for row in rows) for column in range(2, 6)))

    def __len__(self) -> int:
        return len(self.size)

    @property
    def bytes(self) -> int:
        return sum(self.size)

    @property
    def end(self) -> int:
        return max(o + s for o, s in zip(self.offset, self.size, strict=True))

    def share_in_sequence(self) -> float:
        """Share of I/Os that start where the one before them in the log ended."""
        ends = [o + s for o, s in zip(self.offset, self.size, strict=True)]
        return sum(o == e for o, e in zip(self.offset[1:], ends, strict=False)) / max(1, len(self) - 1)


def run_fio(job: Path, directory: Path) -> dict[str, IoLog]:
    """Run fio on a job file with a log line per I/O; return its logs by file name."""
    _prepare(job, directory)
    words = ["fio", *OUTPUT]
    done = subprocess.run(
        words, cwd=directory, env=ENVIRONMENT, timeout=120, capture_output=True, text=True, check=False
    )
    return _logs(directory, done)


def run_ours(job: Path, directory: Path) -> dict[str, IoLog]:
    """Run `loadstone fio` likewise."""
    _prepare(job, directory)
    return _logs(directory, started.run(["fio", *OUTPUT], cwd=directory, env=ENVIRONMENT, timeout=120))


def _prepare(job: Path, directory: Path) -> None:
    directory.mkdir()
    shutil.copy(JOBS / "common.inc", directory)
    (directory / "here").mkdir()
    (directory / "existing").write_bytes(os.urandom(EXISTING_BYTES))
    (directory / "job.fio").write_text(LOG_EVERY_IO + job.read_text())


def _logs(directory: Path, done: subprocess.CompletedProcess[str]) -> dict[str, IoLog]:
    assert done.returncode == 0, f"{directory.name}: {done.stderr}{done.stdout}"
    return {p.name: IoLog.read(p) for p in sorted(directory.glob("log_lat.*.log"))}


def in_order(logs: dict[str, IoLog]) -> list[IoLog]:
    """Logs by what they hold, not by their number."""
    return sorted(logs.values(), key=lambda log: (sorted(set(log.priority)), min(log.offset), min(log.size)))


def assert_shares_agree(what: str, theirs: Counter[int], ours: Counter[int]) -> None:
    """Each value's share must agree within the error of the difference of two shares."""
    n, m = theirs.total(), ours.total()
    for value in theirs.keys() | ours.keys():
        a, b = theirs[value] / n, ours[value] / m
        pooled = (theirs[value] + ours[value]) / (n + m)
        error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        assert abs(a - b) <= SIGMAS * error + 2 / min(n, m), f"{what} {value}: fio {a:.4f}, Loadstone {b:.4f}"


def assert_same(name: str, theirs: IoLog, ours: IoLog) -> None:
    """Compare the logs of one job."""
    if name in CLOCKED:
        assert ours.bytes == pytest.approx(theirs.bytes, rel=0.03)
    elif name in RANDOM_SIZES:
        assert abs(ours.bytes - theirs.bytes) <= 2 * max(theirs.size)
    else:
        assert ours.bytes == theirs.bytes
    assert set(ours.size) == set(theirs.size)
    assert_shares_agree("direction", Counter(theirs.direction), Counter(ours.direction))
    assert_shares_agree("size", Counter(theirs.size), Counter(ours.size))
    span = theirs.end - min(theirs.offset)
    slack = span * 0.05 if min(theirs.offset) != min(ours.offset) or theirs.end != ours.end else 0.0
    assert abs(ours.end - theirs.end) <= slack
    assert abs(min(ours.offset) - min(theirs.offset)) <= slack
    if name not in ANY_COVERAGE:
        a, b = len(set(theirs.offset)), len(set(ours.offset))
        tolerance = 0 if a == len(theirs) == len(ours) else 0.08 * a
        assert abs(a - b) <= tolerance, f"offsets touched: fio {a}, Loadstone {b}"
    assert ours.share_in_sequence() == pytest.approx(theirs.share_in_sequence(), abs=0.05)


@pytest.mark.in_turn
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed: nothing to compare with")
@pytest.mark.drawn(8)
@pytest.mark.parametrize("job", sorted(JOBS.glob("*.fio")), ids=lambda p: p.stem)
def test_the_same_job_file_issues_the_same_io(job: Path, tmp_path: Path) -> None:
    theirs = run_fio(job, tmp_path / "fio")
    ours = run_ours(job, tmp_path / "loadstone")
    assert theirs.keys() == ours.keys()
    assert theirs
    # fio makes the clones of a job last one first, so its second log may be the third clone's.
    for one, other in zip(in_order(theirs), in_order(ours), strict=True):
        assert_same(job.stem, one, other)
