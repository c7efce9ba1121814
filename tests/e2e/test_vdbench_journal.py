"""vdbench's `journal=yes`: runs that write keep a journal, and what they wrote is read back by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e import program

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
sd=sd1,lun=data,size=4m,threads=4
wd=writes,sd=sd1,rdpct=50
wd=reads,sd=sd1
rd=writes,wd=writes,iorate=200,elapsed=2
rd=reads,wd=reads,iorate=200,elapsed=2
"""


@pytest.mark.in_turn
def test_a_run_that_writes_keeps_a_journal_and_one_that_reads_does_not(tmp_path: Path) -> None:
    (tmp_path / "job.parm").write_text("journal=yes" + TEXT)
    done = program.run("run", "job.parm", "--out", "study", "--no-calibration", cwd=tmp_path)
    assert done.code == 0, done.err
    bundles = [tmp_path / "study" / "runs" / name for name in ("001-writes", "002-reads")]
    assert [(bundle / "verify.journal").is_file() for bundle in bundles] == [True, False]
    kept = json.loads((bundles[0] / "plan.json").read_text())
    assert kept["journal"] is not None
    good = program.run("verify", str(bundles[0]), "--out", "good", cwd=tmp_path)
    assert good.code == 0, good.err
    with (tmp_path / "data").open("r+b") as file:
        file.write(bytes(4 << 20))
    bad = program.run("verify", str(bundles[0]), "--out", "bad", cwd=tmp_path)
    assert bad.code == 1
    assert "zeroed block" in bad.err


def test_a_journal_of_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.parm").write_text(TEXT.lstrip())
    done = program.run("run", "job.parm", "--journal", "--out", "study", cwd=tmp_path)
    assert done.code == 2
    assert "--journal: no run writes blocks that it verifies" in done.err
    assert not (tmp_path / "study").exists()
