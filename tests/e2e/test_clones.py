"""Clones beside each other: what one is told is its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import needs_engine, run

if TYPE_CHECKING:
    from pathlib import Path

JOB = """[global]
filename=data
size=8m
rw=randread
ioengine=io_uring
invalidate=0
number_ios=2000
cpus_allowed={cpu}
write_lat_log=log
[small]
bs=4k
[large]
bs=64k
"""


def latencies_ns(path: Path) -> list[int]:
    return [int(line.split(",")[1]) for line in path.read_text().splitlines()]


@pytest.mark.in_turn
def test_jobs_that_share_a_cpu_have_latencies_of_their_own(tmp_path: Path) -> None:
    """882200-028: on a shared thread 20,785 of 20,785 I/Os of two clones had the same, to the nanosecond."""
    needs_engine()
    cpu = min(os.sched_getaffinity(0))
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    (tmp_path / "job.fio").write_text(JOB.format(cpu=cpu))
    done = run("fio", "job.fio", cwd=tmp_path)
    assert done.code == 0, done.err
    small, large = (latencies_ns(tmp_path / f"log_lat.{job}.log") for job in (1, 2))
    assert (len(small), len(large)) == (2000, 128)
    assert sum(a == b for a, b in zip(small, large, strict=False)) < 13
