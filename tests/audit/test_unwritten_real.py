"""Reads of a zram of which only a part was written: accused where they must be of the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e import program
from tests.payload import parts

MIB = 1 << 20
SIZE_MIB = 64
NEEDED = os.geteuid() != 0 or not (parts.CONTROL / "hot_add").exists()

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(NEEDED, reason="needs root and a kernel with zram"),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("read_mib", "accused"), [(SIZE_MIB // 2, False), (SIZE_MIB, True)])
def test_only_reads_beyond_what_a_zram_stores_are_of_unwritten_space(
    tmp_path: Path, read_mib: int, accused: bool
) -> None:
    program.needs_engine()
    with parts.zram() as disk:
        disk.empty(disk.algorithms()[0], SIZE_MIB * MIB)
        with Path(disk.path).open("wb") as device:
            device.write(os.urandom(SIZE_MIB // 2 * MIB))
        text = f"[read]\nrw=randread\nbs=4k\niodepth=4\ndirect=1\nruntime=1s\ntime_based\nsize={read_mib}m\n"
        job = program.job(tmp_path / "job.fio", f"{text}filename={disk.path}\n")
        done = program.run("run", job, "--json", cwd=tmp_path)
    verdict = done.document()["verdict"]
    found = [cause["rule"] for cause in verdict["causes"]]
    assert ("unwritten_region" in found) is accused, verdict
