"""Experiments from Python: planned, run on the engine, and opened again."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

import loadstone
from loadstone import units
from loadstone.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

FILE = """title = "Depth"
repeats = 2
size = "1g"

[parameters]
runtime = "300ms"

[[patterns]]
name = "read"
options = { ioengine = "null", rw = "randread", bs = "4k", runtime = "$runtime" }

[[factors]]
name = "depth"
option = "iodepth"
levels = [1, 4]
"""
UNSET = """
[[factors]]
name = "swappiness"
control = "sysctl"
subject = "vm.nosuch"
levels = [60, 10]
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("experiment") / "depth.toml"
    found.write_text(FILE)
    return found


@pytest.fixture(scope="module")
def found(file: Path) -> loadstone.Experiment:
    return loadstone.run_experiment(
        file, parameters={"runtime": "200ms"}, calibration=False, out=file.parent / "done"
    )


@pytest.mark.in_turn
def test_a_plan_is_the_one_of_the_command_line_and_touches_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = loadstone.plan_experiment(file)
    assert (len(planned.runs), planned.missing, planned.would_run) == (4, planned.runs, True)
    assert main(["experiment", "plan", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # The seed of the order is drawn for each plan.
    assert {**told, "seed": 0, "runs": 0} == {**planned.document(), "seed": 0, "runs": 0}
    assert sorted(path.name for path in file.parent.iterdir() if path.name != "done") == ["depth.toml"]


@pytest.mark.in_turn
def test_what_was_found_is_told_and_opened_again(found: loadstone.Experiment) -> None:
    assert found.is_complete
    assert (found.exit_code(), found.error, found.still_changed) == (0, None, ())
    told = found.document()
    assert (told["title"], told["runs_planned"], told["runs_done"]) == ("Depth", 4, 4)
    assert len(found.study.runs) == 4
    assert loadstone.open_experiment(found.path).document() == told
    page = found.report(found.path.parent / "page.md")
    assert told["answer"].replace(units.THIN, " ") in page.read_text()
    with pytest.raises(loadstone.InputError, match=r"page\.doc"):
        found.report(found.path.parent / "page.doc")


class InterruptingDisplay:
    """Sends Ctrl-C when the third run is about to start."""

    def begin(self, wanted: object, number: int, expected: int | None) -> None:
        _ = wanted, expected
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)

    def end(self, done: object, number: int, expected: int | None, left_s: float | None) -> None:
        _ = done, number, expected, left_s


@pytest.mark.in_turn
def test_what_an_interrupt_left_out_is_done_by_the_next_call(file: Path, tmp_path: Path) -> None:
    with pytest.raises(loadstone.RunError, match="before its last run") as stopped:
        loadstone.run_experiment(
            file, calibration=False, out=tmp_path / "run", progress=InterruptingDisplay()
        )
    assert str(tmp_path / "run") in str(stopped.value.hint)
    assert loadstone.open_experiment(tmp_path / "run").document()["runs_done"] < 4
    again = loadstone.resume_experiment(tmp_path / "run", calibration=False)
    assert again.is_complete
    assert again.document()["runs_done"] == 4


def test_a_level_that_cannot_be_set_here_is_refused_before_the_first_run(tmp_path: Path) -> None:
    file = tmp_path / "unset.toml"
    file.write_text(FILE + UNSET)
    planned = loadstone.plan_experiment(file)
    assert not planned.would_run
    assert "swappiness" in str(planned.refused)
    with pytest.raises(loadstone.RefusedError, match="cannot be set here"):
        loadstone.run_experiment(file, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_directory_of_no_experiment_is_named(tmp_path: Path) -> None:
    with pytest.raises(loadstone.BundleError, match=str(tmp_path)):
        loadstone.open_experiment(tmp_path)
