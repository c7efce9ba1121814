"""`list_runs`, and the verb that shows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import loadstone
from loadstone.cli.main import main
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A run with a result, one that was killed, one that is damaged, and what is none."""
    result = {
        "status": "complete",
        "started": "2026-11-20T10:00:00+00:00",
        "total": {
            "iops": 1234.0,
            "bandwidth_bytes_per_s": 5e6,
            "latency_ns": {"mean": 8e5, "percentiles": {"99": 2e6}},
        },
        "verdict": {"kind": "measures_storage"},
    }
    for name, seal in (("whole", "complete"), ("killed", None), ("damaged", "complete")):
        runs.make(tmp_path / name, seconds=1.0, seal=seal)
    (tmp_path / "whole" / "result.json").write_text(json.dumps(result))
    (tmp_path / "damaged" / "manifest.json").write_text("{")
    (tmp_path / "none").mkdir()
    (tmp_path / "file").write_text("")
    return tmp_path


def test_each_run_is_a_row_and_what_is_not_known_is_null(place: Path) -> None:
    table = loadstone.list_runs(place)
    found = {row["path"].rpartition("/")[2]: row for row in table.to_dicts()}
    assert set(found) == {"whole", "killed", "damaged"}
    assert table["path"][0].endswith("whole"), "the newest first, then what has no time"
    whole = found["whole"]
    assert (whole["status"], whole["iops"], whole["p99_ns"], whole["verdict"]) == (
        "complete",
        1234.0,
        2e6,
        "measures_storage",
    )
    assert (found["killed"]["status"], found["killed"]["iops"]) == ("partial", None)
    assert found["damaged"]["status"] == "unreadable"


def test_the_verb_shows_what_the_function_returns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:4] == ["started", "runs", "status", "IOPS"]
    assert "measures the storage" in lines[1]
    assert "2026-11-20 10:00" in lines[1]
    assert main(["runs", str(place), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["started"] for row in rows] == ["2026-11-20T10:00:00Z", None, None]


def test_nothing_and_what_is_no_directory_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().err
    assert main(["runs", str(tmp_path / "nosuch")]) == 2
