from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from loadstone import verdict
from loadstone.analysis import cpu, document
from loadstone.analysis.summary import summarise
from loadstone.audit import find_results
from loadstone.bundle.read import Bundle
from tests.support import runs
from tests.support.runs import MadeJob

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "contract" / "result.schema.json"


def result(run: runs.MadeRun) -> dict[str, Any]:
    made = summarise(Bundle.open(run.path)).document()
    jsonschema.validate(made, json.loads(SCHEMA.read_text()))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    return made


def test_the_committed_schema_is_fresh() -> None:
    text = json.dumps(document.schema(), indent=2) + "\n"
    assert SCHEMA.read_text() == text, (
        "write it anew: python -m tests.analysis.test_summary > contract/result.schema.json"
    )


def test_every_field_is_described() -> None:
    text = (ROOT / "docs" / "result-json.md").read_text()
    for model in (
        document.ResultDocument,
        document.ResultLine,
        document.ResultJob,
        document.ResultCpu,
        document.ResultError,
        document.ResultNote,
        document.ResultPacing,
        document.ResultStage,
        document.ResultStageLines,
        document.ResultTool,
        verdict.Audited,
        verdict.Verdict,
        verdict.Cause,
        verdict.Missing,
        verdict.Chart,
        verdict.RankedExplanation,
        verdict.ProbeResult,
    ):
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in text, f"{model.__name__}.{name}"
    for name in document.LATENCY_SCHEMA["properties"]:
        assert f"`{name}`" in text, name


@pytest.mark.in_turn
def test_the_document_holds_the_runs_numbers(tmp_path: Path) -> None:
    jobs = (
        MadeJob("a", clones=2, keep_clones_apart=True),
        MadeJob("b", {"write": 500, "sync": 50}, group=1, targets=(1,)),
    )
    run = runs.make(
        tmp_path / "b",
        *jobs,
        targets=2,
        seconds=4,
        notes=["plain", {"kind": "trap", "text": "bs", "where": {"file": "j", "line": 3, "option": "bs"}}],
    )
    made = result(run)
    assert made["status"] == "complete"
    assert made["exit_code"] == 0
    assert made["duration_s"] == 4.0
    assert made["started"] == "2026-09-21T14:13:20+00:00"
    total, (a, b) = made["total"], made["jobs"]
    reads = sum(len(part) for unit in (0, 1) for part in run.latencies[unit, "read"])
    writes = sum(len(part) for part in run.latencies[2, "write"])
    assert total["operations"] == reads + writes
    assert total["read"]["operations"] == reads
    assert a["operations"] == reads
    assert [unit["name"] for unit in a["units"]] == ["a.0", "a.1"]
    assert "units" not in b
    assert set(b) & {"read", "write", "trim", "sync"} == {"write", "sync"}
    assert b["write"]["latency_ns"]["percentiles"]["99.99"] is None
    assert b["wait_ns"] is None
    assert [g["group"] for g in made["groups"]] == [0, 1]
    assert [t["name"] for t in made["targets"]] == ["/mnt/test/data0", "/mnt/test/data1"]
    assert made["notes"] == [
        {"kind": "info", "text": "plain", "where": None},
        {"kind": "trap", "text": "bs", "where": "j:3: bs"},
    ]


@pytest.mark.in_turn
def test_a_target_of_several_stages_has_its_own_rate_in_each(tmp_path: Path) -> None:
    jobs = (
        MadeJob("small", {"read": 2000}, targets=(0, 1)),
        MadeJob("large", {"read": 100}, stage=1, block_bytes=131072),
        MadeJob("beside", {"write": 400}, stage=1, targets=(1,)),
    )
    made = result(runs.make(tmp_path / "b", *jobs, targets=2, seconds=4))
    first, second = made["by_stage"]
    assert (first["stage"], first["jobs"]) == (0, ["small"])
    assert (second["stage"], second["jobs"]) == (1, ["large", "beside"])
    rates = [{line["name"]: line["iops"] for line in stage["targets"]} for stage in made["by_stage"]]
    assert rates[0] == pytest.approx({"/mnt/test/data0": 2000, "/mnt/test/data1": 2000}, rel=0.1)
    assert rates[1] == pytest.approx({"/mnt/test/data0": 100, "/mnt/test/data1": 400}, rel=0.2)
    assert set(second["targets"][1]) & {"read", "write"} == {"write"}
    assert second["total"]["operations"] == sum(line["operations"] for line in second["targets"])
    assert second["hosts"] == []


@pytest.mark.in_turn
def test_a_run_that_was_never_sealed_says_that_damage_may_go_unnoticed(tmp_path: Path) -> None:
    """Rows of a killed run have no hash: removed ones were missed by nobody."""
    told = [
        [note["text"] for note in result(runs.make(tmp_path / name, seconds=2, seal=seal))["notes"]]
        for name, seal in (("killed", None), ("sealed", "complete"))
    ]
    said = "the run was never sealed: damage to what it wrote in its last second may go unnoticed"
    assert (said in told[0], said in told[1]) == (True, False)
    assert said in find_results.bundle(Bundle.open(tmp_path / "killed")).notes
    assert said not in find_results.bundle(Bundle.open(tmp_path / "sealed")).notes


@pytest.mark.in_turn
def test_a_run_of_one_stage_is_not_told_twice(tmp_path: Path) -> None:
    assert result(runs.make(tmp_path / "b", seconds=2))["by_stage"] == []


@pytest.mark.in_turn
def test_cpu_is_that_of_the_stages_a_job_ran_in(tmp_path: Path) -> None:
    ticks = [
        {"type": "tick", "t_ns": 2_000_000_000, "cpu_user_ns": 1_000_000, "cpu_system_ns": 3_000_000},
        {"type": "tick", "t_ns": 4_000_000_000, "cpu_user_ns": 9_000_000, "cpu_system_ns": 3_000_000},
    ]
    jobs = (MadeJob("a"), MadeJob("b", stage=1, group=1), MadeJob("c", stage=1, group=1))
    run = runs.make(tmp_path / "b", *jobs, seconds=2, seal=None, extra_events=ticks)
    made = result(run)
    a, b, c = made["jobs"]
    assert a["cpu"]["user_ns"] == 1_000_000
    assert a["cpu"]["user_ns_per_io"] == pytest.approx(1_000_000 / a["operations"])
    assert a["cpu"]["shared"] is False
    assert b["cpu"] == c["cpu"]
    assert b["cpu"]["user_ns"] == 8_000_000
    assert b["cpu"]["shared"] is True
    assert made["cpu"]["user_ns"] == 9_000_000
    assert made["status"] == "partial"
    assert made["exit_code"] is None


def test_time_in_which_workers_spun_is_told_and_laid_on_the_monitors_rows(tmp_path: Path) -> None:
    events = [
        {"type": "tick", "t_ns": 1_000_000_000, "spun_ns": 200_000_000},
        {"type": "tick", "t_ns": 2_000_000_000, "spun_ns": 800_000_000},
        {"type": "end", "t_ns": 2_000_000_000, "spun_ns": 800_000_000},
    ]
    run = runs.make(tmp_path / "b", MadeJob("a"), seconds=2, seal=None, extra_events=events)
    summary = summarise(Bundle.open(run.path))
    host = pl.DataFrame({"t_ns": [500_000_000, 1_500_000_000], "dt_ns": [500_000_000, 1_000_000_000]})
    assert cpu.with_spun(summary.measurement, host)[cpu.SPUN].to_list() == [100_000_000, 400_000_000]
    assert "workers spun for completions for 800\N{NO-BREAK SPACE}ms of CPU time" in " ".join(
        note.text for note in summary.notes
    )


@pytest.mark.in_turn
def test_problems_are_told_once_with_their_place(tmp_path: Path) -> None:
    error: dict[str, Any] = {
        "type": "io_error",
        "t_ns": 5,
        "stream": 0,
        "target": 0,
        "op": 1,
        "offset": 8192,
        "bytes": 4096,
    }
    told = [
        error | {"errno": 28},
        error | {"errno": 28, "offset": 4096},
        error | {"errno": 0, "moved": 512},
        {"type": "hung", "t_ns": 9, "stream": 0, "target": 0, "op": 0, "offset": 0, "age_ns": 3_000_000_000},
        {"type": "kill", "why": "it fell silent"},
        {"type": "note", "text": "no fixed buffers", "target": 0},
    ]
    made = result(runs.make(tmp_path / "b", seconds=1, extra_events=told))
    full, short, hung, engine = made["errors"]
    assert (full["kind"], full["count"], full["errno"], full["offset_bytes"]) == ("io_error", 2, 28, 8192)
    assert full["message"] == (
        "/mnt/test/data0: write of 4096 bytes at offset 8192: No space left on device (ENOSPC)"
    )
    assert (short["kind"], short["count"]) == ("short", 1)
    assert hung["message"].endswith("did not come back within 3.0 s")
    assert engine["kind"] == "engine"
    assert made["exit_code"] == 1
    assert made["notes"] == [{"kind": "engine", "text": "no fixed buffers", "where": "/mnt/test/data0"}]


@pytest.mark.in_turn
def test_a_run_without_data_has_nulls_and_no_numbers(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", seconds=1)
    (run.path / "samples.parquet").unlink()
    runs.reseal(run.path)
    total = result(run)["total"]
    assert total["operations"] == 0
    assert total["iops"] is None
    assert total["latency_ns"] is None
    assert "read" not in total


if __name__ == "__main__":
    print(json.dumps(document.schema(), indent=2))  # noqa: T201 - this is how the schema is written
