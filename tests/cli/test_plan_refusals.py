"""`plan` and dry runs say what `run` would be refused with, in its words, and end as it would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import loadstone
from loadstone import exitcodes
from loadstone.api.jobs import schedulers
from loadstone.cli.main import main
from tests.control import machine

if TYPE_CHECKING:
    from pathlib import Path

FIO = "[one]\nrw=write\nbs=4k\nsize=256k\nfilename={}\n"
VDBENCH = (
    "sd=s,lun={},size=1m\nwd=w,sd=s,rdpct=0,xfersize=4k\n"
    "rd=first,wd=w,iorate=max,elapsed=2\nrd=second,wd=w,iorate=max,elapsed=2\n"
)
EXPERIMENT = (
    'title = "Depth"\ntargets = ["{}"]\nruntime = "1s"\nrepeats = 2\nsize = "256k"\n'
    '[[patterns]]\nname = "a"\noptions = {{ rw = "randwrite", bs = "4k" }}\n'
    '[[factors]]\nname = "depth"\noption = "iodepth"\nlevels = [1, 2]\n'
)
CONTENT = b"kept " * 100_000
QUIET = ("--no-report", "--no-calibration")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(CONTENT)
    return path


def words(kind: str, precious: Path) -> tuple[list[str], list[str]]:
    """What plans it and what runs it."""
    folder = precious.parent
    files = {"a.fio": FIO, "b.fio": FIO, "a.parm": VDBENCH, "a.toml": EXPERIMENT}
    for name, text in files.items():
        (folder / name).write_text(text.format(folder / "new" if name == "b.fio" else precious))
    job, other, parameters, experiment = (str(folder / name) for name in files)
    run = ["run", job, *QUIET]
    probe = ["probe", str(precious), "--rw", "randwrite", "--runtime", "1s", "--budget", "2s"]
    return {
        "one job": (["plan", job], run),
        "as JSON": (["plan", job, "--json"], run),
        "two files": (["plan", other, job], ["run", other, job, *QUIET]),
        "two files as JSON": (["plan", other, job, "--json"], ["run", other, job, *QUIET]),
        "vdbench": (["plan", parameters], ["run", parameters, *QUIET]),
        "a probed run": (["run", job, "--probe=2s", "--dry-run"], run),
        "probed runs": (["run", parameters, "--probe=2s", "--dry-run"], ["run", parameters, *QUIET]),
        "a probed run as JSON": (["run", job, "--probe=2s", "--dry-run", "--json"], run),
        "a probe": ([*probe, "--dry-run"], probe),
        "an experiment": (["experiment", "plan", experiment], ["experiment", "run", experiment, *QUIET]),
        "an experiment as JSON": (
            ["experiment", "plan", experiment, "--json"],
            ["experiment", "run", experiment, *QUIET],
        ),
    }[kind]


KINDS = (
    "one job", "as JSON", "two files", "two files as JSON", "vdbench", "a probed run", "probed runs",
    "a probed run as JSON", "a probe", "an experiment", "an experiment as JSON",
)  # fmt: skip


def refusal(err: str) -> str:
    return err[err.index("loadstone: ") :]


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", KINDS)
def test_what_needs_consent_is_planned_and_then_refused_as_run_refuses_it(
    kind: str, precious: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It printed a line of its own and ended with 0."""
    monkeypatch.chdir(precious.parent)
    plans, runs = words(kind, precious)
    assert main(runs) == exitcodes.USAGE
    would = refusal(capsys.readouterr().err)
    assert "the run would destroy existing data" in would
    assert f"add: --i-accept-data-loss {precious}" in would

    assert main(plans) == exitcodes.USAGE
    out, err = capsys.readouterr()
    assert out, "what would run is printed all the same"
    assert refusal(err) == would

    assert main([*plans, "--i-accept-data-loss", str(precious)]) == exitcodes.DONE
    agreed = capsys.readouterr()
    assert "loadstone: " not in agreed.err
    if kind not in ("an experiment", "an experiment as JSON"):  # The seed of its order is drawn anew.
        assert len(agreed.out.splitlines()) == len(out.splitlines())
    assert precious.read_bytes() == CONTENT
    assert not (precious.parent / "new").exists()
    assert not (precious.parent / "loadstone-runs").exists()


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["one job", "two files", "an experiment"])
def test_consent_without_effect_is_refused_as_run_refuses_it(
    kind: str, precious: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(precious.parent)
    plans, runs = words(kind, precious)
    agreed = ["--i-accept-data-loss", str(precious), "--i-accept-data-loss", "/somewhere/else"]
    assert main([*runs, *agreed]) == exitcodes.USAGE
    would = refusal(capsys.readouterr().err)
    assert "'/somewhere/else' is not a target" in would
    assert main([*plans, *agreed]) == exitcodes.USAGE
    assert refusal(capsys.readouterr().err) == would
    assert precious.read_bytes() == CONTENT


@pytest.mark.in_turn
def test_what_a_plan_would_be_refused_with_is_told_to_python(precious: Path) -> None:
    planned = loadstone.plan_job(FIO.format(precious))
    error = planned.refusal()
    assert isinstance(error, loadstone.RefusedError)
    assert str(error.hint).endswith(f"accept_data_loss=['{precious}']")
    assert planned.refusal([precious]) is None
    assert isinstance(planned.refusal([precious, "/somewhere/else"]), loadstone.InputError)
    words("two files", precious)
    runs = loadstone.plan_runs(precious.parent / "b.fio", precious.parent / "a.fio")
    assert "would destroy" in str(runs.refusal())
    assert runs.refusal([precious]) is None
    experiment = loadstone.plan_experiment(precious.parent / "a.toml")
    assert "would destroy" in str(experiment.refusal())
    assert not experiment.would_run
    assert experiment.refusal([precious]) is None


@pytest.mark.in_turn
def test_a_scheduler_that_a_disk_does_not_take_is_found_by_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` was refused it when it was about to start; `plan` knew nothing of it."""
    machine.make(tmp_path / "host")
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(schedulers, "Controls", lambda: machine.controls(tmp_path / "host"))
    monkeypatch.setattr(schedulers, "_disks", lambda _: ["sda"])
    job = tmp_path / "a.fio"
    job.write_text(FIO.format(tmp_path / "new") + "ioscheduler=fastest\n")
    assert main(["run", str(job), "--out", str(tmp_path / "out"), *QUIET]) == exitcodes.USAGE
    would = refusal(capsys.readouterr().err)
    assert "ioscheduler" in would
    assert "'fastest'" in would
    assert main(["plan", str(job)]) == exitcodes.USAGE
    assert refusal(capsys.readouterr().err) == would
