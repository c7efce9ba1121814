"""Who has a host, as another run is told: also when it was left over from another day."""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError
from loadstone.hosts import occupancy

if TYPE_CHECKING:
    from pathlib import Path


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
