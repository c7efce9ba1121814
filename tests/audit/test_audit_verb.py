"""`loadstone audit` as a person types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from loadstone import exitcodes
from loadstone.audit import foreign
from loadstone.bundle.read import Bundle
from loadstone.cli.finish import Result
from loadstone.cli.main import main
from tests.support.runs import Job, make

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "examples" / "published"
SMALL_RUN = ROOT / "tests" / "data" / "fio-small-run"
FIO = ROOT / "tests" / "data" / "foreign" / "fio"


def test_json_has_the_verdict_at_its_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(PUBLISHED / "vostok.toml"), str(FIO / "shared.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["kind"] == "not_valid"
    assert [one["format"] for one in told["files"]] == ["published", "fio JSON (fio-3.33)"]
    assert len(told["phases"]) == sum(len(one["phases"]) for one in told["files"])
    first = told["files"][0]["phases"][0]
    assert first["name"] == "4K sequential read"
    assert first["verdict"]["limited_by"] == "4 x 16GFC"
    assert {cause["rule"] for cause in first["verdict"]["causes"]} >= {"link_ceiling", "overlapping_clones"}


def test_a_directory_is_all_results_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(FIO), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # shared.fio is a job file and no result.
    assert [Path(one["path"]).name for one in told["files"]] == [
        "grouped.json",
        "grouped.txt",
        "one.json+",
        "shared.json",
        "shared.terse3",
        "shared.terse5",
        "shared.txt",
    ]


def test_a_directory_of_directories_is_all_results_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(FIO.parent), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = [Path(one["path"]).name for one in told["files"]]
    assert names == ["vdbench-5.04.06", "vdbench-5.04.07"]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["audit", str(tmp_path / "pipe")]) == exitcodes.USAGE
    assert "is neither a file nor a directory" in capsys.readouterr().err
    assert main(["audit", str(tmp_path)]) == exitcodes.USAGE
    assert "holds no result that is known" in capsys.readouterr().err


def test_validity_can_be_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(PUBLISHED / "vostok.toml"), "--require-valid"]) == exitcodes.NOT_VALID
    assert main(["audit", str(PUBLISHED / "hgst-ssd.toml"), "--require-valid"]) == exitcodes.DONE
    assert "4K sequential read" in capsys.readouterr().out


def test_a_data_sheet_is_held_against_other_tools_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "drive.toml"
    spec.write_text('format = 1\nname = "d"\nlinks = ["SATA 3G"]\nmedia = "ssd"\ndrives = 1\n')
    assert main(["audit", str(FIO / "shared.json"), "--json", "--spec", str(spec)]) == 0
    causes = json.loads(capsys.readouterr().out)["files"][0]["phases"][0]["verdict"]["causes"]
    assert [cause["effect"] for cause in causes if cause["rule"] == "link_ceiling"] == ["not_valid"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to audit"),
        (["/no/such/file"], "there is no such file or directory"),
        ([str(FIO / "shared.fio")], "is no result that is known"),
        ([str(FIO / "shared.json"), "--json", "--markdown"], "exclude each other"),
    ],
)
def test_mistakes_are_told(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *words]) == exitcodes.USAGE
    assert message in capsys.readouterr().err


def test_markdown_has_a_row_for_each_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(PUBLISHED / "hgst-ssd.toml"), "--markdown"]) == 0
    page = capsys.readouterr().out
    assert "**2 results: measures the storage 2.**" in page
    rows = [line for line in page.splitlines() if line.startswith("| 64K")]
    assert len(rows) == 2
    assert all(row.count(" | ") == 4 for row in rows)


def test_reading_back_what_was_written_is_no_drift(tmp_path: Path) -> None:
    """The stream that verifies reads where the one before wrote: no share of reads was asked for."""
    made = make(tmp_path / "run", Job("a", ops_hz={"read": 900.0, "write": 900.0}, clones=2))
    document = json.loads((made.path / "plan.json").read_text())
    for stream, reads in zip(document["streams"], (0, 100), strict=True):
        stream["pattern"] |= {"read_percent": reads, "write_percent": 100 - reads}
    (made.path / "plan.json").write_text(json.dumps(document))
    result = Result().document(Bundle.open(made.path))
    assert "workload_drift" not in {cause["rule"] for cause in result["verdict"]["causes"]}


def test_a_bundle_has_the_verdict_its_run_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make(tmp_path / "run", Job("a"), Job("b", stage=1, errors=3))
    result = Result().document(Bundle.open(made.path))
    assert main(["audit", str(made.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == result["verdict"]
    assert told["phases"] == result["phases"]
    assert len(told["phases"]) == 2
    assert told["files"][0]["format"] == "bundle"


@pytest.mark.parametrize("name", ["json+.json", "terse3.txt", "terse5.txt", "normal.txt"])
def test_our_own_outputs_in_the_forms_of_fio_are_read_back(name: str) -> None:
    first = foreign.read(SMALL_RUN / name).cases[0]
    # Two clones with 100 reads and 50 writes a second for 2 s, latencies as they were made.
    assert first.name == "mix"
    assert first.ops["read"].operations == 400
    assert first.ops["write"].operations == 200
    assert first.ops["read"].iops is not None
    assert first.ops["read"].iops.value == pytest.approx(200)
    for op, mean_ns in (("read", 506_000), ("write", 2_003_000)):
        latency = first.ops["read" if op == "read" else "write"].latency
        assert latency is not None
        assert latency.mean_ns == pytest.approx(mean_ns, rel=0.001)
    assert first.seconds == pytest.approx(2.0)


def test_repeats_of_a_study_are_held_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = []
    for number, ops_hz in enumerate((1000.0, 1500.0, 1000.0), start=1):
        make(tmp_path / "runs" / str(number), Job("a", ops_hz={"read": ops_hz}), seed=number)
        factors = {"repeat": number}
        points.append({"name": f"{number}", "factors": factors, "bundle": f"runs/{number}"})
    points.append({"name": "fill", "role": "prepare", "bundle": "runs/0"})
    study = {"kind": "repeat", "name": "a", "front_end": "fio", "loadstone_version": "0", "started": "now"}
    (tmp_path / "study.json").write_text(json.dumps(study | {"request": {}, "points": points}))
    assert main(["audit", str(tmp_path), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert len(files) == 3
    for one in files:
        (found,) = [cause for cause in one["verdict"]["causes"] if cause["rule"] == "not_repeatable"]
        assert found["evidence"]["runs"] == 3
