"""Targets that misbehave, for real: full, shrunk, mounted, standing still."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.read import Bundle
from tests.support.devices import attached, call, mounted

from .program import INTERRUPT, events, finish, job, kinds, run, start, ticks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.root

BLKIO = Path("/sys/fs/cgroup/blkio")
LIMIT = "blkio.throttle.read_iops_device"
SIZE = 64 << 20


@pytest.fixture
def backing(tmp_path: Path) -> Path:
    path = tmp_path / "backing"
    path.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
    return path


@contextlib.contextmanager
def small_tmpfs(point: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    point.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(point)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"mounting is not possible here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


@contextlib.contextmanager
def standing_still(device: str) -> Iterator[None]:
    """Let one read per second through to the device, which is as good as none at depth 64.

    For this process and what it starts: were the limit the host's, a killed test would leave it behind.
    A program that is started warm is no child of it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADSTONE_TESTS_COLD", "1")
        with _throttled(device):
            yield


@contextlib.contextmanager
def _throttled(device: str) -> Iterator[None]:
    number = Path(device).stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    group = BLKIO / f"loadstone-faults-{os.getpid()}"
    try:
        group.mkdir()
        (group / LIMIT).write_text(f"{name} 1\n")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no block throttle here: {error}")
    try:
        yield
    finally:
        # Lifted first: what still waits is done then.
        (group / LIMIT).write_text(f"{name} 0\n")
        for process in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (BLKIO / "cgroup.procs").write_text(process)
        group.rmdir()


def test_a_mounted_device_is_refused_with_the_evidence(backing: Path, tmp_path: Path) -> None:
    with attached(backing) as device:
        call("mkfs.ext4", "-q", device)
        one = job(tmp_path / "w.fio", f"[w]\nrw=randwrite\nbs=4k\nio_size=1m\nfilename={device}\n")
        with mounted(device, tmp_path / "mnt"):
            done = run("run", one, "--out", "b", "--i-accept-data-loss", device, cwd=tmp_path)
        assert done.code == 2
        assert f"{device}: {Path(device).name} is mounted at {tmp_path / 'mnt'} (ext4)" in done.err
        assert not (tmp_path / "b").exists()
        assert "ext4" in call("blkid", "-p", device)


@pytest.mark.in_turn
def test_a_signature_goes_with_consent_only(backing: Path, tmp_path: Path) -> None:
    with attached(backing) as device:
        call("mkfs.ext4", "-q", device)
        one = job(tmp_path / "w.fio", f"[w]\nrw=write\nbs=64k\nsize=8m\nfilename={device}\n")
        refused = run("run", one, "--out", "b", cwd=tmp_path)
        assert refused.code == 2
        assert f"{device}: it carries ext4 at offset 1080" in refused.err
        agreed = run("run", one, "--out", "b", "--no-report", "--i-accept-data-loss", device, cwd=tmp_path)
        assert agreed.code == 0, agreed.err


def test_a_full_file_system_says_so_and_keeps_the_samples(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "small") as point:
        text = f"[w]\nrw=write\nbs=64k\nsize=64m\nfallocate=none\nfilename={point}/data\n"
        done = run("run", job(tmp_path / "w.fio", text), "--out", "b", "--json", "--no-report", cwd=tmp_path)
    assert done.code == 1
    assert f"{tmp_path / 'small/data'}" in done.err
    assert "No space left on device" in done.err


@pytest.mark.in_turn
def test_a_backing_file_that_shrinks_is_an_io_error_with_its_offset(backing: Path, tmp_path: Path) -> None:
    with attached(backing) as device:
        text = f"[r]\nrw=randread\nbs=4k\ntime_based\nruntime=300s\niodepth=8\ndirect=1\nfilename={device}\n"
        running = start("run", job(tmp_path / "r.fio", text), "--out", "b", "--no-report", cwd=tmp_path)
        ticks(tmp_path / "b")
        os.truncate(backing, 1 << 20)
        done = finish(running)
        os.truncate(backing, SIZE)
    assert done.code == 1, done.err
    assert f"{device}: read of 4096 bytes at offset" in done.err
    assert "Input/output error (EIO)" in done.err
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "failed"
    assert bundle.samples()["ops"].sum() > 0


@pytest.mark.in_turn
@pytest.mark.slow
def test_io_that_does_not_come_back_ends_the_run_within_its_time(backing: Path, tmp_path: Path) -> None:
    with attached(backing) as device:
        text = f"[r]\nrw=randread\nbs=4k\ntime_based\nruntime=2s\niodepth=64\ndirect=1\nfilename={device}\n"
        with standing_still(device):
            # The device stands still to the end: the program must not wait for it.
            done = run("run", job(tmp_path / "r.fio", text), "--out", "b", "--no-report", cwd=tmp_path)
    assert done.code == 1, done.err
    assert "did not come back within" in done.err
    assert device in done.err
    assert Bundle.open(tmp_path / "b").status == "failed"
    assert "hung" in kinds(tmp_path / "b")


@pytest.mark.in_turn
@pytest.mark.slow
def test_an_interrupt_ends_a_run_on_a_device_that_stands_still(backing: Path, tmp_path: Path) -> None:
    with attached(backing) as device:
        text = f"[r]\nrw=randread\nbs=4k\ntime_based\nruntime=300s\niodepth=64\ndirect=1\nfilename={device}\n"
        with standing_still(device):
            running = start("run", job(tmp_path / "r.fio", text), "--out", "b", "--no-report", cwd=tmp_path)
            ticks(tmp_path / "b")
            running.send_signal(INTERRUPT)
            done = finish(running)
    assert done.code == 130, done.err
    assert [event for event in events(tmp_path / "b") if event["type"] == "stop"]
