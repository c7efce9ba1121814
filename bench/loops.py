"""Loop devices for a comparison, made and removed by the names they were given, and where
their kernel threads run.

Knows `losetup`, the mask of the kernel's unbound workers and how to leave nothing behind.
Needs root. Never removes a device it did not make.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = Path("/sys/devices/virtual/workqueue/cpumask")
"""Processors of kernel workers that are bound to none (Documentation/core-api/workqueue.rst)."""


def cannot_move_workers() -> str | None:
    """Why the kernel's workers stay where they are, or None."""
    return None if os.access(WORKERS, os.W_OK) else f"{WORKERS} cannot be written"


@contextlib.contextmanager
def kernel_workers_on(cpu: int) -> Iterator[None]:
    """Keep the kernel's unbound workers on one CPU meanwhile."""
    before = WORKERS.read_text()
    try:
        WORKERS.write_text(f"{1 << cpu:x}")
        yield
    finally:
        WORKERS.write_text(before)


def unavailable() -> str | None:
    """Why loop devices cannot be made here, or None."""
    if os.geteuid() != 0:
        return "loop devices need root"
    done = subprocess.run(["losetup", "-f"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no free loop device: {done.stderr.strip()}"


@contextlib.contextmanager
def loop_devices(folder: Path, count: int, size_bytes: int) -> Iterator[list[str]]:
    """Make `count` loop devices of `size_bytes` backed by files in `folder`; yield their paths.

    The files hold data that does not compress, because unwritten space reads faster than any disk.
    """
    devices: list[str] = []
    try:
        for number in range(count):
            backing = folder / f"disk{number}"
            with backing.open("wb") as out:
                for _ in range(size_bytes >> 20):
                    out.write(os.urandom(1 << 20))
                out.truncate(size_bytes)
            command = ["losetup", "-f", "--show", "--direct-io=on", str(backing)]
            devices.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        yield devices
    finally:
        for device in devices:
            subprocess.run(["losetup", "-d", device], check=False)
