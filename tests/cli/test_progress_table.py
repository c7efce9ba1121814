"""The live table's numbers."""

from __future__ import annotations

from typing import Any

from loadstone.api.jobs.plan_lines import stage_lengths_ns
from loadstone.api.jobs.progress_table import ProgressTable
from tests.guard.plans import plan, target
from tests.support.runs import MadeJob, plan_of


def tick(t_ns: int, *rows: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tick", "t_ns": t_ns, "interval": 0, "rows": list(rows)}


def line(cell: int = 0, op: str = "read", **changes: Any) -> dict[str, Any]:
    base = {"cell": cell, "op": op, "ramp": False, "ops": 100, "bytes": 409600, "errors": 0}
    return base | {"p50_ns": 10, "p99_ns": 20, "max_ns": 30, "inflight": 4} | changes


def board(**limits: Any) -> ProgressTable:
    return ProgressTable(plan(target("/dev/a"), target("/dev/b"), **limits))


def test_rates_are_over_the_time_since_the_last_look() -> None:
    one = board()
    one.event({"type": "start"})
    one.event(tick(1_000_000_000, line()))
    rows, total, _ = one.take()
    assert rows[0].iops == 100
    assert total is not None
    assert total.bytes_per_s == 409600
    one.event(tick(1_500_000_000, line(ops=10)))
    one.event(tick(3_000_000_000, line(ops=20)))
    rows, _, _ = one.take()
    assert rows[0].iops == 15


def test_targets_of_a_job_add_up_and_latency_is_an_upper_bound() -> None:
    one = board()
    one.event(tick(1_000_000_000, line(0, p99_ns=50, inflight=3), line(1, p99_ns=40, inflight=5, errors=2)))
    rows, total, errors = one.take()
    assert len(rows) == 1
    assert (rows[0].ops, rows[0].p99_ns, rows[0].inflight, errors) == (200, 50, 8, 2)
    assert total is not None
    assert total.errors == 2


def test_syncs_have_a_row_but_no_share_in_the_total() -> None:
    one = board()
    one.event(tick(1_000_000_000, line(op="write"), line(op="sync", ops=7)))
    rows, total, _ = one.take()
    assert [(row.op, row.ops) for row in rows] == [("write", 100), ("sync", 7)]
    assert total is not None
    assert total.ops == 100


def test_opens_closes_and_connections_have_no_share_in_the_total() -> None:
    one = board()
    others = [line(op=op, ops=7, max_ns=10**9) for op in ("open", "close", "connection")]
    one.event(tick(1_000_000_000, line(op="write"), *others))
    rows, total, _ = one.take()
    assert [row.op for row in rows] == ["write", "open", "close", "connection"]
    assert total is not None
    assert (total.ops, total.max_ns) == (100, 30)


def test_nothing_done_is_no_rate() -> None:
    rows, total, _ = board().take()
    assert (rows, total) == ([], None)


def test_time_left_counts_from_the_stage_and_is_unknown_for_bytes() -> None:
    timed = plan(target("/dev/a"), runtime_ns=10_000_000_000, ramp_ns=2_000_000_000)
    assert stage_lengths_ns(timed) == [12_000_000_000]
    one = ProgressTable(timed)
    assert one.left_ns() is None
    one.event({"type": "start"})
    one.event(tick(4_000_000_000, line()))
    assert one.left_ns() == 8_000_000_000
    one.event(tick(14_000_000_000, line()))
    assert one.left_ns() == 0
    unlimited = board()
    unlimited.event({"type": "start"})
    assert unlimited.left_ns() is None


def test_layout_adds_up_over_targets_and_ends_with_the_start() -> None:
    one = board()
    one.event({"type": "layout", "target": 0, "done_bytes": 5, "total_bytes": 10})
    one.event({"type": "layout", "target": 1, "done_bytes": 1, "total_bytes": 10})
    one.event({"type": "layout", "target": 0, "done_bytes": 9, "total_bytes": 10})
    layout = one.layout()
    assert layout is not None
    assert (layout.done_bytes, layout.total_bytes) == (10, 20)
    one.event({"type": "start"})
    assert one.layout() is None


def test_what_is_told_of_a_phase_after_its_end_is_no_row_of_the_next() -> None:
    jobs = (MadeJob("first", {"read": 100.0}), MadeJob("second", {"write": 100.0}, stage=1))
    one = ProgressTable(plan_of(jobs, 1, 10.0, 500_000_000))
    one.event({"type": "start"})
    one.event(tick(9_500_000_000, line(0)))
    assert one.event({"type": "stage", "t_ns": 10_000_000_000, "stage": 1}) is not None
    one.event(tick(10_500_000_000, line(0, ops=1, errors=3), line(1, "write", ops=50)))
    rows, total, errors = one.take()
    assert [(row.job, row.op, row.iops) for row in rows] == [("second", "write", 100)]
    assert total is not None
    assert (total.ops, errors) == (50, 3)
