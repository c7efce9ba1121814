"""What an experiment may take holds over its sessions, and for all that is written for it."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from loadstone import units
from loadstone.bundle import experiment as on_disk
from loadstone.bundle.experiment import ExperimentBudget, ExperimentSession
from loadstone.control.layout import build
from loadstone.control.layout.description import LayoutDescription, LayoutOrder
from loadstone.errors import InputError, RunError
from loadstone.experiment.controller import ExperimentController
from loadstone.experiment.file import ExperimentFile
from loadstone.experiment.ledger import BudgetLedger
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.prepared import prepare
from loadstone.experiment.run import ExperimentMeans, open_stopped, run_experiment
from loadstone.plan.safety.guard import Consent
from loadstone.study.controller import Next
from loadstone.workload.model import Workload
from tests.e2e.program import needs_engine
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.experiment.run import ExperimentOutcome, StoppedExperiment

PREPARED = """title = "Prepared"
repeats = 4
targets = ["{target}"]

[budget]
written = "3500k"

[[patterns]]
name = "read"
options = {{ ioengine = "psync", rw = "randread", bs = "4k", size = "1m" }}

[[factors]]
name = "state"
kind = "allocation"
levels = ["later pass", "holes"]
"""


class MovedClock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def begun(clock: MovedClock, earlier: tuple[ExperimentSession, ...] = ()) -> BudgetLedger:
    ledger = BudgetLedger(ExperimentBudget(time_s=60, written_bytes=1000), earlier, now=clock)
    ledger.begin()
    return ledger


def nexts(count: int) -> list[Next]:
    return [Next(f"{at}", Workload.model_construct()) for at in range(count)]


def done_by(controller: ExperimentController, clock: MovedClock, each_s: float) -> int:
    """Do runs that take so long each; return how many it let begin."""
    count = 0
    while controller.next([]) is not None:
        clock.now_s += each_s
        count += 1
    return count


def test_time_of_earlier_sessions_counts() -> None:
    clock = MovedClock()
    assert done_by(ExperimentController(nexts(9), [], begun(clock)), clock, 20) == 3
    earlier = (ExperimentSession(began="2026-01-01T00:00:00+00:00", took_s=30),)
    again = ExperimentController(nexts(9), [], begun(clock, earlier))
    assert done_by(again, clock, 20) == 1
    assert again.ended_because == f"another run would take more than the budget of {units.whole_seconds(60)}"
    over = (earlier[0].model_copy(update={"took_s": 61.0}),)
    assert done_by(ExperimentController(nexts(9), [], begun(clock, over)), clock, 20) == 0


def test_the_first_run_is_held_against_what_it_is_planned_to_take() -> None:
    clock = MovedClock()
    controller = ExperimentController(nexts(9), [], begun(clock), planned=lambda _: (61.0, 0))
    assert done_by(controller, clock, 61) == 0


def test_a_run_with_a_layout_is_held_against_those_with_one() -> None:
    clock = MovedClock()
    runs = nexts(9)
    built = {one.name: one.name in ("1", "8") for one in runs}
    controller = ExperimentController(runs, [], begun(clock), alike=lambda run, _: built[run.name])
    for one in runs[:8]:
        assert controller.next([]) is one
        clock.now_s += 40 if built[one.name] else 1
    assert controller.next([]) is None


def test_what_is_written_beside_the_runs_counts() -> None:
    clock = MovedClock()
    earlier = (ExperimentSession(began="2026-01-01T00:00:00+00:00", took_s=1, beside_bytes=600),)
    ledger = begun(clock, earlier)
    ledger.wrote(300)
    ledger.refuse("filling /x", more_bytes=100)
    with pytest.raises(RunError, match="filling /x could write more than the budget"):
        ledger.refuse("filling /x", more_bytes=101)
    controller = ExperimentController(nexts(2), [], ledger)
    assert controller.next([]) is None
    assert "filling /x" in (controller.ended_because or "")


def run(path: Path, out: Path, stopped: StoppedExperiment | None = None, last: int = 99) -> ExperimentOutcome:
    seen = 0

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        nonlocal seen
        seen += 1
        if seen > last:
            raise KeyboardInterrupt
        yield

    return run_experiment(
        prepare(path), out_dir=out, request={}, consent=Consent(), means=ExperimentMeans(around=around),
        calibration=False, stopped=stopped,
    )  # fmt: skip


@pytest.mark.in_turn
def test_a_target_that_is_prepared_counts_in_every_session(tmp_path: Path) -> None:
    needs_engine()
    path, out = tmp_path / "x.toml", tmp_path / "out"
    path.write_text(PREPARED.format(target=tmp_path / "data"))
    with pytest.raises(KeyboardInterrupt):
        run(path, out, last=2)
    assert sum(one.beside_bytes for one in on_disk.read(out).sessions) >= 2 * (1 << 19)
    outcome = run(path, out, open_stopped(out, prepare(path)))
    assert "another run could write more than the budget" in (outcome.document.ended_because or "")
    assert outcome.exit_code == 0
    first, second = on_disk.read(out).sessions
    assert 2 << 20 < first.beside_bytes + second.beside_bytes <= 3500 << 10
    assert min(first.took_s, second.took_s) > 0


ON_A_LAYOUT = """title = "x"
repeats = 1
size = "1m"
targets = ["{{file}}"]
devices = ["{device}"]

[budget]
written = "4k"

[layouts.one]

[layouts.other]
mkfs_options = ["-b", "1024"]

[[patterns]]
name = "write"
options = {{ ioengine = "psync", rw = "randwrite", bs = "4k" }}

[[factors]]
name = "layout"
kind = "layout"
levels = ["one", "other"]
"""


@pytest.mark.in_turn
def test_a_budget_without_room_for_the_first_run_on_a_layout_is_refused_before_it(tmp_path: Path) -> None:
    """Its load is planned when the layout stands: a study was begun, and ended without a run."""
    needs_engine()
    path, out = tmp_path / "x.toml", tmp_path / "out"
    with attached(empty(tmp_path / "disk", 16 << 20)) as device:
        path.write_text(ON_A_LAYOUT.format(device=device))
        with pytest.raises(
            InputError, match=r"the first writes 1\.00.MiB or more, and the budget is 4\.00.KiB"
        ):
            run(path, out)
    assert not out.exists()


def order(**what: object) -> LayoutOrder:
    return LayoutOrder(
        label="ls0badcafe", name="x", devices=("/dev/null", "/dev/zero"), identities=("", ""),
        description=LayoutDescription.model_validate(what), base="/nowhere",
    )  # fmt: skip


def machine(ledger: BudgetLedger, *, wait: bool) -> Machine:
    return Machine(ExperimentFile.model_construct(wait_for_sync=wait), "ls0badcafe", ledger=ledger)


def test_an_initial_sync_ends_with_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedClock()
    ledger = begun(clock)
    monkeypatch.setattr(build, "synchronised", lambda _: 0.25)
    monkeypatch.setattr(build, "size_bytes", lambda _: 800)

    def wait(_: float) -> None:
        clock.now_s += 30

    monkeypatch.setattr(time, "sleep", wait)
    with pytest.raises(RunError, match="the initial sync of x would take more than the budget"):
        machine(ledger, wait=True)._sync(order(manager="md", raid="1"), 0)
    # One that goes on beside the runs counts as if all of the devices were written.
    ledger = begun(clock)
    assert "25% synchronised" in machine(ledger, wait=False)._sync(order(manager="md", raid="1"), 0)
    assert ledger.beside_bytes == 600
