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


@pytest.mark.in_turn
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


@pytest.mark.in_turn
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


@pytest.mark.in_turn
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


def found_in(study: Path) -> list[dict[str, int]]:
    """What each run of a study found damaged, by kind, without zeros."""
    runs = sorted((study / "runs").iterdir())
    ends = [next(one for one in program.events(run) if one["type"] == "verified") for run in runs]
    return [{kind: count for kind, count in end["found"].items() if count} for end in ends]


def run_list(directory: Path, text: str, code: int) -> program.EndedProgram:
    (directory / "job.parm").write_text(text)
    words = ("--allow-exec", "--no-calibration", "--no-report", "--out", "study")
    done = program.run("run", "job.parm", *words, cwd=directory)
    assert done.code == code, done.err
    return done


@pytest.mark.in_turn
@pytest.mark.serial  # Beside tests whose targets hang, a look at its file waited in the kernel twice.
def test_what_one_run_wrote_is_demanded_of_the_next(tmp_path: Path) -> None:
    """An older content that comes back between two runs is a lost write, though its stamps are right."""
    text = (
        "validate=yes\nsd=sd1,lun=data,size=1m,threads=2\nsd=sd2,lun=other,size=1m,threads=2\n"
        "wd=w,sd=sd1,rdpct=0,xfersize=4k,seekpct=seqnz\nwd=x,sd=sd2,rdpct=0,xfersize=8k\n"
        "wd=r,sd=sd1,rdpct=100,xfersize=16k\n"
        "rd=a,wd=w,iorate=2000,elapsed=2,interval=1\n"
        "rd=b,wd=x,iorate=500,elapsed=2,interval=1\n"
        'rd=c,wd=w,iorate=2000,elapsed=2,interval=1,startcmd="cp data before"\n'
        "rd=d,wd=r,iorate=500,elapsed=2,interval=1\n"
        "rd=e,wd=r,iorate=500,elapsed=2,interval=1,"
        'startcmd="dd if=before of=data bs=64k count=1 conv=notrunc"\n'
    )
    run_list(tmp_path, text, 1)
    assert found_in(tmp_path / "study") == [{}, {}, {}, {}, {"lost_write": 16}]
    checked = list(program.events(sorted((tmp_path / "study/runs").iterdir())[3]))
    assert next(one for one in checked if one["type"] == "verify_end")["unverified"] == 0


TREE = """validate={validate}
fsd=f,anchor=tree,depth=1,width=2,files=3,sizes=(32k,50,64k,50)
fwd=w,fsd=f,operation=write,xfersize=8k,threads=2
fwd=r,fsd=f,operation=read,xfersize=4k,threads=2
fwd=format,threads=2,xfersize=16k
rd=a,fwd=w,fwdrate=300,format=yes,elapsed=2,interval=1
rd=b,fwd=r,fwdrate=400,elapsed=2,interval=1,startcmd="cp -r tree/vdb.1_1.dir before"
rd=c,fwd=w,fwdrate=300,elapsed=2,interval=1
rd=d,fwd=r,fwdrate=400,elapsed=2,interval=1{damage}
"""


@pytest.mark.in_turn
@pytest.mark.slow
def test_files_of_a_tree_are_verified_from_run_to_run(tmp_path: Path) -> None:
    run_list(tmp_path, TREE.format(validate="yes", damage=""), 0)
    assert found_in(tmp_path / "study") == [{}] * 5
    runs = sorted((tmp_path / "study" / "runs").iterdir())
    for run in (runs[2], runs[4]):
        ends = [one for one in program.events(run) if one["type"] == "verify_end"]
        assert sum(one["checked"] for one in ends) > 500
        assert sum(one["unverified"] for one in ends) == 0
    # What the format wrote is known, so each write of the first run is read before.
    done = [one["completed"] for one in stream_ends(runs[1])]
    reads, writes = (sum(one[number] for one in done) for number in (0, 1))
    assert reads == writes > 400


def stream_ends(run: Path) -> list[dict[str, Any]]:
    return [one for one in program.events(run) if one["type"] == "stream_end"]


@pytest.mark.in_turn
@pytest.mark.slow
def test_damage_in_a_tree_is_told_by_file(tmp_path: Path) -> None:
    damage = (
        ',startcmd="cp before/vdb_f0001.file tree/vdb.1_1.dir/; '
        "dd if=tree/vdb.1_1.dir/vdb_f0000.file of=tree/vdb.1_2.dir/vdb_f0002.file bs=8k count=1 "
        'conv=notrunc"'
    )
    text = TREE.format(validate="no_preread", damage=damage)
    done = run_list(tmp_path, text, 1)
    last = found_in(tmp_path / "study")[-1]
    size = (tmp_path / "tree/vdb.1_1.dir/vdb_f0001.file").stat().st_size
    assert last == {"lost_write": size // 4096, "misdirected_write": 2}
    assert "in vdb.1_2.dir/vdb_f0002.file: expected generation" in done.err
    assert "of vdb.1_1.dir/vdb_f0000.file offset 0" in done.err


@pytest.mark.in_turn
@pytest.mark.slow
def test_files_that_are_made_anew_take_what_was_known_along(tmp_path: Path) -> None:
    """Deleted and created files, and a tree that is formatted again, are not held to what they were."""
    text = (
        "validate=read_after_write\nfsd=f,anchor=tree,depth=1,width=2,files=20,sizes=32k\n"
        "fwd=w,fsd=f,operation=write,fileio=(sequential,delete),xfersize=8k,threads=2\n"
        "fwd=d,fsd=f,operation=delete\nfwd=c,fsd=f,operation=create\n"
        "fwd=m,fsd=f,rdpct=50,fileio=random,xfersize=4k,threads=2\nfwd=format,threads=2,xfersize=16k\n"
        "rd=a,fwd=w,fwdrate=max,format=yes,elapsed=2,interval=1\n"
        "rd=b,fwd=(d,c),fwdrate=400,elapsed=2,interval=1\n"
        "rd=e,fwd=m,fwdrate=400,format=yes,elapsed=2,interval=1\n"
    )
    run_list(tmp_path, text, 0)
    assert found_in(tmp_path / "study") == [{}] * 5
