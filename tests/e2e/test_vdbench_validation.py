"""vdbench's `validate=`: reads beside the writes, in the numbers and where data is damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import program

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = 256
TEXT = f"""
sd=sd1,lun=data,size={BLOCKS * 4}k,threads=4
wd=w,sd=sd1,rdpct=0,xfersize=4k
rd=r,wd=w,iorate=400,elapsed=4,interval=1,warmup=1
"""


def bundle(directory: Path) -> Path:
    (only,) = (directory / "study" / "runs").iterdir()
    return only


def written(directory: Path) -> dict[str, Any]:
    (job,) = json.loads((bundle(directory) / "result.json").read_text())["jobs"]
    found: dict[str, Any] = job
    return found


def ends(directory: Path) -> list[dict[str, Any]]:
    found = [event for event in program.events(bundle(directory)) if event["type"] == "stream_end"]
    return sorted(found, key=lambda event: event["stream"])


@pytest.mark.parametrize(
    ("validate", "reads_of_a_write"), [("no_preread", 0), ("yes", 1), ("read_after_write", 2)]
)
def test_the_reads_beside_writes_are_reads_and_no_rate_counts_them(
    tmp_path: Path, validate: str, reads_of_a_write: int
) -> None:
    (tmp_path / "job.parm").write_text(f"validate={validate}" + TEXT)
    done = program.run("run", "job.parm", "--out", "study", "--no-calibration", cwd=tmp_path)
    assert done.code == 0, done.err
    reads, writes, *_ = ends(tmp_path)[0]["completed"]
    assert writes == pytest.approx(5 * 400, rel=0.1)
    first_of_a_block = BLOCKS if reads_of_a_write else 0
    assert reads == pytest.approx(reads_of_a_write * writes - first_of_a_block, abs=16)
    job = written(tmp_path)
    assert job["verified"]["damaged"] == 0
    (paced,) = job["pacing"]
    assert (paced["op"], paced["held"]) == ("write", True)
    causes = json.loads((bundle(tmp_path) / "result.json").read_text())["verdict"]["causes"]
    assert not [one for one in causes if one["rule"] == "workload_drift"]


def test_what_is_read_back_at_the_end_is_in_no_column(tmp_path: Path) -> None:
    (tmp_path / "job.parm").write_text("validate=no_preread" + TEXT)
    done = program.run("run", "job.parm", "--out", "study", "--no-calibration", cwd=tmp_path)
    assert done.code == 0, done.err
    # Almost every block was written at least once in 2,000 random writes.
    assert ends(tmp_path)[1]["completed"][0] > BLOCKS - 8
    assert program.run("export", str(bundle(tmp_path)), "vdbench", "pages", cwd=tmp_path).code == 0
    lines = (tmp_path / "pages" / "flatfile.html").read_text().splitlines()
    head = next(line.split() for line in lines if line.split()[:1] == ["tod"])
    rows = [dict(zip(head, line.split(), strict=False)) for line in lines if line[:1].isdigit()]
    assert [row["Interval"] for row in rows] == ["1", "2", "3", "4", "5", "avg_2-5"]
    assert {float(row["read%"]) for row in rows} == {0}
    assert float(rows[-1]["rate"]) == pytest.approx(400, rel=0.1)
    page = (tmp_path / "pages" / "histogram.html").read_text()
    assert "Only writes done" in page


def test_what_is_damaged_during_the_run_is_found_before_it_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "job.parm").write_text("validate=yes" + TEXT.replace("iorate=400", "iorate=2000"))
    process = program.start("run", "job.parm", "--out", "study", "--no-calibration", cwd=tmp_path)
    program.until((tmp_path / "study" / "runs" / "001-r").is_dir, "the run's bundle")
    program.ticks(bundle(tmp_path), 2)
    with (tmp_path / "data").open("r+b") as file:
        file.write(bytes(BLOCKS * 4096))
    done = program.finish(process)
    assert done.code == 1, done.err
    events = program.events(bundle(tmp_path))
    told = {event["stream"] for event in events if event["type"] == "damage"}
    found = next(event for event in events if event["type"] == "verified")["found"]
    assert 0 in told
    # What was damaged is not written again, so the whole of it is still there to be seen.
    assert found["zeroed_block"] == pytest.approx(BLOCKS, abs=4)
