"""The report of what other tools measured, and of directories of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadstone import exitcodes
from loadstone.cli.verbs.report import report
from loadstone.comparison.side import side
from loadstone.errors import InputError
from loadstone.report import results_report
from loadstone.report.article.files import as_file

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
PUBLISHED = Path(__file__).parents[2] / "examples" / "published"
READ = (
    FOREIGN / "fio" / "grouped.json",
    FOREIGN / "fio" / "shared.terse5",
    FOREIGN / "fio" / "shared.txt",
    FOREIGN / "vdbench-5.04.07",
    FOREIGN / "iometer" / "results-1.1.csv",
    FOREIGN / "diskspd" / "results.xml",
    PUBLISHED / "vostok.toml",
    FOREIGN,
)


@pytest.mark.parametrize("path", READ, ids=lambda path: path.name)
def test_what_audit_reads_has_a_report(path: Path) -> None:
    found = side(path)
    text = as_file(results_report.article(found), ".md")
    assert isinstance(text, str)
    for phase in found.phases:
        assert phase.pattern in text
    assert "| pattern | IOPS |" in text


def test_a_report_of_a_file_lies_here_and_says_what_was_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert report(FOREIGN / "fio" / "shared.json") == 0
    html = (tmp_path / "shared-report.html").read_text()
    assert "Measured by" in html
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.json").write_bytes((FOREIGN / "fio" / "shared.json").read_bytes())
    (mixed / "b.json").write_text('{"fio version": "fio-3.36", "jobs": [')
    assert report(mixed, output=[tmp_path / "mixed.md"]) == exitcodes.USAGE
    assert "b.json" in (tmp_path / "mixed.md").read_text()
    with pytest.raises(InputError, match=r"one of \.html, \.md, \.pdf"):
        report(mixed, output=[tmp_path / "mixed.svg"])


def test_findings_that_differ_in_their_figures_alone_are_said_once(tmp_path: Path) -> None:
    """Eleven runs of one job had a row each for one finding, and every pattern had the job's name."""
    for at, (size, ios) in enumerate((("16m", 36), ("64m", 37), ("256m", 38))):
        told = json.loads((FOREIGN / "fio" / "grouped.json").read_text())
        (one,) = told["jobs"][:1]
        one["job options"]["size"] = size
        one["read"]["total_ios"] = ios
        one.pop("job_start", None)
        told |= {"jobs": [one], "timestamp": 1_600_000_000 + 1000 * at, "timestamp_ms": None}
        (tmp_path / f"{at}.json").write_text(json.dumps(told))
    text = as_file(results_report.article(side(tmp_path)), ".md")
    assert isinstance(text, str)
    found = text.partition("## What was found")[2]
    rows = [line for line in found.splitlines() if "I/Os completed" in line]
    assert len(rows) == 1
    assert "(And 2 more phases, with figures of their own.)" in rows[0]
    assert text.partition("## What was found")[0].count("\n| 64k sequential read, working set ") == 3


def test_digits_of_a_name_are_no_figure() -> None:
    """Findings on two devices were one finding with other figures."""
    texts = (
        "sda1 saw 36 reads of 4.00 KiB",
        "sda2 saw 36 reads of 4.00 KiB",
        "sda1 saw 37 reads of 8.00 KiB",
    )
    one, device, figures = (results_report.FIGURE.sub("", text) for text in texts)
    assert one == figures
    assert one != device
