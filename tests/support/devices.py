"""Loop devices and mounts of tests: made here, skipped with the reason where they cannot be, and removed.

Knows programs that only root's PATH has. Knows no test.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def tool(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def call(name: str, *words: str, given: str | None = None) -> str:
    with _one_at_a_time(name):
        done = subprocess.run([tool(name), *words], check=True, input=given, capture_output=True, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Let one losetup run at a time: each opens for writing a device that a test may just have got.

    A test that asks why that device may not be written is told of such a process.
    """
    if name != "losetup":
        yield
        return
    with (Path(tempfile.gettempdir()) / "loadstone-tests-losetup").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def empty(path: Path, size_bytes: int) -> Path:
    """Make a file of holes."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


@contextlib.contextmanager
def attached(backing: Path, *options: str) -> Iterator[str]:
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    try:
        device = call("losetup", "--find", "--show", *options, str(backing))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device here: {error.stderr.strip()}")
    try:
        yield device
    finally:
        call("losetup", "--detach", device)


@contextlib.contextmanager
def mounted(device: str, point: Path) -> Iterator[None]:
    point.mkdir()
    try:
        call("mount", device, str(point))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"mounting is not possible here: {error.stderr.strip()}")
    try:
        yield
    finally:
        call("umount", str(point))
