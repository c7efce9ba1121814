"""Studies for real, on temporary files: repeats, sweeps and curves, their ends and their mistakes."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from loadstone.cli.main import main

from .program import INTERRUPT, READ_FOR, finish, job, run, start, ticks

if TYPE_CHECKING:
    from pathlib import Path

UNPACED = READ_FOR.replace("rate_iops=1k\n", "")
WALLED = UNPACED + "[writer]\nstonewall\n" + UNPACED.partition("\n")[2].replace("randread", "randwrite")


def reader(path: Path, seconds: int = 1, *, paced: bool = True) -> Path:
    return job(path / "r.fio", (READ_FOR if paced else UNPACED).format(seconds, path))


@pytest.mark.in_turn
def test_repeats_are_a_study_with_one_document_and_a_page(tmp_path: Path) -> None:
    done = run("run", reader(tmp_path), "--repeat", "2", "--out", "s", "--json", "--report", cwd=tmp_path)
    assert done.code == 0, done.err
    document = done.document()
    assert document == json.loads((tmp_path / "s" / "result.json").read_text())
    assert [one["name"] for one in document["runs"]] == ["repeat-1", "repeat-2"]
    line = document["repeats"][0]
    assert (line["job"], line["op"], line["iops"]["runs"]) == ("reader", "read", 2)
    assert line["iops"]["low"] <= line["iops"]["mean"] <= line["iops"]["high"]
    assert (tmp_path / "s" / "report.html").stat().st_size > 5000
    assert "run 2 of 2: repeat-2:" in done.err
    # A run of a study is a run like any other.
    again = run("report", "s/runs/002-repeat-2", cwd=tmp_path)
    assert again.code == 0, again.err
    # What the study comes to is sealed as its runs are.
    result = tmp_path / "s" / "result.json"
    result.write_text(result.read_text().replace('"runs": 2', '"runs": 9'))
    altered = run("report", "s", cwd=tmp_path)
    assert altered.code == 2
    assert "result.json was altered" in altered.err


@pytest.mark.in_turn
def test_a_study_that_is_killed_tells_what_the_run_it_was_in_has_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """992511: its place was written down after the run, and nothing was found: *no run has measured*."""
    running = start("run", reader(tmp_path, 20), "--repeat", "2", "--out", "s", cwd=tmp_path)
    ticks(tmp_path / "s" / "runs" / "001-repeat-1")
    os.killpg(running.pid, signal.SIGKILL)
    finish(running)
    assert main(["audit", str(tmp_path / "s"), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert told["path"].endswith("s/runs/001-repeat-1")
    assert main(["report", str(tmp_path / "s"), "-o", str(tmp_path / "s.md")]) == 0
    page = (tmp_path / "s.md").read_text()
    row = next(line for line in page.splitlines() if "| repeat-1 |" in line)
    assert "not valid · it was killed, or still runs" in row
    assert row.split("|")[3].strip() not in {"", "–"}
    assert "All runs together" not in page


@pytest.mark.in_turn
def test_until_stops_at_the_latest_when_time_is_up(tmp_path: Path) -> None:
    done = run("run", reader(tmp_path), "--until", "0.0001%,3s", "--out", "s", "--no-report", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "no more repeats: another run would exceed the" in done.out.replace("\n", " ")


@pytest.mark.in_turn
def test_a_sweep_takes_jobs_behind_a_wall_apart(tmp_path: Path) -> None:
    one = job(tmp_path / "w.fio", WALLED.format(1, tmp_path, 1, tmp_path))
    done = run("sweep", one, "--numjobs", "1,2", "--out", "s", "--json", "--no-report", cwd=tmp_path)
    assert done.code == 0, done.err
    document = done.document()
    assert [tuple(cell["values"].values()) for cell in document["sweep"]["cells"]] == [
        ("reader", 1),
        ("reader", 2),
        ("writer", 1),
        ("writer", 2),
    ]
    assert all(cell["iops"]["value"] > 0 for cell in document["sweep"]["cells"])
    # The page cache answers most of these, not always on a busy host. Advice rests on valid runs alone.
    valid = [next(iter(cell["values"].values())) for cell in document["sweep"]["cells"] if cell["valid"]]
    advised = [next(iter(one["others"].values())) for one in document["sweep"]["advice"]]
    assert advised == [name for name in dict.fromkeys(valid) if valid.count(name) > 1]


@pytest.mark.in_turn
@pytest.mark.serial
def test_a_curve_measures_its_maximum_and_shares_of_it(tmp_path: Path) -> None:
    done = run(
        "curve",
        reader(tmp_path, paced=False),
        "--points",
        "20,40",
        "--repeat",
        "1",
        "--out",
        "s",
        "--json",
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    curve = done.document()["curves"][0]
    top = curve["maximum"]["iops"]["value"]
    for load in curve["loads"]:
        assert load["asked_iops"] == pytest.approx(top * load["percent"] / 100, rel=0.001)
    over = run("report", "s", "s", "-o", "both.svg", cwd=tmp_path)
    assert over.code == 0, over.err
    assert (tmp_path / "both.svg").stat().st_size > 1000
    # The same loads again, and not shares of another maximum.
    again = run("rerun", "s", "--out", "again", "--json", "--no-report", cwd=tmp_path)
    assert again.code == 0, again.err
    assert again.document()["kind"] == "curve"
    asked = [load["asked_iops"] for load in again.document()["curves"][0]["loads"]]
    assert asked == pytest.approx([load["asked_iops"] for load in curve["loads"]], rel=0.001)
    for one in again.document()["runs"]:
        plans = [json.loads((tmp_path / s / one["bundle"] / "plan.json").read_text()) for s in ("s", "again")]
        for plan in plans:
            plan["targets"] = [target["path"] for target in plan["targets"]]
        assert plans[0] == plans[1]


@pytest.mark.in_turn
def test_a_signal_ends_a_study_and_keeps_its_runs(tmp_path: Path) -> None:
    process = start("run", reader(tmp_path, 30), "--repeat", "3", "--out", "s", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "s" / "runs" / "001-repeat-1")
    process.send_signal(INTERRUPT)
    done = finish(process)
    assert done.code == 130
    study = json.loads((tmp_path / "s" / "study.json").read_text())
    assert study["status"] == "interrupted"
    assert [point["status"] for point in study["points"]] == ["interrupted"]
    assert "interrupted · r" in done.out


THIRD = "[a]\nrw=randwrite\nbs=4k\nsize=1m\nruntime=1\ntime_based\nioengine=psync\n"
THIRD += "".join(f"[{name}]\nstonewall\nrw=randwrite\nsize=1m\nioengine=psync\n" for name in ("b", "mine"))
VDBENCH_THIRD = """sd=a,lun=a,size=1m
sd=b,lun=b,size=1m
sd=c,lun=mine,size=1m
wd=default,xfersize=4k,rdpct=0
wd=wa,sd=a
wd=wb,sd=b
wd=wc,sd=c
rd=default,iorate=100,elapsed=2,interval=1
rd=ra,wd=wa
rd=rb,wd=wb
rd=rc,wd=wc
"""
EXPERIMENT_THIRD = """title = "t"
repeats = 2
runtime = "1s"
size = "1m"
targets = ["a", "b", "mine"]
[[patterns]]
name = "w"
options = { rw = "randwrite", ioengine = "psync" }
[[factors]]
name = "size"
option = "bs"
levels = ["4k", "8k"]
"""


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("run", "t.fio", "--repeat", "2"), "t.fio:14: filename: "),
        (("sweep", "t.fio", "--bs", "4k,8k"), "t.fio:14: filename: "),
        (("curve", "t.fio"), "t.fio:14: filename: "),
        (("run", "t.parm"), "t.parm:3: lun: "),
        (("run", "t.parm", "--repeat", "2", "--probe=3s"), "t.parm:3: lun: "),
        (("experiment", "run", "t.toml"), "t.toml: targets: "),
        (("run", "t.fio", "--probe=2s", "--json"), "t.fio:14: filename: "),
        (("probe", "mine", "--rw", "randwrite", "--budget", "2s", "--size", "1m"), "command line: "),
    ],
    ids=str,
)
def test_a_refusal_stands_alone_and_first(tmp_path: Path, words: tuple[str, ...], place: str) -> None:
    """A sweep said how long its runs load, an experiment how many there are, a run what its probes take."""
    for name, text in (("t.fio", THIRD), ("t.parm", VDBENCH_THIRD), ("t.toml", EXPERIMENT_THIRD)):
        (tmp_path / name).write_text(text.replace("[mine]\n", "[mine]\nfilename=mine\n"))
    (tmp_path / "mine").write_bytes(b"mine\n" * 209716)
    before = sorted(path.name for path in tmp_path.iterdir())
    refused = run(*words, "--out", "s", cwd=tmp_path)
    assert refused.code == 2
    first, *rest = refused.err.splitlines()
    assert first == f"loadstone: {place}the run would destroy existing data"
    assert rest[0].startswith(f"  {tmp_path}/mine: it exists")
    assert rest[-1] == f"hint: if all of that may be lost, add: --i-accept-data-loss {tmp_path}/mine"
    assert refused.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.in_turn
def test_the_length_of_a_study_is_said_when_no_run_is_refused(tmp_path: Path) -> None:
    done = run("sweep", reader(tmp_path), "--bs", "4k,8k", "--out", "s", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "2 runs, 2.00\u00a0s of load in all"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sweep",), "there is nothing to sweep"),
        (("sweep", "--iodepth", "1,x"), "--iodepth: found 'x'"),
        (("sweep", "--bs", "4k", "--read", "0", "--numjobs", "1", "--iodepth", "1"), "4 factors at once"),
        (("sweep", "--iodepth", "1,2", "--gain", "10"), "--gain: found '10'"),
        (("sweep", "--bs", "3k,4k", "--repeat", "0"), "--repeat: found 0"),
        (("curve", "--points", "10,0"), "--points: found '0'"),
        (("curve", "--points", "10,10"), "given twice"),
        (("curve", "--slo", "p99"), "--slo: found 'p99'"),
        (("curve", "--rate", "1000"), "--rate: a curve sets the rates itself"),
        (("curve", "--interval", "5"), "--interval: has no effect on a curve"),
        (("run", "--repeat", "2", "--until", "2"), "--until: found '2'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    code = main([words[0], str(reader(tmp_path)), *words[1:], "--out", str(tmp_path / "s")])
    assert code == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["r.fio"]


def test_a_depth_without_effect_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = job(tmp_path / "p.fio", READ_FOR.format(1, tmp_path) + "ioengine=psync\n")
    assert main(["sweep", str(one), "--iodepth", "1..8", "--out", str(tmp_path / "s")]) == 2
    assert "p.fio:10: ioengine: [reader] runs on psync" in capsys.readouterr().err
