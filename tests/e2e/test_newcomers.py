"""Somebody begins to use a target while a run writes it: the run ends, and says who came."""

from __future__ import annotations

import json
import sys
import time
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING

import pytest

from tests.support import devices

from .program import events, finish, job, kinds, run, start, ticks, until

if TYPE_CHECKING:
    from pathlib import Path

LONG_S = 40
"""Far above what it takes until a use is seen."""
WRITES = (
    "[w]\nrw=randwrite\nbs=4k\nsize=4m\ntime_based\nruntime={}\nfilename={}\nrate_iops=200\nioengine={}\n"
)
OPENS = "import sys; file = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"


def writing(directory: Path, target: object, seconds: int = LONG_S, engine: str = "io_uring") -> Popen[str]:
    """A run that writes a target, whose load has begun."""
    file = job(directory / "w.fio", WRITES.format(seconds, target, engine))
    process = start("run", file, "--out", "b", cwd=directory)
    ticks(directory / "b")
    return process


@pytest.mark.parametrize("engine", ["io_uring", "psync", "mmap"])
def test_a_program_that_opens_a_target_for_writing_ends_the_run(tmp_path: Path, engine: str) -> None:
    load = writing(tmp_path, tmp_path / "data", engine=engine)
    with Popen([sys.executable, "-c", OPENS, tmp_path / "data", "r+b"], stdin=PIPE) as other:
        done = finish(load)
        assert other.stdin is not None
        other.stdin.close()
    assert done.code == 1, done
    assert f"{tmp_path}/data came into use while the run wrote it: process {other.pid}" in done.err
    assert json.loads((tmp_path / "b" / "manifest.json").read_text())["status"] == "failed"
    again = run("run", tmp_path / "w.fio", "--runtime", "1s", "--out", "again", cwd=tmp_path)
    assert again.code == 2, again
    assert "not known to be Loadstone's alone" in again.err


@pytest.mark.in_turn
@pytest.mark.root
def test_who_came_while_a_file_was_laid_out_is_seen(tmp_path: Path) -> None:
    text = WRITES.format(LONG_S, tmp_path / "data", "psync").replace("size=4m", "size=1g\nfallocate=none")
    file = job(tmp_path / "w.fio", text.replace("randwrite", "randrw"))
    load = start("run", file, "--out", "b", cwd=tmp_path)
    until(lambda: "layout" in kinds(tmp_path / "b"), "a layout")
    with devices.attached(tmp_path / "data"):
        done = finish(load)
    began_ns = [event for event in events(tmp_path / "b") if event["type"] == "start"]
    assert done.code == 1, done
    assert began_ns, "it was seen in the load"
    assert "it backs " in done.err


@pytest.mark.root
def test_a_loop_device_over_a_target_ends_the_run(tmp_path: Path) -> None:
    load = writing(tmp_path, tmp_path / "data")
    with devices.attached(tmp_path / "data") as device:
        done = finish(load)
    assert done.code == 1, done
    assert f"it backs {device.removeprefix('/dev/')}" in done.err


@pytest.mark.in_turn
@pytest.mark.root
def test_a_device_that_a_program_begins_to_write_ends_the_run(tmp_path: Path) -> None:
    with devices.attached(devices.empty(tmp_path / "image", 8 << 20)) as device:
        load = writing(tmp_path, device)
        with Popen([sys.executable, "-c", OPENS, device, "r+b"], stdin=PIPE) as other:
            done = finish(load)
            assert other.stdin is not None
            other.stdin.close()
    assert done.code == 1, done
    assert f"{device} came into use" in done.err


@pytest.mark.in_turn
def test_who_only_reads_or_is_gone_again_ends_nothing(tmp_path: Path) -> None:
    load = writing(tmp_path, tmp_path / "data", seconds=6)
    with Popen([sys.executable, "-c", OPENS, tmp_path / "data", "rb"], stdin=PIPE) as reader:
        while load.poll() is None:
            (tmp_path / "data").open("r+b").close()
            (tmp_path / "data").read_bytes()
            time.sleep(0.3)
        done = finish(load)
        assert reader.stdin is not None
        reader.stdin.close()
    assert done.code == 0, done
    assert "came into use" not in done.err


WRITES_ONCE = "import sys; file = open(sys.argv[1], 'r+b'); file.seek(1 << 20); file.write(b'a page of mine')"


def written_once(directory: Path, target: object, seconds: int = 3) -> str:
    """A run while which another program writes inside the target; return its events."""
    load = writing(directory, target, seconds=seconds)
    with Popen([sys.executable, "-c", WRITES_ONCE, str(target)]) as other:
        assert other.wait() == 0
    done = finish(load)
    assert done.code == 0, done
    return str(events(directory / "b"))


@pytest.mark.in_turn
@pytest.mark.root
def test_what_another_program_wrote_inside_a_target_is_not_written_over_again(tmp_path: Path) -> None:
    words = written_once(tmp_path, tmp_path / "data")
    assert f"another program wrote to {tmp_path}/data during the run" in words
    again = run("run", tmp_path / "w.fio", "--runtime", "1s", "--out", "again", cwd=tmp_path)
    assert again.code == 2, again
    assert "not known to be Loadstone's alone" in again.err


@pytest.mark.in_turn
@pytest.mark.root
def test_a_device_that_another_program_wrote_to_is_not_known_to_the_next_run(tmp_path: Path) -> None:
    first, second = (tmp_path / "b" / "runs" / name for name in ("001-repeat-1", "002-repeat-2"))
    with devices.attached(devices.empty(tmp_path / "image", 8 << 20)) as device:
        file = job(tmp_path / "w.fio", WRITES.format(3, device, "io_uring"))
        load = start("run", file, "--repeat", "2", "--out", "b", cwd=tmp_path)
        ticks(first)
        with Popen([sys.executable, "-c", WRITES_ONCE, device]) as other:
            assert other.wait() == 0
        done = finish(load)
    assert f"another program wrote to {device} during the run" in str(events(first))
    assert done.code == 1, done
    assert f"--i-accept-data-loss {device}" in done.err
    assert "start" not in kinds(second)


@pytest.mark.in_turn
@pytest.mark.root
def test_what_another_program_wrote_while_a_file_was_laid_out_is_known(tmp_path: Path) -> None:
    text = WRITES.format(1, tmp_path / "data", "psync").replace("size=4m", "size=512m\nfallocate=none")
    file = job(tmp_path / "w.fio", text.replace("randwrite", "randrw"))
    load = start("run", file, "--out", "b", cwd=tmp_path)
    until(lambda: "layout" in kinds(tmp_path / "b"), "a layout")
    with Popen([sys.executable, "-c", WRITES_ONCE, str(tmp_path / "data")]) as other:
        assert other.wait() == 0
    began = "start" in kinds(tmp_path / "b")
    done = finish(load)
    assert done.code == 0, done
    assert not began, "it was written in the load"
    assert f"another program wrote to {tmp_path}/data during the run" in str(events(tmp_path / "b"))


@pytest.mark.in_turn
@pytest.mark.root
def test_the_engine_and_who_only_reads_are_nobody_who_wrote(tmp_path: Path) -> None:
    load = writing(tmp_path, tmp_path / "data", seconds=2)
    while load.poll() is None:
        (tmp_path / "data").read_bytes()
        time.sleep(0.1)
    done = finish(load)
    assert done.code == 0, done
    assert "another program" not in str(events(tmp_path / "b"))
    again = run("run", tmp_path / "w.fio", "--runtime", "1s", "--out", "again", cwd=tmp_path)
    assert again.code == 0, again
