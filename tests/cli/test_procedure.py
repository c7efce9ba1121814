"""Named procedures on the command line, and the list of what there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import exitcodes
from loadstone.api.jobs import procedure
from loadstone.bundle import study
from loadstone.cli.main import main
from loadstone.study.rounds import RoundsController
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from pathlib import Path


def test_the_list_is_grouped_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads"]) == exitcodes.DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(catalogue.GROUPS)
    named = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert sorted(named) == catalogue.names()
    assert sum(line.startswith("    source: ") for line in lines) == len(named)


def test_one_of_them_tells_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads", "snia-pts-iops-like"]) == exitcodes.DONE
    out = capsys.readouterr().out
    assert "runs: 57, one after the other, in rounds, at most 25" in out
    assert "--set depth=32" in out


@pytest.mark.in_turn
def test_runs_are_listed_with_what_differs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "x"
    with target.open("wb") as file:
        file.truncate(1 << 30)
    arguments = ["plan", "spc-1-like-ramp", "--set", "bsu=2", "--target", str(target), "--json"]
    assert main(arguments) == exitcodes.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["language"] == "catalogue"
    assert [run["load"] for run in document["runs"]] == ["100", "95", "90", "80", "50", "10"]
    assert document["runs"][0]["jobs"][0]["pacing"]["rate_iops"] == pytest.approx([1.75, 1.75, 0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "block=4q"], "found '4q' for block, expected 4k"),
        (["--section", "x"], "--section: a named procedure runs whole"),
        (["--set", "blocks=4k"], "zfs-log-device has no parameter 'blocks'"),
        ([], "zfs-log-device needs a target"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    target = ["--target", "/tmp/x"] if arguments else []
    assert main(["run", "zfs-log-device", *arguments, *target]) == exitcodes.USAGE
    assert words in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("most", [6, pytest.param(25, marks=pytest.mark.nightly)])
def test_rounds_run_until_there_are_enough(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """On a file in memory or on a disk of any kind: steady, or the most rounds there are.

    What is steady has tests of its own (`study/test_rounds.py`): this is about the whole tool.
    """

    class Fewer(RoundsController):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named | {"most": most})

    monkeypatch.setattr(procedure, "RoundsController", Fewer)
    out, target = tmp_path / "study", tmp_path / "drive"
    arguments = ["--size", "1m", "--set", "runtime=100ms", "--out", str(out), "--no-progress"]
    code = main(
        ["run", "snia-pts-throughput-128k-like", "--target", str(target), *arguments, "--no-calibration"]
    )
    assert code == exitcodes.DONE
    found = study.read(out)
    assert found.points[0].role == "prepare"
    assert found.settings["rounds"]["tracks"] == "128k-0-read"
    rounds = max(int(point.factors.get("round") or 0) for point in found.points)
    assert len(found.points) == 1 + 2 * rounds
    assert 5 <= rounds <= most
    said = capsys.readouterr().out
    assert f"steady after {rounds} rounds" in said
