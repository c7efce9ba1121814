"""Where the SDs and hosts of a parameter file are here: sizes, `--map`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.api.jobs import read_workload
from loadstone.cli.app import run as command
from loadstone.cli.options.arguments import LoadOptions
from loadstone.errors import InputError, RefusedError

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
HITS = """
hd=one,system=192.0.2.1
hd=two,system=192.0.2.2
sd=sd1,lun={0}/a,host=one
sd=sd2,lun={0}/b,host=two,size=8m
wd=wd1,sd=sd*,rhpct=50
rd=rd1,wd=wd1,iorate=max,elapsed=4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(bytes(16 * MIB))
    path = tmp_path / "hits.parm"
    path.write_text(HITS.format(tmp_path))
    return path


def listed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert command(["plan", *words, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["runs"][0]
    return found


@pytest.mark.in_turn
def test_an_sd_without_a_size_is_as_large_as_what_is_there(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = listed(capsys, str(file), "--map", "*=localhost")
    assert run["refused"] is None
    assert {one["sd"]: one["size"] for one in run["workloads"]} == {"sd1": 16 * MIB, "sd2": 8 * MIB}


def test_a_refused_run_says_how_it_could_be_done(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = listed(capsys, str(file), "--map", "one=localhost", code=2)["refused"]
    assert refused.startswith(f"{file}:3: hd: hd=two is another host")
    assert "--map two=localhost" in refused


def test_a_host_that_is_not_there_is_no_lun_either(file: Path) -> None:
    with pytest.raises(InputError, match=r"command line: --map: no SD uses 'three'"):
        command(["plan", str(file), "--map", "three=localhost"])


def test_a_run_for_a_sweep_is_mapped_too(file: Path) -> None:
    chosen = read_workload.workload(
        str(file), LoadOptions(map=["*=localhost", f"sd2={file.parent}/c"]).changes()
    )
    assert [target.path for job in chosen.jobs for target in job.placement.targets] == [
        str(file.parent / "a"),
        str(file.parent / "c"),
    ]
    file.write_text("journal=yes\n" + file.read_text())
    with pytest.raises(RefusedError, match="journal= is for `loadstone run`"):
        read_workload.workload(str(file), LoadOptions(map=["*=localhost"]).changes())


@pytest.mark.parametrize("hosts", ["", "hd=default,jvms=1\nhd=localhost\n", "hd=one,system=localhost\n"])
@pytest.mark.in_turn
def test_all_hosts_may_be_this_machine_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hosts: str
) -> None:
    job = tmp_path / "local.parm"
    job.write_text(
        f"{hosts}sd=sd1,lun={tmp_path}/a,size=8m\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=9,elapsed=4\n"
    )
    assert listed(capsys, str(job), "--map", "*=localhost")["refused"] is None
