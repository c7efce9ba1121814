"""The engine by itself: real runs on small targets, checked by its own counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from lab.steady_device import simulated

from loadstone.engine.binary import find
from loadstone.engine.process import EngineProcess
from tests.support.plans import IO_URING, NULL, layout, plan, stream, target, worker

from .runs import arrow_rows, finish, run, start

if TYPE_CHECKING:
    from pathlib import Path

ZERO = target("/dev/zero", "char", 1 << 30)
DEV_NULL = target("/dev/null", "char", 1 << 30)


def assert_conserved(outcome: Any) -> None:
    """Issued = completed + failed + hung, and the samples add up to what streams counted."""
    ends = outcome.of("stream_end")
    hung = len(outcome.of("hung"))
    issued = sum(sum(end["issued"]) for end in ends)
    completed = [sum(end["completed"][op] for end in ends) for op in range(4)]
    failed = sum(sum(end["failed"]) for end in ends)
    assert issued == sum(completed) + failed + hung
    assert [outcome.total("ops", op=op) for op in range(4)] == completed
    assert outcome.total("errors") == failed
    for row in outcome.rows:
        for kind in ("lat", "slat", "clat"):
            assert sum(row[f"{kind}_count"]) == row["ops"]
            assert row[f"{kind}_bucket"] == sorted(row[f"{kind}_bucket"])
        assert row["end_ns"] >= row["start_ns"]


def test_bytes_are_moved_exactly_and_land_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    size = 1 << 20
    made = target(path, size_bytes=size, create=True, layout=layout(size))
    outcome = run(plan([made], [stream(read_percent=0, bytes=size, at_end=True)]), tmp_path)
    assert outcome.code == 0
    assert_conserved(outcome)
    assert outcome.total("bytes", op=1) == size
    assert outcome.total("ops", op=3) == 1
    assert outcome.of("stream_end")[0]["reason"] == "bytes"
    blocks = {path.read_bytes()[at : at + 4096] for at in range(0, size, 4096)}
    assert len(blocks) == size // 4096, "two blocks have the same content"


def test_operations_are_limited(tmp_path: Path) -> None:
    outcome = run(plan([ZERO], [stream(ops=1001)]), tmp_path)
    assert outcome.total("ops") == 1001
    assert outcome.of("stream_end")[0]["reason"] == "ops"
    assert outcome.of("end")[0]["ops"] == 1001


@pytest.mark.parametrize("backend", [None, NULL], ids=["io_uring", "null"])
def test_ramp_and_result_are_kept_apart(tmp_path: Path, backend: dict[str, Any] | None) -> None:
    one = stream(ramp_ns=150_000_000, runtime_ns=200_000_000, time_based=True)
    outcome = run(plan([ZERO], [one], [worker(backend)]), tmp_path)
    assert_conserved(outcome)
    ramp = [row for row in outcome.rows if row["ramp"]]
    measured = [row for row in outcome.rows if not row["ramp"]]
    assert max(row["end_ns"] for row in ramp) == 150_000_000
    assert min(row["start_ns"] for row in measured) == 150_000_000
    assert [row["interval"] for row in outcome.rows] == sorted(row["interval"] for row in outcome.rows)
    assert all(row["ops"] > 0 for row in ramp)
    end = outcome.of("stream_end")[0]
    assert (end["reason"], end["ramp_end_ns"]) == ("runtime", 150_000_000)
    assert end["ended_ns"] >= 350_000_000


def test_stages_run_one_after_the_other(tmp_path: Path) -> None:
    streams = [stream(ops=500), stream(ops=700, worker=1)]
    outcome = run(plan([ZERO], streams, [worker(), worker(stage=1)]), tmp_path)
    assert_conserved(outcome)
    assert (outcome.total("ops", stage=0), outcome.total("ops", stage=1)) == (500, 700)
    first, second = sorted(outcome.of("stream_end"), key=lambda end: end["stream"])
    assert second["started_ns"] >= first["ended_ns"]
    assert [event["stage"] for event in outcome.of("stage")] == [1]


def test_a_stream_that_ends_its_stage_ends_the_others(tmp_path: Path) -> None:
    streams = [stream(ops=100, ends_stage=True), stream(runtime_ns=20_000_000_000, time_based=True)]
    outcome = run(plan([ZERO], streams), tmp_path)
    reasons = {end["stream"]: end["reason"] for end in outcome.of("stream_end")}
    assert reasons == {0: "ops", 1: "stopped"}


def test_a_silent_interval_still_has_a_row(tmp_path: Path) -> None:
    rate = {
        "amount": {"unit": "ops", "per_second": 2.5},
        "process": "linear",
        "profile": [],
        "phase": 0.0,
        "minimum": 0.0,
        "min_window_ns": 0,
    }
    one = stream(pace={"read": rate}, runtime_ns=900_000_000, time_based=True)
    outcome = run(plan([ZERO], [one]), tmp_path)
    assert_conserved(outcome)
    assert outcome.total("ops") == 3
    assert {row["interval"] for row in outcome.rows} >= set(range(9))
    assert sum(1 for row in outcome.rows if row["ops"] == 0) >= 5
    assert sum(sum(row["wait_count"]) for row in outcome.rows) == 3


def test_a_short_file_is_an_error_at_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(8192))
    other = stream(ops=300, files=[{"target": 1, "cell": 1, "offset_bytes": 0, "length_bytes": 1 << 20}])
    streams = [stream(random_percent=0, bytes=1 << 20, iodepth=1), other]
    outcome = run(plan([target(path), ZERO], streams), tmp_path)
    assert outcome.code == 0
    assert_conserved(outcome)
    failure = outcome.of("io_error")[0]
    assert (failure["target"], failure["offset"], failure["moved"], failure["errno"]) == (0, 8192, 0, 0)
    reasons = {end["stream"]: end["reason"] for end in outcome.of("stream_end")}
    assert reasons == {0: "error", 1: "ops"}, "one stream's error must not touch another"


@pytest.mark.parametrize("ring", [False, True])
def test_a_last_write_that_calls_for_a_flush_does_not_keep_the_flush_at_the_end_waiting(
    tmp_path: Path, ring: bool
) -> None:
    """It was waited for until its grace was over, a minute later, and never made."""
    size = 1 << 20
    made = target(tmp_path / "new", size_bytes=size, create=True, layout=layout(size))
    last = stream(read_percent=0, bytes=size, fsync_every=64, at_end=True, iodepth=1)
    worked = run(plan([made], [last], [worker(IO_URING if ring else {"type": "psync"})]), tmp_path)
    assert (worked.total("ops", op=1), worked.total("ops", op=3)) == (256, 4)
    assert worked.of("end")[0]["t_ns"] < 30_000_000_000


def test_an_error_is_named_and_may_be_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    # Flushing a pipe-like device is EINVAL: a real error without special hardware.
    policy: dict[str, Any] = {"continue_read": False, "continue_write": True} | {
        "ignore_read": [],
        "ignore_write": [],
        "continue_after": [],
    }
    streams = [stream(read_percent=0, ops=200, fsync_every=1, errors=policy, iodepth=1)]
    outcome = run(plan([DEV_NULL], streams), tmp_path)
    assert_conserved(outcome)
    assert outcome.of("stream_end")[0]["reason"] == "ops"
    # As fio: a flush is made before the next write, so there is none after the last.
    assert outcome.total("errors", op=3) == 199
    events = outcome.of("io_error")
    assert len(events) == 100, "errors of one target are told a hundred times, then counted"
    assert events[0]["errno"] == 22


@pytest.mark.parametrize("how", ["eof", "stop", "term"])
def test_it_stops_when_told(tmp_path: Path, how: str) -> None:
    process = start(plan([ZERO], [stream(runtime_ns=60_000_000_000, time_based=True)]), tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or json.loads(lines[-1])["type"] != "tick":
        lines.append(process.stdout.readline())
    if how == "eof":
        process.stdin.close()
        process.stdin = None
    elif how == "stop":
        process.stdin.write("stop\n")
        process.stdin.flush()
    else:
        process.send_signal(signal.SIGTERM)
    outcome = finish(process, tmp_path)
    assert outcome.code == 0
    assert outcome.of("stream_end")[0]["reason"] == "stopped"
    assert outcome.of("end")[0]["reason"] == "stopped"
    assert_conserved(outcome)


@pytest.mark.parametrize("how", ["gone", "quiet", "paused"])
def test_it_stops_when_nobody_is_left_who_wants_it(tmp_path: Path, how: str) -> None:
    """Its standard input is open all the while, as that of an agent that was stopped is."""
    document = plan([ZERO], [stream(runtime_ns=60_000_000_000, time_based=True)])
    (tmp_path / "plan.json").write_text(json.dumps(document))
    ours, theirs = os.pipe()
    with EngineProcess(tmp_path / "plan.json", tmp_path, wanted_by=[ours]) as engine:
        os.close(ours)
        events = engine.events(60)
        while (next(events) or {})["type"] != "tick":
            pass
        began_s = time.monotonic()
        if how == "gone":
            os.close(theirs)
        else:
            engine.end_unless_told_within(1.0)
        if how == "paused":
            time.sleep(0.5)  # It must have heard the limit.
            os.kill(engine.pid, signal.SIGSTOP)
            time.sleep(1.5)
            # A word that came while it could not hear is too late.
            engine.end_unless_told_within(60.0)
            os.kill(engine.pid, signal.SIGCONT)
        rest = [event for event in events if event is not None]
        took_s = time.monotonic() - began_s
    if how != "gone":
        os.close(theirs)
        assert took_s >= 1.0
    assert [event["reason"] for event in rest if event["type"] == "end"] == ["stopped"]
    assert any("the run was ended: " in event["text"] for event in rest if event["type"] == "talk")


def test_a_stage_and_a_stream_end_when_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    forever = {"runtime_ns": 60_000_000_000, "time_based": True}
    streams = [stream(**forever), stream(worker=1, **forever), stream(worker=2, ops=100)]
    document = plan([ZERO], streams, [worker(), worker(), worker(stage=1)], grace_ns=5_000_000_000)
    process = start(document, tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None

    def tell_and_await(order: str, kind: str) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{order}\n")
        process.stdin.flush()
        lines.append(next(line for line in process.stdout or () if f'"type":"{kind}"' in line))

    lines = [next(line for line in process.stdout if '"type":"start"' in line)]
    tell_and_await("end-stream 1", "stream_end")
    assert json.loads(lines[-1])["stream"] == 1
    tell_and_await("end-stage 0", "stream_end")
    assert json.loads(lines[-1])["stream"] == 0
    outcome = finish(process, tmp_path)
    assert outcome.code == 0
    assert [event["stage"] for event in outcome.of("stage")] == [1]
    assert [end["reason"] for end in outcome.of("stream_end")] == ["ops"]
    assert outcome.of("end")[0]["reason"] == "done"


def test_a_killed_run_leaves_samples_that_open(tmp_path: Path) -> None:
    process = start(plan([ZERO], [stream(runtime_ns=60_000_000_000, time_based=True)]), tmp_path)
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["type"] != "tick":
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    rows = arrow_rows(tmp_path / "out" / "samples.arrows")
    assert rows
    assert rows[0]["ops"] > 0


def test_every_io_can_be_recorded(tmp_path: Path) -> None:
    outcome = run(plan([ZERO], [stream(ops=20_000, log_ios=True)]), tmp_path)
    ios = arrow_rows(outcome.out / "ios.arrows")
    assert len(ios) == 20_000
    assert {io["offset"] % 4096 for io in ios} == {0}
    assert all(io["lat_ns"] >= io["clat_ns"] for io in ios)
    passes = [io["offset"] for io in ios]
    assert len(set(passes)) == (1 << 20) // 4096, "every block of the range"


def test_too_much_memory_is_refused_before_anything(tmp_path: Path) -> None:
    path = tmp_path / "untouched"
    made = target(path, create=True, layout=layout(1 << 20))
    outcome = run(plan([made], [stream(ops=1, iodepth=1024)], memory_limit_bytes=1 << 20), tmp_path)
    assert outcome.code == 2
    assert "/memory_limit_bytes" in outcome.of("fatal")[0]["message"]
    assert not path.exists()


@pytest.mark.in_turn
def test_memory_is_as_announced(tmp_path: Path) -> None:
    size = 1 << 22
    made = target(tmp_path / "data", size_bytes=size, create=True, layout=layout(size))
    streams = [stream(read_percent=0, ops=20_000, iodepth=512, block_bytes=32768, length_bytes=size)]
    outcome = run(plan([made], streams), tmp_path)
    assert outcome.of("end")[0]["rss_peak_bytes"] <= 1.1 * outcome.of("hello")[0]["memory_bytes"]


def test_another_file_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))
    stat = path.stat()
    identity = {"device": stat.st_dev, "inode": stat.st_ino + 1, "special": 0, "born_ns": None}
    outcome = run(plan([target(path, identity=identity)], [stream(read_percent=0, ops=1)]), tmp_path)
    assert outcome.code == 3
    assert "not what was checked" in outcome.of("fatal")[0]["message"]
    assert path.read_bytes() == bytes(1 << 20)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"worker": 3}, "/streams/0/worker"),
        ({"iodepth": 0}, "/streams/0/iodepth"),
        ({"length_bytes": 1 << 40}, "/streams/0/files/0/length_bytes"),
        ({"files": []}, "/streams/0/files"),
        ({"ops": 0}, "/streams/0/limits"),
    ],
)
def test_a_bad_plan_is_refused_with_the_field(tmp_path: Path, changes: dict[str, Any], path: str) -> None:
    document = plan([target(tmp_path / "x")], [stream(**({"ops": 1} | changes))])
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    done = subprocess.run([find(), "check", file], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    fatal = json.loads(done.stdout)
    assert (fatal["type"], fatal["code"]) == ("fatal", 2)
    assert fatal["message"].startswith(path)


def test_ios_that_never_come_back_are_reported_and_the_run_ends(tmp_path: Path) -> None:
    device = simulated(100_000, seed=3, servers=8, hang_ppm=100)
    one = stream(runtime_ns=500_000_000, time_based=True, iodepth=64)
    virtual = target("", "virtual", 1 << 30)
    outcome = run(plan([virtual], [one], [worker(device)]), tmp_path)
    assert outcome.code == 0
    assert_conserved(outcome)
    hung = outcome.of("hung")
    assert hung
    assert all(event["age_ns"] >= 1_000_000_000 for event in hung), "younger than the grace"
    end = outcome.of("stream_end")[0]
    assert end["reason"] == "hung"
    assert end["t_ns"] <= 500_000_000 + 1_000_000_000 + 100_000_000


def test_the_simulation_repeats_exactly(tmp_path: Path) -> None:
    device = simulated(50_000, seed=3, servers=4, service="exponential")
    virtual = target("", "virtual", 1 << 30)
    one = stream(runtime_ns=2_000_000_000, time_based=True)
    outcomes = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        document = plan([virtual], [one], [worker(device)])
        outcomes.append(run(document, tmp_path / name))
    assert outcomes[0].rows == outcomes[1].rows
    # Four servers of 50 microseconds each: 80,000 per second.
    assert outcomes[0].total("ops") == pytest.approx(160_000, rel=0.02)


@pytest.mark.parametrize(("field", "value"), [("interval_ns", 2**64 - 1), ("grace_ns", 2**64 - 1)])
def test_times_out_of_the_clocks_range_are_refused(tmp_path: Path, field: str, value: int) -> None:
    """Regression, found by fuzzing Plans: an interval of 2^64 - 1 ns hung the engine before its start."""
    file = tmp_path / "plan.json"
    document = plan([target("/dev/zero", "char")], [stream(ops=1)]) | {field: value}
    file.write_text(json.dumps(document))
    done = subprocess.run([find(), "check", file], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"/{field}: is {value}, must be" in done.stdout
