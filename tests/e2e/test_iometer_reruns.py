"""A configuration of Iometer run again on the file that its first run made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import program

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """Version 1.1.0
'TEST SETUP ====
'Run Time
'\thours      minutes    seconds
\t0          0          1
'END test setup
'ACCESS SPECIFICATIONS ====
'Access specification name,default assignment
\tmix,ALL
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,50,100,0,1,4096,0
'END access specifications
'MANAGER LIST ====
'Manager ID, manager name
\t1,HOST
'Manager network address
\t127.0.0.1
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
\t4,DISABLED,1
'Disk maximum size,starting sector
\t{sectors},0
'End default target settings for worker
'Assigned access specs
\tmix
'End assigned access specs
'Target assignments
'Target
\tC: "SYSTEM"
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 1.1.0
"""


@pytest.mark.in_turn
def test_a_second_run_takes_the_file_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()
    mapped = ("--map", f"C:={tmp_path / 'drive'}")
    for number, sectors in enumerate((8192, 8192, 0)):
        test = program.job(tmp_path / "t.icf", TEXT.format(sectors=sectors))
        done = program.run("run", test, *mapped, "--out", tmp_path / f"{number}", cwd=tmp_path)
        assert done.code == 0, done.err
    assert (tmp_path / "drive" / "iobw.tst").stat().st_size == 8192 * 512


@pytest.mark.in_turn
def test_a_file_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()
    file = tmp_path / "drive" / "iobw.tst"
    file.write_bytes(b"letters " * 524_288)
    test = program.job(tmp_path / "t.icf", TEXT.format(sectors=8192))
    done = program.run("run", test, "--map", f"C:={file.parent}", "--out", tmp_path / "out", cwd=tmp_path)
    assert done.code == 2
    assert "iobw.tst" in done.err
    assert file.read_bytes() == b"letters " * 524_288
