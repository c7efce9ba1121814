"""The program's edges: standard streams that are not there, and options without effect."""

from __future__ import annotations

import errno
import functools
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pydantic_core import SchemaError

from loadstone import crash_note, exitcodes
from loadstone.cli import app
from loadstone.cli.main import main
from loadstone.errors import MORE_FILES
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


def test_without_standard_output_nothing_is_printed_into_a_file_of_ours(tmp_path: Path) -> None:
    """As after `>&-`: the next file opened would be descriptor 1, and take what is printed."""
    opened = tmp_path / "opened"
    code = (
        "import os, sys\n"
        "from loadstone.cli.main import main\n"
        "code = main(['--version'])\n"
        f"number = os.open({str(opened)!r}, os.O_CREAT | os.O_WRONLY)\n"
        "print('lost', flush=True)\n"
        "sys.exit(code if number > 2 else 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=functools.partial(os.close, 1),
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert opened.read_text() == ""


def test_a_gain_without_depths_to_recommend_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[j]\nrw=read\nsize=1m\nfilename=/dev/zero\n")
    assert main(["sweep", str(job), "--bs", "4k,8k", "--gain", "5%"]) == 2
    assert "--gain: has no effect without --iodepth or --numjobs" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["run"], ["sweep", "--bs", "4k,8k"], ["run", "--repeat", "2"]])
@pytest.mark.in_turn
def test_consent_to_lose_what_is_no_target_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    job, target = tmp_path / "job.fio", tmp_path / "data"
    job.write_text(f"[j]\nrw=write\nsize=1m\nfilename={target}\n")
    out = tmp_path / "out"
    words = [verb[0], str(job), *verb[1:], "--out", str(out), "--i-accept-data-loss", f"{target}s"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"--i-accept-data-loss: '{target}s' is not a target of this run" in said
    assert f"did you mean '{target}'?" in said
    assert not out.exists()
    assert not target.exists()


@pytest.mark.in_turn
def test_a_refusal_is_the_first_thing_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How much memory the engine needs came before it."""
    job, target = tmp_path / "job.fio", tmp_path / "data"
    target.write_bytes(b"mine" * 4096)
    job.write_text(f"[j]\nrw=write\nsize=16k\nfilename={target}\n")
    assert main(["run", str(job), "--out", str(tmp_path / "out")]) == 2
    assert "would destroy existing data" in capsys.readouterr().err.splitlines()[0]


def test_a_report_that_cannot_be_written_into_its_bundle_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is mounted to be read."""

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    bundle = runs.make(tmp_path / "b").path
    monkeypatch.setattr("loadstone.report.run.files.write", read_only)
    assert main(["report", str(bundle)]) == 1
    said = capsys.readouterr().err
    assert "Read-only file system" in said
    assert f"`loadstone report {bundle} -o FILE` writes its report elsewhere" in said


@pytest.mark.in_turn
def test_a_job_of_a_named_workload_runs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "plan",
        "four-corners",
        "--json",
        "--target",
        str(tmp_path / "data"),
        "--size",
        "1m",
        "--section",
    ]
    assert main([*words, "read-4k-random"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [unit["name"] for unit in plan["units"]] == ["read-4k-random"]
    assert main([*words, "read-4k"]) == 2
    told = capsys.readouterr().err
    assert "--section: four-corners has no job 'read-4k'" in told
    assert "did you mean 'read-4k-random'?" in told
    assert main(["plan", "vostok-4k-rand-read", "--target", "/tmp/x", "--section", "lun"]) == 2
    assert "keeps every job of the workload" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["run", "four-corners", "--size", "1m", "--target", "/tmp"],
            "command line: --target: /tmp is a directory",
        ),
        (["workloads", "four"], "did you mean 'four-corners'"),
        (["workloads", "qqqqq"], "`loadstone workloads` lists them"),
        (["verify", "/nothing"], "/nothing: not a bundle"),
        # `Unused Tokens: ['j.fio']` was said, in the parser's words.
        (["hosts", "check", "h1", "j.fio"], "`loadstone hosts` takes no more words, found 'j.fio'"),
        (["export", "csv", "/nothing"], "comes before the format: loadstone export BUNDLE csv"),
    ],
)
def test_a_mistake_is_told_where_it_was_made(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.in_turn
def test_a_report_is_written_to_as_many_files_as_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = runs.make(tmp_path / "run").path
    files = [tmp_path / "a.html", tmp_path / "a.md"]
    words = [word for file in files for word in ("-o", str(file))]
    assert main(["report", str(made), *words]) == 0
    assert [file.stat().st_size > 0 for file in files] == [True, True]
    assert capsys.readouterr().err.count("report: ") == 2
    refused = ["-o", str(tmp_path / "b.html"), "-o", str(tmp_path / "none" / "b.md")]
    assert main(["report", str(made), *refused]) == 2
    assert not (tmp_path / "b.html").exists()


def test_an_experiment_to_resume_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that no experiment was named."""
    assert main(["experiment", "resume", str(tmp_path / "nowhere")]) == 2
    assert f"{tmp_path}/nowhere: there is no such directory" in capsys.readouterr().err
    (tmp_path / "file.toml").touch()
    assert main(["experiment", "resume", str(tmp_path / "file.toml")]) == 2
    assert "does not say which experiment to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, f"loadstone: x: Too many open files\nhint: {MORE_FILES}\n"),
        (errno.ENOSPC, "loadstone: x: No space left on device\n"),
    ],
)
def test_too_many_open_files_name_their_remedy(
    number: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `ulimit -n 8` an audit said *Too many open files* and nothing more."""

    def fails(_words: object) -> int:
        raise OSError(number, os.strerror(number), "x")

    monkeypatch.setattr(app, "run", fails)
    crash_note.note("")  # What a test before this one measured is no part of it.
    assert main(["audit", "x"]) == 1
    assert capsys.readouterr().err == said


def test_a_report_without_memory_names_what_gives_it_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `ulimit -v` it was told to write the report elsewhere."""
    run = runs.make(tmp_path / "run", runs.MadeJob("a")).path
    for error, hint in (
        (MemoryError(), "hint: free memory, or raise the limit on it (ulimit -v, memory.max"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), "hint: the run is whole; `loadstone report"),
    ):

        def fails(*_given: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("loadstone.report.run.files.write", fails)
        assert main(["report", str(run), "-o", str(tmp_path / "r.html")]) == 1
        assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["a.fio", "--json", "--help"], ["--no-such-option", "-h"]]
)
def test_help_of_a_verb_names_its_arguments_wherever_it_is_asked_for(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *words]) == exitcodes.DONE
    told = capsys.readouterr().out
    assert told.startswith("Usage: loadstone plan [OPTIONS] JOB [MORE...]\n")
    assert "--json" in told


def test_a_file_called_help_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--", "--help"]) == exitcodes.USAGE
    assert "'--help' is neither a job file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SchemaError("Error building `nullable` serializer:\n  KeyboardInterrupt: ")],
)
def test_an_interrupt_of_a_verb_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    """The parser of the command line ended it with 130 and no word, as while a job file was read."""

    def interrupted() -> None:
        raise error

    monkeypatch.setattr("loadstone.api.named.grouped_workloads", interrupted)
    assert main(["workloads"]) == exitcodes.INTERRUPTED
    assert capsys.readouterr().err == "loadstone: interrupted\n"
