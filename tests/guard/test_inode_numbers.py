"""What the kernel has at hand of a file is what stat(2) says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.path import inode


def test_what_is_at_hand_is_what_stat_says(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x")
    for path in (file, tmp_path, Path("/dev/null"), Path("/proc/self/fd/0"), Path("/dev/loop0")):
        if path.exists():
            told = path.stat()
            expected = (told.st_mode, told.st_dev, told.st_ino, told.st_rdev)
            assert inode.type_and_numbers(str(path)) == expected
    with pytest.raises(FileNotFoundError):
        inode.type_and_numbers(str(tmp_path / "none"))
