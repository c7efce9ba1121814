"""`run_all`, `repeat`, `sweep`, `curve` and `rerun_study` of `loadstone`: real runs on a null device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import loadstone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = (
    "[one]\nioengine=null\nfilename=x\nrw=randread\nbs=4k\nsize=1m\nrate_iops=2k\nruntime=200ms\ntime_based\n"
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> loadstone.Study:
    out = tmp_path_factory.mktemp("swept") / "study"
    return loadstone.sweep(JOB, iodepth=[1, 2], bs="4k", out=out, calibration=False)


@pytest.mark.in_turn
def test_a_sweep_has_a_run_for_each_combination(swept: loadstone.Study) -> None:
    assert swept.kind == "sweep"
    assert swept.points()["iodepth"].to_list() == [1, 2]
    assert swept.estimates().filter(op="read")["operations"].is_between(300, 500).all()
    request = json.loads((swept.path / "study.json").read_text())["request"]
    assert (request["front_end"], request["options"]["iodepth"]) == ("python", "1,2")


@pytest.mark.in_turn
def test_a_study_runs_again(swept: loadstone.Study, tmp_path: Path) -> None:
    again = loadstone.rerun_study(swept, out=tmp_path / "again", calibration=False)
    assert (again.kind, list(again.runs)) == ("sweep", list(swept.runs))
    assert again.points().select("iodepth", "bs").equals(swept.points().select("iodepth", "bs"))


@pytest.mark.in_turn
def test_job_files_run_one_after_the_other_and_repeats_have_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.fio").write_text(JOB)
    files = [tmp_path / "b.fio", tmp_path / "a.fio"]
    study = loadstone.run_all(*files, out=tmp_path / "all", calibration=False)
    assert study.points()["run"].to_list() == ["b", "a"]
    repeated = loadstone.repeat(JOB, 2, out=tmp_path / "repeated", calibration=False)
    assert repeated.points()["run"].to_list() == ["repeat-1", "repeat-2"]


def test_a_curve_of_a_job_with_a_rate_is_refused_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(loadstone.RefusedError, match="a curve sets the rates itself") as refused:
        loadstone.curve(JOB, out=tmp_path / "curve")
    assert refused.value.hint == "remove rate_iops"
    assert not (tmp_path / "curve").exists()


@pytest.mark.in_turn
def test_a_curve_measures_shares_of_the_maximum(tmp_path: Path) -> None:
    job = JOB.replace("rate_iops=2k\n", "thinktime=100\n")
    study = loadstone.curve(job, points="50,100", repeat=1, out=tmp_path / "curve", calibration=False)
    assert study.points()["role"].to_list() == ["maximum", "measure", "measure"]


MISTAKES: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (loadstone.sweep, {}, "there is nothing to sweep"),
    (loadstone.sweep, {"iodepth": "1..x"}, "iodepth"),
    (loadstone.sweep, {"bs": "4k", "gain": "5%"}, "has no effect without iodepth or numjobs"),
    (loadstone.sweep, {"iodepth": [1], "warmup": 5}, "warmup: has no effect on a sweep"),
    (loadstone.repeat, {}, "does not say how often"),
    (loadstone.repeat, {"until": "much"}, "until: found"),
    (loadstone.repeat, {"times": 1001}, "from 1 to 1000"),
    (loadstone.curve, {"points": "10,x"}, "points: found"),
    (loadstone.curve, {"rate": 5}, "a curve sets the rates itself"),
    (loadstone.curve, {"slo": "fast"}, "slo"),
    (loadstone.run_all, {}, "is one run"),
]


@pytest.mark.parametrize(("function", "given", "says"), MISTAKES)
def test_a_mistake_is_told_by_the_name_of_the_argument(
    function: Callable[..., Any], given: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(loadstone.InputError, match=says):
        function(JOB, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_an_unknown_argument_is_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="runtme"):
        loadstone.sweep(JOB, iodepth=[1], runtme=3)  # type: ignore[call-arg] # a mistake


@pytest.mark.in_turn
def test_a_study_that_fails_raises_what_its_run_failed_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_ENGINE", "/bin/false")
    with pytest.raises(loadstone.RunError):
        loadstone.repeat(JOB, 2, out=tmp_path / "out", calibration=False)


@pytest.mark.in_turn
def test_an_experiment_is_not_run_again_without_what_it_sets(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        f'title = "t"\ntargets = ["{tmp_path}/data"]\nrepeats = 1\n'
        '[[patterns]]\nname = "r"\n'
        'options = { rw = "read", bs = "64k", ioengine = "psync", size = "1m", runtime = "1s" }\n'
        '[[factors]]\nname = "cache"\nkind = "page_cache"\nlevels = ["kept", "dropped"]\n'
    )
    (tmp_path / "data").write_bytes(b"x" * (1 << 20))
    experiment = loadstone.run_experiment(file, out=tmp_path / "e", calibration=False)
    with pytest.raises(loadstone.RefusedError, match="an experiment sets the machine") as refused:
        loadstone.rerun_study(experiment.path, out=tmp_path / "no")
    assert f"loadstone experiment run {file} --out NEW" in str(refused.value.hint)
    assert not (tmp_path / "no").exists()
    (run, _) = sorted((experiment.path / "runs").iterdir())
    again = loadstone.rerun(run, out=tmp_path / "again", calibration=False)
    assert any("what was set on the machine" in str(note["text"]) for note in again.bundle.notes)
