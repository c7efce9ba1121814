"""`loadstone audit` as a person types it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from loadstone import exitcodes
from loadstone.audit import foreign
from loadstone.audit.find_results import SearchProgress, find
from loadstone.audit.run import SealedFigures
from loadstone.bundle import seal
from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from tests.audit.vdbench_folder import VdbenchRun, write
from tests.support.runs import MadeJob, make, reseal

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "examples" / "published"
SMALL_RUN = ROOT / "tests" / "data" / "fio-small-run"
FIO = ROOT / "tests" / "data" / "foreign" / "fio"


def test_the_completion_latency_of_clones_is_that_of_all_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the first clone it is longer than the mean latency of all four, which is no contradiction."""
    main(["audit", str(FIO / "shared.json"), "--json"])
    told = json.loads(capsys.readouterr().out)
    text = json.dumps(told["phases"])
    assert "completion_latency_ns" not in text


def test_json_has_the_verdict_at_its_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(PUBLISHED / "vostok.toml"), str(FIO / "shared.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["kind"] == "cannot_tell"
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
    assert names[0] == "results.xml"
    assert names[1:8] == sorted(path.name for path in FIO.iterdir() if path.suffix != ".fio")
    assert names[8:] == ["results-1.1.csv", "results-2006.csv", "vdbench-5.04.06", "vdbench-5.04.07"]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["audit", str(tmp_path / "pipe")]) == exitcodes.USAGE
    assert "is neither a file nor a directory" in capsys.readouterr().err
    assert main(["audit", str(tmp_path)]) == exitcodes.USAGE
    assert "contains no known result" in capsys.readouterr().err


def test_validity_can_be_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(PUBLISHED / "vostok.toml"), "--require-valid"]) == exitcodes.NOT_VALID
    assert main(["audit", str(PUBLISHED / "hgst-ssd.toml"), "--require-valid"]) == exitcodes.DONE
    assert "4K sequential read" in capsys.readouterr().out


@pytest.mark.in_turn
def test_what_cannot_be_read_is_not_known_to_be_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "run", MadeJob("a"))
    (tmp_path / "run" / "plan.json").write_text("{}")
    (tmp_path / "half.json").write_bytes((FIO / "shared.json").read_bytes()[:900])
    (tmp_path / "none.txt").write_text("hello")
    for name in ("run", "half.json", "none.txt", "nowhere"):
        assert main(["audit", str(tmp_path / name)]) == exitcodes.USAGE, name
        assert main(["audit", str(tmp_path / name), "--require-valid"]) == exitcodes.NOT_VALID, name
    sheet = tmp_path / "sheet.toml"
    sheet.write_text("format = ")
    good = str(FIO / "shared.json")
    assert main(["audit", good, "--require-valid", "--spec", str(sheet)]) == exitcodes.USAGE
    assert "sheet.toml" in capsys.readouterr().err
    assert main(["audit", good, "--require-valid", "--limit", "0"]) == exitcodes.USAGE


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
        ([str(FIO / "shared.fio")], "is not a known result"),
        (
            [str(FIO / "shared.fio"), __file__],
            f"shared.fio: is not a known result; {__file__}: is not a known result",
        ),
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
    made = make(tmp_path / "run", MadeJob("a", ops_hz={"read": 900.0, "write": 900.0}, clones=2))
    document = json.loads((made.path / "plan.json").read_text())
    for stream, reads in zip(document["streams"], (0, 100), strict=True):
        stream["pattern"] |= {"read_percent": reads, "write_percent": 100 - reads}
    (made.path / "plan.json").write_text(json.dumps(document))
    reseal(made.path)
    result = SealedFigures().document(Bundle.open(made.path))
    assert "workload_drift" not in {cause["rule"] for cause in result["verdict"]["causes"]}


@pytest.mark.in_turn
def test_a_bundle_has_the_verdict_its_run_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make(tmp_path / "run", MadeJob("a"), MadeJob("b", stage=1, errors=3))
    result = SealedFigures().document(Bundle.open(made.path))
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


@pytest.mark.in_turn
def test_repeats_of_a_study_are_held_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = []
    for number, ops_hz in enumerate((1000.0, 1500.0, 1000.0), start=1):
        make(tmp_path / "runs" / str(number), MadeJob("a", ops_hz={"read": ops_hz}), seed=number)
        factors = {"repeat": number}
        points.append({"name": f"{number}", "factors": factors, "bundle": f"runs/{number}"})
    points.append({"name": "fill", "role": "prepare", "bundle": "runs/0"})
    study = {"kind": "repeat", "name": "a", "front_end": "fio", "loadstone_version": "0", "started": "now"}
    (tmp_path / "study.json").write_text(
        json.dumps(seal.with_digest(study | {"request": {}, "points": points}))
    )
    assert main(["audit", str(tmp_path), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert len(files) == 3
    for one in files:
        (found,) = [cause for cause in one["verdict"]["causes"] if cause["rule"] == "not_repeatable"]
        assert found["evidence"]["runs"] == 3


# ---- directories


def told_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return what an audit says; it ends with 0 where nothing that is a result is missing in it."""
    code = main(["audit", *words, "--json"])
    loaded: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (exitcodes.USAGE if any(one["broken"] for one in loaded["passed_over"]) else 0)
    return loaded


@pytest.mark.in_turn
def test_a_directory_goes_on_after_what_is_broken_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "a" / "run", MadeJob("a"))
    make(tmp_path / "b" / "broken", MadeJob("b"))
    (tmp_path / "b" / "broken" / "plan.json").write_text('{"streams": ')
    make(tmp_path / "b" / "lost", MadeJob("c"))
    (tmp_path / "b" / "lost" / "manifest.json").unlink()
    write(tmp_path / "c" / "d" / "vdbench", VdbenchRun())
    write(tmp_path / "c" / "d" / "stopped", VdbenchRun(average=False))
    (tmp_path / "c" / "fio.json").write_bytes((FIO / "shared.json").read_bytes())
    (tmp_path / "c" / "half.json").write_bytes((FIO / "shared.json").read_bytes()[:900])
    (tmp_path / "c" / "manifest.json").write_text('{"name": "a web page"}')
    told = told_of(capsys, str(tmp_path))
    assert [one["path"].removeprefix(f"{tmp_path}/") for one in told["files"]] == [
        "a/run",
        "c/fio.json",
        "c/d/vdbench",
    ]
    passed = {one["path"].removeprefix(f"{tmp_path}/"): one["why"] for one in told["passed_over"]}
    assert passed.keys() == {"b/broken", "b/lost", "c/d/stopped", "c/half.json", "c/manifest.json"}
    assert passed.pop("c/manifest.json") == "is no result of a known kind"
    assert "plan" in passed["b/broken"]
    assert "manifest.json" in passed["b/lost"]
    assert passed["c/d/stopped"].startswith("has no average of a run")
    assert "is not a whole document of fio" in passed["c/half.json"]
    assert all(
        one["broken"] == ("manifest" not in one["path"])
        for one in told["passed_over"]
        if "/c/" in one["path"]
    )


@pytest.mark.in_turn
def test_what_was_passed_over_is_said_first_and_a_table_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "run", MadeJob("a"))
    (tmp_path / "half.json").write_bytes((FIO / "shared.json").read_bytes()[:900])
    (tmp_path / "notes.txt").write_text("hello")
    assert main(["audit", str(tmp_path)]) == exitcodes.USAGE
    printed = capsys.readouterr().out
    assert printed.startswith("1 result could not be read and is left out: ")
    table = printed.partition("passed over")[2]
    squeezed = "".join(table.split())  # A long path is folded, wherever the width ends.
    assert "is not a whole document".replace(" ", "") in squeezed
    assert squeezed.index("why") == 0
    assert table.strip().splitlines()[-1] == "1 other file: no results"
    assert main(["audit", str(tmp_path), "--markdown"]) == exitcodes.USAGE
    page = capsys.readouterr().out
    assert "| passed over | why |" in page
    assert "**1 result could not be read and is left out: " in page.partition("## ")[0]
    assert main(["audit", str(tmp_path), "--require-valid"]) == exitcodes.NOT_VALID


@pytest.mark.in_turn
def test_a_study_with_a_broken_run_is_read_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        make(tmp_path / "study" / "runs" / str(number), MadeJob("a"), seed=number)
    points = [{"name": f"{n}", "factors": {}, "bundle": f"runs/{n}", "status": "complete"} for n in (1, 2, 3)]
    study = {"kind": "list", "name": "a", "front_end": "fio", "loadstone_version": "0", "started": "now"}
    (tmp_path / "study" / "study.json").write_text(
        json.dumps(seal.with_digest(study | {"request": {}, "points": points}))
    )
    told = told_of(capsys, str(tmp_path))
    assert [Path(one["path"]).name for one in told["files"]] == ["1", "2"]
    assert [Path(one["path"]).name for one in told["passed_over"]] == ["3"]
    (tmp_path / "study" / "study.json").write_text('{"kind"')
    told = told_of(capsys, str(tmp_path))
    assert [Path(one["path"]).name for one in told["files"]] == ["1", "2"]
    assert [Path(one["path"]).name for one in told["passed_over"]] == ["study"]


@pytest.mark.in_turn
def test_every_verb_refuses_a_study_with_a_run_that_was_altered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`audit` and `compare` left such a run out and ended with 0, where `report` and `export` refused."""
    study, base = tmp_path / "r" / "study", tmp_path / "base"
    make(base, MadeJob("a"))
    for number in (1, 2):
        make(study / "runs" / str(number), MadeJob("a"), seed=number)
    points = [{"name": f"{n}", "factors": {}, "bundle": f"runs/{n}"} for n in (1, 2)]
    told = {"kind": "list", "name": "a", "front_end": "fio", "loadstone_version": "0", "started": "now"}
    (study / "study.json").write_text(json.dumps(seal.with_digest(told | {"request": {}, "points": points})))
    altered = study / "runs" / "2" / "notes.json"
    altered.write_text(altered.read_text() + " ")
    for words in (
        ["audit", str(study)],
        ["audit", str(study), "--json"],
        ["compare", str(base), str(study)],
        ["report", str(study), "-o", str(tmp_path / "r.html")],
        ["export", str(study), "csv"],
        ["rerun", str(study), "--out", str(tmp_path / "again")],
    ):
        assert main(words) == exitcodes.USAGE, words
        said = capsys.readouterr()
        assert said.out == ""
        assert "runs/2 was changed since it was sealed: notes.json was altered" in said.err
    # A directory of results is read without it, says so first, and does not end with 0.
    left_out = "1 result could not be read and is left out"
    not_read = "study/runs/2 was not read: was changed"
    for words, first in (
        (["audit", str(study.parent)], left_out),
        (["compare", str(base), str(study.parent)], f"r: {left_out}."),
        (["compare", str(base), str(study.parent)], f"warning: r: {not_read}"),
        (["report", str(study.parent), "-o", str(tmp_path / "d.md")], f"warning: {not_read}"),
    ):
        assert main(words) == exitcodes.USAGE, words
        said = capsys.readouterr()
        assert first in " ".join((said.out + said.err).split())
    assert left_out in (tmp_path / "d.md").read_text()
    assert main(["audit", str(study), "--unverified"]) == 0


def test_links_end_no_search_and_count_no_file_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = tmp_path / "top" / "inside"
    inside.mkdir(parents=True)
    (inside / "fio.json").write_bytes((FIO / "shared.json").read_bytes())
    (inside / "loop").symlink_to(tmp_path / "top")
    (inside / "self").symlink_to(inside / "self")
    (inside / "gone").symlink_to(tmp_path / "nothing")
    (inside / "same.json").symlink_to(inside / "fio.json")
    (inside / "twin.json").hardlink_to(inside / "fio.json")
    os.mkfifo(inside / "pipe")
    told = told_of(capsys, str(tmp_path / "top"))
    assert [Path(one["path"]).name for one in told["files"]] == ["fio.json"]
    passed = {Path(one["path"]).name: (one["why"], one["broken"]) for one in told["passed_over"]}
    assert passed.keys() == {"loop", "self", "gone", "same.json", "twin.json"}
    assert passed["loop"] == ("is a link to a directory: name it by itself", False)
    assert passed["same.json"] == (f"is the same file as {inside / 'fio.json'}", False)
    assert "Too many levels" in passed["self"][0]


def test_what_may_not_be_read_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fio.json").write_bytes((FIO / "shared.json").read_bytes())
    (tmp_path / "secret").write_text("")
    (tmp_path / "closed").mkdir()
    opened, scanned = os.open, os.scandir

    def refuse(path: Any, *rest: Any, **named: Any) -> Any:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **named)

    def refuse_directory(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scanned(path)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse_directory)
    told = told_of(capsys, str(tmp_path))
    assert [(Path(one["path"]).name, one["why"]) for one in told["passed_over"]] == [
        ("secret", "cannot be read: Permission denied"),
        ("closed", "cannot be read: Permission denied"),
    ]


@pytest.mark.in_turn
def test_the_bundle_of_somebody_else_ends_no_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundles are closed to others: one among ours ended `audit`, `compare`, `runs` and `report` with 1."""
    place = tmp_path / "place"
    for name in ("base", "place/mine", "place/theirs"):
        make(tmp_path / name, MadeJob("a"))
    theirs = str(place / "theirs")

    def closed(real: Any) -> Any:
        def called(path: Any, *rest: Any, **named: Any) -> Any:
            text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
            if text.startswith(f"{theirs}/") or (text == theirs and real is scan):
                raise PermissionError(13, "Permission denied", text)
            return real(path, *rest, **named)

        return called

    scan = os.scandir
    for name in ("stat", "lstat", "open", "scandir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    told = told_of(capsys, str(place))
    assert [Path(one["path"]).name for one in told["files"]] == ["mine"]
    assert [one["why"] for one in told["passed_over"]] == ["cannot be read: Permission denied"]
    for words in (
        ["audit", theirs],
        ["compare", str(tmp_path / "base"), theirs],
        ["report", theirs, "-o", str(tmp_path / "r.md")],
        ["export", theirs, "csv"],
        ["rerun", theirs, "--out", str(tmp_path / "again")],
        ["audit", f"{theirs}/manifest.json"],
    ):
        assert main(words) == exitcodes.USAGE, words
        said = capsys.readouterr()
        assert "cannot be read: Permission denied" in said.err
        assert "no manifest" not in said.err
    assert main(["compare", str(tmp_path / "base"), str(place)]) == exitcodes.USAGE
    capsys.readouterr()
    assert main(["runs", str(place)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert sorted((line.split()[-1], "unreadable" in line) for line in listed[1:]) == [
        (f"{place}/mine", False),
        (theirs, True),
    ]


@pytest.mark.in_turn
def test_ten_thousand_other_files_are_looked_at_up_to_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(10_000):
        (tmp_path / f"{number:05d}").touch()
    (tmp_path / "fio.json").write_bytes((FIO / "shared.json").read_bytes())
    told = told_of(capsys, str(tmp_path))
    assert len(told["files"]) == 1
    (passed,) = told["passed_over"]
    assert passed["why"] == "has 10000 files without an ending that are no results of a known kind"
    told = told_of(capsys, str(tmp_path), str(FIO / "shared.json"), "--limit", "5000")
    assert [Path(one["path"]).parent for one in told["files"]] == [FIO]
    (passed,) = told["passed_over"]
    assert passed["why"] == "not looked at from 05000 on: 5000 names are the limit (--limit)"


def test_a_broken_name_among_several_takes_no_other_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.json").write_bytes((FIO / "shared.json").read_bytes()[:900])
    told = told_of(capsys, str(tmp_path / "half.json"), str(FIO / "shared.json"))
    assert len(told["files"]) == 1
    assert [Path(one["path"]).name for one in told["passed_over"]] == ["half.json"]
    assert main(["audit", str(tmp_path / "half.json")]) == exitcodes.USAGE
    assert "is not a whole document of fio" in capsys.readouterr().err
    assert main(["audit", str(tmp_path)]) == exitcodes.USAGE
    assert "half.json: line 40: is not a whole document of fio" in capsys.readouterr().err


def test_a_reader_that_breaks_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_bytes((FIO / "shared.json").read_bytes())
    (tmp_path / "b.csv").write_bytes((FIO.parent / "iometer" / "results-1.1.csv").read_bytes())

    def breaks(_: object) -> None:
        raise KeyError("jobs")

    monkeypatch.setattr("loadstone.audit.foreign.fio_json._documents", breaks)
    told = told_of(capsys, str(tmp_path))
    assert len(told["files"]) == 1
    assert told["passed_over"][0]["why"] == "breaks the reader of fio JSON: KeyError: 'jobs'"
    assert main(["audit", str(tmp_path / "a.json")]) == exitcodes.USAGE
    assert "breaks the reader of fio JSON: KeyError: 'jobs'" in capsys.readouterr().err


def test_a_terminal_shows_how_far_the_search_has_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fio.json").write_bytes((FIO / "shared.json").read_bytes())
    told: list[tuple[int, int, str]] = []
    looked = SearchProgress(tell=lambda at, path: told.append((at.files, at.results, path.name)))
    assert len(list(find(tmp_path, looked))) == 1
    assert told == [(0, 0, tmp_path.name), (1, 0, "fio.json")]
