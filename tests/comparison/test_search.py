"""What lies between results and is none: each is named once, with its reason, in every form of an answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from loadstone import exitcodes
from loadstone.cli.verbs.audit import audit
from loadstone.cli.verbs.compare import compare
from loadstone.cli.verbs.report import report
from loadstone.comparison import search
from loadstone.errors import LoadstoneError
from tests.comparison.test_compare import made

FOREIGN: Final = Path(__file__).parents[1] / "data" / "foreign"
BINARY: Final = bytes(range(256)) * 8
LOST: Final[dict[str, tuple[bytes, str, bool]]] = {
    "cut.json": (b'{"a": 1', "it is not JSON: Expecting ',' delimiter at line 1, column 8", True),
    "deep.json": (
        b"[" * 200_000,
        "it is not JSON of any result: too much of it lies within each other",
        True,
    ),
    "empty.csv": (b"", "it is empty", True),
    "empty.html": (b" \n", "it is empty", True),
    "empty.json": (b"", "it is empty", True),
    "job.log": (b"", "is empty", False),
    "noise.csv": (BINARY, "it is not text", True),
    "noise.html": (BINARY, "it is not text", True),
    "noise.json": (BINARY, "it is not text", True),
    "package.json": (b'{"name": "x"}', "is no result of a known kind", False),
    "prices.csv": (b"a,b\n1,2\n", "is no result of a known kind", False),
}
UNTOLD: Final = ("._a.json", "job.fio", "notes.md", "x_bw.1.log")
"""Names that nobody takes for results."""


def sides(folder: Path) -> tuple[Path, Path]:
    """Return a directory with everything that is lost beside one result, and one with a result alone."""
    before, after = folder / "before", folder / "after"
    for seed, side in enumerate((before, after), 1):
        made(side / "a", seed=seed)
    for name, (content, _, _) in LOST.items():
        (before / name).write_bytes(content)
    for name in UNTOLD:
        (before / name).write_bytes(b"")
    (before / "run").mkdir()
    (before / "run" / "samples.arrows").write_bytes(b"abc")
    return before, after


@pytest.mark.in_turn
def test_what_is_passed_over_is_named_once_in_every_form_of_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty or garbage `.json` in a directory was passed over by `compare` without a word."""
    before, after = sides(tmp_path)
    assert (
        compare(before, after, json=True, output=[tmp_path / "c.html", tmp_path / "c.md"]) == exitcodes.USAGE
    )
    document = json.loads(capsys.readouterr().out)
    expected = {str(before / name): (why, broken) for name, (_, why, broken) in LOST.items()}
    expected[str(before / "run")] = (
        "it has samples.arrows of a run, and the files are missing that say what these are", True,
    )  # fmt: skip
    assert {one["path"]: (one["why"], one["broken"]) for one in document["passed_over"]} == expected
    assert len(document["passed_over"]) == len(expected)
    assert compare(before, after) == exitcodes.USAGE
    printed = " ".join(capsys.readouterr().out.split())
    page, paper = (tmp_path / "c.html").read_text(), (tmp_path / "c.md").read_text()
    for name, (_, _, broken) in LOST.items():
        words = f"before: {name} {'was not read' if broken else 'is'}"
        assert [text.count(words) for text in (printed, page, paper)] == [1, 1, 1], name
    assert not any(f"before: {name}" in text for text in (printed, page, paper) for name in UNTOLD)
    assert "9 results could not be read and are left out." in printed


@pytest.mark.in_turn
def test_a_gate_does_not_pass_beside_what_may_be_a_lost_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = sides(tmp_path)
    for name, (_, _, broken) in LOST.items():
        if broken:
            (before / name).unlink()
    shutil.rmtree(before / "run")
    assert compare(before, after) == exitcodes.DONE
    assert "before: package.json is no result of a known kind" in capsys.readouterr().out
    (after / "empty.json").write_bytes(b"")
    assert compare(before, after) == exitcodes.USAGE
    assert compare(before, after, gate=True, json=True) == exitcodes.NOT_VALID
    assert '"gate": "no_data"' in capsys.readouterr().out


@pytest.mark.in_turn
def test_a_report_and_an_audit_name_what_they_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _ = sides(tmp_path)
    assert report(before, output=[tmp_path / "r.md"]) == exitcodes.USAGE
    printed, paper = capsys.readouterr().err, (tmp_path / "r.md").read_text()
    for name, (_, _, broken) in LOST.items():
        words = f"{name} {'was not read' if broken else 'is'}"
        assert (printed.count(words), paper.count(words)) == (1, 1), name
    audit(before, json=True)
    passed = json.loads(capsys.readouterr().out)["passed_over"]
    told = {Path(one["path"]).name: (one["why"], one["broken"]) for one in passed}
    assert {name: told[name] for name in LOST} == {
        name: (why, broken) for name, (_, why, broken) in LOST.items()
    }
    audit(before)
    assert "4 other files: no results" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [report, audit, lambda path: compare(path, FOREIGN / "fio" / "shared.json")])
def test_a_directory_with_nothing_that_can_be_read_is_refused_with_the_reasons(tmp_path: Path, verb) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "a.json").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(BINARY)
    with pytest.raises(LoadstoneError) as refused:
        verb(tmp_path)
    assert "a.json: it is empty; b.csv: it is not text" in str(refused.value)


@pytest.mark.parametrize(
    ("ending", "content", "kind"),
    [
        (".html", "<p>page</p>", "html files"),
        # They were called plain files.
        ("", "", "files without an ending"),
    ],
)
@pytest.mark.in_turn
def test_many_files_of_one_ending_are_named_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, content: str, kind: str
) -> None:
    before, after = sides(tmp_path)
    for number in range(search.MOST_NAMED + 1):
        (after / f"{number}{ending}").write_text(content)
    compare(before, after, json=True)
    passed = json.loads(capsys.readouterr().out)["passed_over"]
    assert [one for one in passed if one["side"] == "after"] == [
        {
            "side": "after", "path": str(after), "broken": False,
            "why": f"has 9 {kind} that are no results of a known kind",
        }
    ]  # fmt: skip


def test_the_pages_of_a_vdbench_result_are_part_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(FOREIGN / "vdbench-5.04.07", tmp_path / "v")
    (tmp_path / "v" / "errorlog.html").write_bytes(b"")
    audit(tmp_path, json=True)
    assert json.loads(capsys.readouterr().out)["passed_over"] == []
