"""A loop device, and a file system on it, for tests of what an experiment's targets are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.devices import attached, call, empty, mounted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 16 << 20
READS = """[[patterns]]
name = "read"
options = {{ ioengine = "psync", rw = "randread", bs = "4k" }}
"""
"""The pattern of files that are formatted."""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    with attached(empty(tmp_path / "disk", SIZE)) as name:
        yield name


@pytest.fixture
def point(device: str, tmp_path: Path) -> Iterator[Path]:
    call("mkfs.ext4", "-q", device)
    with mounted(device, tmp_path / "mounted"):
        yield tmp_path / "mounted"
