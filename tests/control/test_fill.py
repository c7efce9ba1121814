"""The file that fills a file system goes by what it holds, and not by its name alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone import holes
from loadstone.control.fill import FILE, NONE, FillLevel
from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path


def filled(folder: Path) -> Path:
    """A file as a level of fill leaves it."""
    file = folder / FILE
    with file.open("wb") as made:
        os.posix_fallocate(made.fileno(), 0, 4 << 20)
    return file


def test_what_fills_is_removed_and_nothing_is_no_error(tmp_path: Path) -> None:
    file = filled(tmp_path)
    FillLevel().write(str(tmp_path), NONE)
    assert not file.exists()
    FillLevel().write(str(tmp_path), NONE)


@pytest.mark.parametrize("offset", [0, 3 << 20, (4 << 20) - 1])
def test_what_somebody_put_in_its_place_stays(tmp_path: Path, offset: int) -> None:
    """Found from outside: `restore` after a kill removed whatever had the name."""
    file = filled(tmp_path)
    with file.open("r+b") as theirs:
        theirs.seek(offset)
        theirs.write(b"m")
    with pytest.raises(RefusedError, match=rf"{FILE} contains something that Loadstone did not write"):
        FillLevel().write(str(tmp_path), NONE)
    assert file.read_bytes()[offset : offset + 1] == b"m"


def test_no_link_pipe_or_directory_of_its_name_is_removed_or_waited_for(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "theirs")
    with pytest.raises(RefusedError, match="did not write"):
        FillLevel().write(str(tmp_path), NONE)
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(RefusedError, match="did not write"):
        FillLevel().write(str(tmp_path), NONE)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    with pytest.raises(RefusedError, match="did not write"):
        FillLevel().write(str(tmp_path), NONE)
    assert (tmp_path / FILE).is_dir()


@pytest.mark.parametrize("size_mib", [4, 256])
@pytest.mark.in_turn
def test_what_the_file_says_of_its_holes_is_not_believed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_mib: int
) -> None:
    """Some file systems say that data is a hole: a small file is read whole, of a larger one each part."""
    file = filled(tmp_path)
    os.truncate(file, size_mib << 20)
    monkeypatch.setattr(holes, "data", lambda *_: [])
    with file.open("r+b") as theirs:
        theirs.seek((size_mib << 19) + 1)
        theirs.write(b"m" if size_mib == 4 else bytes([1]) * (1 << 19))
    with pytest.raises(RefusedError, match="did not write"):
        FillLevel().write(str(tmp_path), NONE)
    os.truncate(file, 0)
    os.truncate(file, size_mib << 20)
    FillLevel().write(str(tmp_path), NONE)
    assert not file.exists()
