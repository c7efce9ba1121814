"""`--vdbench-output`: vdbench's files while a parameter file runs, as those who follow them see them."""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.arrows import Follower
from loadstone.cli.main import main
from tests.e2e import program
from tests.support.started import StartedProgram

if TYPE_CHECKING:
    from pathlib import Path

RAW = """sd=sd1,lun={d}/f1,size=16m
sd=sd2,lun={d}/f2,size=16m
wd=wd1,sd=sd1,xfersize=4k,rdpct=70,skew=30
wd=wd2,sd=sd*,xfersize=8k,rdpct=0
rd=rd1,wd=wd*,iorate=200,elapsed=3,interval=1,threads=2
rd=rd2,wd=wd2,iorate=100,elapsed=2,interval=1,threads=2
"""
FILES = """fsd=fsd1,anchor={d}/tree,depth=1,width=2,files=4,size=8k
fwd=fwd1,fsd=fsd1,operation=getattr,threads=2
rd=rd1,fwd=fwd1,fwdrate=100,format=yes,elapsed=2,interval=1
"""


def same(out: Path, study: Path, directory: Path) -> None:
    again = directory / "again" / out.name
    done = program.run("export", study, "vdbench", again, cwd=directory)
    assert done.code == 0, done.err
    assert sorted(path.name for path in again.iterdir()) == sorted(path.name for path in out.iterdir())
    for path in again.iterdir():
        assert (out / path.name).read_text() == path.read_text(), path.name


@pytest.mark.in_turn
def test_lines_come_as_intervals_end_and_are_those_of_an_export(tmp_path: Path) -> None:
    job = tmp_path / "a.parm"
    job.write_text(RAW.format(d=tmp_path))
    out, study = tmp_path / "out", tmp_path / "study"
    words = ["run", str(job), "--out", str(study)]
    words += ["--vdbench-output", str(out)]
    seen: list[str] = []
    with StartedProgram(words, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            summary = out / "summary.html"
            text = summary.read_text() if summary.exists() else ""
            if text != (seen[-1] if seen else ""):
                seen.append(text)
            time.sleep(0.1)
        assert run.returncode == 0
    assert len(seen) >= 5, "a reader sees the runs go on"
    for before, after in itertools.pairwise(seen):
        assert after.startswith(before), "no line is taken back"
    same(out, study, tmp_path)
    # sd1 and wd1 have nothing to do in rd2: lines of zeros, and an average of the workload alone.
    said = {name: (out / f"{name}.html").read_text().split("Starting RD=rd2")[1] for name in ("wd1", "wd2")}
    rates = {name: re.findall(r"^[\d:.]+ +(\S+) +(\S+)", text, re.MULTILINE) for name, text in said.items()}
    assert rates["wd1"] == [("1", "0.0"), ("2", "0.0"), ("avg_2-2", "0.0")]
    assert all(float(rate) > 0 for _, rate in rates["wd2"])


@pytest.mark.in_turn
def test_trees_have_their_pages_too(tmp_path: Path) -> None:
    job = tmp_path / "a.parm"
    job.write_text(FILES.format(d=tmp_path))
    out, study = tmp_path / "out", tmp_path / "study"
    done = program.run("run", job, "--out", study, "--vdbench-output", out, cwd=tmp_path)
    assert done.code == 0, done.err
    same(out, study, tmp_path)
    assert "Anchor size: anchor=" in (out / "logfile.html").read_text()
    rows = [
        line for line in (out / "anchors.html").read_text().splitlines() if line.startswith(str(tmp_path))
    ]
    assert len(rows) == 3, "before the first run, and after each"


@pytest.mark.in_turn
def test_a_format_alone_has_the_pages_of_the_workloads_it_is_for(tmp_path: Path) -> None:
    job = tmp_path / "a.parm"
    job.write_text(FILES.format(d=tmp_path).replace("format=yes", "format=only"))
    out, study = tmp_path / "out", tmp_path / "study"
    done = program.run("run", job, "--out", study, "--vdbench-output", out, cwd=tmp_path)
    assert done.code == 0, done.err
    same(out, study, tmp_path)
    assert {"format.html", "fwd1.html", "fwd1.histogram.html"} <= {path.name for path in out.iterdir()}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("job_of", "shown"),
    [
        (("read", "read", "yes"), "mkdir rmdir create open close delete"),
        (("read", "read", "no"), "open close"),
        (("create", "create", "no"), "create open close"),
        (("setattr", "access", "(clean,yes)"), "mkdir rmdir create open close delete setattr access"),
    ],
)
def test_pages_have_the_operations_that_the_files_workloads_or_formats_need(
    job_of: tuple[str, str, str], shown: str, tmp_path: Path
) -> None:
    """As vdbench 5.04.07; it was tried beside ours. Before, six of them were always there."""
    first, second, form = job_of
    job, tree = tmp_path / "a.parm", tmp_path / "t"
    head = f"fsd=f,anchor={tree},depth=1,width=1,files=9,size=4k\nfwd=default,fsd=f,threads=1,xfersize=4k\n"
    head += f"fwd=w1,operation={first}\nfwd=w2,operation={second}\n"
    words = "fwdrate=20,elapsed=2,interval=1"
    tree.mkdir()
    if form == "no":
        made = tmp_path / "made.parm"
        only = "only" if first == "read" else "(directories,only)"
        made.write_text(f"{head}rd=r,fwd=w*,format={only},{words}\n")
        assert program.run("run", made, "--out", tmp_path / "made", cwd=tmp_path).code == 0
    job.write_text(f"{head}rd=r,fwd=w*,format={form},{words}\n")
    out, study = tmp_path / "out", tmp_path / "study"
    done = program.run("run", job, "--out", study, "--vdbench-output", out, cwd=tmp_path)
    assert done.code == 0, done.err
    same(out, study, tmp_path)
    summary = (out / "summary.html").read_text()
    above = next(line for line in summary.splitlines() if "ReqstdOps" in line)
    assert above.partition("xfer")[2].replace(".", " ").split() == shown.split()
    assert "Jan 01, 1970" not in summary


def test_the_option_is_refused_where_it_has_no_effect(tmp_path: Path) -> None:
    done = program.run("run", "four-corners", "--vdbench-output", tmp_path / "out", cwd=tmp_path)
    assert done.code == 2
    assert "vdbench-output" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("page", ["summary", "flatfile", "sd1", "notes"])
@pytest.mark.in_turn
def test_a_page_of_somebody_else_is_refused_before_the_load(tmp_path: Path, page: str) -> None:
    job, out = tmp_path / "a.parm", tmp_path / "out"
    job.write_text(RAW.format(d=tmp_path))
    out.mkdir()
    (out / f"{page}.html").write_text("mine")
    done = program.run("run", job, "--out", tmp_path / "study", "--vdbench-output", out, cwd=tmp_path)
    assert done.code == 2
    assert f"{page}.html exists, and Loadstone did not make it" in done.err
    assert (out / f"{page}.html").read_text() == "mine"
    assert not (tmp_path / "f1").exists(), "no load ran"


@pytest.mark.in_turn
def test_joined_storages_have_pages_of_their_own(tmp_path: Path) -> None:
    """As in vdbench: an I/O on joined SDs is one of the SD it came to."""
    (tmp_path / "job.parm").write_text(
        "concatenatesds=yes\nsd=sd1,lun=one,size=4m\nsd=sd2,lun=two,size=4m\n"
        "wd=wd1,sd=sd*,threads=4,rdpct=50,xfersize=4k\nrd=r,wd=wd1,iorate=400,elapsed=3,interval=1\n"
    )
    words = ("--no-calibration", "--out", "study", "--vdbench-output", "pages")
    done = program.run("run", "job.parm", *words, cwd=tmp_path)
    assert done.code == 0, done.err
    pages = tmp_path / "pages"
    assert not list(pages.glob("concat*"))
    rates = []
    for name in ("sd1", "sd2", "wd1"):
        line = next(one for one in (pages / f"{name}.html").read_text().splitlines() if "avg_2-3" in one)
        rates.append(float(line.split()[2]))
    assert rates[0] + rates[1] == pytest.approx(rates[2], abs=0.2)
    assert rates[0] == pytest.approx(rates[2] / 2, rel=0.25)


@pytest.mark.in_turn
@pytest.mark.parametrize("job", [RAW, FILES])
def test_a_table_that_cannot_be_read_on_for_a_moment_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """One open that failed ended the run as `Too many open files`, and named no file."""
    program.needs_engine()
    new, count = Follower.new, itertools.count()

    def failing(follower: Follower) -> object:
        if next(count) % 2 == 0:
            raise OSError(24, "Too many open files")
        return new(follower)

    monkeypatch.setattr(Follower, "new", failing)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.parm").write_text(job.format(d=tmp_path))
    words = ["run", "a.parm", "--out", "study", "--vdbench-output", "out", "--no-report", "--no-calibration"]
    assert main(words) == 0
    assert next(count) > 2
    same(tmp_path / "out", tmp_path / "study", tmp_path)


@pytest.mark.in_turn
def test_a_log_that_cannot_be_read_on_for_a_moment_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.needs_engine()
    new, count = Follower.new, itertools.count()

    def failing(follower: Follower) -> object:
        if next(count) == 0:
            raise OSError(24, "Too many open files")
        return new(follower)

    monkeypatch.setattr(Follower, "new", failing)
    monkeypatch.chdir(tmp_path)
    words = ["fio", "--name=j", "--rw=randread", "--size=1m", "--time_based", "--runtime=3", "--rate_iops=50"]
    assert main([*words, "--write_lat_log=l", "--output=o"]) == 0
    assert next(count) > 1
    assert 140 <= len((tmp_path / "l_lat.1.log").read_text().splitlines()) <= 151
