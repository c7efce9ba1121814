"""One file with what several runs of fio printed, and one with what a run printed again and again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit import foreign
from tests.audit.foreign_files import FIO, cases, document

if TYPE_CHECKING:
    from pathlib import Path


def printed(at_ms: int, elapsed_s: int, ios: int) -> dict[str, Any]:
    """What fio 3.33 prints at a moment, so many seconds after it began."""
    one = document() | {"timestamp_ms": at_ms, "timestamp": at_ms // 1000}
    one["jobs"] = one["jobs"][4:5]
    one["jobs"][0]["elapsed"] = elapsed_s
    one["jobs"][0]["read"] |= {"total_ios": ios, "iops": ios / 2.0}
    return one


def rates(path: Path, *documents: dict[str, Any]) -> list[float]:
    path.write_text("\n".join(json.dumps(one, indent=1) for one in documents))
    return [case.total.iops.value for case in cases(path) if case.total.iops is not None]


def test_runs_of_one_json_file_are_all_there(tmp_path: Path) -> None:
    """Of three runs that were appended to one file the last alone counted, without a word."""
    began = 1_796_070_400_000
    # Each began when the one before had ended; fio counts 1.3 s as 2.
    documents = [printed(began + 1300 * (at + 1), 2, 1000 * (at + 1)) for at in range(3)]
    assert rates(tmp_path / "c.json", *documents) == [500, 1000, 1500]
    in_seconds = [printed(began + 5000 * (at + 1), 5, 1000 * (at + 1)) for at in range(3)]
    for one in in_seconds:
        del one["timestamp_ms"]
    assert rates(tmp_path / "s.json", *in_seconds) == [500, 1000, 1500]


def test_what_one_run_prints_again_and_again_counts_once(tmp_path: Path) -> None:
    """With `--status-interval` each later result holds those before it; a ramp begins to count anew."""
    began = 1_796_070_519_700
    status = [
        (1593, 2, 450),
        (2597, 3, 952),
        (3695, 4, 501),
        (4695, 5, 1001),
        (6713, 7, 2000),
        (6713, 7, 2000),
    ]
    documents = [printed(began + at_ms, elapsed_s, ios) for at_ms, elapsed_s, ios in status]
    assert rates(tmp_path / "st.json", *documents) == [1000]
    # And a second run.
    later = [printed(began + 7_000 + at_ms, elapsed_s, 2 * ios) for at_ms, elapsed_s, ios in status]
    assert rates(tmp_path / "two.json", *documents, *later) == [1000, 2000]


def test_runs_side_by_side_are_all_there(tmp_path: Path) -> None:
    """They began in the same second and have the names of each other's jobs, but other files."""
    began = 1_796_070_400_000
    documents = [printed(began + 30_000 + 40 * at, 30, 1000 * (at + 1)) for at in range(2)]
    for at, one in enumerate(documents):
        one["jobs"][0]["job options"] = {**one["jobs"][0]["job options"], "filename": f"/dev/sd{at}"}
    assert rates(tmp_path / "two.json", *documents) == [500, 1000]


def test_results_without_a_time_are_taken_for_those_of_one_run_with_a_note(tmp_path: Path) -> None:
    documents = [printed(1, 2, 1000), printed(2, 2, 3000)]
    for one in documents:
        del one["timestamp_ms"], one["timestamp"]
    assert rates(tmp_path / "old.json", *documents) == [1500]
    (note,) = [one for one in foreign.read(tmp_path / "old.json").notes if "results" in one]
    assert note == "of 2 results the last was taken for the sum of all: when each began is not known"


@pytest.mark.parametrize("lines", [1, 3])
def test_lines_of_terse_output_that_were_added_up_are_told(tmp_path: Path, lines: int) -> None:
    """Three runs in a file were three times as fast as each, without a word."""
    line = next(one for one in (FIO / "shared.terse3").read_text().splitlines() if one.startswith("3;"))
    (tmp_path / "c.terse").write_text("\n".join([line] * lines))
    name = line.split(";")[2]
    notes = [one for one in foreign.read(tmp_path / "c.terse").notes if "clones" in one]
    expected = f"{lines} lines of {name} were added up as clones: terse output does not tell clones from runs"
    assert notes == ([expected] if lines > 1 else [])
