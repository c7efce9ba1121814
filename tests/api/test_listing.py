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
    runs.reseal(tmp_path / "whole")
    (tmp_path / "damaged" / "manifest.json").write_text("{")
    (tmp_path / "none").mkdir()
    (tmp_path / "file").write_text("")
    return tmp_path


def test_each_run_is_a_row_and_what_is_not_known_is_null(place: Path) -> None:
    table = loadstone.list_runs(place)
    found = {row["path"].rpartition("/")[2]: row for row in table.to_dicts()}
    assert set(found) == {"whole", "killed", "damaged"}
    assert table["path"][0].endswith("killed"), "the newest first, then what has no time"
    assert found["damaged"]["started"] is None
    whole = found["whole"]
    assert (whole["status"], whole["iops"], whole["p99_ns"], whole["verdict"]) == (
        "complete",
        1234.0,
        2e6,
        "measures_storage",
    )
    assert (found["killed"]["status"], found["killed"]["iops"]) == ("partial", None)
    assert found["damaged"]["status"] == "unreadable"


def test_a_result_that_was_altered_shows_no_figures(place: Path) -> None:
    """`runs` showed 8,638 IOPS of a result whose 1,234 somebody had changed."""
    result = place / "whole" / "result.json"
    manifest = (place / "whole" / "manifest.json").read_text()

    def row() -> tuple[str | None, float | None]:
        table = loadstone.list_runs(place)
        found = next(one for one in table.to_dicts() if one["path"].endswith("whole"))
        return found["status"], found["iops"]

    assert row() == ("complete", 1234.0)
    result.write_text(result.read_text().replace("1234.0", "8638.0"))
    assert row() == ("altered", None)
    result.unlink()
    assert row() == ("altered", None)
    (place / "whole" / "manifest.json").write_text(manifest.replace('"complete"', '"failed"'))
    assert row() == ("altered", None)


def test_a_sealed_run_without_a_result_is_no_partial_one(tmp_path: Path) -> None:
    """What `loadstone fio` keeps has none, and was listed as a run that was killed."""
    path = runs.make(tmp_path / "kept", seconds=1.0).path
    document = json.loads((path / "manifest.json").read_text())
    document["created_unix_ns"] = 1_795_824_523_000_000_000
    (path / "manifest.json").write_text(json.dumps(document))
    runs.reseal(path)
    (row,) = loadstone.list_runs(tmp_path).to_dicts()
    assert (row["status"], row["iops"], row["started"].year) == ("complete", None, 2026)


def test_the_verb_shows_what_the_function_returns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:4] == ["started", "runs", "status", "IOPS"]
    assert "measures the storage" in lines[2]
    assert "2026-11-20 10:00" in lines[2]
    assert main(["runs", str(place), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["started"] for row in rows][1:] == ["2026-11-20T10:00:00Z", None]


def test_nothing_and_what_is_no_directory_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().err
    assert main(["runs", str(tmp_path / "nosuch")]) == 2
