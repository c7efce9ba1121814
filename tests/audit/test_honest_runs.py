"""What honest runs were accused of, and is evidence of nothing: their end, their own waves, their queues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadstone.analysis.histogram import Histogram, values_of
from loadstone.analysis.latency import Latency
from loadstone.analysis.time_structure import FineRates
from loadstone.audit.case import OpMeasurement
from loadstone.audit.rules import (
    depth_not_reached,
    generator_cpu,
    not_steady,
    page_cache_read,
    throttled,
    time_structure,
    writeback_absorbed,
)
from loadstone.path.layers import DataPath, Layer
from loadstone.probe.figures import COLUMNS, of_stage
from loadstone.probe.probes import depth_one
from tests.audit.cases import SECOND_NS, disk, file, is_clear, job, one, run

SAMPLE_NS = 10_000_000
DRAINED = [1000.0] * 60 + [100.0] * 20
"""Six seconds of load, and two in which it waited for what was in flight."""


def test_what_ends_behind_the_runtime_is_no_course() -> None:
    case = run(DRAINED)
    assert not is_clear(not_steady.RULE.judge(case))
    ended = replace(case, issued_until_ns=6 * SECOND_NS, drained_s=2.0)
    assert is_clear(not_steady.RULE.judge(ended))


def test_a_drained_queue_is_no_depth_that_was_not_kept() -> None:
    # Of 8 s, 6 with 100 outstanding: the mean is 75.
    case = run(DRAINED, jobs=(job(iodepth=100),), mean_ns=75 * 8e9 / 6200)
    assert one(depth_not_reached.RULE, case).evidence["outstanding"] == pytest.approx(75, rel=0.01)
    assert is_clear(depth_not_reached.RULE.judge(replace(case, issued_until_ns=6 * SECOND_NS, drained_s=2.0)))


def test_probes_do_not_count_what_they_wait_for() -> None:
    def row(at: int, ops: int) -> dict[str, object]:
        start = at * SECOND_NS // 10
        told: dict[str, object] = dict.fromkeys(COLUMNS, 0)
        told |= {"interval": at, "start_ns": start, "ops": ops, "ramp": False}
        return told | {"end_ns": start + SECOND_NS // 10}

    samples = pl.DataFrame([row(at, 100) for at in range(10)] + [row(10, 10), row(11, 1)])
    whole, loaded = of_stage(samples, 0), of_stage(samples, 0, SECOND_NS)
    assert whole is not None
    assert loaded is not None
    assert loaded.rate == pytest.approx(1000)
    assert whole.rate == pytest.approx(1011 / 1.2)


def bucket_of(latency_ns: float) -> int:
    every = np.arange(len(Histogram.empty().counts))
    return int(np.argmin(np.abs(values_of(every) - latency_ns)))


def waves(period_ns: float, on: float, mean_ns: float) -> FineRates:
    """Operations that end in the first part `on` of each period, counted in samples of 10 ms."""
    per_sample = 50
    ticks = np.arange(1000 * per_sample) * SAMPLE_NS / per_sample
    ends = ((ticks % period_ns) < on * period_ns).reshape(1000, per_sample).sum(axis=1)
    assert mean_ns > 0
    return FineRates(
        ((np.arange(1000) + 1) * SAMPLE_NS).astype(np.float64),
        np.full(1000, SAMPLE_NS, np.float64),
        ends.astype(np.float64),
    )


@pytest.mark.parametrize(
    ("period_ns", "on", "mean_ns", "found"),
    [
        (13.4e6, 0.2, 60e6, False),  # waves of even latencies, faster than two samples
        (100e6, 0.65, 60e6, True),  # a quota: nothing for three samples of each ten
        (100e6, 0.65, 1e6, True),
    ],
)
def test_waves_faster_than_the_samples_are_no_slices(
    period_ns: float, on: float, mean_ns: float, *, found: bool
) -> None:
    case = run(5000, fine=waves(period_ns, on, mean_ns))
    latency = Latency(50_000, mean_ns, mean_ns, mean_ns / 2)
    case = replace(case, total=replace(case.total, latencies={"lat": latency}))
    answer = time_structure.RULE.judge(case)
    told = [one.evidence["pattern"] for one in answer] if isinstance(answer, tuple) else []
    assert told == (["comb"] if found else [])


@pytest.mark.parametrize("flush_ns", [1.2e9, None])
def test_a_load_is_fast_until_its_first_flushes_come_back(
    flush_ns: float | None,
) -> None:
    """At depth 128 with a flush after each write nothing waits at first; then 128 flushes wait."""
    course = [3000.0] * 12 + [340.0] * 88
    flush = OpMeasurement(latencies={"lat": Latency(300, flush_ns)}) if flush_ns else None
    ops = np.random.default_rng(5).poisson(np.repeat(course, 10) / 100)
    ends = ((np.arange(1000) + 1) * SAMPLE_NS).astype(np.float64)
    fine = FineRates(ends, np.full(1000, SAMPLE_NS, np.float64), ops.astype(np.float64))
    case = run(course, op="write", flush=flush, fine=fine)
    answers = [rule.judge(case) for rule in (time_structure.RULE, not_steady.RULE)]
    assert [is_clear(answer) for answer in answers] == [flush_ns is not None] * 2


@pytest.mark.parametrize(("depth", "effect"), [(4, "suspect"), (16, "note")])
def test_two_modes_no_farther_apart_than_the_queue_is_long_may_be_the_queue(depth: int, effect: str) -> None:
    buckets = np.array([bucket_of(2e6), bucket_of(20e6)])
    after = Latency(8000, histogram=Histogram.of(buckets, np.array([5000, 3000])))
    case = run(1000, jobs=(job(iodepth=depth),))
    reads = case.ops["read"]
    case = replace(case, ops={"read": replace(reads, latencies=reads.latencies | {"clat": after})})
    assert one(time_structure.RULE, case).effect == effect


def test_stolen_time_and_waiting_above_the_device_are_one_thing() -> None:
    told = {
        f"cpu.all.{name}_ns": value * 1e9 for name, value in (("user", 1.0), ("steal", 0.3), ("idle", 0.7))
    }
    apart = one(generator_cpu.RULE, run(1000, extra=told))
    together = one(generator_cpu.RULE, run(1000, extra=told, device_ns=3e5))
    assert (apart.effect, together.effect) == ("suspect", "limited")
    assert together.confidence > apart.confidence
    assert "above the device" in together.text


def overlay(*, copied_up: bool) -> DataPath:
    layers = (
        Layer(name="/merged/file", kind="file", below=("overlay",), facts={"copied_up": copied_up}),
        Layer(name="overlay", kind="file_system", below=("upper",), facts={"type": "overlay"}),
        Layer(name="upper", kind="file_system", below=("memory",), facts={"type": "tmpfs"}),
        Layer(name="memory", kind="memory"),
    )
    return DataPath(target="/merged/file", layers=layers, gaps=())


def test_an_overlay_whose_copies_lie_in_memory_is_memory() -> None:
    target = file(file_system="overlay", path_layers=overlay(copied_up=False), carriers=())
    written = run(1000, op="write", targets=(target,), traffic=None)
    assert "overlay over tmpfs" in one(writeback_absorbed.RULE, written).text
    read = run(1000, targets=(target,), traffic=None)
    answer = page_cache_read.RULE.judge(read)
    assert not isinstance(answer, tuple) or "tmpfs" not in answer[0].text
    copied = replace(read, targets=(replace(target, path_layers=overlay(copied_up=True)),))
    assert "overlay over tmpfs" in one(page_cache_read.RULE, copied).text


def test_a_fuse_files_pages_are_the_page_cache_and_not_the_generators_processor() -> None:
    target = disk(
        path="/fuse/file", kind="file", file_system="fuse", carriers=(), cached_bytes_before=128 << 20
    )
    case = run(
        100_000,
        jobs=(job(direct=False),),
        targets=(target,),
        traffic=None,
        extra={"engine.1-w.on_cpu_ns": 1e9},
    )
    finding = one(page_cache_read.RULE, case)
    assert finding.effect == "not_valid"
    assert isinstance(generator_cpu.RULE.judge(case), tuple)


@pytest.mark.parametrize("whole", [8, 32, 128, 1024])
def test_depths_between_are_apart_and_inside(whole: int) -> None:
    found = depth_one.depths_between(whole)
    assert found == sorted(set(found))
    assert found[0] == 2
    assert all(1 < depth < whole for depth in found)
    assert depth_one.depths_between(4) == []


@pytest.mark.parametrize("flushes", [300, 1])
def test_a_load_slows_down_for_three_flushes_until_it_waits_for_as_many_as_it_will(flushes: int) -> None:
    """An honest run was limited by a burst, and not steady. One flush at its end is no queue."""
    course = [3000.0] * 30 + [1000.0] * 70
    case = run(course, op="write", flush=OpMeasurement(latencies={"lat": Latency(flushes, 1.2e9)}))
    answers = [rule.judge(case) for rule in (not_steady.RULE, throttled.RULE)]
    assert [isinstance(answer, tuple) for answer in answers] == [flushes == 1] * 2
