"""Targets and bundles on a file system that stops answering: we end in time and say so."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from loadstone.bundle.read import Bundle
from tests.engine.hanging import missing
from tests.support import runs

from .fuse_dir import mounted
from .program import INTERRUPT, finish, job, kinds, run, start, ticks, until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=f"no hanging directory: {missing()}"),
]
MADE = b"\0" * (1 << 20)


def reading(directory: Path, seconds: int, target: object) -> Path:
    text = f"[r]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime={seconds}s\nioengine=psync\n"
    text += f"rate_iops=1k\nfilename={target}\n"
    return job(directory / "r.fio", text)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["run", "plan", "fio"])
@pytest.mark.in_turn
def test_a_target_that_hangs_before_the_run_is_told(tmp_path: Path, verb: str) -> None:
    with mounted(tmp_path / "m") as there:
        (there.path / "data").write_bytes(MADE)
        there.stop()
        more = ("--out", "b") if verb == "run" else ()
        done = run(verb, reading(tmp_path, 2, there.path / "data"), *more, cwd=tmp_path)
    assert done.code in (1, 2), done
    assert "no answer for 20 s" in done.err
    assert "is left behind" in done.err
    assert not (tmp_path / "b").exists()


@pytest.mark.in_turn
def test_ctrl_c_while_a_target_hangs_before_the_run(tmp_path: Path) -> None:
    with mounted(tmp_path / "m") as there:
        (there.path / "data").write_bytes(MADE)
        there.stop()
        running = start("run", reading(tmp_path, 2, there.path / "data"), "--out", "b", cwd=tmp_path)
        time.sleep(4)
        running.send_signal(INTERRUPT)
        done = finish(running)
    assert done.code == 130, done
    assert "no answer for" not in done.err, "it heard only when the waiting was over"


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_target_that_hangs_in_the_run_ends_it_and_its_figures_are_kept(tmp_path: Path) -> None:
    with mounted(tmp_path / "m") as there:
        (there.path / "data").write_bytes(MADE)
        one = reading(tmp_path, 4, there.path / "data")
        running = start("run", one, "--out", "b", "--no-report", cwd=tmp_path)
        ticks(tmp_path / "b")
        there.stop()
        done = finish(running)
    assert done.code == 1, done
    assert "did not come back within" in done.err
    assert "IOPS" in done.out
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status in {"complete", "failed"}
    assert bundle.samples()["ops"].sum() > 0
    assert any("no answer for" in str(event.get("text")) for event in bundle.events)


@pytest.mark.in_turn
def test_two_interrupts_end_a_run_on_a_target_that_hangs(tmp_path: Path) -> None:
    with mounted(tmp_path / "m") as there:
        (there.path / "data").write_bytes(MADE)
        one = reading(tmp_path, 300, there.path / "data")
        running = start("run", one, "--out", "b", "--no-report", cwd=tmp_path)
        ticks(tmp_path / "b")
        there.stop()
        time.sleep(1)
        running.send_signal(INTERRUPT)
        time.sleep(1)
        running.send_signal(INTERRUPT)
        done = finish(running)
    assert done.code == 130, done
    assert "tick" in kinds(tmp_path / "b")


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_bundle_directory_that_hangs_before_the_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(MADE)
    with mounted(tmp_path / "m") as there:
        there.stop()
        done = run("run", reading(tmp_path, 2, tmp_path / "data"), "--out", there.path / "b", cwd=tmp_path)
    assert done.code == 1, done
    assert "for the bundle: no answer for 20 s" in done.err


@pytest.mark.slow
@pytest.mark.in_turn
def test_interrupts_end_a_run_whose_bundle_hangs_and_tell_the_figures(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(MADE)
    with mounted(tmp_path / "m") as there:
        one = reading(tmp_path, 300, tmp_path / "data")
        running = start("run", one, "--out", there.path / "b", "--no-report", cwd=tmp_path)
        ticks(there.path / "b")
        there.stop()
        time.sleep(2)
        running.send_signal(INTERRUPT)
        time.sleep(1)
        running.send_signal(signal.SIGTERM)
        done = finish(running)
    assert done.code == 130, done
    assert "read: " in done.err
    assert "IOPS" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "{there}/a.fio", "--out", "b"),
        ("plan", "included.fio"),
        ("run", "here.fio", "--spec", "{there}/spec.toml", "--out", "b"),
        ("audit", "{there}/result.json"),
        ("audit", "{there}/bundle"),
        ("report", "{there}/bundle"),
        ("runs", "{there}"),
    ],
    ids=lambda words: f"{words[0]} {words[1].partition('/')[2]}",
)
@pytest.mark.in_turn
def test_ctrl_c_ends_what_reads_an_input_that_hangs(tmp_path: Path, words: tuple[str, ...]) -> None:
    """No child of ours reads them: whoever does waits in the kernel, where it hears nothing."""
    text = "[a]\nrw=read\nsize=1m\nioengine=null\n"
    job(tmp_path / "here.fio", text)
    log = tmp_path / "log"
    with mounted(tmp_path / "m", log=log) as there:
        job(tmp_path / "included.fio", f"include {there.path}/a.fio\n")
        for name in ("a.fio", "spec.toml", "result.json"):
            (there.path / name).write_text(text)
        made = runs.make(tmp_path / "made").path
        (there.path / "bundle").mkdir()
        for one in made.iterdir():
            if one.is_file():
                (there.path / "bundle" / one.name).write_bytes(one.read_bytes())
        there.stop()
        running = start(*(word.format(there=there.path) for word in words), cwd=tmp_path)
        (worker,) = until(lambda: children(running.pid), "the working process")
        asked = re.compile(rf"^{worker} ", re.MULTILINE)
        until(lambda: asked.search(log.read_text()), "a question of the working process")
        running.send_signal(INTERRUPT)
        done = finish(running)
    assert done.code == 130, done
    assert "did not answer" in done.err


@pytest.mark.parametrize("words", [("audit", "{there}/result.json"), ("plan", "target.fio")])
@pytest.mark.in_turn
def test_what_is_waited_for_is_said_meanwhile(tmp_path: Path, words: tuple[str, ...]) -> None:
    """By the process that waits for the working one: an input there, a target in a child of it."""
    with mounted(tmp_path / "m") as there:
        (there.path / "result.json").write_text("{}\n")
        job(tmp_path / "target.fio", f"[a]\nrw=read\nsize=1m\nfilename={there.path}/result.json\n")
        there.stop()
        running = start(*(word.format(there=there.path) for word in words), cwd=tmp_path)
        assert running.stderr is not None
        assert running.stderr.readline().startswith(f"loadstone: {there.path}")
        running.send_signal(INTERRUPT)
        assert finish(running).code == 130


@pytest.mark.in_turn
@pytest.mark.drawn(5)
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--out", "b"),
        ("plan",),
        ("fio",),
        ("sweep", "--numjobs", "1,2", "--out", "b"),
        ("run", "--repeat", "2", "--out", "b"),
    ],
)
@pytest.mark.parametrize("load", ["rw=randread\nsize=1m", "rw=randwrite\nsize=2m"], ids=["read", "laid out"])
def test_the_coordinator_itself_never_touches_a_target(
    tmp_path: Path, words: tuple[str, ...], load: str
) -> None:
    """Whoever asks the target's file system for anything is an engine or a child that can be left."""
    with mounted(tmp_path / "m", log=tmp_path / "log") as there:
        (there.path / "data").write_bytes(MADE)
        text = f"[r]\n{load}\nbs=4k\ntime_based\nruntime=1s\nrate_iops=1k\nioengine=psync\n"
        text += f"filename={there.path / 'data'}\n"
        one = job(tmp_path / "r.fio", text)
        (tmp_path / "log").write_text("")
        verb, *more = words
        running = start(verb, one, *more, cwd=tmp_path)
        worker = until(lambda: children(running.pid), "the working process")
        done = finish(running)
    assert done.code == 0, done
    asked = {int(line.split()[0]) for line in (tmp_path / "log").read_text().splitlines()}
    assert asked
    assert not asked & {running.pid, *worker}


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
