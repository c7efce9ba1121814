from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from loadstone.errors import InputError
from loadstone.report import exports
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> runs.MadeRun:
    jobs = (MadeJob("a", {"read": 2000, "write": 300}, targets=(0, 1)), MadeJob("a", group=1, targets=(1,)))
    return runs.make(tmp_path / "b", *jobs, targets=2, seconds=3)


def ops_of(run: runs.MadeRun) -> int:
    return sum(len(part) for parts in run.latencies.values() for part in parts)


def test_csv_has_every_interval(run: runs.MadeRun) -> None:
    table = pl.read_csv(io.StringIO(exports.csv(Bundle.open(run.path))))
    assert table.height == 6 * 3
    assert table["ops"].sum() == ops_of(run)
    assert table["p99.99_ns"].null_count() == table.height
    assert table["p50_ns"].null_count() == 0


@pytest.mark.in_turn
def test_parquet_opens_everywhere_as_it_is(run: runs.MadeRun, tmp_path: Path) -> None:
    # Each process of the tests would take a second for them, and this test runs in one.
    import duckdb  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    out = tmp_path / "flat.parquet"
    exports.export(Bundle.open(run.path), "parquet", out)
    for path in (out, run.path / "samples.parquet"):
        assert pl.read_parquet(path)["ops"].sum() == ops_of(run)
        assert pd.read_parquet(path)["ops"].sum() == ops_of(run)
        assert duckdb.execute(f"select sum(ops) from '{path}'").fetchall() == [(ops_of(run),)]
    names = duckdb.execute(f"select distinct job, target, op from '{out}' order by all").fetchall()
    assert ("a", "/mnt/test/data0", "write") in names
    assert len(names) == 4
    merged = duckdb.execute(f"select sum(c) from (select unnest(lat_count) as c from '{out}')").fetchall()
    assert merged == [(ops_of(run),)]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("parquet", "export: {}/samples-flat.parquet"), ("vdbench", "export: files in {}"), ("csv", "")],
)
def test_what_goes_to_a_file_is_told_and_what_goes_to_standard_output_is_not(
    run: runs.MadeRun,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    said: str,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["export", str(run.path), kind]) == 0
    assert capsys.readouterr().err.strip() == said.format(tmp_path / "here")
    assert bool(list((tmp_path / "here").iterdir())) is bool(said)


def test_prometheus_text_parses_and_keeps_lines_apart(run: runs.MadeRun) -> None:
    text = exports.prometheus(Bundle.open(run.path))
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    # Two sections share a name; their groups keep them apart.
    jobs = [
        value for (name, labels), value in found.items()
        if name == "loadstone_operations" and ("scope", "job") in labels
    ]  # fmt: skip
    assert len(jobs) == 3
    assert sum(jobs) == ops_of(run)
    quantiles = {
        dict(labels).get("statistic") for (name, labels) in found if name == "loadstone_latency_seconds"
    }
    assert {"mean", "min", "max", "0.5", "0.99"} <= quantiles
    assert "0.9999" not in quantiles
    assert found["loadstone_complete", ()] == 1.0
    assert all(0 < v < 1 for (name, _), v in found.items() if name == "loadstone_latency_seconds")


def test_markdown_is_a_table(run: runs.MadeRun) -> None:
    lines = exports.markdown(Bundle.open(run.path)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in rows} == {11}
    assert len(rows) == 2 + 3 + 2
    assert "complete after" in lines[len(rows) + 1]


def test_text_goes_to_standard_output_or_a_file(
    run: runs.MadeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Bundle.open(run.path)
    exports.export(bundle, "markdown", None)
    told = capsys.readouterr().out
    exports.export(bundle, "markdown", tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text() == told
    assert [path.name for path in tmp_path.glob("x.md*")] == ["x.md"]


def test_a_run_without_data_exports_empty_tables(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", seconds=1, seal=None)
    (run.path / "samples.arrows").unlink()
    bundle = Bundle.open(runs.begun_again(run.path))
    assert len(exports.csv(bundle).splitlines()) == 1
    assert exports.flat(bundle).height == 0
    assert "loadstone_iops{" not in exports.prometheus(bundle)
    assert "loadstone_complete 0.0" in exports.prometheus(bundle)


def test_what_cannot_be_is_refused(run: runs.MadeRun, tmp_path: Path) -> None:
    bundle = Bundle.open(run.path)
    with pytest.raises(InputError, match="no export is called 'xml'"):
        exports.export(bundle, "xml", None)
    with pytest.raises(InputError, match="cannot be written"):
        exports.export(bundle, "csv", tmp_path / "none" / "x.csv")


@pytest.mark.parametrize("kind", ["vdbench", "vdbench-50406", "fio-logs"])
@pytest.mark.in_turn
def test_a_directory_is_exported_whole_or_not_at_all(
    kind: str, run: runs.MadeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page that could not be written left a directory with those before it, or an empty one."""
    whole = tmp_path / "whole"
    assert main(["export", str(run.path), kind, "-o", str(whole)]) == 0
    names = sorted(path.name for path in whole.iterdir())
    assert len(names) > 3
    for name in (names[0], names[-1]):
        out = tmp_path / f"at {name}"
        out.mkdir()
        (out / name).write_text("mine\n")
        assert main(["export", str(run.path), kind, "-o", str(out)]) == 2
        assert f"{name} exists, and Loadstone did not make it" in capsys.readouterr().err
        assert [(path.name, path.read_text()) for path in out.iterdir()] == [(name, "mine\n")]
    # Over one's own it is as before.
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    assert main(["export", str(run.path), kind, "-o", str(whole)]) == 0
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before
