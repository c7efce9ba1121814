"""What the program says to words it cannot use: a message, a hint, code 2, no traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone import __version__
from tests.support import started

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def call(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return started.run([*words], cwd=cwd)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["rnu", "x"], 'Did you mean "run"', "loadstone --help"),
        (["run", "--targt", "x", "jobs.fio"], "--targt", "loadstone run --help"),
        (["run", "four-cornres"], "neither a job file nor a named workload", "four-corners"),
        (["run", "jbos.fio"], "neither a job file nor a named workload", "jobs.fio"),
        (["run", "jobs.fio", "--map", "nonsense"], "OLD=NEW", "--map"),
        (["run", "jobs.fio", "--map", "/dev/none=/dev/null"], "/dev/none", "data"),
        (["run", "jobs.fio", "--set", "a=b"], "has no parameters", "named workloads"),
        (["run", "jobs.fio", "--section", "reed"], "[reed]", "read"),
        (["run", "four-corners", "--section", "x", "--target", "data"], "has no job 'x'", "valid are"),
        (["run", "jobs.fio", "--runtime", "soon"], "--runtime", ""),
        (["workloads", "four-cornres"], "four-cornres", "four-corners"),
        (["report", "nowhere"], "nowhere", ""),
        (["export", "nowhere", "fio-jsn"], "fio-jsn", ""),
    ],
)
def test_refusals(tmp_path: Path, words: list[str], said: str, hint: str) -> None:
    (tmp_path / "jobs.fio").write_text("[read]\nrw=read\nfilename=data\nsize=1m\n")
    done = call(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    message, _, told = done.stderr.partition("hint:")
    assert message.startswith("loadstone: ")
    assert said in message
    assert hint in told
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.fio"]


def test_version_and_help(tmp_path: Path) -> None:
    assert call("--version", cwd=tmp_path).stdout == f"loadstone {__version__}\n"
    shown = call("run", "--help", cwd=tmp_path)
    assert shown.returncode == 0
    for option in ("--target", "--map", "--runtime", "--size", "--out", "--json", "--i-accept-data-loss"):
        assert option in shown.stdout


@pytest.mark.in_turn
def test_workloads_are_listed_with_meaning_and_source(tmp_path: Path) -> None:
    listed = json.loads(call("workloads", "--json", cwd=tmp_path).stdout)
    corners = next(entry for entry in listed if entry["name"] == "four-corners")
    assert corners["meaning"]
    assert corners["source"]
    assert "four-corners" in call("workloads", cwd=tmp_path).stdout


def test_doctor_ends_with_one_only_for_failures(tmp_path: Path) -> None:
    done = call("doctor", "--json", cwd=tmp_path)
    checks = json.loads(done.stdout)["checks"]
    assert {check["state"] for check in checks} <= {"ok", "warn", "fail", "unknown"}
    assert done.returncode == (1 if any(check["state"] == "fail" for check in checks) else 0)
    assert all(check["remedy"] for check in checks if check["state"] in {"warn", "fail"})


@pytest.mark.in_turn
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_the_verbs(tmp_path: Path, shell: str) -> None:
    script = call("completion", shell, cwd=tmp_path).stdout
    assert "rerun" in script
    assert "workloads" in script
