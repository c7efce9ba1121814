"""A run with probes through the whole tool, on a file."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.cli.main import main
from tests.e2e.program import needs_engine

if TYPE_CHECKING:
    from pathlib import Path


def job(path: Path, **options: object) -> Path:
    target = path / "target"
    target.write_bytes(os.urandom(1 << 20) * 16)
    given = {"rw": "randread", "bs": "4k", "iodepth": 4, "size": "8m", "filename": target, **options}
    lines = "\n".join(f"{name}={value}" for name, value in given.items())
    text = f"[job]\nioengine=io_uring\ntime_based=1\nruntime=500ms\n{lines}\n"
    (path / "job.fio").write_text(text)
    return path / "job.fio"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A run that reads, with probes: its document, and `before` and `after` of what it read."""
    needs_engine()
    file = job(tmp_path)
    before = digest(tmp_path / "target")
    out = tmp_path / "run"
    assert main(["run", str(file), "--probe=4s", "--out", str(out), "--json", "--no-calibration"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {**document, "before": before, "after": digest(tmp_path / "target"), "path": out}


@pytest.mark.in_turn
@pytest.mark.slow
def test_probes_are_in_the_bundle_and_in_the_verdict(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = told["verdict"]
    assert told["before"] == told["after"]
    assert verdict["probes"]
    for one in verdict["probes"]:
        assert set(one) == {"name", "bundle", "result"}
        assert (told["path"] / one["bundle"] / "manifest.json").is_file()
    assert sum(one["probability"] for one in verdict["explanations"]) == pytest.approx(1, abs=0.01)
    first = verdict["explanations"][0]
    assert set(first) == {"name", "says", "probability", "for", "against", "decided_by", "advice"}
    if verdict["to_decide"] is not None:
        assert verdict["to_decide"].endswith("--probe=12s")
    # The seal covers what the probes left, and the verdict is the same when it is asked for again.
    assert main(["audit", str(told["path"]), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["verdict"] == verdict


@pytest.mark.in_turn
def test_a_run_without_probes_names_the_command_that_would_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_engine()
    file = job(tmp_path)
    words = ["run", str(file), "--out", str(tmp_path / "run"), "--json"]
    monkeypatch.setattr(sys, "argv", ["loadstone", *words])
    assert main(words) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["probes"] == []
    assert verdict["to_decide"] == f"loadstone run {file} --json --probe"
    assert all(one["decided_by"] != "depth" for one in verdict["explanations"])


@pytest.mark.in_turn
def test_probes_that_had_no_time_are_told_with_more_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_engine()
    job(tmp_path)
    words = ["probe", str(tmp_path / "target"), "--runtime", "500ms", "--budget", "2s"]
    words += ["--out", str(tmp_path / "run"), "--json", "--no-calibration"]
    monkeypatch.setattr(sys, "argv", ["loadstone", *words])
    assert main(words) == 0
    command = json.loads(capsys.readouterr().out)["verdict"]["to_decide"]
    assert (
        command
        == f"loadstone probe {tmp_path / 'target'} --runtime 500ms --json --no-calibration --budget=6s"
    )


@pytest.mark.in_turn
def test_a_dry_run_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_engine()
    file = job(tmp_path, rw="randwrite")
    out = tmp_path / "run"
    words = ["run", str(file), "--probe", "--dry-run", "--json", "--out", str(out)]
    assert main(words) == 2, "without consent the run would be refused"
    assert "--i-accept-data-loss" in capsys.readouterr().err
    assert main([*words, "--i-accept-data-loss", str(tmp_path / "target")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not out.exists()
    assert told["budget_s"] == 20
    assert {"name", "asks", "seconds", "most_written_bytes", "expected_bits"} == set(told["probes"][0])


@pytest.mark.in_turn
@pytest.mark.slow
def test_an_interrupted_probe_keeps_what_was_measured(tmp_path: Path) -> None:
    needs_engine()
    file, out = job(tmp_path), tmp_path / "run"
    words = [sys.executable, "-m", "loadstone.cli.main", "run", str(file), "--probe=60s", "--out", str(out)]
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until_s = time.monotonic() + 90
        while not (out / "probes").is_dir() or len(list((out / "probes").iterdir())) < 2:
            assert time.monotonic() < until_s
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)
    verdict = json.loads(printed)["verdict"]
    assert verdict["probes"]
    kept = json.loads((out / "probes.json").read_text())
    assert kept["ended"] == "it was interrupted"
    assert json.loads((out / "manifest.json").read_text())["status"] == "complete"


@pytest.mark.parametrize("budget", ["1s", "2h", "soon"])
def test_a_budget_that_makes_no_sense_is_refused(tmp_path: Path, budget: str) -> None:
    assert main(["run", str(job(tmp_path)), f"--probe={budget}", "--out", str(tmp_path / "run")]) == 2


def test_a_dry_run_without_probes_is_refused(tmp_path: Path) -> None:
    assert main(["run", str(job(tmp_path)), "--dry-run"]) == 2
