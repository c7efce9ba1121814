"""Whoever ends the engine before its time: the run is not complete, and it says who it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle import study as on_disk
from loadstone.bundle.disk import Disk
from loadstone.bundle.read import Bundle
from loadstone.cli.main import main

from .program import engine_pid, finish, job, needs_engine, overloaded, run, start, ticks, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = "[r]\nrw=randread\nbs=4k\nsize=16m\ntime_based\nruntime=20s\niodepth=4\nfilename=data\nrate_iops=1k\n"
UNPACED = JOB.replace("rate_iops=1k\n", "")
ME = f"from process {os.getpid()} ("
ORDERLY = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGPWR]
AT_ONCE = [signal.SIGKILL, signal.SIGABRT, signal.SIGRTMIN]


@pytest.mark.in_turn
@pytest.mark.parametrize("step", ["mkdir", "put_whole", "put"])
def test_an_end_that_is_asked_for_while_the_bundle_begins_leaves_one_that_says_so(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in its first second: the bundle was `partial`, or a directory with half a file."""
    needs_engine()
    original: Callable[..., object] = getattr(Disk, step)
    asked: list[int] = []

    def asking(*words: object, **more: object) -> object:
        done = original(*words, **more)
        if not asked:
            asked.append(os.getpid())
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(Disk, step, asking)
    file = job(tmp_path / "r.fio", JOB.replace("=data", f"={tmp_path}/data"))
    assert main(["run", str(file), "--out", str(tmp_path / "b"), "--no-calibration"]) == 130
    assert asked
    bundle = Bundle.open(tmp_path / "b")
    assert (bundle.status, bundle.verify()) == ("interrupted", [])
    assert main(["report", str(tmp_path / "b"), "-o", str(tmp_path / "page.md")]) == 0


@pytest.mark.in_turn
def test_a_study_whose_end_is_asked_for_while_it_begins_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory had been left without a record, or with one that still ran."""
    needs_engine()
    begin = on_disk.begin

    def asking(*words: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return begin(*words)

    monkeypatch.setattr(on_disk, "begin", asking)
    file = job(tmp_path / "r.fio", JOB.replace("=data", f"={tmp_path}/data"))
    words = ["run", str(file), "--repeat", "2", "--out", str(tmp_path / "s"), "--no-calibration"]
    assert main(words) == 130
    study = on_disk.read(tmp_path / "s")
    assert (study.status, tuple(study.points)) == ("interrupted", ())


@pytest.mark.in_turn
@pytest.mark.parametrize("number", ORDERLY)
def test_a_signal_that_can_be_taken_names_its_sender(tmp_path: Path, number: signal.Signals) -> None:
    running = start("run", job(tmp_path / "r.fio", JOB), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    os.kill(engine_pid(tmp_path / "b"), number)
    done = finish(running)
    assert done.code == 1, done.err
    assert f"the engine was ended by {number.name} {ME}" in done.err
    assert f"), uid {os.getuid()} after " in done.err
    assert "IOPS" in done.out
    bundle = Bundle.open(tmp_path / "b")
    assert (bundle.status, bundle.manifest["exit_code"]) == ("failed", 1)
    assert bundle.samples()["ops"].sum() > 0


@pytest.mark.in_turn
@pytest.mark.parametrize("number", AT_ONCE)
def test_a_signal_that_kills_is_named(tmp_path: Path, number: signal.Signals) -> None:
    running = start("run", job(tmp_path / "r.fio", JOB), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    os.kill(engine_pid(tmp_path / "b"), number)
    done = finish(running)
    assert done.code == 1, done.err
    said = number.name if number in list(signal.Signals) else f"signal {number}"
    assert f"was killed by {said} before the run was over; what it had measured is kept" in done.err
    assert Bundle.open(tmp_path / "b").status == "failed"


@pytest.mark.in_turn
def test_a_limit_on_processor_time_is_named(tmp_path: Path) -> None:
    # On a busy host three seconds of CPU time take a while.
    text = UNPACED.replace("filename=data", "filename=/dev/zero").replace("runtime=20s", "runtime=50s")
    one = job(tmp_path / "r.fio", text)
    words = f"run {one} --out b --no-report --no-calibration"
    running = subprocess.Popen(
        ["/bin/sh", "-c", f"ulimit -t 3; exec {sys.executable} -m loadstone.cli.main {words}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    done = finish(running)
    assert done.code == 1, done.err
    assert "ulimit -t" in done.err


@pytest.mark.in_turn
@pytest.mark.slow
def test_an_engine_that_is_stopped_is_told_to_be_stopped(tmp_path: Path) -> None:
    text = JOB.replace("runtime=20s", "runtime=60s")
    running = start("run", job(tmp_path / "r.fio", text), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    os.kill(engine_pid(tmp_path / "b"), signal.SIGSTOP)
    done = finish(running)
    assert done.code == 1, done.err
    assert "stopped answering and was killed" in done.err
    assert "it is stopped, by SIGSTOP or a debugger" in done.err


@pytest.mark.in_turn
def test_the_drop_in_fails_as_well(tmp_path: Path) -> None:
    one = job(tmp_path / "r.fio", JOB)
    os.environ["LOADSTONE_FIO_BUNDLES"] = str(tmp_path / "kept")
    try:
        running = start("fio", one, cwd=tmp_path)
    finally:
        del os.environ["LOADSTONE_FIO_BUNDLES"]
    bundle = until(lambda: list((tmp_path / "kept").glob("*/events.jsonl")), "a bundle")[0].parent
    ticks(bundle)
    os.kill(engine_pid(bundle), signal.SIGTERM)
    done = finish(running)
    assert done.code == 1, (done.out, done.err)
    assert f"was ended by SIGTERM {ME}" in done.err
    assert Bundle.open(bundle).status == "failed"


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "words", [("run", "--repeat", "3"), ("sweep", "--iodepth", "1,2"), ("curve", "--points", "3")]
)
def test_a_study_fails_and_takes_no_shares_of_a_maximum_that_was_cut_short(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    verb, *more = words
    one = job(tmp_path / "r.fio", UNPACED.replace("runtime=20s", "runtime=5s"))
    running = start(verb, one, *more, "--out", "s", "--no-report", cwd=tmp_path)
    bundle = until(lambda: list((tmp_path / "s" / "runs").glob("*/events.jsonl")), "a bundle")[0].parent
    ticks(bundle)
    os.kill(engine_pid(bundle), signal.SIGTERM)
    done = finish(running)
    assert done.code == 1, (done.out, done.err)
    assert f"was ended by SIGTERM {ME}" in done.err
    assert Bundle.open(bundle).status == "failed"
    ran = len(list((tmp_path / "s" / "runs").iterdir()))
    assert ran == (2 if verb == "sweep" else 1)


@pytest.mark.in_turn
def test_a_run_again_and_a_verification_fail_as_well(tmp_path: Path) -> None:
    text = "[w]\nrw=randwrite\nbs=4k\nsize=64m\nverify=crc32c\ndo_verify=0\nfilename=data\nrate_iops=2000\n"
    text += "time_based\nruntime=3s\n"
    wrote = run("run", job(tmp_path / "w.fio", text), "--out", "a", "--journal", "--no-report", cwd=tmp_path)
    assert wrote.code == 0, wrote.err
    again = start("rerun", "a", "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b", 1)
    os.kill(engine_pid(tmp_path / "b"), signal.SIGTERM)
    done = finish(again)
    if done.code == 0 and (why := overloaded()):
        pytest.skip(why)  # It was over before it was killed.
    assert done.code == 1, done.err
    assert f"was ended by SIGTERM {ME}" in done.err
    assert Bundle.open(tmp_path / "b").status == "failed"
