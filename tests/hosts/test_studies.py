"""Studies whose runs go to hosts: one sweep on two of them, watched, and one of its runs again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.cli.main import main
from tests.hosts.test_run import hosts_file, job_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_run_of_a_sweep_is_a_run_on_all_hosts_and_can_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--hosts", str(hosts_file(tmp_path)), "--no-report", "--no-calibration"]
    sweep = ["sweep", str(job_file(tmp_path)), "--bs", "4k,8k", "--watch", "me=local"]
    assert main([*sweep, *words, "--out", str(tmp_path / "s"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # Two clones on each of two hosts read two MiB each, in blocks of 4 and of 8 KiB.
    assert [run["total"]["operations"] for run in told["runs"]] == [2048, 1024]
    for run in told["runs"]:
        one = json.loads((tmp_path / "s" / run["bundle"] / "result.json").read_text())
        assert [host["ops"] for host in one["hosts"]] == [run["total"]["operations"] // 2] * 2
        assert one["watched"].keys() == {"me"}
    assert not list((tmp_path / "d1").iterdir())
    first = str(tmp_path / "s" / told["runs"][0]["bundle"])
    assert main(["rerun", first, "--out", str(tmp_path / "r")]) == 2
    assert "it is run again on hosts, too" in capsys.readouterr().err
    assert main(["rerun", first, *words, "--out", str(tmp_path / "r"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [host["ops"] for host in again["hosts"]] == [1024, 1024]


def test_what_would_be_set_on_this_machine_is_refused_with_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        f'title = "t"\ntargets = ["{tmp_path}/data"]\n'
        '[[patterns]]\nname = "r"\noptions = { rw = "randread", ioengine = "psync", runtime = 1 }\n'
        '[[factors]]\nname = "cache"\nkind = "page_cache"\nlevels = ["kept", "dropped"]\n'
    )
    job_file(tmp_path)
    assert main(["experiment", "run", str(file), "--hosts", str(hosts_file(tmp_path))]) == 2
    assert "would be set on this machine" in capsys.readouterr().err
