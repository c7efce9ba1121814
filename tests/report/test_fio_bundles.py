"""fio's outputs from a bundle, as `loadstone export` asks for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.errors import BundleError
from loadstone.report import fio
from loadstone.report.fio import disk_use

from . import fio_small_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    source = fio_small_run.source()
    path = tmp_path / "bundle"
    writer = BundleWriter.create(
        path,
        request={"argv": []},
        inputs={"job.fio": fio_small_run.JOB.encode()},
        workload_json=source.workload.model_dump_json(),
        plan_json=source.plan.model_dump_json(),
        notes=[{"where": None, "text": "libaio runs on io_uring", "kind": "changed"}],
        environment={},
    )
    for event in source.events:
        writer.event(dict(event))
    # two seconds of a disk with 5 reads of 8 KiB and 1 write each, busy for 250 ms each
    for second in (1, 2):
        writer.host(
            {
                "t_ns": second * 10**9,
                "dt_ns": 10**9,
                "block.vda.reads": 5,
                "block.vda.read_bytes": 40_960,
                "block.vda.writes": 1,
                "block.vda.busy_ns": 250_000_000,
            }
        )
    source.samples.write_ipc_stream(writer.engine_dir / "samples.arrows")
    fio_small_run.ios().collect().write_ipc_stream(writer.engine_dir / "ios.arrows")
    writer.seal("complete")
    return Bundle.open(path)


def test_the_document_has_the_runs_figures_and_notes(bundle: Bundle) -> None:
    doc = fio.json_document(bundle, plus=True)
    assert [job["jobname"] for job in doc["jobs"]] == ["mix", "mix", "after"]
    assert doc["jobs"][0]["read"]["iops"] == 100.0
    assert doc["loadstone notes"] == ["libaio runs on io_uring"]
    assert json.loads(json.dumps(doc)) == doc
    assert "bins" not in fio.json_document(bundle, plus=False)["jobs"][0]["read"]["clat_ns"]


def test_disks_come_from_the_monitors(bundle: Bundle) -> None:
    (disk,) = fio.json_document(bundle)["disk_util"]
    assert (disk["name"], disk["read_ios"], disk["write_ios"], disk["read_sectors"]) == ("vda", 10, 2, 160)
    assert disk["util"] == pytest.approx(25.0)


def test_a_run_without_devices_has_no_disks() -> None:
    assert disk_use.disks(pl.DataFrame(schema={"t_ns": pl.Int64, "dt_ns": pl.Int64})) == []


def test_text_and_terse_lines(bundle: Bundle) -> None:
    text = fio.normal_text(bundle)
    assert text.startswith("mix: (g=0): rw=randrw")
    assert "Run status group 1 (all jobs):" in text
    assert "  vda: ios=10/2," in text
    assert [line.split(";")[2] for line in fio.terse_lines(bundle, 3)] == ["mix", "mix", "after"]


def test_logs_go_where_they_are_wanted(bundle: Bundle, tmp_path: Path) -> None:
    paths = fio.write_logs(bundle, tmp_path / "logs")
    assert {path.parent for path in paths} == {tmp_path / "logs"}
    assert len((tmp_path / "logs" / "after_iops.3.log").read_text().splitlines()) == 4


def test_a_bundle_without_its_workload_says_so(bundle: Bundle) -> None:
    (bundle.path / "workload.json").unlink()
    with pytest.raises(BundleError, match=r"workload\.json"):
        fio.json_document(bundle)
