"""What of a file lies in the page cache, asked of the kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone.path.extents import allocation
from loadstone.path.resident_pages import PAGE_BYTES, cached_bytes
from tests.support import devices

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 64


def test_a_file_that_was_written_lies_in_the_page_cache(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * PAGES * PAGE_BYTES)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        found = cached_bytes(descriptor)
        if found is None:
            pytest.skip("this kernel has no cachestat (Linux 6.5)")
        assert found == PAGES * PAGE_BYTES
    finally:
        os.close(descriptor)
    told = allocation(str(file))
    assert told is not None
    assert told.cached_bytes == PAGES * PAGE_BYTES


@pytest.mark.root
def test_what_waits_in_the_page_cache_was_written(tmp_path: Path) -> None:
    """An extent is unwritten until its data are on the storage: reads of it were said to be zeros."""
    image = devices.empty(tmp_path / "image", 64 << 20)
    devices.call("mkfs.ext4", "-q", "-F", str(image))
    with devices.attached(image) as device, devices.mounted(device, tmp_path / "point"):
        path = tmp_path / "point" / "file"
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 << 20)
            os.fsync(file.fileno())
            file.seek(1 << 20)
            file.write(b"x" * (1 << 20))
            file.flush()
            waiting = allocation(str(path))
            os.fsync(file.fileno())
            saved = allocation(str(path))
        assert waiting is not None
        assert saved is not None
        assert (saved.written_bytes, saved.unwritten_bytes) == (1 << 20, 3 << 20)
        if waiting.cached_bytes is None:
            pytest.skip("this kernel has no cachestat")
        assert (waiting.written_bytes, waiting.unwritten_bytes) == (1 << 20, 3 << 20)
