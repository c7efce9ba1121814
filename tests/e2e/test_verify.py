"""Jobs with verify=, run by the real engine on real files."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine import binary
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 4096
BLOCKS = 512


@pytest.fixture(autouse=True)
def built() -> None:
    try:
        binary.find()
    except LoadstoneError as error:
        pytest.skip(str(error))


def fio(directory: Path, options: str) -> tuple[int, dict[str, Any], str]:
    """Run one job on `data`; returns the exit code, the job's JSON, and standard error."""
    job = f"[v]\nfilename={directory}/data\nioengine=psync\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\n{options}\n"
    (directory / "job.fio").write_text(job)
    out = directory / "out.json"
    command = [sys.executable, "-m", "loadstone", "fio", "job.fio", "--output-format=json", f"--output={out}"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(out.read_text())["jobs"][0], done.stderr + done.stdout


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    code, job, _ = fio(tmp_path, "rw=randwrite\nverify=crc32c")
    assert (code, job["error"]) == (0, 0)
    assert (job["write"]["total_ios"], job["read"]["total_ios"]) == (BLOCKS, BLOCKS)


def test_only_what_was_written_is_read_back(tmp_path: Path) -> None:
    code, job, _ = fio(tmp_path, f"rw=randwrite\nverify=md5\nio_size={100 * BLOCK}")
    assert code == 0
    assert (job["write"]["total_ios"], job["read"]["total_ios"]) == (100, 100)


def test_a_later_run_finds_what_was_damaged_in_between(tmp_path: Path) -> None:
    assert fio(tmp_path, "rw=write\nverify=crc32c\ndo_verify=0")[0] == 0
    later = "rw=write\nverify=crc32c\nverify_only"
    code, job, _ = fio(tmp_path, later)
    assert (code, job["error"], job["read"]["total_ios"]) == (0, 0, BLOCKS)
    with (tmp_path / "data").open("r+b") as file:
        file.seek(7 * BLOCK)
        block = file.read(BLOCK)
        file.seek(9 * BLOCK)
        file.write(block)
        file.seek(20 * BLOCK + 100)
        file.write(b"????")
    code, job, said = fio(tmp_path, later)
    assert code != 0
    # EILSEQ, as fio says it.
    assert job["error"] == 84
    assert f"misdirected write of {BLOCK} bytes at offset {9 * BLOCK}" in said
    assert f"offset {20 * BLOCK}" in said
    assert "bit flip" in said


def test_a_read_job_checks_what_the_job_before_it_wrote(tmp_path: Path) -> None:
    options = f"rw=write\nverify=crc32c\ndo_verify=0\n[r]\nstonewall\nfilename={tmp_path}/data\n"
    options += f"ioengine=psync\nrw=randread\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\nverify=crc32c"
    assert fio(tmp_path, options)[0] == 0
