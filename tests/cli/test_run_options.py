"""Options that several verbs have: one name, one meaning, one effect."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.cli.main import main
from loadstone.cli.reference_page import page

if TYPE_CHECKING:
    from pathlib import Path

SHEET = """format = 1
name = "Small"
[array]
read_iops = 1_000_000_000
"""


@pytest.mark.in_turn
def test_an_option_says_the_same_wherever_runs_are_done() -> None:
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for section in re.split(r"\n### loadstone ", page())[1:]:
        verb = section.split()[0]
        for name, text in re.findall(r"^\* `(--[a-z-]+)[^`]*`: (.*)$", section, re.MULTILINE):
            said[name][verb] = text
    runs = {"run", "rerun", "curve", "sweep"}
    for option in ("--out", "--json", "--progress", "--report", "--calibration", "--require-valid"):
        texts = [text for verb, text in said[option].items() if verb in {*runs, "verify"}]
        assert runs <= set(said[option]), option
        assert len(set(texts)) == 1, option
    assert {"run", "curve", "sweep"} <= set(said["--spec"])
    assert len({said["--spec"][verb] for verb in ("run", "curve", "sweep")}) == 1


@pytest.mark.in_turn
@pytest.mark.serial
@pytest.mark.parametrize("verb", [["sweep", "--iodepth", "1,2"], ["curve", "--points", "50"]])
def test_a_study_is_held_to_validity_and_to_a_data_sheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    """A file this small and runs this short say nothing of any storage."""
    job, sheet, out = tmp_path / "job.fio", tmp_path / "sheet.toml", tmp_path / "out"
    job.write_text(f"[j]\nrw=randread\nbs=4k\nsize=1m\nruntime=1s\ntime_based\nfilename={tmp_path}/data\n")
    sheet.write_text(SHEET)
    words = [verb[0], str(job), *verb[1:], "--out", str(out), "--json", "--no-calibration"]
    assert main([*words, "--require-valid", "--spec", str(sheet)]) == exitcodes.NOT_VALID
    made = json.loads(capsys.readouterr().out)
    for run in made["runs"]:
        (line,) = run["spec"]
        assert line["specified"] == 1e9
        assert line["share"] == pytest.approx(run["total"]["iops"]["value"] / 1e9)
    points = made["sweep"]["cells"] if made["sweep"] else made["curves"][0]["loads"]
    assert all(
        point["sheet_share"]["value"] == pytest.approx(point["iops"]["value"] / 1e9) for point in points
    )
    assert sheet.read_text() in [file.read_text() for file in (out / "input").iterdir()]
    assert "Against the data sheet" in (out / "report.html").read_text()
