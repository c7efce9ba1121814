"""Names that are removed while others take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.safety import held, seen

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Identity


@pytest.fixture
def taken(tmp_path: Path) -> tuple[Path, Identity]:
    path = tmp_path / "control"
    path.write_text("ours")
    identity = seen.look(path)[1]
    assert identity is not None
    return path, identity


def swapped(path: Path, monkeypatch: pytest.MonkeyPatch, *, directory: bool) -> None:
    """Put something else at the path right after the first look at it."""
    look = seen.look
    looks: list[Path] = []

    def looking(at: Path) -> object:
        found = look(at)
        if not looks:
            path.unlink()
            if directory:
                path.mkdir()
            else:
                path.write_text("somebody's")
        looks.append(at)
        return found

    monkeypatch.setattr(seen, "look", looking)


def test_the_file_that_was_seen_is_removed(taken: tuple[Path, Identity]) -> None:
    path, identity = taken
    held.remove(path, identity)
    assert list(path.parent.iterdir()) == []


def test_a_file_that_took_the_name_gets_it_back(
    taken: tuple[Path, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, identity = taken
    swapped(path, monkeypatch, directory=False)
    with pytest.raises(FileExistsError, match="another file is there now"):
        held.remove(path, identity)
    assert [one.read_text() for one in path.parent.iterdir()] == ["somebody's"]
    assert path.exists()


def test_what_cannot_get_its_name_back_is_kept_and_its_place_is_told(
    taken: tuple[Path, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, identity = taken
    swapped(path, monkeypatch, directory=True)
    with pytest.raises(FileExistsError, match="it was moved to ") as told:
        held.remove(path, identity)
    (kept,) = path.parent.iterdir()
    assert kept.is_dir()
    assert re.search(re.escape(str(kept)), str(told.value))
