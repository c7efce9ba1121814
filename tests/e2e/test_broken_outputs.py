"""Outputs and bundles that break: the message is true, names the remedy, and the figures are not lost."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.read import Bundle

from .program import PATIENCE_S, EndedProgram, finish, job, needs_engine, overloaded, run, start, ticks
from .test_faults import small_tmpfs

if TYPE_CHECKING:
    from pathlib import Path

JOB = "[r]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=1s\nfilename=data\nrate_iops=1k\n"
LONGER = JOB.replace("runtime=1s", "runtime=4s")


def shell(line: str, directory: Path, **environment: str) -> EndedProgram:
    """Run a line of the shell in which $L is the program."""
    needs_engine()
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True,
        text=True,
        errors="replace",
        cwd=directory,
        timeout=PATIENCE_S * 2,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "L": f"{sys.executable} -m loadstone.cli.main", **environment},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return EndedProgram(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return job(tmp_path / "r.fio", JOB)


@pytest.mark.in_turn
@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("where", "why"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")]
)
@pytest.mark.parametrize(
    "words", ["run r.fio --out b --no-report", "run r.fio --json --no-report", "fio r.fio"]
)
def test_figures_that_standard_output_does_not_take(
    fast: Path, tmp_path: Path, words: str, where: str, why: str
) -> None:
    done = shell(f"$L {words} {where}", tmp_path)
    assert done.code == 1, done
    assert f"standard output cannot be written: {why}" in done.err
    assert ('"iops"' if "json" in words else "IOPS") in done.err


ENCODINGS = ("ascii", "latin-1", "cp1252", "ascii:strict")
SPEAKING = ("run r.fio --out b --no-report", "fio r.fio", "doctor", "workloads")


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        # Each of both by day, their pairs at night: an encoding takes an interpreter of its own.
        pytest.param(words, encoding, marks=() if at in (0, 5, 10, 15) else pytest.mark.nightly)
        for at, (words, encoding) in enumerate(itertools.product(SPEAKING, ENCODINGS))
    ],
)
@pytest.mark.in_turn
def test_encodings_without_our_letters(fast: Path, tmp_path: Path, words: str, encoding: str) -> None:
    environment = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = shell(f"$L {words}", tmp_path, **environment)
    assert done.code in (0, 1), done
    assert done.out
    if words.startswith("run"):
        assert "IOPS" in done.out
        assert Bundle.open(tmp_path / "b").status == "complete"


@pytest.mark.in_turn
def test_pages_are_the_same_where_the_locale_is_not_utf_8(fast: Path, tmp_path: Path) -> None:
    """Their parts were read in the locale's encoding: no page could be made of a run that was over."""
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = shell("$L run r.fio --out b --no-progress && cp b/report.html first.html", tmp_path, **environment)
    assert done.code == 0, done
    assert run("report", "b", cwd=tmp_path).code == 0
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "b" / "report.html").read_bytes()


@pytest.mark.in_turn
def test_nobody_hears_errors(fast: Path, tmp_path: Path) -> None:
    for where in ("2> /dev/full", "2>&-"):
        done = shell(f"$L run r.fio --no-report {where}", tmp_path)
        assert done.code == 0, done
        assert "IOPS" in done.out


@pytest.mark.root
@pytest.mark.in_turn
def test_a_disk_that_fills_up_under_the_bundle(tmp_path: Path) -> None:
    text = "[r]\nrw=randread\nbs=4k\ntime_based\nruntime=4s\nfilename=/dev/zero\nsize=1g\nlog_offset=1\n"
    text += "write_lat_log=x\n"
    with small_tmpfs(tmp_path / "small") as point:
        (point / "fill").write_bytes(bytes(6 << 20))
        done = run("run", job(tmp_path / "r.fio", text), "--out", point / "b", cwd=tmp_path)
        assert done.code == 1, done
        assert "No space left on device" in done.err
        assert "free space" in done.err
        assert "Traceback" not in done.err
        assert Bundle.open(point / "b").status in ("partial", "failed")


@pytest.mark.in_turn
@pytest.mark.root
def test_a_disk_that_is_full_when_the_bundle_is_sealed(tmp_path: Path) -> None:
    """All that is left is taken while the run goes on, in pieces that leave room for lines only."""
    with small_tmpfs(tmp_path / "small") as point:
        one = job(tmp_path / "r.fio", LONGER)
        running = start("run", one, "--out", point / "b", "--no-report", cwd=tmp_path)
        ticks(point / "b", 3)
        with (point / "fill").open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                file.truncate(file.tell() - 16384)
        done = finish(running)
    assert done.code == 1, done
    assert "No space left on device" in done.err, done
    assert "open as a partial run" in done.err or "cannot be written any more" in done.err
    assert "IOPS" in done.out + done.err
    assert "Traceback" not in done.err


@pytest.mark.in_turn
@pytest.mark.root
def test_a_study_whose_disk_fills_up_has_failed_and_was_not_refused(tmp_path: Path) -> None:
    """Its report cannot be written either: that ended with 2, which says that nothing was written."""
    with small_tmpfs(tmp_path / "small") as point:
        one = job(tmp_path / "r.fio", LONGER)
        running = start("run", one, "--repeat", "2", "--out", point / "s", "--report", cwd=tmp_path)
        ticks(point / "s" / "runs" / "001-repeat-1", 3)
        with (point / "fill").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        done = finish(running)
    assert done.code == 1, done
    assert "the study cannot be written: No space left on device" in done.err, done
    assert "report.html: cannot be written: No space left on device" in done.err, done


@pytest.mark.in_turn
def test_a_bundle_that_is_renamed_in_the_run_is_sealed_where_it_is(tmp_path: Path) -> None:
    one = job(tmp_path / "r.fio", LONGER)
    running = start("run", one, "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    (tmp_path / "b").rename(tmp_path / "elsewhere")
    done = finish(running)
    if why := overloaded():
        pytest.skip(why)  # It was over before it was renamed.
    assert done.code == 0, done
    assert f"bundle: {tmp_path / 'elsewhere'}" in done.err
    bundle = Bundle.open(tmp_path / "elsewhere")
    assert (bundle.status, bundle.verify()) == ("complete", [])


@pytest.mark.in_turn
def test_a_bundle_that_is_removed_in_the_run(tmp_path: Path) -> None:
    one = job(tmp_path / "r.fio", LONGER)
    running = start("run", one, "--out", "b", cwd=tmp_path)
    ticks(tmp_path / "b")
    shutil.rmtree(tmp_path / "b")
    done = finish(running)
    assert done.code == 1, done
    assert "the bundle is gone: it was removed during the run" in done.err
    assert "read: " in done.err
    assert "IOPS" in done.err
    assert "Traceback" not in done.err


@pytest.mark.in_turn
@pytest.mark.root
def test_a_bundle_that_is_made_immutable_in_the_run(tmp_path: Path) -> None:
    one = job(tmp_path / "r.fio", LONGER)
    running = start("run", one, "--out", "b", cwd=tmp_path)
    ticks(tmp_path / "b")
    if subprocess.run(["chattr", "+i", tmp_path / "b"], check=False, capture_output=True).returncode:
        running.kill()
        finish(running)
        pytest.skip("nothing can be made immutable here")
    try:
        done = finish(running)
    finally:
        subprocess.run(["chattr", "-i", tmp_path / "b"], check=True)
    assert done.code == 1, done
    assert "cannot be sealed: Operation not permitted" in done.err
    assert "lsattr -d" in done.err
    assert "IOPS" in done.out
    assert "Traceback" not in done.err
    assert Bundle.open(tmp_path / "b").status == "partial"
    assert run("report", "b", "-o", "page.html", cwd=tmp_path).code == 0


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("limit", "said"),
    [("ulimit -n 24", "ulimit"), ("ulimit -f 8", "ulimit -f"), ("ulimit -v 300000", "ulimit -v unlimited")],
)
def test_limits_of_the_shell(fast: Path, tmp_path: Path, limit: str, said: str) -> None:
    (tmp_path / "data").write_bytes(bytes(4 << 20))
    done = shell(f"{limit}; $L run r.fio --out b", tmp_path)
    assert done.code in (1, 2), done
    assert said in done.err


@pytest.mark.in_turn
@pytest.mark.parametrize("kib", [700_000, 900_000, 1_100_000, 1_600_000])
def test_too_little_memory_for_what_comes_after_the_run(fast: Path, tmp_path: Path, kib: int) -> None:
    done = shell(f"ulimit -v {kib}; $L run r.fio --out b --no-calibration", tmp_path)
    if done.code == 0:
        assert "IOPS" in done.out
        return
    assert done.code == 1, done
    assert "ulimit -v" in done.err
    if (tmp_path / "b" / "events.jsonl").exists() and '"tick"' in (
        tmp_path / "b" / "events.jsonl"
    ).read_text():
        assert "IOPS" in done.out + done.err, done


@pytest.mark.in_turn
def test_a_report_that_cannot_be_written_fails_after_the_figures(fast: Path, tmp_path: Path) -> None:
    one = job(tmp_path / "r.fio", LONGER)
    running = start("run", one, "--out", "b", "--json", "--report", cwd=tmp_path)
    ticks(tmp_path / "b")
    (tmp_path / "b" / "report.html").mkdir()
    done = finish(running)
    assert done.code != 0
    assert json.loads(done.out)["status"] == "complete"
    assert "report.html" in done.err
    assert "Traceback" not in done.err


@pytest.mark.in_turn
@pytest.mark.parametrize("words", ["run", "fio", "workloads"])
def test_a_working_directory_that_is_gone_is_named(fast: Path, tmp_path: Path, words: str) -> None:
    job = fast if words != "workloads" else ""
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; $L {words} {job}", tmp_path)
    if words == "workloads":
        assert done.code == 0, done
        return
    assert done.code == 1, done
    assert "the working directory was removed" in done.err
    assert "hint: cd to a directory that exists" in done.err


@pytest.mark.in_turn
def test_too_few_files_to_start_the_engine_is_no_broken_installation(fast: Path, tmp_path: Path) -> None:
    """Found from outside: the hint said to install the program anew."""
    done = shell("ulimit -n 12; $L run r.fio --out b --no-report --no-calibration", tmp_path)
    assert done.code == 1, done
    assert "reinstall" not in done.err
    assert "ulimit -n" in done.err
