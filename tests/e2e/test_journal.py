"""Runs that keep a journal, killed or not, and what reading them back finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.program import needs_engine
from tests.support import started
from tests.support.started import StartedProgram

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 4096
BLOCKS = 256
JOB = f"""[w]
filename=data
rw=randwrite
bs={BLOCK}
size={BLOCK * BLOCKS}
iodepth=8
verify=crc32c
do_verify=0
time_based
"""


@pytest.fixture(autouse=True)
def built() -> None:
    needs_engine()


def loadstone(directory: Path, *words: str) -> subprocess.Popen[str]:
    command = [*words, "--no-report", "--json"]
    return StartedProgram(command, cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def begin(directory: Path, options: str) -> subprocess.Popen[str]:
    (directory / "job.fio").write_text(JOB + options)
    return loadstone(directory, "run", "job.fio", "--journal", "--no-calibration", "--out", "bundle")


def engine_of(directory: Path) -> int:
    """Wait for the engine to say that it has begun, and return its process number."""
    events = directory / "bundle" / "events.jsonl"
    for _ in range(400):
        told = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
        if any(event["type"] == "start" for event in told):
            return int(next(event["pid"] for event in told if event["type"] == "hello"))
        time.sleep(0.05)
    raise AssertionError("the run did not start within 20 s")


def all_differ_from(directory: Path, before: bytes) -> bytes:
    """Wait until every block holds something else than before; return what they hold."""
    for _ in range(400):
        now = (directory / "data").read_bytes()
        blocks = range(0, BLOCKS * BLOCK, BLOCK)
        if all(now[at : at + BLOCK] != before[at : at + BLOCK] for at in blocks):
            return now
        time.sleep(0.05)
    raise AssertionError("not every block was written within 20 s")


def killed(directory: Path, options: str) -> bytes:
    """Run, copy the data once it is written, kill the engine once it is twice more; return the copy.

    What was written in between is flushed then, where the job flushes at all.
    """
    process = begin(directory, options)
    pid = engine_of(directory)
    copy = all_differ_from(directory, bytes(BLOCKS * BLOCK))
    all_differ_from(directory, all_differ_from(directory, copy))
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 1
    return copy


def verified(directory: Path, name: str = "after") -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Read back; return the exit code, what was checked, and the damage that was told."""
    process = loadstone(directory, "verify", "bundle", "--out", name)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said, said
    events = [json.loads(line) for line in (directory / name / "events.jsonl").read_text().splitlines()]
    end = next(event for event in events if event["type"] == "verify_end")
    return process.returncode, end, [event for event in events if event["type"] == "damage"]


def put_back(directory: Path, copy: bytes, blocks: list[int]) -> None:
    """Let blocks hold what they held earlier, as if later writes had been lost."""
    with (directory / "data").open("r+b") as file:
        for block in blocks:
            file.seek(block * BLOCK)
            file.write(copy[block * BLOCK : (block + 1) * BLOCK])


@pytest.mark.in_turn
def test_a_killed_run_is_sound_and_a_lost_write_is_found(tmp_path: Path) -> None:
    copy = killed(tmp_path, "runtime=30\nsync=dsync\n")
    code, end, damage = verified(tmp_path)
    assert (code, damage) == (0, [])
    assert end["checked"] == BLOCKS
    put_back(tmp_path, copy, [3, 100])
    code, end, damage = verified(tmp_path, "again")
    assert code == 1
    assert [(one["kind"], one["offset"] // BLOCK) for one in damage] == [
        ("lost_write", 3),
        ("lost_write", 100),
    ]
    assert all(one["found_generation"] < one["expected_generation"] for one in damage)
    assert end["checked"] == BLOCKS - 2


@pytest.mark.in_turn
def test_what_was_never_flushed_may_be_lost_but_not_torn(tmp_path: Path) -> None:
    copy = killed(tmp_path, "runtime=30\nend_fsync=1\n")
    put_back(tmp_path, copy, [3, 100])
    assert verified(tmp_path)[0] == 0
    with (tmp_path / "data").open("r+b") as file:
        file.seek(7 * BLOCK + 512)
        file.write(bytes(512))
    code, _, damage = verified(tmp_path, "again")
    assert code == 1
    assert [one["offset"] // BLOCK for one in damage] == [7]


@pytest.mark.in_turn
def test_what_was_flushed_must_be_there(tmp_path: Path) -> None:
    copy = killed(tmp_path, "runtime=30\nfdatasync=32\n")
    assert verified(tmp_path)[0] == 0
    put_back(tmp_path, copy, [5])
    code, _, damage = verified(tmp_path, "again")
    assert code == 1
    assert [(one["kind"], one["offset"] // BLOCK) for one in damage] == [("lost_write", 5)]


@pytest.mark.in_turn
def test_a_run_that_ended_in_order_is_verified_later(tmp_path: Path) -> None:
    process = begin(tmp_path, "runtime=1\nend_fsync=1\n")
    process.communicate(timeout=60)
    assert process.returncode == 0
    code, end, _ = verified(tmp_path)
    assert (code, end["checked"], end["damaged"]) == (0, BLOCKS, 0)
    told = json.loads((tmp_path / "after" / "result.json").read_text())
    assert any("it ends in order" in note["text"] for note in told["notes"])
    assert told["jobs"][0]["verified"] == {"checked": BLOCKS, "damaged": 0, "unverified": 0}
    with (tmp_path / "data").open("r+b") as file:
        file.seek(9 * BLOCK)
        file.write(bytes(BLOCK))
    code, _, damage = verified(tmp_path, "again")
    assert code == 1
    assert [(one["kind"], one["offset"]) for one in damage] == [("zeroed_block", 9 * BLOCK)]
    again = json.loads((tmp_path / "again" / "result.json").read_text())
    assert again["jobs"][0]["verified"] == {"checked": BLOCKS, "damaged": 1, "unverified": 0}


@pytest.mark.in_turn
def test_a_read_back_says_what_was_checked_and_judges_no_rate(tmp_path: Path) -> None:
    """It is over in milliseconds, and 'not valid: too few I/Os' says nothing of the data."""
    begin(tmp_path, "").communicate(timeout=60)
    done = started.run(["verify", "bundle", "--out", "after"], cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"verified: {BLOCKS:,} blocks checked, none damaged\n" in done.stdout
    assert "Verdict" not in done.stdout
    page = (tmp_path / "after" / "report.html").read_text()
    assert f"{BLOCKS:,} blocks checked, none damaged" in page


@pytest.mark.in_turn
def test_a_journal_of_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(f"[r]\nfilename=data\nrw=randwrite\nbs=4k\nsize={BLOCK * BLOCKS}\n")
    process = loadstone(tmp_path, "run", "job.fio", "--journal")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no job writes blocks that it verifies" in said
    assert not (tmp_path / "data").exists()


@pytest.mark.in_turn
def test_a_bundle_without_a_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB + "runtime=1\n")
    loadstone(tmp_path, "run", "job.fio", "--no-calibration", "--out", "bundle").communicate(timeout=60)
    process = loadstone(tmp_path, "verify", "bundle")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "kept no journal" in said
