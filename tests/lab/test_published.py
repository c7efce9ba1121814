"""What is counted of published results, and which of them are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab import published
from tests.audit.vdbench_folder import VdbenchRun, write

if TYPE_CHECKING:
    from pathlib import Path


def looked(root: Path, *agreed: str, rule: str | None = None) -> published.PublishedResults:
    seen = published.PublishedResults()
    published.look(root, frozenset(agreed), rule, seen)
    return seen


def test_a_condemned_result_is_false_until_somebody_agreed(tmp_path: Path) -> None:
    write(
        tmp_path / "honest",
        VdbenchRun(),
        parameters="sd=sd1,lun=/dev/sdb,threads=8\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1",
    )
    wrong = VdbenchRun(read_percent=50.0, asked_read_percent="100")
    write(tmp_path / "other" / "load", wrong, VdbenchRun("rd2"))
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "totals.html").write_text("<title>Vdbench totals</title><pre>\n")
    seen = looked(tmp_path)
    assert seen.results["vdbench"] == 2
    assert seen.verdicts.total() == 3
    assert seen.verdicts["vdbench", "not_valid"] == 1
    (line,) = seen.false
    assert line.startswith("other/load: rd1: workload_drift, not_valid, 9")
    assert seen.unread == ["cut: has no average of a run"]
    assert "false 'not valid': 1\n  other/load: rd1: " in published.report(seen)
    agreed = looked(tmp_path, "other/load", rule="workload_drift")
    assert (agreed.false, agreed.agreed, agreed.asked) == ([], seen.false, seen.false)
