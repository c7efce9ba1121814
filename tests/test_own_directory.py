"""Directories of Loadstone's own, at whose place somebody put something before: it stays as it is."""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
from typing import TYPE_CHECKING, Final

import pytest

from loadstone import own_directory
from loadstone.control import change_journal, orphans
from loadstone.control.layout import build
from loadstone.control.layout.description import LayoutDescription, LayoutOrder
from loadstone.errors import RefusedError
from loadstone.hosts import agent, occupancy

if TYPE_CHECKING:
    from pathlib import Path

NOBODY: Final = 65_534
RECORD: Final = '{"run": "r", "by": "root@h", "pid": 1, "since_s": 1.5, "network": "net:[1]"}'
PROCESS: Final = {"boot_id": "x", "pid": 1, "start_ticks": 1, "pid_namespace": "", "command": []}
THEIRS: Final = {
    "test-lock.lock": "",
    "15-r.json": RECORD,
    "1-2.jsonl": f'{{"begin": {json.dumps(PROCESS)}}}\nx',
    "1-3.part": "",
    "letter.txt": "Dear Ada",
}
"""Files with the names and the content of ours, all in somebody's directory."""


def use_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "folder", lambda: path)
    orphans.wait_until_gone("test-lock", 1.0)
    orphans.forget("test-lock")
    orphans.run(["true"], "another", timeout=9.0)


def use_journal(path: Path, _: pytest.MonkeyPatch) -> None:
    with change_journal.left_behind(path):
        pass
    change_journal.ChangeJournal(path).close()


def use_agents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupancy, "folder", lambda: path)
    occupancy.occupy("today", "root@here").release()


def use_hosts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "DIRECTORY", str(path))
    one = agent.Agent.__new__(agent.Agent)
    one._directory = path
    one._make_directory()


def use_layouts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_call", lambda *_: pytest.fail("it was built"))
    description = LayoutDescription(manager="mount", source="/dev/none", filesystem_type="ext4")
    base = str(path / "ls00000000")
    order = LayoutOrder(
        label="ls00000000", name="m", devices=(), identities=(), description=description, base=base
    )
    build._build("m", order)


USES: Final = {
    "/run/loadstone and /tmp/loadstone-UID": use_locks,
    "/var/lib/loadstone/changes": use_journal,
    "/tmp/loadstone-agents": use_agents,
    "/var/tmp/loadstone-hosts": use_hosts,
    "/run/loadstone/LABEL": use_layouts,
}
"""Each place, and what is done there."""


def snapshot(path: Path) -> dict[str, tuple[int, int, str]]:
    """Everything at and below a place: kind and mode, owner, content."""
    every = [path, *(sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [])]
    return {
        str(one): (
            one.lstat().st_mode,
            one.lstat().st_uid,
            one.read_text() if one.is_file() and not one.is_symlink() else "",
        )
        for one in every
        if os.path.lexists(one)
    }


def private(path: Path) -> Path:
    path.mkdir(mode=0o700)
    for name, text in THEIRS.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("place", USES)
def test_a_link_to_a_directory_is_not_followed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = private(tmp_path / "elsewhere")
    (tmp_path / "place").symlink_to(elsewhere)
    before = snapshot(elsewhere)
    with pytest.raises(RefusedError, match=r"found a symbolic link to .*elsewhere; expected a dir") as raised:
        USES[place](tmp_path / "place", monkeypatch)
    assert raised.value.hint is not None
    assert f"`ls -ld {tmp_path / 'place'}`; move it away, or " in raised.value.hint
    assert snapshot(elsewhere) == before


@pytest.mark.parametrize("place", USES)
def test_a_link_to_nothing_makes_nothing_elsewhere(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "place").symlink_to(tmp_path / "nothing")
    with pytest.raises(RefusedError, match=r"found a symbolic link to .*nothing; expected a directory"):
        USES[place](tmp_path / "place", monkeypatch)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("kind", ["a file", "a named pipe", "a socket"])
@pytest.mark.parametrize("place", USES)
def test_what_is_no_directory_stays_and_is_named(
    place: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "place"
    if kind == "a file":
        path.write_text("somebody's")
    elif kind == "a named pipe":
        os.mkfifo(path)
    else:
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("place")
    before = snapshot(path)
    with pytest.raises(RefusedError, match=f"found {kind}; expected a directory"):
        USES[place](path, monkeypatch)
    assert snapshot(path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("place", [one for one in USES if one != "/tmp/loadstone-agents"])
def test_a_directory_of_another_user_is_not_used(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = private(tmp_path / "place")
    os.chown(path, NOBODY, NOBODY)
    before = snapshot(path)
    with pytest.raises(RefusedError, match=r"found a directory of .*65534\); expected one of root \(uid 0\)"):
        USES[place](path, monkeypatch)
    assert snapshot(path) == before


@pytest.mark.parametrize("place", [one for one in USES if one != "/tmp/loadstone-agents"])
def test_a_directory_that_others_may_write_to_is_not_used(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = private(tmp_path / "place")
    path.chmod(0o1777)
    before = snapshot(path)
    with pytest.raises(RefusedError, match=r"others may write to \(mode 1777\); expected mode 0700"):
        USES[place](path, monkeypatch)
    assert snapshot(path) == before


@pytest.mark.parametrize("place", USES)
def test_a_file_above_the_place_is_named(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("somebody's")
    with pytest.raises(RefusedError, match=r"none can be made: .*/file(/place)?: (Not a dir|File exists)"):
        USES[place](tmp_path / "file" / "place", monkeypatch)
    assert (tmp_path / "file").read_text() == "somebody's"


def test_a_directory_for_one_user_alone_cannot_be_one_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user ran an agent before, whose directory is for nobody else."""
    path = tmp_path / "place"
    path.mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with (
        pytest.raises(RefusedError, match=r"others may not write to \(mode 0755\); expected mode 1777"),
        own_directory.opened(path, "wait", for_all=True),
    ):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_lock_that_holds_something_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = private(tmp_path / "place")
    monkeypatch.setattr(orphans, "folder", lambda: place)
    (place / "mine.lock").write_text("somebody's")
    (place / "link.lock").symlink_to("letter.txt")
    for name in ("mine", "link", "test-lock"):
        orphans.forget(name)
    assert (place / "mine.lock").read_text() == "somebody's"
    assert (place / "link.lock").is_symlink()
    assert not (place / "test-lock.lock").exists()


def test_locks_are_below_the_temporary_directory_for_who_is_not_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert orphans.folder() == tmp_path / "loadstone-4711"
    (tmp_path / "loadstone-4711").symlink_to(tmp_path)
    with pytest.raises(RefusedError, match="symbolic link") as raised:
        orphans.run(["true"], "test", timeout=9.0)
    assert raised.value.hint is not None
    assert raised.value.hint.endswith("set TMPDIR to another directory")
