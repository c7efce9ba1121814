"""`loadstone fio` as far as nothing runs: answers, errors, exit codes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadstone.cli.fio import program as fio

if TYPE_CHECKING:
    from pathlib import Path


def test_the_version_is_one_tools_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert fio.main(["--version"]) == 0
    assert capsys.readouterr().out == "fio-3.42\n"


def test_the_version_loads_nothing_heavy() -> None:
    program = (
        "import sys; from loadstone.cli.main import main; main(['fio', '--version']);"
        "heavy = {'polars', 'numpy', 'pydantic', 'rich', 'cyclopts', 'scipy', 'altair'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["fio-3.42", "[]"]


def test_nothing_to_do_is_an_error_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert fio.main([]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("No job(s) defined")
    assert "--output-format" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--name=a", "--bs=foo"], "bs"),
        (["--name=a", "--ioengine=nul"], "nul"),
        (["--name=a", "--nosuch=1"], "unrecognized option '--nosuch=1'"),
        (["nofile.fio"], "nofile.fio"),
        (["--inflate-log=nofile"], "nofile"),
    ],
)
def test_errors_end_with_one_on_standard_error(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fio.main(words) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("fio: ")
    assert says in err


@pytest.mark.parametrize("rw", ["write", "randwrite", "randtrim", "trimwrite", "rw", "randrw"])
@pytest.mark.parametrize("before", [True, False])
def test_readonly_refuses_to_write(rw: str, before: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--name=x", "--ioengine=null", "--size=1M", f"--rw={rw}"]
    words.insert(0 if before else len(words), "--readonly")
    assert fio.main(words) == 1
    assert "job <x> has write or trim bit set, but fio is in read-only mode" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--filename=there", "--size=8k"], "there would be extended"),
        (["--filename=missing", "--size=4k"], "missing would be made"),
        (["--filename=there", "--unlink=1"], "there would be removed"),
        (["--filename=there", "--ioengine=filedelete"], "there would be removed"),
    ],
)
def test_readonly_leaves_files_as_they_are(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_bytes(bytes(4096))
    assert fio.main(["--readonly", "--name=x", "--rw=read", *words]) == 1
    assert says in capsys.readouterr().err
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("there", 4096)]


def test_showcmd_writes_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[global]\nbs=8k\ntime_based\nruntime=2\n[a]\nrw=randread\n[b]\nstonewall\nrw=write\n")
    assert fio.main(["--showcmd", str(job)]) == 0
    words = capsys.readouterr().out.split()
    expected = "fio --bs=8k --time_based --runtime=2 --name=a --rw=randread --name=b --stonewall --rw=write"
    assert words == expected.split()


def test_parse_only_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fio.main(["--parse-only", "--name=a", "--rw=write", "--size=1m"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_only_the_sections_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[a]\nrw=read\n[b]\nrw=write\n[c]\nrw=randread\n")
    assert fio.main(["--showcmd", "--section=a", "--section=c", str(job)]) == 0
    assert capsys.readouterr().out.split() == ["fio", "--name=a", "--rw=read", "--name=c", "--rw=randread"]


def test_warnings_can_be_fatal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[a]\nrw=read\nbs=4kib\n")
    assert fio.main(["--parse-only", str(job)]) == 0
    assert fio.main(["--parse-only", "--warnings-fatal", str(job)]) == 1
    assert "bs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--cmdhelp"], ["--cmdhelp=all"], ["--cmdhelp=rw"], ["--enghelp"], ["--help"]]
)
def test_help_is_given(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert fio.main(words) == 0
    assert capsys.readouterr().out


def test_an_unknown_engine_has_no_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert fio.main(["--enghelp=nosuch"]) == 1
    assert "engine nosuch not loadable" in capsys.readouterr().err


def test_options_alone_are_parsed_and_a_steady_state_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for limit, said in (("iops:10", "IOPS threshold to 10.000000"), ("bw:.1%", "threshold to 0.100000%")):
        assert (
            fio.main(["--parse-only", "--debug=parse", "--ss_dur=10s", f"--ss={limit}", "--ss_ramp=5"]) == 0
        )
        assert f"set steady state {said}" in capsys.readouterr().out
    assert fio.main(["--parse-only", "--ss=iop:1"]) == 1
