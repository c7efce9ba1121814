"""What of a file lies in the page cache, asked of the kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone.path.extents import allocation
from loadstone.path.page_cache import PAGE_BYTES, cached_bytes

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
