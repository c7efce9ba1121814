"""The OOM killer ends the engine or the working process: it is named, and what was measured is kept."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.read import Bundle

from .program import alive, engine_pid, finish, job, start, ticks, until
from .test_supervisor import worker_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = "[r]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=60s\nfilename=data\nrate_iops=1k\n"
GROUPS = Path("/sys/fs/cgroup")
ROOM_BYTES = 16 << 20
"""What the group may take beyond what it has when somebody asks for more."""
ASKING = """
import pathlib, sys
held = []
while pathlib.Path(sys.argv[1]).read_text() == sys.argv[2]:
    held.append(bytearray(b"x" * (1 << 18)))
"""
"""Takes memory until somebody was killed for it."""


class Group:
    """A control group with a limit on memory, of either version."""

    def __init__(self) -> None:
        v1 = GROUPS / "memory"
        self.place = (v1 if v1.is_dir() else GROUPS) / f"loadstone-oom-{os.getpid()}"
        names = ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control")
        if not v1.is_dir():
            names = ("memory.current", "memory.max", "memory.events")
        self.unlimited = "-1" if v1.is_dir() else "max"
        self.place.mkdir()
        self.used, self.limit, self.deaths = (self.place / name for name in names)

    def run_out(self, victim: int) -> None:
        """Have the kernel kill a process of the group for want of memory."""
        Path(f"/proc/{victim}/oom_score_adj").write_text("1000")
        before = self.deaths.read_text()
        asking = subprocess.Popen([sys.executable, "-c", ASKING, str(self.deaths), before])
        (self.place / "cgroup.procs").write_text(str(asking.pid))
        self.limit.write_text(str(int(self.used.read_text()) + ROOM_BYTES))
        try:
            asking.wait(60)
        finally:
            asking.kill()
            asking.wait()
            self.limit.write_text(self.unlimited)

    def leave(self) -> None:
        """Take the group down; what is still in it is moved out."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for pid in (self.place / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (self.place.parent / "cgroup.procs").write_text(pid)
            with contextlib.suppress(OSError):
                self.place.rmdir()
                return
            time.sleep(0.1)


@pytest.fixture
def group() -> Iterator[Group]:
    try:
        made = Group()
        if not made.limit.exists():
            made.leave()
            pytest.skip("no control group here has a limit on memory")
    except OSError as error:
        pytest.skip(f"no control group can be made: {error} (needs root)")
    try:
        yield made
    finally:
        made.leave()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("who", ["engine", "working process"])
def test_who_was_killed_for_want_of_memory_is_named_and_the_figures_are_kept(
    tmp_path: Path, group: Group, who: str, seed: int
) -> None:
    job(tmp_path / "r.fio", JOB)
    running = start("run", "r.fio", "--out", "b", cwd=tmp_path, control_group=group.place)
    worker = until(lambda: worker_or_none(running.pid), "the working process")
    ticks(tmp_path / "b")
    time.sleep(random.Random(seed).random() * 3)
    engine = engine_pid(tmp_path / "b")
    group.run_out(engine if who == "engine" else worker)
    done = finish(running)
    assert done.code == 1, done
    assert "OOM killer" in done.err, done.err
    assert f"control group /{group.place.name} is at its memory limit" in done.err, done.err
    assert "IOPS" in done.out + done.err
    assert "Traceback" not in done.err
    until(lambda: not alive(engine), "the end of the engine")
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == ("failed" if who == "engine" else "partial")
    assert bundle.events is not None
    if who == "engine":
        assert bundle.verify() == []
        assert bundle.samples() is not None
