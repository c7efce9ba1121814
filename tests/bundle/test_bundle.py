from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from loadstone.bundle import arrows, layout
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.errors import BundleError
from tests.support import runs


def test_a_sealed_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", runs.MadeJob(clones=2), seconds=2.0, notes=["a note"])
    bundle = Bundle.open(run.path)
    assert bundle.status == "complete"
    assert bundle.plan == run.plan
    assert bundle.inputs == {"job.fio": b"[job]\nrw=randread\n"}
    assert bundle.notes == ["a note"]
    assert bundle.request["front_end"] == "run"
    assert [event["type"] for event in bundle.events] == ["hello", "start", "stream_end", "stream_end", "end"]
    samples = bundle.samples()
    assert samples.schema == layout.SAMPLES
    assert samples["interval"].to_list() == [0, 1, 2, 3]
    lat = np.concatenate(run.latencies[0, "read"])
    assert samples["ops"].sum() == len(lat)
    assert samples["lat_sum_ns"].sum() == pytest.approx(lat.sum())
    assert samples["lat_count"].explode().sum() == len(lat)
    assert bundle.host().height == 2
    assert bundle.ios() is None
    assert not list(run.path.glob("*.arrows"))
    assert not list(run.path.glob("*.part"))


def test_the_manifest_names_every_file_and_finds_the_one_that_changed(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=1.0).path
    manifest = json.loads((path / "manifest.json").read_text())
    present = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    assert set(manifest["files"]) == present - {"manifest.json"}
    assert Bundle.open(path).verify() == []
    plan = path / "plan.json"
    plan.write_bytes(plan.read_bytes().replace(b"data0", b"data9"))
    (path / "input" / "job.fio").unlink()
    with pytest.raises(BundleError, match=r"input/job\.fio is missing, plan\.json was altered"):
        Bundle.open(path)
    opened = Bundle.open(path, unverified=True)
    assert opened.verify() == ["input/job.fio is missing", "plan.json was altered"]
    assert opened.doubt == "NOT VERIFIED: input/job.fio is missing, plan.json was altered."


def test_a_killed_run_opens_as_partial_with_what_was_written(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=2.0, seal=None).path
    whole = Bundle.open(path).samples()
    assert whole.height == 4
    data = (path / "samples.arrows").read_bytes()
    (path / "samples.arrows").write_bytes(data[: len(data) - 200])
    with (path / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"tick","t_')
    with (path / "host.jsonl").open("ab") as file:
        file.write(b'{"t_ns":30')
    bundle = Bundle.open(runs.begun_again(path))
    assert bundle.status == "partial"
    assert bundle.samples().equals(whole.head(3))
    assert [event["type"] for event in bundle.events] == ["hello", "start"]
    assert bundle.host()["t_ns"].to_list() == [1_000_000_000, 2_000_000_000]
    with pytest.raises(BundleError, match="no hashes"):
        bundle.verify()


@pytest.mark.in_turn
def test_a_stream_cut_anywhere_gives_a_prefix(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=2.0, seal=None).path
    whole = Bundle.open(path).samples()
    data = (path / "samples.arrows").read_bytes()
    heights = []
    for end in [*range(0, len(data), 37), len(data)]:
        cut = tmp_path / "cut.arrows"
        cut.write_bytes(data[:end])
        table = pl.concat([layout.SAMPLES.to_frame(), *arrows.pieces(cut, layout.SAMPLES)])
        assert table.equals(whole.head(table.height))
        heights.append(table.height)
    assert heights == sorted(heights)
    assert set(heights) == {0, 1, 2, 3, 4}


def test_bytes_that_never_reached_the_disk_end_the_stream(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=1.0, seal=None).path
    stream = path / "samples.arrows"
    data = stream.read_bytes()
    stream.write_bytes(data[:-8] + bytes(4096))
    assert Bundle.open(runs.begun_again(path)).samples().height == 2


def test_a_truncated_stream_is_sealed_with_what_is_whole(tmp_path: Path) -> None:
    writer = _empty(tmp_path / "b")
    source = runs.make(tmp_path / "a", seconds=2.0, seal=None).path
    data = (source / "samples.arrows").read_bytes()
    (writer.engine_dir / "samples.arrows").write_bytes(data[: len(data) - 100])
    writer.seal("failed")
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "failed"
    assert bundle.samples().height == 3
    assert bundle.verify() == []


def test_ios_are_converted_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrows, "PIECE_BYTES", 1000)
    writer = _empty(tmp_path / "b")
    rows = pl.DataFrame(
        {name: [number % 2 for number in range(5000)] for name in layout.IOS.names()}
    ).with_columns(pl.int_range(5000).alias("t_ns"))
    table = rows.cast(layout.IOS).to_arrow()
    with (writer.engine_dir / "ios.arrows").open("wb") as file, pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table, max_chunksize=100)
    writer.seal("complete")
    ios = Bundle.open(tmp_path / "b").ios()
    assert ios is not None
    assert ios.schema == layout.IOS
    assert ios["t_ns"].to_list() == list(range(5000))


def test_a_table_with_other_columns_has_no_rows_and_is_named(tmp_path: Path) -> None:
    writer = _empty(tmp_path / "b")
    table = pa.table({"interval": pa.array([1], pa.uint32())})
    with (writer.engine_dir / "samples.arrows").open("wb") as f, pa.ipc.new_stream(f, table.schema) as out:
        out.write_table(table)
    writer.close()
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.samples().height == 0
    assert bundle.faults == ["samples.arrows: column 'start_ns' is missing, expected UInt64"]


def test_a_run_that_measured_nothing_has_empty_tables(tmp_path: Path) -> None:
    _empty(tmp_path / "b").seal("failed")
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.samples().schema == layout.SAMPLES
    assert bundle.samples().height == 0
    assert bundle.host().height == 0
    assert bundle.events == []


def test_never_writes_over_another_run(tmp_path: Path) -> None:
    _empty(tmp_path / "b").close()
    with pytest.raises(BundleError, match="not empty") as caught:
        _empty(tmp_path / "b")
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_inputs_of_the_same_file_name_and_hostile_names_stay_inside(tmp_path: Path) -> None:
    inputs = {"a/job.fio": b"1", "b/job.fio": b"2", "../../evil": b"3", "/etc/..": b"4"}
    _empty(tmp_path / "b", inputs).seal("complete")
    assert Bundle.open(tmp_path / "b").inputs == inputs
    assert len(list((tmp_path / "b" / "input").iterdir())) == 4
    assert not (tmp_path / "evil").exists()


def test_seal_computes_the_result_from_what_it_sealed(tmp_path: Path) -> None:
    writer = _empty(tmp_path / "b")
    writer.seal("interrupted", exit_code=130, result=lambda bundle: {"status": bundle.status})
    bundle = Bundle.open(tmp_path / "b")
    assert json.loads((bundle.path / "result.json").read_text()) == {"status": "interrupted"}
    assert bundle.manifest["exit_code"] == 130
    assert "result.json" in bundle.manifest["files"]


def test_what_is_no_bundle_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such directory"):
        Bundle.open(tmp_path / "none")
    with pytest.raises(BundleError, match=r"has no manifest\.json"):
        Bundle.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99, "loadstone_version": "7.0"}')
    with pytest.raises(BundleError, match="format 99") as caught:
        Bundle.open(tmp_path)
    assert caught.value.hint == "update loadstone: it was written by version 7.0"


def _empty(path: Path, inputs: dict[str, bytes] | None = None) -> BundleWriter:
    return BundleWriter.create(
        path, request={}, inputs=inputs or {}, workload_json="{}", plan_json="{}", notes=[], environment={}
    )


def test_a_bundle_that_was_removed_is_not_begun_anew_in_its_place(tmp_path: Path) -> None:
    """A watched host's row made the directory again, and sealing then said that all was still there."""
    writer = _empty(tmp_path / "b")
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(FileNotFoundError) as failed:
        writer.watched("storage", {"t_ns": 1})
    assert not (tmp_path / "b").exists()
    assert "it was removed during the run" in str(writer.unwritten(failed.value))
    (tmp_path / "b").mkdir()
    with pytest.raises(BundleError, match="it was removed during the run"):
        writer.seal("complete")
    assert list((tmp_path / "b").iterdir()) == []


def test_a_watched_host_is_written_into_a_bundle_that_was_renamed(tmp_path: Path) -> None:
    writer = _empty(tmp_path / "b")
    (tmp_path / "b").rename(tmp_path / "now")
    writer.watched("storage", {"t_ns": 1})
    writer.seal("complete")
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "now" / "watched" / "storage.parquet").exists()
    assert Bundle.open(tmp_path / "now").verify() == []


@pytest.mark.in_turn
def test_a_directory_that_cannot_hold_a_bundle_is_noticed_without_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(BundleError, match="file is not a directory"):
        BundleWriter.check(file / "run" / "deep")
    with pytest.raises(BundleError, match="cannot be written"):
        BundleWriter.check(Path("/proc/self/fd/run"))
    BundleWriter.check(tmp_path / "new" / "deep")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_bundle_of_another_format_is_refused(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=1.0).path
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["format"] == layout.FORMAT
    for other, remedy in ((layout.FORMAT - 1, "job file in its input/ again"), (layout.FORMAT + 1, "update")):
        (path / "manifest.json").write_text(json.dumps(manifest | {"format": other}))
        said = f"has format {other}; this version reads {layout.FORMAT}"
        with pytest.raises(BundleError, match=said) as refused:
            Bundle.open(path)
        assert remedy in str(refused.value.hint)


def test_a_file_in_place_of_a_bundle_is_named_as_one(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[j]\n")
    with pytest.raises(BundleError, match=r"job\.fio: not a bundle: it is a file"):
        Bundle.open(job)


def test_a_row_without_its_priority_is_no_row_of_the_run(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=2).path
    file = path / "samples.parquet"
    table = pl.read_parquet(file)
    priority = pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col("priority"))
    table.with_columns(priority.alias("priority")).write_parquet(file)
    bundle = Bundle.open(runs.reseal(path))
    assert bundle.samples().height == table.height - 1
    assert "1 row of the samples is not of this run" in " ".join(bundle.faults)


def test_events_that_are_lost_are_named_where_there_are_samples(tmp_path: Path) -> None:
    """992004: without its events a run that was never sealed had no errors, and nobody was told."""
    run = runs.make(tmp_path / "b", runs.MadeJob(), seal=None)
    whole = Bundle.open(run.path)
    assert whole.events
    assert whole.faults == []
    (run.path / "events.jsonl").write_bytes(b"")
    for why in ("lost its end", "is missing"):
        with pytest.raises(BundleError, match=f"events.jsonl {why}"):
            Bundle.open(run.path)
        opened = Bundle.open(run.path, unverified=True)
        assert opened.events == []
        assert opened.faults == ["events.jsonl is empty: errors and ends of this run are not known"]
        (run.path / "events.jsonl").unlink(missing_ok=True)
    (run.path / "samples.arrows").unlink()
    begun = Bundle.open(run.path, unverified=True)
    assert (begun.events, begun.faults) == ([], [])


def test_a_document_that_is_of_another_kind_altogether_says_so(tmp_path: Path) -> None:
    """992000: the place of what was wrong was empty, `plan.json: : Input should be an object`."""
    run = runs.make(tmp_path / "b", runs.MadeJob(), seal=None)
    (run.path / "plan.json").write_text('"x"')
    with pytest.raises(BundleError, match=r"plan\.json: all of it: Input should be"):
        _ = Bundle.open(run.path, unverified=True).plan
    with pytest.raises(BundleError, match=r"was changed since its run began: plan\.json was altered"):
        Bundle.open(run.path)


def test_the_plan_of_another_run_is_refused_in_a_run_that_was_never_sealed(tmp_path: Path) -> None:
    """992099: another run's Plan, and so its jobs, sizes and rates, stood beside these samples unnoticed."""
    run = runs.make(tmp_path / "a", runs.MadeJob(), seal=None)
    other = runs.make(tmp_path / "b", runs.MadeJob("other"), seal=None)
    for name in ("plan.json", "workload.json", "environment.json", "input/job.fio"):
        kept = (run.path / name).read_bytes()
        (run.path / name).write_bytes((other.path / name).read_bytes() + b" ")
        with pytest.raises(BundleError, match=f"{name} was altered"):
            Bundle.open(run.path)
        (run.path / name).write_bytes(kept)
    opened = Bundle.open(run.path)
    assert (opened.verified, opened.altered) == (None, ())
    # Killed before all of it was there: what is missing is told by who needs it.
    (run.path / "notes.json").unlink()
    assert Bundle.open(run.path).status == "partial"
