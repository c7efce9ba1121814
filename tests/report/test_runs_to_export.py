"""Exports of what was altered: no zeros for what cannot be read, and no run left out without a word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.bundle import seal
from loadstone.cli.main import main
from loadstone.formats.fio.read import TextSource, read_jobfiles
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

UNREAD = "samples.parquet: not a table: it does not end as a Parquet file does"


def made(path: Path, seed: int = 1) -> Path:
    """Make a run that knows what was asked for, as exports need."""
    run = runs.make(path, runs.MadeJob("a"), seed=seed).path
    jobs = read_jobfiles([TextSource("[a]\nfilename=/mnt/test/data0\nrw=randread\nsize=1m\n", "job.fio")])
    (run / "workload.json").write_text(jobs.model_dump_json())
    return runs.reseal(run)


def damaged(run: Path) -> Path:
    """Cut off the end of a run's samples."""
    samples = run / "samples.parquet"
    samples.write_bytes(samples.read_bytes()[:-9])
    return run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Three runs: a whole one, one without samples, one without a manifest."""
    path = tmp_path / "study"
    for number in (1, 2, 3):
        made(path / "runs" / str(number), seed=number)
    damaged(path / "runs" / "2")
    (path / "runs" / "3" / "manifest.json").write_text("{")
    points = [{"name": f"run{n}", "factors": {}, "bundle": f"runs/{n}"} for n in (1, 2, 3)]
    told = {"kind": "list", "name": "a", "front_end": "fio", "loadstone_version": "0", "started": "now"}
    (path / "study.json").write_text(json.dumps(seal.with_digest(told | {"request": {}, "points": points})))
    return path


@pytest.mark.parametrize("kind", ["fio-json", "fio-logs", "iometer-csv", "vdbench"])
def test_a_run_without_samples_is_no_run_of_zeros(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """fio's JSON and Iometer's results had 0 IOPS of it, fio's logs no line."""
    run, out = damaged(made(tmp_path / "run")), tmp_path / "out"
    assert main(["export", str(run), kind, "-o", str(out), "--unverified"]) == exitcodes.USAGE
    error, hint = capsys.readouterr().err.splitlines()
    assert error == f"loadstone: {run} cannot be exported: {UNREAD}"
    assert hint.lstrip() == "hint: restore its samples from a copy, or export another run"
    assert not out.exists()


@pytest.mark.in_turn
def test_what_an_export_of_a_study_leaves_out_is_named(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run was left out without a word, another stood there with 0 IOPS, beside *no difference*."""
    for kind, file in (("iometer-csv", "out"), ("vdbench", "out-vdbench/flatfile.html"), ("csv", "out.csv")):
        out = tmp_path / file.partition("/")[0]
        assert main(["export", str(study), kind, "-o", str(out), "--unverified"]) == 0
        warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
        assert warned[0].startswith("warning: NOT VERIFIED: runs/2: samples.parquet was altered")
        assert any("runs/3/manifest.json" in line for line in warned)
        text = (tmp_path / file).read_text()
        if kind == "csv":
            continue
        assert warned[-1] == f"warning: runs/2 is left out: {UNREAD}"
        assert "no difference from the seal" not in text
        assert f"runs/2 is left out: {UNREAD}" in text
        assert "runs/3/manifest.json" in text
        if kind == "iometer-csv":
            rates = [float(line.split(",")[6]) for line in text.splitlines() if line.startswith("ALL,")]
            assert len(rates) == 1
            assert rates[0] > 0


@pytest.mark.parametrize("kind", ["fio-json", "fio-logs", "iometer-csv", "vdbench", "csv", "markdown"])
def test_a_line_of_events_that_cannot_be_read_is_told_in_every_format(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run that was killed; vdbench's pages and Iometer's results were written without a word."""
    run = made(tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    for key in ("files", "blake3", "ended_unix_ns", "exit_code"):
        manifest.pop(key, None)
    (run / "manifest.json").write_text(json.dumps(manifest | {"status": "running"}))
    lines = (run / "events.jsonl").read_text().splitlines()
    lines[1] = lines[1][:-3]
    (run / "events.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["export", str(run), kind, "-o", str(tmp_path / "out")]) == exitcodes.DONE
    assert "events.jsonl: line 2 cannot be read" in capsys.readouterr().err
