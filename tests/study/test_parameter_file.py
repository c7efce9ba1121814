from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.study.curve import curves
from loadstone.bundle.study import Point
from loadstone.formats.vdbench import ParameterText, expand, read
from loadstone.study.controller import Done
from loadstone.study.parameter_file import ParameterFileController, rounded
from loadstone.study.run import Hooks, StudyRequest, run_study

from . import simulated

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next
    from loadstone.study.run import StudyOutcome

ASKED = StudyRequest("list", "p", "vdbench", {"argv": ["loadstone"]}, {})
HEAD = "sd=sd1,lun=/nowhere/1,size=1g\nsd=sd2,lun=/nowhere/2,size=1g\n"


def controller(text: str, **options: object) -> ParameterFileController:
    file = read([ParameterText((HEAD + text).encode(), "p.parm", Path())])
    return ParameterFileController(file, expand(file), **options)  # type: ignore[arg-type] # as given


def resolving(service_ns: int = 100_000) -> Callable[[Next], Resolution]:
    """Resolve for a simulated device: nothing of the luns is opened."""
    on_device = simulated.on(simulated.device(service_ns))

    def resolve(wanted: Next) -> Resolution:
        changes = {"engine.ioengine": "null", "engine.direct": None, "files.overwrite": None}
        jobs = tuple(job.changed(changes) for job in wanted.workload.jobs)
        return on_device(
            dataclasses.replace(wanted, workload=wanted.workload.model_copy(update={"jobs": jobs}))
        )

    return resolve


def run(text: str, path: Path) -> StudyOutcome:
    hooks = Hooks(resolving())
    return run_study(controller(text), request=ASKED, out_dir=path, hooks=hooks, calibration=False)


def iops(done: Done) -> float:
    assert done.summary is not None
    assert done.summary.total.data is not None
    assert done.summary.total.data.iops is not None
    return done.summary.total.data.iops.value


@pytest.mark.parametrize(
    ("maximum", "percent", "expected"),
    [
        (780, 1, 10),
        (780, 5, 40),
        (780, 10, 80),
        (780, 15, 120),
        (2298, 10, 230),
        (2298, 50, 1200),
        (10_000.9, 100, 10_000),
        (12.0, 10, 10),
    ],
)
def test_rates_are_rounded_up_as_vdbench_rounds_them(maximum: float, percent: float, expected: float) -> None:
    assert rounded(maximum, percent) == expected


@pytest.mark.in_turn
def test_a_curve_runs_its_points_at_shares_of_what_was_reached(tmp_path: Path) -> None:
    text = "wd=w,sd=sd1\nrd=r,wd=w,iorate=curve,curve=(50,10),elapsed=10,distribution=d\n"
    outcome = run(text, tmp_path / "s")
    assert outcome.exit_code == 0
    assert [done.point.name for done in outcome.done] == ["r", "r_(50%)", "r_(10%)"]
    assert [done.point.role for done in outcome.done] == ["maximum", "measure", "measure"]
    # One server, 100 us each: 10,000 in a second, whatever the depth.
    assert [iops(done) for done in outcome.done] == pytest.approx([10_000, 5_000, 1_000], rel=0.01)
    assert outcome.done[1].point.factors == {"rd": "r", "rate_percent": 50.0, "rate_iops": 5000.0}
    (found,) = curves([done.run for done in outcome.done])
    assert (found.name, found.maximum is not None, len(found.loads)) == ("r", True, 2)


@pytest.mark.in_turn
def test_a_curve_keeps_the_shares_its_maximum_had(tmp_path: Path) -> None:
    text = "wd=w1,sd=sd1\nwd=w2,sd=sd2,xfersize=8k\nrd=r,wd=w*,iorate=curve,curve=(50),elapsed=10,threads=2\n"
    outcome = run(text, tmp_path / "s")
    top, half = outcome.done
    shares = []
    for done in (top, half):
        assert done.summary is not None
        counts = [total.data.operations for total in done.summary.totals("job") if total.data]
        shares.append(counts[0] / sum(counts))
    assert shares[1] == pytest.approx(shares[0], abs=0.02)


@pytest.mark.in_turn
def test_stopcurve_leaves_out_the_points_after_the_limit(tmp_path: Path) -> None:
    # At 8 threads on one server the maximum has 0.8 ms; the first point already has more than 0.05 ms.
    text = (
        "wd=w,sd=sd1\nrd=r,wd=w,iorate=curve,curve=(50,60,70),stopcurve=0.05,elapsed=6\n"
        "rd=after,wd=w,iorate=100,elapsed=4\n"
    )
    outcome = run(text, tmp_path / "s")
    assert [done.point.name for done in outcome.done] == ["r", "r_(50%)", "after"]


@pytest.mark.in_turn
def test_a_percentage_is_one_of_the_run_before(tmp_path: Path) -> None:
    text = "wd=w,sd=sd1\nrd=r1,wd=w,iorate=max,elapsed=6\nrd=r2,wd=w,iorate=30%,elapsed=6,distribution=d\n"
    outcome = run(text, tmp_path / "s")
    assert [iops(done) for done in outcome.done] == pytest.approx([10_000, 3_000], rel=0.01)


@pytest.mark.in_turn
def test_the_first_interval_does_not_count_without_a_warmup(tmp_path: Path) -> None:
    outcome = run("wd=w,sd=sd1\nrd=r,wd=w,iorate=1000,elapsed=6,distribution=d\n", tmp_path / "s")
    data = outcome.done[0].summary.total.data  # type: ignore[union-attr] # it was measured
    assert data is not None
    assert data.operations == pytest.approx(5000, abs=5)


def test_everything_is_done_again_as_often_as_asked() -> None:
    file = read(
        [ParameterText(("loop=3\n" + HEAD + "wd=w,sd=sd1\nrd=r,wd=w,iorate=9,elapsed=4,pause=7\n").encode())]
    )
    made = ParameterFileController(file, expand(file))
    assert made.expected() == 3
    runs = []
    while (wanted := made.next([])) is not None:
        runs.append(wanted)
    assert [one.name for one in runs] == ["r", "r loop 2", "r loop 3"]
    assert [one.factors["loop"] for one in runs] == [1, 2, 3]
    assert [one.pause_s for one in runs] == [0, 7, 7]


def test_a_loop_may_end_by_time() -> None:
    file = read(
        [ParameterText(("loop=60s\n" + HEAD + "wd=w,sd=sd1\nrd=r,wd=w,iorate=9,elapsed=4\n").encode())]
    )
    now = iter([0.0, 30.0, 60.0, 61.0])
    made = ParameterFileController(file, expand(file), now_s=lambda: next(now))
    assert made.expected() is None
    count = 0
    while made.next([]) is not None:
        count += 1
    assert count == 3


def test_a_curve_without_a_maximum_has_no_points() -> None:
    made = controller("wd=w,sd=sd1\nrd=r,wd=w,iorate=curve,elapsed=10\n")
    first = made.next([])
    assert first is not None
    failed = Done(Point(name=first.name, status="failed", exit_code=1), None)
    assert made.next([failed]) is None
    assert made.expected() == 1


def test_what_is_known_before_is_everything_but_the_points() -> None:
    text = "wd=w,sd=sd1\nrd=r1,wd=w,iorate=curve,elapsed=10\nrd=r2,wd=w,iorate=(100,50%),elapsed=10\n"
    assert [one.name for one in controller(text).known()] == ["r1", "r2 iorate=100"]
