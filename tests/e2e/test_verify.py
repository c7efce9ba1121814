"""Jobs with verify=, run by the real engine on real files."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.program import needs_engine
from tests.support import started

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 4096
BLOCKS = 512


@pytest.fixture(autouse=True)
def built() -> None:
    needs_engine()


def fio(directory: Path, options: str) -> tuple[int, dict[str, Any], str]:
    """Run one job on `data`; returns the exit code, the job's JSON, and standard error."""
    job = f"[v]\nfilename={directory}/data\nioengine=psync\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\n{options}\n"
    (directory / "job.fio").write_text(job)
    out = directory / "out.json"
    command = ["fio", "job.fio", "--output-format=json", f"--output={out}"]
    done = started.run(command, cwd=directory, timeout=60)
    text = out.read_text() if out.exists() else ""
    job_said = json.loads(text)["jobs"][0] if text else {}
    return done.returncode, job_said, done.stderr + done.stdout


def errors(directory: Path) -> list[int]:
    """The error of every job of the last run, as in its JSON."""
    return [job["error"] for job in json.loads((directory / "out.json").read_text())["jobs"]]


@pytest.mark.in_turn
def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    code, job, _ = fio(tmp_path, "rw=randwrite\nverify=crc32c")
    assert (code, job["error"]) == (0, 0)
    assert (job["write"]["total_ios"], job["read"]["total_ios"]) == (BLOCKS, BLOCKS)


@pytest.mark.in_turn
def test_only_what_was_written_is_read_back(tmp_path: Path) -> None:
    code, job, _ = fio(tmp_path, f"rw=randwrite\nverify=md5\nio_size={100 * BLOCK}")
    assert code == 0
    assert (job["write"]["total_ios"], job["read"]["total_ios"]) == (100, 100)


@pytest.mark.in_turn
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
    elsewhere = f"verify: bad header offset {7 * BLOCK}, wanted {9 * BLOCK} at file"
    assert elsewhere in said
    _, _, said = fio(tmp_path, f"{later}\ncontinue_on_error=verify")
    assert elsewhere in said
    assert f"crc32c: verify failed at file {tmp_path}/data offset {20 * BLOCK}, length {BLOCK}" in said


@pytest.mark.in_turn
def test_a_read_job_checks_what_the_job_before_it_wrote(tmp_path: Path) -> None:
    options = f"rw=write\nverify=crc32c\ndo_verify=0\n[r]\nstonewall\nfilename={tmp_path}/data\n"
    options += f"ioengine=psync\nrw=randread\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\nverify=crc32c"
    assert fio(tmp_path, options)[0] == 0


@pytest.mark.in_turn
def test_a_stage_that_writes_without_verify_spoils_what_is_verified_after_it(tmp_path: Path) -> None:
    again = f"filename={tmp_path}/data\nioengine=psync\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\n"
    spoil = f"[spoil]\nstonewall\nrw=randwrite\nnumber_ios=1\n{again}"
    check = f"[check]\nstonewall\nrw=read\nverify=crc32c\n{again}"
    before = f"rw=write\nnumber_ios=5\n[layout]\nstonewall\nrw=write\nverify=crc32c\n{again}"
    assert fio(tmp_path, before)[0] == 0, "what comes before is no matter"
    code, _, said = fio(tmp_path, f"rw=write\nverify=crc32c\n{spoil}{check}")
    assert code == 1
    assert errors(tmp_path) == [0, 0, 84]
    assert "verify: bad magic header" in said


@pytest.mark.in_turn
def test_every_job_that_reads_damage_fails(tmp_path: Path) -> None:
    again = f"stonewall\nfilename={tmp_path}/data\nioengine=psync\nbs={BLOCK}\nsize={BLOCK * BLOCKS}\n"
    spoil = f"[spoil]\nrw=randwrite\nnumber_ios=1\n{again}"
    only = f"[only]\nrw=write\nverify=crc32c\nverify_only\nverify_fatal=1\n{again}"
    read = f"[read]\nrw=randread\nverify=crc32c\nverify_fatal=1\n{again}"
    clones = f"[clones]\nrw=read\nverify=crc32c\nnumjobs=2\n{again}"
    both = f"{only.replace('only]', 'good]')}{spoil}{only}{read}{clones}"
    code, _, said = fio(tmp_path, f"rw=write\nverify=crc32c\n{both}")
    assert code == 4
    assert errors(tmp_path) == [0, 0, 0, 84, 84, 84, 84]
    assert said.count("verify: bad magic header") == 4
    assert fio(tmp_path, "rw=write\nverify=crc32c")[0] == 0
    with (tmp_path / "data").open("r+b") as file:
        file.seek(7 * BLOCK + 1000)
        file.write(b"????")
    code, _, said = fio(tmp_path, f"rw=read\nverify=crc32c\n{read}{clones}")
    assert errors(tmp_path) == [84, 84, 84, 84]
    assert said.count("crc32c: verify failed at file") == 4


@pytest.mark.in_turn
def test_who_writes_to_another_part_without_verify_may_do_so_at_the_same_time(tmp_path: Path) -> None:
    beside = f"[beside]\nrw=write\nbs={BLOCK}\nioengine=psync\nfilename={tmp_path}/data\n"
    beside += f"offset={BLOCK * BLOCKS}\nsize={BLOCK * BLOCKS}"
    assert fio(tmp_path, f"rw=randwrite\nverify=crc32c\n{beside}")[0] == 0


@pytest.mark.in_turn
def test_a_pattern_from_a_file_is_as_long_as_the_file(tmp_path: Path) -> None:
    pattern = random.Random(7).randbytes(40_000)
    (tmp_path / "pattern").write_bytes(pattern)
    options = f"rw=write\nbs=16k\nsize=64k\nverify=pattern\nverify_pattern='{tmp_path}/pattern'"
    assert fio(tmp_path, options)[0] == 0
    # Every write begins with the beginning of the pattern.
    assert (tmp_path / "data").read_bytes() == pattern[:16384] * 4


@pytest.mark.in_turn
def test_a_pattern_is_compared_byte_by_byte(tmp_path: Path) -> None:
    (tmp_path / "pattern").write_bytes(b"loadstone")
    write = "rw=write\nbuffer_pattern='pattern'\n"
    read = "rw=read\nverify=pattern\nverify_pattern='pattern'\n"
    assert fio(tmp_path, write)[0] == 0
    assert (tmp_path / "data").read_bytes()[:20] == b"loadstoneloadstonelo"
    assert fio(tmp_path, read)[0] == 0
    with (tmp_path / "data").open("r+b") as file:
        file.seek(5 * BLOCK + 700)
        byte = file.read(1)[0]
        file.seek(5 * BLOCK + 700)
        file.write(bytes([byte ^ 1]))
    code, job, said = fio(tmp_path, read)
    assert (code, job["error"]) == (1, 84)
    assert "Bad bits 1\nfio: bad pattern block offset 700\n" in said
    assert f"pattern: verify failed at file {tmp_path}/data offset {5 * BLOCK}, length {BLOCK}" in said


@pytest.mark.in_turn
def test_a_pattern_is_read_back_where_it_was_written_and_nowhere_else(tmp_path: Path) -> None:
    options = f"rw=randwrite\nverify_pattern=0xdeadface\nio_size={100 * BLOCK}"
    code, job, _ = fio(tmp_path, options)
    assert (code, job["read"]["total_ios"]) == (0, 100)


@pytest.mark.in_turn
def test_parts_of_a_file_may_have_blocks_of_their_own(tmp_path: Path) -> None:
    half = BLOCK * BLOCKS // 2
    both = "ioengine=psync\nverify=md5\nfilename={0}/data\n[b]\nrw={1}\nbs=64k\nsize={2}\noffset={2}\n"
    write = both.format(tmp_path, "write", half)
    assert fio(tmp_path, f"do_verify=0\nverify=md5\nrw=write\nsize={half}\n{write}do_verify=0")[0] == 0
    read = both.format(tmp_path, "read", half)
    assert fio(tmp_path, f"verify=md5\nrw=read\nsize={half}\n{read}")[0] == 0
    # Another block than it was written with is not what was asked for.
    assert fio(tmp_path, f"verify=md5\nrw=read\nbs=64k\nsize={half}")[0] == 1


@pytest.mark.in_turn
def test_the_null_engine_verifies_nothing_as_in_fio(tmp_path: Path) -> None:
    code, job, _ = fio(tmp_path, "rw=write\nverify=md5\nioengine=null")
    assert (code, job["write"]["total_ios"], job["read"]["total_ios"]) == (0, BLOCKS, 0)
