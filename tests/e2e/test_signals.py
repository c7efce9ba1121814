"""Signals as scripts send them: to a job in the background of a shell that is nobody's terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import (
    PATIENCE_S,
    engine_pid,
    events,
    finish,
    job,
    kinds,
    needs_engine,
    start,
    state,
    ticks,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAM = f"{sys.executable} -m loadstone.cli.main"
FIO = (
    f"{PROGRAM} fio --name=a --ioengine=null --size=1g --rw=read --rate=10m --time_based"
    " --eta=never --runtime=60"
)
STARTED = (
    "until grep -q '\"start\"' $(find . -name events.jsonl) /dev/null 2>/dev/null; do sleep 0.1; done"
    "; sleep 1"
)
"""Waits until the first I/O was done, and a little more."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    needs_engine()
    (tmp_path / "tmp").mkdir()
    return tmp_path


def shell(script: str, cwd: Path, more: Mapping[str, str] | None = None) -> int:
    """Run a script in a shell without job control, in which `&` ignores SIGINT."""
    environment = {**os.environ, "TMPDIR": str(cwd / "tmp"), **(more or {})}
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=cwd,
        env=environment,
        timeout=PATIENCE_S * 2,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode


def documents(text: str) -> list[object]:
    decoder, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].strip()
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_fio_in_the_background_of_a_script_ends_when_asked(name: str, place: Path) -> None:
    script = f"{FIO} > out 2> err & p=$!; {STARTED}; kill -{name} $p; wait $p"
    assert shell(script, place) == 128
    out = (place / "out").read_text()
    assert "fio: terminating on signal" in out
    assert "READ: bw=" in out
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.in_turn
def test_a_run_in_the_background_of_a_script_ends_when_asked_and_keeps_what_it_measured(place: Path) -> None:
    (place / "job.fio").write_text(
        "[a]\nioengine=null\nsize=1g\nrw=read\nrate=10m\nruntime=60\ntime_based=1\n"
    )
    script = f"{PROGRAM} run job.fio --out b > out 2> err & p=$!; {STARTED}; kill -INT $p; wait $p"
    assert shell(script, place) == 130
    assert json.loads((place / "b" / "manifest.json").read_text())["status"] == "interrupted"


@pytest.mark.in_turn
def test_a_list_of_runs_in_the_background_of_a_script_ends_when_asked(place: Path) -> None:
    (place / "job.fio").write_text(
        "[a]\nioengine=null\nsize=1g\nrw=read\nrate=10m\nruntime=60\ntime_based=1\n"
    )
    script = f"{PROGRAM} run job.fio --repeat 3 --out b > out 2> err & p=$!; {STARTED}; kill -INT $p; wait $p"
    assert shell(script, place) == 130
    assert json.loads((place / "b" / "study.json").read_text())["status"] == "interrupted"


@pytest.mark.in_turn
def test_nohup_keeps_its_meaning(place: Path) -> None:
    short = FIO.replace("--runtime=60", "--runtime=4")
    script = f"trap '' HUP; {short} > out 2> err & p=$!; {STARTED}; kill -HUP $p; wait $p"
    assert shell(script, place) == 0


@pytest.mark.in_turn
@pytest.mark.parametrize("form", ["json", "terse", "normal"])
def test_sigusr1_prints_the_results_so_far_in_the_form_asked_for_and_goes_on(form: str, place: Path) -> None:
    short = FIO.replace("--runtime=60", "--runtime=6")
    where = "--output=out" if form == "json" else ""
    script = f"{short} --output-format={form} {where} > said 2> err & p=$!; {STARTED}; kill -USR1 $p; wait $p"
    assert shell(script, place) == 0
    out = (place / ("out" if where else "said")).read_text()
    assert (place / "err").read_text() == ""
    if form == "json":
        first, last = documents(out)
        assert isinstance(first, dict)
        assert isinstance(last, dict)
        moved = [one["jobs"][0]["read"]["io_bytes"] for one in (first, last)]
        assert 0 < moved[0] < moved[1]
        assert (place / "said").read_text() == ""
    elif form == "terse":
        assert [len(line.split(";")) for line in out.splitlines()] == [121, 121]
    else:
        assert out.count("Run status group 0 (all jobs):") == 2
        assert out.count("Starting 1 process") == 1


@pytest.mark.in_turn
def test_nothing_stays_after_the_program_was_killed_and_another_was_run(place: Path) -> None:
    script = f"{FIO} > out 2> err & p=$!; {STARTED}; kill -KILL $p; wait $p; sleep 1"
    shell(script, place)
    assert shell(f"{PROGRAM} fio --name=a --ioengine=null --size=64k --rw=read", place) == 0
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.in_turn
def test_ctrl_z_stops_the_engine_too_and_both_go_on(tmp_path: Path) -> None:
    """A load that its user believes to be stopped went on."""
    one = job(
        tmp_path / "r.fio",
        "[r]\nrw=randread\nsize=1m\ntime_based\nruntime=6s\nioengine=psync\nfilename=d\nrate_iops=1k\n",
    )
    (tmp_path / "d").write_bytes(bytes(1 << 20))
    running = start("run", one, "--out", "b", "--no-report", "--no-calibration", cwd=tmp_path)
    ticks(tmp_path / "b")
    engine = engine_pid(tmp_path / "b")
    os.killpg(running.pid, signal.SIGTSTP)  # As a terminal does: to the group of the shell's job.
    until(lambda: state(engine) == "T" and state(running.pid) == "T", "both to be stopped")
    seen = len(ticks_of(tmp_path / "b"))
    time.sleep(3)
    assert len(ticks_of(tmp_path / "b")) == seen
    os.killpg(running.pid, signal.SIGCONT)
    done = finish(running)
    assert done.code == 0, done
    assert any("was stopped for" in str(event.get("text")) for event in events(tmp_path / "b"))


def ticks_of(bundle: Path) -> list[str]:
    return [kind for kind in kinds(bundle) if kind == "tick"]
