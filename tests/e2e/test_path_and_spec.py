"""The data path and a data sheet in a real run: recorded, told, drawn, and used again."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.bundle.read import Bundle
from loadstone.path.layers import DataPath

from .program import READ_FOR, events, job, run

if TYPE_CHECKING:
    from pathlib import Path

SHEET = 'format = 1\nname = "A drive"\ndrives = 1\nlinks = ["SATA 6G"]\n[drive]\nread_iops = 1000\n'


@pytest.mark.in_turn
def test_a_run_against_a_data_sheet_and_again_from_its_bundle(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(SHEET)
    one = job(tmp_path / "r.fio", READ_FOR.format("1s", tmp_path))
    done = run("run", one, "--out", "b", "--spec", str(sheet), "--json", "--report", cwd=tmp_path)
    assert done.code == 0, done.err
    document = done.document()
    found = {(row["kind"], row["op"]): row for row in document["spec"]}
    assert set(found) == {("specified", "read"), ("link", "read")}
    iops = found["specified", "read"]
    assert iops["specified"] == 1000
    assert iops["share"] == document["total"]["read"]["iops"] / 1000
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.inputs[str(sheet)] == SHEET.encode()
    path = DataPath.model_validate(bundle.environment["paths"][0])
    assert path.target == str(tmp_path / "data")
    assert path.layers[-1].kind == "array"
    page = (tmp_path / "b" / "report.html").read_text()
    assert "Against the data sheet" in page
    assert "<strong>A drive</strong>" in page
    sheet.unlink()
    again = run("rerun", "b", "--out", "c", "--json", "--no-report", cwd=tmp_path)
    assert [row["specified"] for row in again.document()["spec"]] == [
        row["specified"] for row in document["spec"]
    ]


def test_a_wrong_sheet_is_told_with_its_line_before_anything_is_made(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(SHEET.replace("read_iops", "read_iosp"))
    one = job(tmp_path / "r.fio", READ_FOR.format("1s", tmp_path))
    done = run("run", one, "--out", "b", "--spec", str(sheet), cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    assert f"{sheet}:6: drive.read_iosp: is not a known key" in done.err
    assert "did you mean 'read_iops'?" in done.err
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "data").exists()


@pytest.mark.in_turn
def test_the_state_of_a_file_before_and_after_its_first_writes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, 4 << 20)
    one = job(tmp_path / "w.fio", f"[w]\nrw=write\nbs=64k\nsize=4m\nfilename={data}\nend_fsync=1\n")
    done = run("run", one, "--out", "b", "--no-report", "--i-accept-data-loss", str(data), cwd=tmp_path)
    assert done.code == 0, done.err
    begin, end = (event for event in events(tmp_path / "b") if event["type"] == "target_state")
    assert (begin["when"], end["when"], begin["target"]) == ("begin", "end", 0)
    assert end["allocated_bytes"] >= 4 << 20
    if begin["method"] != "none":
        assert begin["hole_bytes"] + begin.get("unwritten_bytes", 0) + begin["written_bytes"] == 4 << 20
        assert end["written_bytes"] == 4 << 20
    facts = json.loads((tmp_path / "b" / "environment.json").read_text())["paths"][0]["layers"][0]["facts"]
    assert facts["allocated_bytes"] == 0
