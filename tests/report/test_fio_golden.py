"""The outputs of the hand-made run, byte for byte.

After a wanted change: LOADSTONE_WRITE_GOLDEN=1 pytest tests/report/test_fio_golden.py,
and look at the difference before committing it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.report.fio import collect, document, logs, normal, terse
from loadstone.report.fio.stats import DiskUse

from . import fio_small_run

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[1] / "data" / "fio-small-run"
DISKS = (
    DiskUse(
        "dm-0", 100, 200, 0, 0, 800, 1600, 30, 60, 90, 1500, 3000,
        parts=(DiskUse("sda", 110, 210, 3, 4, 880, 1680, 33, 66, 99, 2000, 3000),),
    ),
    DiskUse("vda", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3000),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def outputs() -> dict[str, str]:
    source = fio_small_run.source()
    source.disks = DISKS
    report = collect.report(source)
    plus = document.document(report, plus=True)
    plus["loadstone version"] = "0"
    files = {
        "normal.txt": normal.text(report),
        "json+.json": document.text(plus),
        **{f"terse{version}.txt": "\n".join(terse.lines(report, version)) + "\n" for version in (2, 3, 4, 5)},
    }
    grouped = fio_small_run.JOB.replace("iodepth=4", "iodepth=4\ngroup_reporting\nunified_rw_reporting=both")
    files["grouped.txt"] = normal.text(collect.report(fio_small_run.source(grouped)))
    return files


@pytest.mark.parametrize("name", sorted(outputs()))
def test_output_is_as_it_was(name: str) -> None:
    text = outputs()[name]
    path = GOLDEN / name
    if os.environ.get("LOADSTONE_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_the_document_is_json_and_begins_with_a_brace_on_its_own_line() -> None:
    text = outputs()["json+.json"]
    assert text.splitlines()[0] == "{"  # fio's own tests look for it
    doc = json.loads(text)
    assert doc["jobs"][0]["read"]["iops"] == 100.0
    assert doc["disk_util"][0]["aggr_write_merge"] == 4


def test_without_requests_logs_are_averages_by_job(tmp_path: Path) -> None:
    job = "\n".join(line for line in fio_small_run.JOB.splitlines() if "log" not in line)
    source = logs.asked_or_default(fio_small_run.source(job))
    names = {path.name for path in logs.write(source, None, tmp_path)}
    assert "mix_bw.1.log" in names
    assert "after_clat.3.log" in names
    assert (tmp_path / "after_iops.3.log").read_text() == "1000, 4, 1, 0, 0\n"
