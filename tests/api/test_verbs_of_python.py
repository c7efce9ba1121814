"""What the verbs `plan`, `rerun`, `verify` and `audit` do, from Python: on real runs of the engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import loadstone
from loadstone import exitcodes
from loadstone.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WRITES = "[one]\nrw=write\nbs=4k\nsize=256k\nverify=crc32c\ndo_verify=0\nfilename={}\n"


class Events:
    """A `progress` that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, plan: object, bundle: Path) -> None:
        self.told.append("begin")

    def event(self, event: Mapping[str, object]) -> None:
        self.told.append(str(event["type"]))

    def finish(self) -> None:
        self.told.append("finish")


@pytest.fixture(scope="module")
def wrote(tmp_path_factory: pytest.TempPathFactory) -> loadstone.Result:
    place = tmp_path_factory.mktemp("wrote")
    seen = Events()
    result = loadstone.run(WRITES.format(place / "data"), out=place / "run", calibration=False, progress=seen)
    assert seen.told[0] == "begin"
    assert seen.told.count("finish") == 1
    assert "start" in seen.told
    return result


def test_a_plan_is_what_would_run_and_touches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(WRITES.format(tmp_path / "data"))
    planned = loadstone.plan_job(job)
    assert planned.targets == [tmp_path / "data"]
    assert planned.memory_bytes > 1 << 20
    assert not (tmp_path / "data").exists()
    assert main(["plan", str(job), "--json"]) == 0
    printed, found = json.loads(capsys.readouterr().out), planned.document()
    # The seeds of its streams are drawn for each Plan.
    assert {**printed, "streams": ""} == json.loads(json.dumps({**found, "streams": ""}))
    assert printed["streams"][0].keys() == found["streams"][0].keys()


@pytest.mark.in_turn
def test_what_stands_against_a_plan_is_told_and_what_is_lost_is_named(tmp_path: Path) -> None:
    precious = tmp_path / "data"
    precious.write_bytes(b"kept " * 100_000)
    planned = loadstone.plan_job(WRITES.format(precious))
    assert {(one.what, one.needs_consent) for one in planned.obstacles} == {(str(precious), True)}
    assert any(str(precious) in line for line in planned.lines)
    nowhere = loadstone.plan_job(WRITES.format(tmp_path / "new")).obstacles
    assert nowhere == []


@pytest.mark.in_turn
def test_several_runs_are_planned_as_the_command_line_plans_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, other = tmp_path / "a.fio", tmp_path / "b.fio"
    job.write_text(WRITES.format(tmp_path / "data"))
    other.write_text("[other]\nrw=read\nsize=4k\nfilename=/proc/nowhere/x\n")
    planned = loadstone.plan_runs(job, other)
    assert main(["plan", str(job), str(other), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == planned.document()
    assert [(one.what, one.needs_consent) for one in planned.obstacles] == [("b", False)]
    with pytest.raises(loadstone.InputError, match="is one run"):
        loadstone.plan_runs(job)
    with pytest.raises(TypeError, match="runtme"):
        loadstone.plan_job(job, runtme=3)  # type: ignore[call-arg] # a mistake


@pytest.mark.in_turn
def test_commands_of_a_job_run_where_they_are_permitted(tmp_path: Path) -> None:
    text = f"[a]\nrw=read\nsize=4k\nfilename=/dev/zero\nexec_prerun=touch {tmp_path}/before\n"
    with pytest.raises(loadstone.RefusedError, match="exec_prerun"):
        loadstone.run(text, out=tmp_path / "no", calibration=False)
    loadstone.run(text, out=tmp_path / "out", calibration=False, allow_exec=True)
    assert (tmp_path / "before").exists()


@pytest.mark.in_turn
def test_a_bundle_runs_again_into_another(wrote: loadstone.Result, tmp_path: Path) -> None:
    again = loadstone.rerun(wrote.path, out=tmp_path / "again", calibration=False)
    assert again.status == "complete"
    first = wrote.estimates().filter(op="write")["operations"].item()
    assert again.estimates().filter(op="write")["operations"].item() == first == 64
    assert again.exit_code == 0
    assert again.altered is None
    assert loadstone.open_bundle(again.path).document()["total"] == again.document()["total"]


@pytest.mark.in_turn
def test_an_altered_bundle_runs_again_only_when_that_is_said(wrote: loadstone.Result, tmp_path: Path) -> None:
    (wrote.path / "added").write_text("by somebody")
    try:
        with pytest.raises(loadstone.BundleError, match="added"):
            loadstone.rerun(wrote.path, out=tmp_path / "no", calibration=False)
        old = loadstone.open_bundle(wrote.path, unverified=True)
        assert "added" in str(old.altered)
        again = loadstone.rerun(old, out=tmp_path / "again", calibration=False)
        notes = json.loads((again.path / "notes.json").read_text())
        assert any("the Plan is of a bundle that is" in note["text"] for note in notes)
    finally:
        (wrote.path / "added").unlink()


def test_what_was_not_written_with_a_journal_is_not_read_back(
    wrote: loadstone.Result, tmp_path: Path
) -> None:
    with pytest.raises(loadstone.InputError, match="kept no journal"):
        loadstone.verify(wrote, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.in_turn
def test_what_a_journal_names_is_read_back_and_damage_raises(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(WRITES.format(tmp_path / "data"))
    words = ["run", str(job), "--journal", "--out", str(tmp_path / "run"), "--no-report", "--no-calibration"]
    assert main(words) == 0
    sound = loadstone.verify(tmp_path / "run", out=tmp_path / "sound")
    assert (sound.status, sound.error) == ("complete", None)
    with (tmp_path / "data").open("r+b") as file:
        file.seek(8192 + 100)
        file.write(b"damage")
    with pytest.raises(loadstone.RunError):
        loadstone.verify(tmp_path / "run", out=tmp_path / "raised")
    damaged = loadstone.verify(tmp_path / "run", out=tmp_path / "damaged", check=False)
    assert damaged.exit_code == 1
    assert "8192" in str(damaged.error)


def test_results_are_judged_together_and_what_is_none_is_told(
    wrote: loadstone.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.json").write_text('{"fio version": "fio-3.33"')
    audit = loadstone.audit_results(wrote.path, tmp_path)
    assert audit.frame()["path"].to_list() == [str(wrote.path)]
    assert audit.frame()["verdict"].to_list() == [str(audit.verdict.kind)]
    assert main(["audit", str(wrote.path), str(tmp_path), "--json"]) == exitcodes.USAGE
    assert json.loads(capsys.readouterr().out) == audit.document()
    with pytest.raises(loadstone.InputError, match="nothing to audit"):
        loadstone.audit_results()
    with pytest.raises(loadstone.InputError, match="above 0"):
        loadstone.audit_results(wrote.path, limit=0)
