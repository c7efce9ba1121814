"""`.icf` files on the command line: listed, run as a study, and exported again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes, units
from loadstone.bundle import study
from loadstone.cli.main import main
from tests.formats.iometer.files import DATA

if TYPE_CHECKING:
    from pathlib import Path

DEPTHS = str(DATA / "03-depth-exponential.icf")
FOUR = str(DATA / "02-four-patterns.icf")


@pytest.mark.in_turn
def test_every_run_is_listed_in_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["plan", DEPTHS, "--map", f"D:={tmp_path}", "--json"]) == exitcodes.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["language"] == "iometer"
    runs = document["runs"]
    assert [run["iodepth"] for run in runs] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert [run["number"] for run in runs] == list(range(1, 10))
    (worker,) = runs[3]["workers"]
    assert worker["targets"] == [str(tmp_path / "iobw.tst")]
    assert (worker["outstanding_ios"], worker["maximum_size_sectors"]) == (8, 204800)
    assert worker["rows"][0]["bytes"] == 4096
    assert not any(tmp_path.iterdir())


@pytest.mark.in_turn
def test_the_list_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", DEPTHS, "--target", "/tmp/x", "--runtime", "5m", "--section", "4 KiB random read"]
    assert main(arguments) == exitcodes.DONE
    assert capsys.readouterr().out.splitlines()[3] == (
        "run 4 of 9: 4 KiB random read iodepth=8: 1 worker on 1 target, 8 outstanding in all, "
        + units.whole_seconds(300)
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "is a drive of the host the file is for"),
        (["--map", "E:=/tmp/x"], "no worker uses 'E:'"),
        (["--target", "/tmp/x", "--set", "depth=4"], "--set: has no effect on a configuration of Iometer"),
        (["--target", "/tmp/x", "--section", "8 KiB"], "no run has the access specification '8 KiB'"),
        (["--target", "/tmp/x", "--interval", "5s"], "--interval: has no effect"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main(["plan", DEPTHS, *arguments]) == exitcodes.USAGE
    assert words in capsys.readouterr().err


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_test_is_a_study_and_its_results_are_iometers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "study"
    arguments = ["--map", f"D={tmp_path / 'data'}", "--size", "4m", "--runtime", "1s", "--warmup", "0"]
    code = main(["run", FOUR, *arguments, "--out", str(out), "--no-progress", "--no-calibration"])
    assert code == exitcodes.DONE
    found = study.read(out)
    assert found.front_end == "iometer"
    assert [point.name for point in found.points] == [
        "4 KiB random read",
        "4 KiB random write",
        "64 KiB sequential read",
        "64 KiB sequential write",
    ]
    assert [point.status for point in found.points] == ["complete"] * 4
    (kept,) = found.inputs.values()
    assert (out / kept).read_bytes() == (DATA / "02-four-patterns.icf").read_bytes()
    capsys.readouterr()
    assert main(["export", str(out), "iometer-csv"]) == exitcodes.DONE
    lines = capsys.readouterr().out.splitlines()
    alls = [line.split(",") for line in lines if line.startswith("ALL,")]
    assert [line[2] for line in alls] == [point.name for point in found.points]
    for fields, reads in zip(alls, [True, False, True, False], strict=True):
        assert (float(fields[7]) > 0) is reads
        assert (float(fields[8]) > 0) is not reads
    assert lines[-1] == "'End Test"
    # One run alone, into a file.
    bundle = out / str(found.points[0].bundle)
    assert main(["export", str(bundle), "iometer-csv", "-o", str(tmp_path / "one.csv")]) == exitcodes.DONE
    assert (tmp_path / "one.csv").read_text().count("\nALL,") == 1
