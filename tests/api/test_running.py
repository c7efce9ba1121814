"""`loadstone.run`: real runs of the engine on small files, and what is refused before one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import loadstone
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from pathlib import Path

JOB = "[one]\nrw=randread\nbs=4k\nsize=1m\nruntime=1\ntime_based\nfilename={}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))
    return path


@pytest.mark.in_turn
def test_a_job_runs_and_its_result_is_the_bundles(data: Path, tmp_path: Path) -> None:
    result = loadstone.run(JOB.format(data), out=tmp_path / "out", calibration=False)
    assert (result.status, result.error, result.path) == ("complete", None, tmp_path / "out")
    assert result.estimates().filter(op="read")["operations"].item() > 0
    opened = loadstone.open_bundle(result.path)
    assert opened.estimates().equals(result.estimates())
    file = tmp_path / "job.fio"
    file.write_text(JOB.format("/nowhere/file"))
    again = loadstone.run(
        file,
        targets=[data],
        runtime=0.5,
        rate="1k",
        out=tmp_path / "again",
        calibration=False,
    )
    assert again.estimates("all").filter(op="read")["iops"].item() == pytest.approx(1000, rel=0.1)


@pytest.mark.in_turn
def test_a_run_without_storage_measures_none(tmp_path: Path) -> None:
    """11M IOPS of the null engine "measure the storage", and a probe was to tell what of it."""
    job = "[one]\nioengine=null\nrw=randread\nbs=4k\nsize=1m\niodepth=16\nruntime=2.2s\ntime_based\n"
    verdict = loadstone.run(job, out=tmp_path / "run", calibration=False).verdict
    assert (verdict.kind, verdict.decided_by and verdict.decided_by[0]) == ("limited", "own_limit")
    assert "no storage was measured" in verdict.sentences
    assert verdict.to_decide is None


@pytest.mark.in_turn
def test_a_run_beside_the_main_thread_works(data: Path, tmp_path: Path) -> None:
    found: list[loadstone.Result] = []

    def work() -> None:
        found.append(loadstone.run(JOB.format(data), out=tmp_path / "out", runtime=0.3, calibration=False))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert found[0].status == "complete"


@pytest.mark.in_turn
def test_what_would_be_lost_is_refused_with_the_remedy_in_python(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"to be kept " * 100_000)
    before = precious.read_bytes()
    job = JOB.format(precious).replace("randread", "randwrite")
    with pytest.raises(loadstone.RefusedError) as caught:
        loadstone.run(job, out=tmp_path / "out")
    assert precious.read_bytes() == before
    assert "accept_data_loss=" in f"{caught.value} {caught.value.hint}"
    assert not (tmp_path / "out").exists()
    agreed = loadstone.run(job, out=tmp_path / "out", accept_data_loss=[precious], calibration=False)
    assert agreed.status == "complete"
    assert precious.read_bytes() != before


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"job": "nosuch"}, "'nosuch' is neither a job file nor a named workload"),
    ({"job": "[a]\nrw=sideways\n"}, "sideways"),
    ({"job": "sd=s,lun=/tmp/x,size=1m\nwd=w,sd=s\nrd=r,wd=w,iorate=(1,2),elapsed=2\n"}, "has 2 runs"),
    ({"runtime": 0}, "seconds above 0"),
    ({"runtime": "soon"}, "soon"),
    ({"rate": 0}, "above 0"),
    ({"rate": 5, "rate_process": "bursts"}, "expected linear or poisson"),
    ({"size": "big"}, "big"),
    ({"parameters": {"depth": 4}}, "no parameters"),
]


@pytest.mark.parametrize(("mistake", "says"), MISTAKES)
def test_a_mistake_is_a_typed_error_and_nothing_runs(
    mistake: dict[str, Any], says: str, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(loadstone.InputError, match=says):
        loadstone.run(**{"job": JOB.format(data), "out": tmp_path / "out", **mistake})
    assert not (tmp_path / "out").exists()


@pytest.mark.in_turn
def test_a_run_that_fails_raises_or_returns(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_ENGINE", "/bin/false")
    job = JOB.format(data)
    with pytest.raises(loadstone.RunError):
        loadstone.run(job, out=tmp_path / "raised", calibration=False)
    result = loadstone.run(job, out=tmp_path / "returned", calibration=False, check=False)
    assert isinstance(result.error, loadstone.RunError)
    assert result.path == tmp_path / "returned"
    assert result.status == "failed"
    assert result.estimates().is_empty()


def test_the_workloads_are_those_that_are_one_run() -> None:
    found = loadstone.workloads()
    assert found
    for name in catalogue.names():
        assert (name in found) == (not catalogue.load(name).is_procedure)
