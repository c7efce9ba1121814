from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle import study as on_disk
from loadstone.bundle.read import Bundle
from loadstone.engine.calibrate import shape
from loadstone.errors import BundleError, InputError, RefusedError
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.model import RateProcess
from loadstone.plan.resolve import resolve
from loadstone.plan.safety.guard import Consent
from loadstone.plan.stream import TotalRate
from loadstone.report.study.terminal import many
from loadstone.study.controller import Done, Next
from loadstone.study.list_controller import ListController
from loadstone.study.run import Hooks, StudyRequest, run_study
from loadstone.study.time_estimate import TimeEstimate
from tests.e2e.program import needs_engine
from tests.support.runs import study_record

from . import simulated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.session import Progress

ASKED = StudyRequest("list", "a list", "fio", {"argv": ["loadstone"]}, {"job.fio": b"[job]\n"})


class Told:
    """Keeps what it was told; does something at the beginning of one run."""

    def __init__(self, when: int = 0, then: Any = None) -> None:
        self.ended: list[tuple[str, int | None, float | None]] = []
        self._when, self._then = when, then

    def begin(self, wanted: Next, number: int, expected: int | None) -> Progress | None:
        if number == self._when:
            self._then()
        return None

    def end(self, done: Done, number: int, expected: int | None, left_s: float | None) -> None:
        self.ended.append((done.point.name, expected, left_s))


@pytest.mark.in_turn
def test_runs_are_done_in_order_each_into_its_bundle(tmp_path: Path) -> None:
    half = TotalRate(iops=5000.0, process=RateProcess.LINEAR)
    runs = [
        Next("full (100%)", simulated.workload(), {"rate_percent": 100}),
        Next("half", simulated.workload(), {"rate_percent": 50}, rate=half),
    ]
    told = Told()
    outcome = run_study(
        ListController(runs),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=Hooks(simulated.on(simulated.device()), progress=told),
    )
    assert outcome.exit_code == 0
    study = on_disk.read(tmp_path / "s")
    assert study == outcome.study
    assert study.status == "complete"
    assert [point.bundle for point in study.points] == ["runs/001-full--100%-", "runs/002-half"]
    assert [point.status for point in study.points] == ["complete", "complete"]
    assert (tmp_path / "s" / study.inputs["job.fio"]).read_bytes() == b"[job]\n"
    rates = [done.summary.total.data.iops.value for done in outcome.done]  # type: ignore[union-attr]  # measured
    assert rates == pytest.approx([10_000, 5_000], rel=0.01)
    bundle = on_disk.bundle_of(tmp_path / "s", study.points[1])
    assert bundle is not None
    assert bundle.verify() == []
    assert bundle.request["study"]["point"] == "half"
    assert [(name, expected) for name, expected, _ in told.ended] == [("full (100%)", 2), ("half", 2)]
    assert told.ended[-1][2] == 0


class Follows:
    """A controller inside a list: runs as many as the first run of its own says."""

    def __init__(self, runs: Sequence[Next]) -> None:
        self.runs = runs
        self.seen: list[int] = []

    def next(self, done: Sequence[Done]) -> Next | None:
        self.seen.append(len(done))
        return self.runs[len(done)] if len(done) < len(self.runs) else None

    def known(self) -> Sequence[Next]:
        return self.runs[:1]

    def expected(self) -> int | None:
        return None if not self.seen else len(self.runs)

    def most(self) -> int | None:
        return None


@pytest.mark.in_turn
def test_every_run_draws_addresses_of_its_own_unless_its_job_names_the_sequence(tmp_path: Path) -> None:
    runs = [Next(f"open {n}", simulated.workload()) for n in range(2)]
    runs += [Next(f"named {n}", simulated.workload(randseed=7)) for n in range(2)]
    hooks = Hooks(simulated.on(lambda _: simulated.device(100_000)))
    outcome = run_study(ListController(runs), request=ASKED, out_dir=tmp_path / "s", hooks=hooks)
    plans = [done.summary.measurement.plan for done in outcome.done if done.summary is not None]
    one, other, *named = [plan.streams[0].seed for plan in plans]
    assert one != other
    assert named[0] == named[1]


@pytest.mark.in_turn
def test_a_preparation_has_no_verdict_and_a_measurement_has(tmp_path: Path) -> None:
    runs = [Next("fill", simulated.workload(), role="prepare"), Next("rd1", simulated.workload())]
    hooks = Hooks(simulated.on(lambda _: simulated.device(100_000)))
    outcome = run_study(ListController(runs), request=ASKED, out_dir=tmp_path / "s", hooks=hooks)
    fill, measured = outcome.study.points
    assert (fill.status, fill.verdict, fill.why) == ("complete", None, None)
    assert measured.verdict is not None
    assert (measured.why is None) == (measured.verdict == "measures_storage")


def test_a_controller_in_a_list_sees_its_own_runs_only() -> None:
    work = simulated.workload()
    inner = Follows([Next("b1", work), Next("b2", work)])
    controller = ListController([Next("a", work), inner, Next("c", work)])
    assert [run.name for run in controller.known()] == ["a", "b1", "c"]
    assert controller.expected() is None
    done: list[Done] = []
    while (wanted := controller.next(done)) is not None:
        done.append(Done(on_disk.Point(name=wanted.name), None))
    assert [one.point.name for one in done] == ["a", "b1", "b2", "c"]
    assert inner.seen == [0, 1, 2]
    assert controller.expected() == 4


@pytest.mark.in_turn
def test_a_long_list_is_made_once_and_not_again_after_every_run(tmp_path: Path) -> None:
    """Making all runs of a list costs what the list is long; asked for after each, it is squared."""

    class CountedController(ListController):
        asked = 0

        def known(self) -> Sequence[Next]:
            self.asked += 1
            return super().known()

    controller = CountedController([Next(f"run {n}", simulated.workload()) for n in range(3)])
    told = Told()
    hooks = Hooks(simulated.on(lambda _: simulated.device(100_000)), progress=told)
    run_study(controller, request=ASKED, out_dir=tmp_path / "s", hooks=hooks)
    assert controller.asked == 1
    assert [left_s is not None and left_s > 0 for _, _, left_s in told.ended] == [True, True, False]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("after_failure", "names"),
    [("stop", ["bad"]), ("go_on", ["bad", "good"])],
)
def test_a_failed_run_is_kept_and_stops_the_study_or_not(
    tmp_path: Path, after_failure: Any, names: list[str]
) -> None:
    runs = [Next("bad", simulated.workload(2)), Next("good", simulated.workload(2))]
    failing = simulated.on(lambda wanted: simulated.device(error_ppm=1000 * (wanted.name == "bad")))
    outcome = run_study(
        ListController(runs),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=Hooks(failing),
        after_failure=after_failure,
    )
    assert outcome.exit_code == 1
    points = outcome.study.points
    assert outcome.study.status == "failed"
    assert [point.name for point in points] == names
    assert [point.exit_code for point in points] == [1, 0][: len(names)]
    # The run, its result and the study say the same of an I/O error.
    assert [point.status for point in points] == ["failed", "complete"][: len(names)]
    bad = tmp_path / "s" / str(points[0].bundle)
    assert (Bundle.open(bad).status, Bundle.open(bad).manifest["exit_code"]) == ("failed", 1)
    told = json.loads((bad / "result.json").read_text())
    assert (told["status"], told["exit_code"]) == ("failed", 1)


def test_a_run_that_cannot_be_resolved_is_found_before_the_first_starts(tmp_path: Path) -> None:
    runs = [Next("good", simulated.workload()), Next("bad", simulated.workload(bs="3k"))]
    simulated_device = simulated.on(simulated.device())

    def picky(wanted: Next) -> Any:
        if wanted.name == "bad":
            raise InputError("3 KiB is not a block")
        return simulated_device(wanted)

    with pytest.raises(InputError, match="run bad: 3 KiB is not a block"):
        run_study(ListController(runs), request=ASKED, out_dir=tmp_path / "s", hooks=Hooks(picky))
    assert not (tmp_path / "s").exists()


@pytest.mark.in_turn
def test_consent_is_asked_once_for_all_runs(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.write_text("somebody's notes\n" * 4096)
    text = f"[job]\nrw=write\nbs=4k\nsize=64k\nfilename={target}\n".encode()
    work = read_jobfiles([TextSource(text, name="job.fio")])
    runs = [Next("one", work), Next("two", work)]
    asked: list[str] = []

    def ask(path: str, evidence: list[str]) -> str:
        asked.append(path)
        return answer

    needs_engine()
    hooks = Hooks(lambda wanted: resolve(wanted.workload))
    answer = ""
    with pytest.raises(RefusedError):
        run_study(
            ListController(runs),
            request=ASKED,
            out_dir=tmp_path / "s",
            hooks=hooks,
            consent=Consent(frozenset(), ask),
        )
    assert target.read_text().startswith("somebody's notes")
    answer = str(target)
    asked.clear()
    outcome = run_study(
        ListController(runs),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=hooks,
        consent=Consent(frozenset(), ask),
    )
    assert outcome.exit_code == 0
    assert asked == [str(target)]


@pytest.mark.in_turn
def test_a_signal_ends_the_run_and_the_study_and_keeps_both(tmp_path: Path) -> None:
    runs = [Next(name, simulated.workload(2)) for name in "abc"]
    told = Told(2, lambda: os.kill(os.getpid(), signal.SIGINT))
    outcome = run_study(
        ListController(runs),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=Hooks(_real_time(), progress=told),
    )
    assert outcome.exit_code == 130
    assert [(point.name, point.status) for point in outcome.study.points] == [
        ("a", "complete"),
        ("b", "interrupted"),
    ]
    kept = on_disk.read(tmp_path / "s")
    assert kept.status == "interrupted"
    assert many(kept, len(kept.points)) == "2 of 3 runs"
    assert Bundle.open(tmp_path / "s" / "runs" / "002-b").status == "interrupted"


def _real_time() -> Any:
    """The null device: runs take the time they say."""
    needs_engine()
    return lambda wanted: resolve(wanted.workload)


@pytest.mark.in_turn
def test_a_signal_in_a_pause_begins_no_run(tmp_path: Path) -> None:
    class InterruptingProgress(Told):
        def end(self, done: Done, number: int, expected: int | None, left_s: float | None) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    runs = [Next("a", simulated.workload(2)), Next("b", simulated.workload(2), pause_s=3600)]
    began = time.monotonic()
    outcome = run_study(
        ListController(runs),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=Hooks(simulated.on(simulated.device()), progress=InterruptingProgress()),
    )
    assert outcome.exit_code == 130
    assert [point.name for point in outcome.study.points] == ["a"]
    assert time.monotonic() - began < 3600


@pytest.mark.in_turn
def test_runs_of_one_shape_are_calibrated_once(tmp_path: Path) -> None:
    options: list[dict[str, int]] = [
        {"rate_iops": 500},
        {"rate_iops": 1000},
        {"rate_iops": 500, "iodepth": 2},
    ]
    runs = [Next(name, simulated.workload(3, **one)) for name, one in zip("abc", options, strict=True)]
    outcome = run_study(
        ListController(runs), request=ASKED, out_dir=tmp_path / "s", hooks=Hooks(_real_time())
    )
    told = [done.summary.bundle.event("calibration") for done in outcome.done if done.summary]
    assert [one.get("taken_over_from") for one in told if one] == [None, "001-a", None]
    assert told[0]["stages"] == told[1]["stages"] != told[2]["stages"]  # type: ignore[index]  # all were told
    without_rate = resolve(simulated.workload(3)).plan
    assert shape(without_rate) == shape(resolve(runs[0].workload).plan)


def test_study_json_of_a_killed_study_opens_and_a_strangers_is_refused(tmp_path: Path) -> None:
    study = study_record("sweep", points=(on_disk.Point(name="a", factors={"iodepth": 4}),))
    made = on_disk.begin(tmp_path / "s", study, {"x/job.fio": b"1", "y/job.fio": b"2"})
    assert sorted(made.inputs.values()) == ["input/2-job.fio", "input/job.fio"]
    assert on_disk.read(tmp_path / "s") == made
    assert on_disk.is_study(tmp_path / "s")
    # Killed before the run had a bundle: it never began.
    announced = on_disk.Point(name="a", factors={"iodepth": 4}, bundle="runs/001-a")
    on_disk.write(tmp_path / "s", made.model_copy(update={"points": (announced,)}))
    assert on_disk.read(tmp_path / "s").points[0].bundle is None
    document = json.loads((tmp_path / "s" / "study.json").read_text())
    (tmp_path / "s" / "study.json").write_text(json.dumps(document | {"kind": "banana"}))
    with pytest.raises(BundleError, match="kind"):
        on_disk.read(tmp_path / "s")
    with pytest.raises(BundleError, match="not a study"):
        on_disk.read(tmp_path / "elsewhere")


def test_the_time_left_is_planned_time_and_what_came_on_top_so_far() -> None:
    clock, work = TimeEstimate(), simulated.workload()
    runs = [Next(name, work) for name in "abc"]
    for one in runs:
        clock.planned(one, 10_000_000_000)
    assert clock.left_s(runs, 3) is None
    clock.ran(runs[0], 12.0)
    assert clock.left_s(runs, 3) == pytest.approx(24.0)
    assert clock.left_s(runs, 5) == pytest.approx(48.0)
    assert clock.left_s(runs, None) is None
