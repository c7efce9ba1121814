"""Results opened from Python: the figures of the document, as frames."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import loadstone
from loadstone.api.results import ESTIMATES
from loadstone.bundle import study as on_disk
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    jobs = (MadeJob("a", {"read": 700.0, "write": 300.0}), MadeJob("b", {"write": 50.0}, ramp_s=1.0))
    return runs.make(tmp_path / "one", *jobs, seconds=6.0).path


@pytest.mark.in_turn
def test_estimates_are_those_of_the_document(bundle: Path) -> None:
    result = loadstone.open_bundle(bundle)
    table = result.estimates()
    assert table.schema == pl.Schema(ESTIMATES)
    document = result.document()
    assert table["name"].unique(maintain_order=True).to_list() == [job["name"] for job in document["jobs"]]
    for job in document["jobs"]:
        for op in ("read", "write"):
            told: dict[str, Any] | None = job.get(op)
            rows = table.filter(name=job["name"], op=op).to_dicts()
            if told is None:
                assert not rows
                continue
            (row,) = rows
            assert row["operations"] == told["operations"]
            assert row["iops"] == told["iops"]
            assert row["iops_error"] == told["iops_error"]
            assert row["bytes_per_s"] == told["bandwidth_bytes_per_s"]
            assert row["mean_ns"] == told["latency_ns"]["mean"]
            for percent, value in told["latency_ns"]["percentiles"].items():
                assert row[f"p{percent}_ns"] == value
    assert result.estimates("all").filter(op="all")["operations"].item() == document["total"]["operations"]


@pytest.mark.in_turn
def test_a_result_tells_its_state_verdict_and_tables(bundle: Path) -> None:
    result = loadstone.open_bundle(str(bundle))
    assert (result.path, result.status, result.error, result.doubts) == (bundle, "complete", None, [])
    assert isinstance(result.verdict, loadstone.Verdict)
    assert result.document()["verdict"]["kind"] == result.verdict.kind
    assert result.samples()["ops"].sum() > 0
    assert set(result.samples()["job"]) == {"a", "b"}
    assert {"t_ns", "dt_ns"} <= set(result.host().columns)
    assert result.ios() is None


@pytest.mark.in_turn
def test_a_result_is_written_where_one_says(bundle: Path, tmp_path: Path) -> None:
    result = loadstone.open_bundle(bundle)
    assert result.report(tmp_path / "page.html").read_text().startswith("<!")
    assert result.report() == bundle / "report.html"
    exported = result.export("csv", tmp_path / "rows.csv")
    assert pl.read_csv(exported)["job"].unique().sort().to_list() == ["a", "b"]
    with pytest.raises(loadstone.InputError, match="layout does not change csv"):
        result.export("csv", tmp_path / "other.csv", layout="2008")
    with pytest.raises(loadstone.InputError, match="no export is called 'nosuch'"):
        result.export("nosuch", tmp_path / "x")  # type: ignore[arg-type] # a mistake of the user's


def test_what_is_no_bundle_is_a_typed_error(tmp_path: Path) -> None:
    for open_ in (loadstone.open_bundle, loadstone.open_study):
        with pytest.raises(loadstone.BundleError):
            open_(tmp_path / "none")
        with pytest.raises(loadstone.BundleError):
            open_(tmp_path)


def test_what_was_altered_is_refused_or_doubted(bundle: Path) -> None:
    (bundle / "events.jsonl").write_text("")
    with pytest.raises(loadstone.BundleError, match="was changed since it was sealed"):
        loadstone.open_bundle(bundle)
    doubted = loadstone.open_bundle(bundle, unverified=True)
    assert any("NOT VERIFIED" in doubt for doubt in doubted.doubts)
    with pytest.raises(loadstone.BundleError, match="was changed since it was sealed"):
        loadstone.compare(bundle, bundle.parent)


def _study(path: Path) -> Path:
    points = []
    (path / "runs").mkdir(parents=True)
    for number, depth in enumerate((1, 4), 1):
        at = f"runs/{number:03}-d{depth}"
        runs.make(path / at, MadeJob("a", {"read": 100.0 * depth}), seed=number)
        points.append(
            on_disk.Point(name=f"d{depth}", factors={"iodepth": depth}, bundle=at, status="complete")
        )
    study = on_disk.StudyRecord(
        kind="sweep", name="s", front_end="sweep", loadstone_version="0.1.0", started="2026-01-01T00:00:00Z",
        request={}, inputs={}, settings={}, notes=[], points=tuple(points),
    )  # fmt: skip
    on_disk.write(path, study)
    return path


@pytest.mark.in_turn
def test_a_study_has_its_runs_and_their_factors(tmp_path: Path) -> None:
    study = loadstone.open_study(_study(tmp_path / "study"))
    assert study.kind == "sweep"
    assert list(study.runs) == ["d1", "d4"]
    assert study.points()["iodepth"].to_list() == [1, 4]
    reads = study.estimates().filter(op="read")
    assert reads["run"].to_list() == ["d1", "d4"]
    assert reads["iodepth"].to_list() == [1, 4]
    assert reads["iops"].to_list() == [
        one.estimates().filter(op="read")["iops"].item() for one in study.runs.values()
    ]
    with pytest.raises(loadstone.BundleError, match="is a study"):
        loadstone.open_bundle(study.path)


@pytest.mark.in_turn
def test_two_results_are_compared(tmp_path: Path) -> None:
    slow = runs.make(tmp_path / "slow", MadeJob("a", {"read": 500.0}), seconds=10.0, seed=1).path
    fast = runs.make(tmp_path / "fast", MadeJob("a", {"read": 2500.0}), seconds=10.0, seed=2).path
    found = loadstone.compare(loadstone.open_bundle(slow), fast)
    assert found.names == ["slow", "fast"]
    iops = found.frame().filter(metric="IOPS", op="read")
    assert iops["result"].to_list() == ["slow", "fast"]
    assert iops["change"].to_list()[1] == pytest.approx(4.0, abs=0.4)
    assert iops["judgement"].to_list()[1] == "better"
    assert found.gate() == "not_detectable"
    assert loadstone.compare(fast, slow).gate() == "regression"
    with pytest.raises(loadstone.InputError, match="less than 100%"):
        loadstone.compare(fast, slow).gate(tolerance=1e9)
    assert set(found.verdicts) == {"slow", "fast"}
    assert found.differences().columns == ["where", "what", "slow", "fast"]
    assert found.warnings
    for results in ((), (slow,), (slow, slow)):
        with pytest.raises(loadstone.InputError):
            loadstone.compare(*results)
    other = runs.make(tmp_path / "other", MadeJob("z", {"read": 5.0}, block_bytes=8192)).path
    with pytest.raises(loadstone.InputError, match="no load can be compared"):
        loadstone.compare(slow, other)
    shutil.rmtree(other)
    with pytest.raises(loadstone.InputError, match="no such file"):
        loadstone.compare(slow, other)
