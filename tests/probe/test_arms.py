"""The Plans of probes: where they write, in which order, and for how long."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from loadstone.analysis.latency import Latency
from loadstone.audit.job_facts import job_facts
from loadstone.errors import RefusedError
from loadstone.explanations.predictions import READINGS
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.model import SizesFixed
from loadstone.plan.resolve import resolve
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, plan_of
from loadstone.probe.base import PART, Base, writes
from loadstone.probe.figures import Figures, fell, together, unsettled
from loadstone.probe.forecast import forecast, most_written
from loadstone.probe.probe import Measured
from loadstone.probe.probe_session import offers
from loadstone.probe.probes import PROBES, longer
from loadstone.probe.sample_size import ios_per_arm

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan, Stream
    from loadstone.workload.model import Job

MIB = 1 << 20
LATENCY = Latency(count=40_000, mean_ns=1e6, stddev_ns=1e6, max_ns=1e7)


def measured(**changed: Any) -> Figures:
    fields: dict[str, Any] = {
        "rate": 10_000.0,
        "log_error": 0.02,
        "bytes_per_s": 4e7,
        "latency": LATENCY,
        "seconds": 4.0,
        "window_cv": 0.05,
        "window_count": 500.0,
        "correlation": 0.0,
        "quarters": (10_000.0, 10_000.0),
        "written_bytes": 0,
        "dips": None,
        "fell": None,
    }
    return Figures(**{**fields, **changed})


def planned(path: Path, options: dict[str, object], size: int = 256 * MIB) -> tuple[Plan, tuple[Job, ...]]:
    file = path / "target"
    if not file.exists():
        with file.open("wb") as made:
            made.truncate(size)
    given = {
        "ioengine": "io_uring",
        "direct": 1,
        "filename": file,
        "runtime": "4s",
        "time_based": 1,
        **options,
    }
    text = "[job]\n" + "\n".join(f"{name}={value}" for name, value in given.items()) + "\n"
    workload = read_jobfiles([TextSource(text.encode(), name="job.fio")])
    return resolve(workload).plan, workload.jobs


def base(path: Path, options: dict[str, object], *, size: int = 256 * MIB, **figures: Any) -> Base:
    plan, jobs = planned(path, options, size)
    facts = job_facts(plan, jobs, plan.streams)
    return Base(plan, 0, facts, measured(**figures), 20.0)


def test_a_run_that_reads_is_probed_without_a_single_write(tmp_path: Path) -> None:
    made, left = offers(base(tmp_path, {"rw": "randread", "bs": "4k", "iodepth": 8}))
    assert {one.probe.name for one in made} >= {"depth", "block_size", "depth_one", "same_again", "longer"}
    for one in made:
        assert not any(writes(stream) for stream in one.plan.streams), one.probe.name
        assert all(target.read_only for target in one.plan.targets)
        assert most_written(one) == 0
    assert {one.name for one in left} >= {"written", "first_pass", "payload", "flushes"}


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(30))
def test_no_probe_writes_outside_what_the_run_wrote(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    block = chance.choice([4096, 8192, 65536, 12288])
    offset = chance.randrange(0, 100) * block + chance.choice([0, 512])
    length = chance.randrange(300, 900) * block
    options = {
        "rw": chance.choice(["randwrite", "write", "randrw", "rw"]),
        "bs": block,
        "iodepth": chance.choice([1, 2, 32]),
        "offset": offset,
        "size": length,
        "zero_buffers": chance.choice([0, 1]),
        "numjobs": chance.choice([1, 3]),
    }
    start = base(tmp_path, options, size=offset + length + 64 * MIB, written_bytes=10**8)
    made, _ = offers(start)
    assert len(made) >= 6
    for one in made:
        for stream in one.plan.streams:
            if writes(stream) and one.plan.workers[stream.worker].backend.type != "null":
                for use in stream.files:
                    assert offset <= use.offset_bytes, one.probe.name
                    assert use.offset_bytes + use.length_bytes <= offset + length, one.probe.name
                assert stream.limits.bytes > 0, one.probe.name


@pytest.mark.in_turn
def test_what_counts_begins_when_flushes_have_queued_up(tmp_path: Path) -> None:
    """Until then an honest load at depth 64 did up to twice its rate, and so did a half and twice the depth.

    By Little's law 32 / 1000 per s - 16 ms are 16 ms for each write, so 128 ms for a flush after 8 of them.
    """
    options = {"rw": "randwrite", "bs": "4k", "iodepth": 32, "fdatasync": 8}
    start = base(
        tmp_path,
        options,
        rate=1000.0,
        latency=replace(LATENCY, mean_ns=16e6, stddev_ns=16e6),
        written_bytes=10**8,
    )
    assert start.fills
    assert start.flush_ns == pytest.approx(128e6)
    streams = plan_of(start, Turns((ArmPlan("as_run"),), 1.0)).streams
    assert {one.limits.ramp_ns for one in streams} == {384_000_000}
    assert {one.limits.runtime_ns for one in streams} == {716_000_000}
    twice = ArmPlan("twice", lambda stream: variant.depth(stream, 2))
    assert {one.limits.ramp_ns for one in plan_of(start, Turns((twice,), 1.0)).streams} == {550_000_000}
    one = ArmPlan("one", variant.one_at_a_time)
    assert {one.limits.ramp_ns for one in plan_of(start, Turns((one,), 1.0)).streams} == {100_000_000}
    plain = base(tmp_path, {"rw": "randwrite", "bs": "4k", "iodepth": 32}, written_bytes=10**8)
    assert not plain.fills
    assert {one.limits.ramp_ns for one in plan_of(plain, Turns((ArmPlan("as_run"),), 1.0)).streams} == {10**8}


def test_a_turn_may_write_what_stands_before_its_queued_flushes(tmp_path: Path) -> None:
    """At twice the depth 256 blocks were written before its flushes had queued up: nothing was counted."""
    options = {"rw": "randwrite", "bs": "4k", "iodepth": 128, "fdatasync": 8}
    start = base(
        tmp_path,
        options,
        rate=100.0,
        latency=replace(LATENCY, mean_ns=1e8, stddev_ns=1e8),
        written_bytes=4096 * 400,
    )
    (stream,) = plan_of(start, Turns((ArmPlan("as_run"),), 0.5)).streams
    assert stream.limits.bytes == (256 + 128 * 8) * 4096


@pytest.mark.in_turn
def test_passes_of_a_load_with_queued_flushes_are_of_one_length(tmp_path: Path) -> None:
    """An honest load at depth 64 seemed to touch its space for the first time: 1.3 times the rate again."""
    options = {"rw": "randwrite", "bs": "4k", "iodepth": 64}
    (first_pass,) = (one for one in PROBES if one.name == "first_pass")
    for more, shares in (({}, [1.5, 0.5] * 2), ({"fdatasync": 8}, [1.0, 1.0] * 2)):
        turns = first_pass.turns(base(tmp_path, {**options, **more}))
        assert isinstance(turns, Turns)
        assert [arm.share for arm in turns.order] == shares


def test_a_turn_that_still_changes_is_known_no_better_than_half_of_that() -> None:
    even, falling = measured(), measured(quarters=(15_000.0, 10_000.0))
    assert together([even, even], fills=True).error == together([even, even]).error
    assert unsettled([falling, falling]) == pytest.approx(0.1827, abs=1e-4)
    assert together([falling, falling], fills=True).error == pytest.approx(0.1833, abs=1e-4)


def test_an_arm_that_would_write_elsewhere_is_refused(tmp_path: Path) -> None:
    start = base(tmp_path, {"rw": "randwrite", "bs": "4k", "size": "64m"})

    def far(stream: Stream) -> Stream:
        there = {"offset_bytes": 100 * MIB, "length_bytes": MIB}
        files = tuple(one.model_copy(update=there) for one in stream.files)
        return stream.model_copy(update={"files": files})

    arm = ArmPlan("far", far)
    with pytest.raises(RefusedError, match="not allowed to write"):
        plan_of(start, Turns((arm,), 1.0))


def test_an_arm_that_writes_after_a_run_that_read_is_refused(tmp_path: Path) -> None:
    start = base(tmp_path, {"rw": "randread", "bs": "4k"})
    with pytest.raises(RefusedError, match="not allowed to write"):
        plan_of(start, Turns((ArmPlan("write", variant.only_writes),), 1.0))


def test_arms_take_turns_there_and_back(tmp_path: Path) -> None:
    start = base(tmp_path, {"rw": "randread", "bs": "4k", "iodepth": 8})
    depth = next(one for one in offers(start)[0] if one.probe.name == "depth")
    assert [arm.name for arm in depth.turns.order] == ["half", "as_run", "twice", "twice", "as_run", "half"]
    assert [stream.iodepth for stream in depth.plan.streams] == [4, 8, 16, 16, 8, 4]
    seeds = [stream.seed for stream in depth.plan.streams]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.in_turn
def test_the_time_of_an_arm_follows_from_the_sample_size(tmp_path: Path) -> None:
    # The worked figures of the formula: deviation 0.5 of log latency, ratio 1.5 and 1.1.
    cv = (2.718281828**0.25 - 1) ** 0.5
    assert ios_per_arm(cv, ratio=1.5) == 33
    assert ios_per_arm(cv, ratio=1.1) == 595
    quick = base(tmp_path, {"rw": "randread", "bs": "4k"}, rate=1e5)
    slow = base(tmp_path, {"rw": "randread", "bs": "4k"}, rate=900.0)
    slowest = base(tmp_path, {"rw": "randread", "bs": "4k"}, rate=30.0)
    assert quick.arm_s == 0.25
    assert slow.arm_s == pytest.approx(ios_per_arm(1.0) / 900 / 2, rel=0.01)
    assert slowest.arm_s == PART * slowest.budget_s


def test_every_reading_of_every_probe_is_predicted() -> None:
    assert {name for probe in PROBES for name in probe.readings} <= set(READINGS)
    assert len({probe.name for probe in PROBES}) == len(PROBES) == 15


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rw": "randtrim", "bs": "4k"}, "trims"),
        ({"rw": "randread", "bs": "4k", "ioengine": "mmap", "direct": 0}, "mmap"),
    ],
)
def test_what_cannot_be_probed_says_why(tmp_path: Path, options: dict[str, object], why: str) -> None:
    made, left = offers(base(tmp_path, options))
    assert made == []
    assert why in left[0].why


def test_a_forecast_tells_time_and_wear_before(tmp_path: Path) -> None:
    told = forecast(*planned(tmp_path, {"rw": "randwrite", "bs": "4k", "iodepth": 8}), 20.0)
    writing = {one["name"] for one in told["probes"] if one["most_written_bytes"]}
    assert {"depth", "first_pass", "longer", "flushes"} <= writing
    assert all(0 < one["seconds"] <= 20 for one in told["probes"])
    assert {one["name"] for one in told["left_out"]} >= {"same_again", "two_targets"}


def test_jobs_that_are_not_known_are_not_probed(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, {"rw": "randread", "bs": "4k"})
    told = forecast(plan, (), 20.0)
    assert told["probes"] == []
    assert {one["why"] for one in told["left_out"]} == {
        "it is not known what each job does: give every job its own name"
    }


@pytest.mark.parametrize(("mib", "offered"), [(8, True), (4, False)])
def test_places_of_a_small_target_are_a_larger_part_of_it(tmp_path: Path, mib: int, *, offered: bool) -> None:
    size = mib * MIB
    made, left = offers(base(tmp_path, {"rw": "randread", "bs": "4k", "size": size // 8}, size=size))
    assert ("position" in {one.probe.name for one in made}) is offered
    assert ("position" in {one.name for one in left}) is not offered
    for one in made:
        if one.probe.name == "position":
            lengths = {use.length_bytes for stream in one.plan.streams for use in stream.files}
            assert lengths == {256 * 4096}


def test_reads_in_order_are_tried_at_random_on_blocks_of_their_own(tmp_path: Path) -> None:
    """No probe broke the order: what reads ahead of a load was in both arms of each."""
    made, _ = offers(base(tmp_path, {"rw": "read", "bs": "8k", "iodepth": 2}))
    plan = next(one.plan for one in made if one.probe.name == "order")
    shares = [stream.pattern.read.random_percent for stream in plan.streams]
    assert shares == [0, 100, 100, 0]
    assert not any(writes(stream) for stream in plan.streams)
    places = [(use.offset_bytes, use.length_bytes) for stream in plan.streams for use in stream.files]
    assert places == [(at * MIB, 32 * MIB) for at in (128, 160, 192, 224)]
    assert {stream.pattern.read.sizes for stream in plan.streams} == {SizesFixed(bytes=8192)}


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"rw": "randread"}, 256 * MIB),
        ({"rw": "write"}, 256 * MIB),
        ({"rw": "rw"}, 256 * MIB),
        ({"rw": "read"}, 4 * MIB),
    ],
)
def test_the_order_is_tried_only_of_reads_that_have_one_and_room(
    tmp_path: Path, options: dict[str, object], size: int
) -> None:
    made, left = offers(base(tmp_path, {"bs": "4k", **options}, size=size, written_bytes=10**8))
    assert "order" not in {one.probe.name for one in made}
    assert "order" in {one.name for one in left}


def test_a_step_in_a_longer_run_is_read_by_its_levels(tmp_path: Path) -> None:
    """Regression (seed 181233): in the spread of the whole a step in the last quarter hid itself."""
    chance, lengths = np.random.default_rng(3), np.full(200, 0.05)
    ops = np.concatenate([chance.normal(500, 25, 165), chance.normal(100, 5, 35)])
    found = fell(ops, lengths)
    assert found is not None
    assert found.before == pytest.approx(10_000, rel=0.01)
    assert found.after == pytest.approx(2_000, rel=0.05)
    assert found.error_after < 0.05
    assert fell(chance.normal(500, 25, 200), lengths) is None
    assert fell(np.linspace(500, 100, 200), lengths) is None
    assert fell(ops[160:172], lengths[160:172]) is None
    turn = measured(quarters=(10_000.0, 3_000.0), log_error=0.4, fell=found)
    start = base(tmp_path, {"rw": "randread", "bs": "4k", "iodepth": 8})
    told = {one.name: one for one in longer.PROBE.read(Measured({"longer": (turn,)}), start)}
    assert told["longer.main"].value == pytest.approx(math.log(0.2), abs=0.05)
    assert told["longer.main"].error < 0.1
    assert told["longer.drop"].value == pytest.approx(math.log(0.2), abs=0.05)
