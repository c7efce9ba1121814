"""`--probe` on job files of several runs: vdbench's and Iometer's."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.audit.run import SealedFigures
from loadstone.bundle import study as on_disk
from loadstone.cli.main import main
from loadstone.study.controller import Next
from loadstone.study.list_controller import ListController
from loadstone.study.run import Hooks, run_study
from tests.e2e.program import needs_engine
from tests.formats.iometer.files import DATA
from tests.study import simulated
from tests.study.test_run import ASKED

if TYPE_CHECKING:
    from pathlib import Path

VDBENCH = """sd=sd1,lun={target},size=8m
wd=wd1,sd=sd1,xfersize=4k,rdpct=100
rd=rd1,wd=wd1,iorate={rate},elapsed=2,interval=1,forthreads=(4,1)
"""


def parameters(path: Path, rate: str = "max") -> str:
    target = path / "target"
    target.write_bytes(os.urandom(1 << 20) * 8)
    (path / "test.vdb").write_text(VDBENCH.format(target=target, rate=rate))
    return str(path / "test.vdb")


@pytest.mark.in_turn
def test_a_dry_run_of_a_parameter_file_tells_the_probes_of_each_run_and_runs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["run", parameters(tmp_path), "--probe=4s", "--dry-run", "--json", "--out", str(out)]
    assert main(words) == exitcodes.DONE
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["runs"]] == ["rd1 threads=4", "rd1 threads=1"]
    deep, alone = ({row["name"] for row in one["probes"]} for one in told["runs"])
    assert "depth_one" in deep
    assert "depth_one" not in alone
    assert not out.exists()


@pytest.mark.in_turn
def test_a_dry_run_of_a_configuration_of_iometer_does_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(DATA / "02-four-patterns.icf"), "--map", f"D={tmp_path / 'data'}", "--size", "4m"]
    assert main([*words, "--probe", "--dry-run"]) == exitcodes.DONE
    told = capsys.readouterr().out
    assert told.count("probes after ") == 4
    assert "probes after 64 KiB sequential write: at most 20 s" in told
    assert not (tmp_path / "data").exists()


def test_a_dry_run_without_probes_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", parameters(tmp_path), "--dry-run", "--out", str(out)]) == exitcodes.USAGE
    assert "has no effect without --probe" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.in_turn
def test_every_run_that_is_measured_gets_probes_and_no_preparation_does(tmp_path: Path) -> None:
    made: list[SealedFigures] = []

    def figures() -> SealedFigures:
        made.append(SealedFigures())
        return made[-1]

    runs = [Next("fill", simulated.workload(), role="prepare"), Next("rd1", simulated.workload())]
    hooks = Hooks(simulated.on(lambda _: simulated.device(100_000)), figures=figures)
    run_study(ListController(runs), request=ASKED, out_dir=tmp_path / "s", hooks=hooks)
    (one,) = made
    assert one.told is not None


@pytest.mark.nightly
def test_each_run_of_a_parameter_file_keeps_its_probes(tmp_path: Path) -> None:
    needs_engine()
    out = tmp_path / "out"
    words = ["run", parameters(tmp_path, "200"), "--probe=3s", "--out", str(out), "--no-calibration"]
    assert main([*words, "--no-report", "--no-progress"]) == exitcodes.DONE
    for point in on_disk.read(out).points:
        bundle = on_disk.bundle_of(out, point)
        assert bundle is not None
        assert bundle.verify() == []
        verdict = json.loads((bundle.path / "result.json").read_text())["verdict"]
        assert verdict["probes"]
