"""How streams begin and end by what others do, and by what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lab.steady_device import simulated

from tests.support.plans import NULL, plan, stream, target, worker

from .runs import run

if TYPE_CHECKING:
    from pathlib import Path

ZERO = target("/dev/zero", "char", 1 << 30)
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


def device(**changes: Any) -> dict[str, Any]:
    """A worker with a simulated device: one I/O at a time, each 1 ms."""
    return worker(simulated(MILLISECOND, **changes))


VIRTUAL = target("sim", "virtual", 1 << 30)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.in_turn
def test_a_stream_waits_for_others_and_then_its_delay(tmp_path: Path, workers: int) -> None:
    first = stream(runtime_ns=300 * MILLISECOND, time_based=True)
    beside = stream(runtime_ns=900 * MILLISECOND, time_based=True, worker=workers - 1)
    then = stream(ops=10, wait_for=[0], start_delay_ns=100 * MILLISECOND, worker=workers - 1)
    last = stream(ops=10, wait_for=[0, 2])
    document = plan([ZERO], [first, beside, then, last], [worker(NULL)] * workers)
    outcome = run(document, tmp_path)
    assert outcome.code == 0
    ends = {end["stream"]: end for end in outcome.of("stream_end")}
    assert [ends[n]["reason"] for n in range(4)] == ["runtime", "runtime", "ops", "ops"]
    assert ends[2]["started_ns"] >= ends[0]["ended_ns"] + 100 * MILLISECOND
    assert ends[3]["started_ns"] >= ends[2]["ended_ns"]
    assert ends[3]["ended_ns"] < ends[1]["ended_ns"], "it waited for a stream it was not told to"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wait_for": [1]}, "/streams/1/wait_for/0"),
        ({"wait_for": [0], "worker": 1}, "does not run beside"),
        (
            {"search": {"target_ns": 1, "window_ns": 0, "percentile": 9.0, "keep_on": False}},
            "/search/target_ns",
        ),
        ({"search": {"target_ns": 1, "window_ns": 1, "percentile": 101.0, "keep_on": False}}, "percentile"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    streams = [stream(ops=10), stream(ops=10, **changes)]
    workers = [worker(NULL), worker(NULL, stage=1)][: 1 + changes.get("worker", 0)]
    outcome = run(plan([ZERO], streams, workers), tmp_path)
    assert outcome.code == 2
    assert words in outcome.of("fatal")[0]["message"]


def search(keep_on: bool = False, percentile: float = 100.0) -> dict[str, Any]:
    """At most 5.5 ms: with one server of 1 ms that is depth 5."""
    target_ns = 5 * MILLISECOND + 500_000
    return {
        "target_ns": target_ns,
        "window_ns": 100 * MILLISECOND,
        "percentile": percentile,
        "keep_on": keep_on,
    }


@pytest.mark.parametrize("percentile", [100.0, 90.0])
def test_the_largest_depth_that_meets_a_latency_is_found_and_measured(
    tmp_path: Path, percentile: float
) -> None:
    one = stream(iodepth=64, runtime_ns=60 * SECOND, time_based=True, search=search(percentile=percentile))
    outcome = run(plan([VIRTUAL], [one], [device()]), tmp_path)
    (end,) = outcome.of("stream_end")
    assert end["reason"] == "found"
    assert outcome.of("depth")[-1] | {"t_ns": 0} == {
        "type": "depth",
        "t_ns": 0,
        "stream": 0,
        "depth": 5,
        "found": True,
    }
    rows = [row for row in outcome.rows if not row["ramp"]]
    assert sum(row["ops"] for row in rows) == pytest.approx(100, abs=7)
    # At depth 5 each waits for the four before it.
    assert max(row["lat_max_ns"] for row in rows) == 5 * MILLISECOND
    assert end["ended_ns"] - end["ramp_end_ns"] == pytest.approx(100 * MILLISECOND, abs=5 * MILLISECOND)
    assert sum(row["wait_sum_ns"] for row in outcome.rows) == 0


def test_a_search_that_keeps_on_counts_everything_and_runs_its_time(tmp_path: Path) -> None:
    one = stream(iodepth=64, runtime_ns=5 * SECOND, time_based=True, search=search(keep_on=True))
    outcome = run(plan([VIRTUAL], [one], [device()]), tmp_path)
    assert outcome.of("stream_end")[0]["reason"] == "runtime"
    assert not any(row["ramp"] for row in outcome.rows)
    assert not any(event["found"] for event in outcome.of("depth"))


def test_a_target_that_one_io_misses_and_a_late_io_end_the_stream(tmp_path: Path) -> None:
    missed = search() | {"target_ns": MILLISECOND // 2}
    streams = [
        stream(iodepth=8, runtime_ns=SECOND, time_based=True, search=missed),
        stream(iodepth=4, runtime_ns=SECOND, time_based=True, max_latency_ns=[3 * MILLISECOND, 0, 0]),
    ]
    streams[1] |= {"worker": 1}
    outcome = run(plan([VIRTUAL], streams, [device(), device()]), tmp_path)
    assert [end["reason"] for end in outcome.of("stream_end")] == ["latency", "latency"]
    said = [note["text"] for note in outcome.of("note")]
    assert "the latency target is missed with a single I/O in flight" in said
    assert any("took 4.000 ms, longer than it may" in text for text in said)


def rule(**changes: Any) -> dict[str, Any]:
    return {
        "streams": [0, 1],
        "metric": "ops",
        "slope": False,
        "limit": 5.0,
        "percent": True,
        "after_ns": 0,
        "sample_ns": 200 * MILLISECOND,
        "samples": 3,
    } | changes


def test_streams_end_together_when_they_are_steady(tmp_path: Path) -> None:
    streams = [stream(runtime_ns=20 * SECOND, time_based=True) for _ in range(2)]
    document = plan(
        [VIRTUAL], streams, [device()], steady=[rule(after_ns=SECOND), rule(after_ns=60 * SECOND)]
    )
    outcome = run(document, tmp_path)
    assert [end["reason"] for end in outcome.of("stream_end")] == ["stopped", "stopped"]
    assert outcome.of("end")[0]["reason"] == "done"
    reached, missed = outcome.of("steady")
    assert reached["attained"]
    assert reached["t_ns"] == 1600 * MILLISECOND
    assert reached["ops_per_second"] == [1000, 1000, 1000]
    assert reached["bytes_per_second"] == [4096 * 1000] * 3
    assert reached["criterion"] == 0.0
    assert (missed["rule"], missed["attained"], missed["criterion"]) == (1, False, None)
    assert missed["ops_per_second"] == []


def test_a_rule_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for changes in ({"limit": 0.0}, {"samples": 1}, {"sample_ns": 150 * MILLISECOND}, {"streams": [7]}):
        outcome = run(plan([ZERO], [stream(ops=1)] * 2, steady=[rule(**changes)]), tmp_path)
        assert outcome.code == 2
        assert f"/steady/0/{next(iter(changes))}" in outcome.of("fatal")[0]["message"]
