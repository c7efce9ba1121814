from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from loadstone.api.jobs import read_workload
from loadstone.api.jobs.vdbench_live import IntervalLines
from loadstone.bundle.read import Bundle
from loadstone.cli.app import run as command
from loadstone.cli.options.arguments import LoadOptions
from loadstone.errors import InputError, LoadstoneError
from loadstone.messages import say
from loadstone.report.vdbench import interval_lines
from loadstone.report.vdbench.interval_totals import Counted
from tests.e2e import program
from tests.report.test_vdbench import FACTS
from tests.support import runs, started

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
sd=default,size=8m
sd=sd1,lun=one
sd=sd2,lun=two
wd=wd1,sd=sd*,rdpct=70,seekpct=25,xfersize=$xfer
wd=wd2,sd=sd1
rd=first,wd=wd1,iorate=max,elapsed=4,forthreads=(1,2)
rd=second,wd=wd2,iorate=(100,200),elapsed=6,interval=2,warmup=2
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "job.txt"
    path.write_text(TEXT)
    return path


def plan(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    assert command(["plan", *words]) == code
    said = capsys.readouterr()
    return said.out, said.err


@pytest.mark.in_turn
def test_plan_lists_the_runs_in_their_order(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = plan(capsys, str(file), "--set", "xfer=4k")
    assert out.splitlines() == [
        "Simulating RD=first; I/O rate: Uncontrolled MAX; elapsed=4; For loops: threads=1",
        "Simulating RD=first; I/O rate: Uncontrolled MAX; elapsed=4; For loops: threads=2",
        "Simulating RD=second; I/O rate: 100; elapsed=6 warmup=2; For loops: iorate=100",
        "Simulating RD=second; I/O rate: 200; elapsed=6 warmup=2; For loops: iorate=200",
    ]
    assert list(file.parent.iterdir()) == [file], "nothing is created"


@pytest.mark.in_turn
def test_plan_as_json_has_every_value(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = plan(capsys, str(file), "--set", "xfer=4k", "--json", "--map", "one=1", "--map", "sd2=2")
    document = json.loads(out)
    assert document["language"] == "vdbench"
    assert [run["name"] for run in document["runs"]] == [
        "first threads=1", "first threads=2", "second iorate=100", "second iorate=200",
    ]  # fmt: skip
    first = document["runs"][1]
    assert first["values"] == {"threads": 2}
    assert [one["lun"] for one in first["workloads"]] == ["1", "2"]
    assert {one["sd"]: one["threads"] for one in first["workloads"]} == {"sd1": 2, "sd2": 2}
    assert first["workloads"][0] | {"lun": ""} == {
        "wd": "wd1", "sd": "sd1", "lun": "", "xfersize": 4096, "xfersizes": "4k", "threads": 2, "rdpct": 70,
        "rhpct": 0, "whpct": 0, "seekpct": 25, "size": 8 << 20,
    }  # fmt: skip


@pytest.mark.in_turn
def test_times_and_runs_can_be_chosen(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--set",
        "xfer=4k",
        "--section",
        "second",
        "--runtime",
        "1m",
        "--interval",
        "5s",
        "--warmup",
        "10",
    ]
    out, _ = plan(capsys, str(file), *words)
    assert out.splitlines()[0] == (
        "Simulating RD=second; I/O rate: 100; elapsed=60 warmup=10; For loops: iorate=100"
    )
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--map", "tow=x", "--set", "xfer=4k"], "no SD uses 'tow'"),
        (["--section", "secnd", "--set", "xfer=4k"], "there is no run definition 'secnd'"),
        (["--target", "x", "--set", "xfer=4k"], "has no effect on a parameter file"),
        (["--rate", "100", "--set", "xfer=4k"], "has no effect on a parameter file"),
        (["--set", "xfer=4k", "--set", "more=1"], "more has no effect"),
        ([], "no value for the variable 'xfer'"),
        (["--set", "xfer=4k", "--language", "fio"], "wd=wd1"),
        (["--set", "xfer=4k", "--runtime", "1500ms"], "is not a whole number of seconds"),
    ],
)
def test_what_makes_no_sense_is_refused(file: Path, words: list[str], text: str) -> None:
    with pytest.raises(InputError) as caught:
        command(["plan", str(file), *words])
    assert text in str(caught.value) or "--set" in str(caught.value)


@pytest.mark.in_turn
def test_a_file_may_come_on_standard_input(file: Path) -> None:
    with file.open() as text:
        done = started.run(["plan", "-", "--set", "xfer=4k"], stdin=text)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.in_turn
def test_several_files_are_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = ["* disks\nsd=sd1,lun=one,size=8m\n", "wd=wd1,sd=sd1\n", "rd=rd1,wd=wd1,iorate=9,elapsed=4\n"]
    names = [tmp_path / f"part{number}" for number in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        name.write_text(part)
    out, _ = plan(capsys, *map(str, names))
    assert out == "Simulating RD=rd1; I/O rate: 9; elapsed=4; For loops: None\n"
    names[0].write_text("* only a comment, which no language knows for its own\n")
    names[1].write_text("sd=sd1,lun=one,size=8m\nwd=wd1,sd=sd1\n")
    out, _ = plan(capsys, *map(str, names))
    assert out == "Simulating RD=rd1; I/O rate: 9; elapsed=4; For loops: None\n"


@pytest.mark.parametrize("front", ["fio", "vdbench"])
def test_plan_says_by_its_exit_code_that_run_would_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], front: str
) -> None:
    texts = {
        "fio": "[a]\nfilename={0}\nsize=1m\nrw=write\n",
        "vdbench": "sd=sd1,lun={0},size=8m\nwd=wd1,sd=sd1,rdpct=0\nrd=rd1,wd=wd1,iorate=9,elapsed=4\n",
    }
    job = tmp_path / "job"
    os.mkfifo(tmp_path / "pipe")
    for target, code in ((tmp_path / "new", 0), (tmp_path / "pipe", 2)):
        job.write_text(texts[front].format(target))
        assert _code("plan", str(job)) == code
        capsys.readouterr()


def _code(*words: str) -> int:
    try:
        return command(list(words))
    except LoadstoneError as error:
        return error.exit_code


def test_one_run_of_a_file_is_a_workload_for_other_verbs(file: Path) -> None:
    file.write_text(TEXT + "rd=third,wd=wd2,iorate=max,elapsed=4\n")
    chosen = read_workload.workload(
        str(file), LoadOptions(set=["xfer=8k"], section=["third"], target=["x"], size="4m").changes()
    )
    assert [job.name for job in chosen.jobs] == ["wd2.sd1"]
    assert [target.path for target in chosen.jobs[0].placement.targets] == ["x"]
    with pytest.raises(InputError, match="has 2 runs, one is needed"):
        read_workload.workload(str(file), LoadOptions(set=["xfer=8k"], section=["first"]).changes())


def test_a_format_is_not_the_run_that_other_verbs_take(tmp_path: Path) -> None:
    file = tmp_path / "trees.parm"
    file.write_text(
        f"fsd=f,anchor={tmp_path}/tree,depth=1,width=1,files=2,size=4k\n"
        "fwd=w,fsd=f,operation=read\nrd=a,fwd=w,fwdrate=max,format=yes,elapsed=2\n"
    )
    chosen = read_workload.workload(str(file), LoadOptions().changes())
    assert [job.name for job in chosen.jobs] == ["w.f"]
    assert [note.text for note in chosen.notes if note.kind == "changed"] == [
        say("api.vdbench.formatted_before")
    ]


def test_options_for_parameter_files_are_refused_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("[a]\nsize=1m\n")
    for word in ("--warmup", "--interval"):
        with pytest.raises(InputError, match="has no effect on a fio job file"):
            command(["plan", str(tmp_path / "a.fio"), word, "5s"])


def test_what_would_be_refused_is_told_with_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hosts.parm"
    path.write_text("hd=a,system=x\nhd=b,system=y\nsd=s,lun=z\nwd=w,sd=s\nrd=r,wd=w,iorate=max\n")
    out, err = plan(capsys, str(path), code=2)
    assert out == "Simulating RD=r; I/O rate: Uncontrolled MAX; elapsed=30; For loops: None\n"
    assert f"loadstone: {path}:1: hd: hd=a is another host" in re.sub(r"\n\s*", " ", err)


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_file_runs_as_it_is_and_its_results_agree_everywhere(file: Path) -> None:
    # As fast as it can would take a CPU for eight seconds and say no more.
    file.write_text(TEXT.replace("iorate=max,elapsed=4", "iorate=500,elapsed=4"))
    words = ["--set", "xfer=4k", "--out", "study"]
    done = program.run("run", file.name, *words, "--section", "first", cwd=file.parent)
    assert done.code == 0, done.err
    shown = [
        line.split() for line in done.err.splitlines() if re.match(r"\d\d:\d\d:\d\d\.\d{3} .*avg_", line)
    ]
    assert [line[1] for line in shown] == ["avg_2-4", "avg_2-4"]
    study = json.loads((file.parent / "study" / "study.json").read_text())
    assert study["kind"] == "list"
    assert study["front_end"] == "vdbench"
    assert [point["factors"] for point in study["points"]] == [
        {"rd": "first", "iodepth": 1},
        {"rd": "first", "iodepth": 2},
    ]
    exported = program.run("export", "study", "vdbench", "out", cwd=file.parent)
    assert exported.code == 0, exported.err
    totals = (file.parent / "out" / "totals.html").read_text()
    averages = [line.split() for line in totals.splitlines() if "avg_2-4" in line]
    assert [line[2:12] for line in averages] == [line[2:12] for line in shown]
    assert (file.parent / "one").stat().st_size == 8 << 20, "the file is filled before"
    read_percent = [float(line[5]) for line in averages]
    assert all(60 < value < 80 for value in read_percent)


def test_live_lines_are_those_of_a_later_export(tmp_path: Path) -> None:
    made = runs.make(tmp_path / "a", seconds=6.0, seal=None)
    facts = {**FACTS, "warmup": "0", "interval": "1", "elapsed": "6"}
    whole = (made.path / "samples.arrows").read_bytes()
    said: list[str] = []
    told = IntervalLines(facts, said.append)
    grown = tmp_path / "grown"
    grown.mkdir()
    told.begin(made.plan, grown)
    for part in range(1, 13):
        (grown / "samples.arrows").write_bytes(whole[: len(whole) * part // 12])
        told.event({"type": "tick", "t_ns": part * 500_000_000})
    told.finish()
    found = [line for line in said if re.match(r"\d\d:.* +(\d+|avg_2-6) ", line)]
    (made.path / "workload.json").write_text(json.dumps({"global_options": facts, "jobs": []}))
    counted = Counted(Bundle.open(runs.begun_again(made.path)))
    expected = [
        interval_lines.line("50407", "", str(number), tally, False)
        for number, tally in enumerate(counted.whole.intervals, start=1)
    ]
    expected.append(interval_lines.line("50407", "", "avg_2-6", counted.average(counted.whole), False))
    assert [line[12:-12] for line in found] == expected
