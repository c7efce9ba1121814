from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.study.pooled import Pooled
from loadstone.analysis.study.sweep import recommend, shown, sweep
from loadstone.errors import InputError, RefusedError, Where
from loadstone.plan.pattern import blocks_of
from loadstone.study import factors
from loadstone.study.run import Hooks, StudyRequest, run_study
from loadstone.study.stages import stages
from loadstone.study.sweep import SweepController
from loadstone.workload.block_sizes import FixedSize

from . import simulated

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.study.factors import Name

WHERE = Where("command line", option="--x")


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("iodepth", "1..256", (1, 2, 4, 8, 16, 32, 64, 128, 256)),
        ("iodepth", "1..100", (1, 2, 4, 8, 16, 32, 64, 100)),
        ("iodepth", "1..256:x4", (1, 4, 16, 64, 256)),
        ("iodepth", "3,1,2", (3, 1, 2)),
        ("numjobs", "1,2..8:+3", (1, 2, 5, 8)),
        ("bs", "4k..32k", (4096, 8192, 16384, 32768)),
        ("bs", "512,1m", (512, 1 << 20)),
        ("bs", "4k..12k:+4k", (4096, 8192, 12288)),
        ("read", "0..100", (0, 25, 50, 75, 100)),
        ("read", "0%,70%", (0, 70)),
    ],
)
def test_values_are_lists_and_ranges(name: Name, text: str, values: tuple[int, ...]) -> None:
    assert factors.values(name, text, WHERE) == values


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("iodepth", "0"), ("iodepth", "8..1"), ("iodepth", "1..8:x1"), ("iodepth", "1..8:*2"),
        ("iodepth", "1,,2"), ("iodepth", "1,1"), ("iodepth", ""), ("iodepth", "4k"), ("iodepth", "50%"),
        ("read", "101"), ("read", "0..100:x2"), ("bs", "100"), ("bs", "4q"), ("numjobs", "1..4096:+1"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_named(name: Name, text: str) -> None:
    with pytest.raises(InputError, match="--x"):
        factors.values(name, text, WHERE)


def test_values_are_written_as_they_are_asked_for() -> None:
    assert [shown("bs", 4096), shown("bs", 1 << 20), shown("bs", 512), shown("read", 70)] == [
        "4k",
        "1m",
        "512",
        "70%",
    ]


def test_a_factor_changes_its_field_and_nothing_else() -> None:
    work = simulated.workload(rw="randread")
    assert factors.apply(work, "iodepth", 8).jobs[0].engine.iodepth == 8
    assert blocks_of(factors.apply(work, "bs", 8192).jobs[0]).sizes.bs == (FixedSize(bytes=8192),) * 3
    assert factors.apply(work, "numjobs", 3).jobs[0].schedule.numjobs == 3
    found = [factors.apply(work, "read", share).jobs[0] for share in (0, 70, 100)]
    assert [(blocks_of(job).mix.rw, blocks_of(job).mix.read_percent) for job in found] == [
        ("randwrite", 0),
        ("randrw", 70),
        ("randread", 100),
    ]
    assert blocks_of(factors.apply(simulated.workload(rw="write"), "read", 50).jobs[0]).mix.rw == "rw"


def test_a_factor_without_effect_is_refused() -> None:
    def of(field: str, value: object) -> Any:
        work = simulated.workload()
        return work.model_copy(update={"jobs": (work.jobs[0].changed({field: value}),)})

    with pytest.raises(RefusedError, match="one I/O at a time"):
        factors.apply(of("engine.ioengine", "psync"), "iodepth", 8)
    with pytest.raises(RefusedError, match="trims"):
        factors.apply(of("mix.rw", "randtrim"), "read", 50)
    # Depth 1 without an engine would be psync, and every other depth io_uring.
    assert factors.apply(of("engine.ioengine", None), "iodepth", 1).jobs[0].engine.ioengine == "io_uring"


def pooled(rate: float, error: float | None = 0.0) -> Pooled:
    return Pooled(
        runs=1,
        iops=Estimate(rate, error, 9, "1/s"),
        bandwidth=Estimate(rate * 4096, error, 9, "B/s"),
        mean_ns=Estimate(1e6, None, 9, "ns"),
        percentiles_ns={},
        intervals_ns={},
        large_blocks=False,
        asked_iops=None,
        held=None,
    )


def test_the_depth_beyond_which_doubling_gains_too_little_is_recommended() -> None:
    """By hand: 100, 190, 300, 320, 321: from 4 to 8 it gains 6.7 %, to 16 3.4 % per doubling."""
    line = [
        (float(depth), pooled(rate)) for depth, rate in ((1, 100), (2, 190), (4, 300), (8, 320), (16, 321))
    ]
    found = recommend("iodepth", (), line, 0.10)
    assert found is not None
    assert (found.value, found.certain) == (4, True)
    assert found.gain_beyond == pytest.approx(320 / 300 - 1)
    assert found.share_of_best == pytest.approx(300 / 321)
    # A stricter share asks for more depth; a single dip does not end the search.
    stricter = recommend("iodepth", (), line, 0.05)
    assert stricter is not None
    assert stricter.value == 8
    dip = [(1.0, pooled(100)), (2.0, pooled(98)), (4.0, pooled(200)), (8.0, pooled(201))]
    after = recommend("iodepth", (), dip, 0.10)
    assert after is not None
    assert after.value == 4


def test_errors_make_a_recommendation_uncertain_and_more_to_gain_makes_none() -> None:
    noisy = recommend("iodepth", (), [(1.0, pooled(100, 10)), (2.0, pooled(105, 10))], 0.10)
    assert noisy is not None
    assert (noisy.value, noisy.certain) == (1, False)
    unknown = recommend("iodepth", (), [(1.0, pooled(100, None)), (2.0, pooled(101, None))], 0.10)
    assert unknown is not None
    assert not unknown.certain
    rising = recommend("iodepth", (), [(1.0, pooled(100)), (2.0, pooled(200))], 0.10)
    assert rising is not None
    assert (rising.value, rising.certain) == (None, True)
    assert recommend("iodepth", (), [(1.0, pooled(100))], 0.10) is None


@pytest.mark.nightly
def test_a_device_of_four_servers_wants_four_ios_in_flight(tmp_path: Path) -> None:
    work = simulated.workload(2)
    axes: list[tuple[Name, tuple[int, ...]]] = [("iodepth", (1, 2, 4, 8, 16)), ("read", (0, 100))]
    outcome = run_study(
        SweepController(stages(work), axes, repeat=2),
        request=StudyRequest("sweep", "s", "sweep", {}, {}),
        out_dir=tmp_path / "s",
        hooks=Hooks(simulated.on(simulated.device(100_000, servers=4))),
    )
    assert len(outcome.done) == 20
    assert outcome.study.points[0].name == "iodepth=1,read=0%"
    assert outcome.study.points[10].name == "iodepth=1,read=0%-2"
    found = sweep([one.run for one in outcome.done], {"axes": axes, "gain_share": 0.1})
    assert [one.value for one in found.advice] == [4, 4]
    cell = found.cell([2, 100])
    assert cell is not None
    assert cell.runs == 2
    assert cell.iops.value == pytest.approx(20_000, rel=0.01)
    assert found.cell([2, 50]) is None


def test_jobs_behind_a_wall_are_taken_apart() -> None:
    work = simulated.workload()
    job = work.jobs[0]
    walled = work.model_copy(
        update={
            "jobs": (
                job,
                job.changed({"name": "b"}),
                job.changed({"name": "c", "schedule.stonewall": True}),
                job.changed({"name": "c", "schedule.stonewall": True}),
            )
        }
    )
    parts = stages(walled)
    assert [name for name, _ in parts] == ["job+b", "c", "c-2"]
    assert [len(part.jobs) for _, part in parts] == [2, 1, 1]
    assert not any(part.jobs[0].schedule.stonewall for _, part in parts)
    controller = SweepController(parts, [("iodepth", (1, 2))])
    assert [run.name for run in controller.known()][:3] == [
        "job+b,iodepth=1",
        "job+b,iodepth=2",
        "c,iodepth=1",
    ]
