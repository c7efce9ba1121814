"""Which number a clone's log files have when what it wrote is read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.formats.fio import TextSource, read_jobfiles
from loadstone.plan.resolve import resolve
from loadstone.report.fio.reported_lines import numbers

if TYPE_CHECKING:
    from pathlib import Path


def test_reading_back_is_a_part_of_the_clone_that_wrote(tmp_path: Path) -> None:
    job = f"directory={tmp_path}\nsize=64k\nrw=write\n"
    text = f"[a]\n{job}verify=md5\nnumjobs=2\n[b]\n{job}[c]\n{job}verify=md5\nverify_only=1\n"
    found = resolve(read_jobfiles([TextSource(text, "job.fio", tmp_path)])).plan
    assert [stream.name for stream in found.streams][:4] == ["a.0", "a.0.verify", "a.1", "a.1.verify"]
    assert numbers(found) == [1, 1, 2, 2, 3, 4]
