"""Who has a host, as another run is told: also when it was left over from another day."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError
from loadstone.hosts import occupancy

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"run": "r", "by": "root@h", "pid": 1, "since_s": 1.5, "network": "net:[1]"}


def test_an_agent_that_was_left_over_is_told_with_its_day_and_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said since 15:10:16, which was yesterday's, and *stop it there*."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path))
    with occupancy.occupy("yesterday", "root@here").path.open("r+") as file:
        record = json.loads(file.read())
        file.seek(0)
        file.write(json.dumps({**record, "since_s": record["since_s"] - 86_400, "pid": 4711}))
        file.truncate()
        file.flush()
        with pytest.raises(
            RefusedError, match=r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, of root@here"
        ) as raised:
            occupancy.occupy("today", "root@here")
    assert raised.value.hint is not None
    assert "process 4711" in raised.value.hint


def test_a_record_whose_agent_is_gone_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path))
    taken = occupancy.occupy("yesterday", "root@here")
    fcntl.flock(taken.descriptor, fcntl.LOCK_UN)
    occupancy.occupy("today", "root@here").release()
    assert not taken.path.exists()


def test_nobodys_files_are_removed_beside_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files that ended in .json were, and the directory became writable for everybody."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path))
    directory = tmp_path / "agents"
    directory.mkdir(mode=0o700)
    texts = {
        "letters.json": '{"to": "Ada"}',
        "12-notes.json": '{"to": "Bob"}',
        "13-r.json": json.dumps({**RECORD, "more": "of somebody's"}),
        "14-r.json": json.dumps({**RECORD, "since_s": "yesterday"}),
    }
    for name, text in texts.items():
        (directory / name).write_text(text)
    (directory / "15-r.json").write_text(json.dumps(RECORD))
    (directory / "16-r.json").write_text("")
    os.mkfifo(directory / "17-r.json")
    (directory / "18-r.json").symlink_to(directory / "15-r.json")
    occupancy.occupy("today", "root@here").release()
    left = {path.name: path.read_text() for path in directory.iterdir() if path.name in texts}
    assert left == texts
    others = {path.name for path in directory.iterdir()} - texts.keys()
    assert others == {".turn", "17-r.json", "18-r.json"}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_no_link_leads_to_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user may put one into /tmp: the directory it led to was opened to all, and its files removed."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path))
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "15-r.json").write_text(json.dumps(RECORD))
    (tmp_path / "agents").symlink_to(private)
    with pytest.raises(RefusedError, match=r"/agents: found a symbolic link to .*/private") as raised:
        occupancy.occupy("today", "root@here")
    assert raised.value.hint is not None
    assert "LOADSTONE_STATE" in raised.value.hint
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert [path.name for path in private.iterdir()] == ["15-r.json"]


def test_the_directory_is_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "new"))
    before = os.umask(0o077)
    try:
        occupancy.occupy("today", "root@here").release()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "agents").stat().st_mode) == 0o1777


def test_a_turn_that_somebody_keeps_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path))
    monkeypatch.setattr(occupancy, "_TURN_S", 0.1)
    occupancy.occupy("yesterday", "root@here").release()
    with (tmp_path / "agents" / ".turn").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RefusedError, match=r"another process keeps .*/agents/\.turn locked"):
            occupancy.occupy("today", "root@here")
