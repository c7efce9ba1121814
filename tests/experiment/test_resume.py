"""Experiments that stopped and go on: what is done again, what is not, and what is told of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import exitcodes
from loadstone.api.experimenting import PlannedExperiment
from loadstone.bundle import experiment as on_disk
from loadstone.bundle import study as study_on_disk
from loadstone.errors import InputError, RefusedError
from loadstone.experiment import attempts, observe
from loadstone.experiment import run as experiment_run
from loadstone.experiment.observe import observations
from loadstone.experiment.prepared import prepare
from loadstone.experiment.report_content import measured_runs, story_on_disk
from loadstone.experiment.run import open_stopped, prepared_again
from loadstone.report.experiment import tables
from tests.e2e import program
from tests.experiment.test_experiment_runs import FILE, MachineOfFiles, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.study.controller import Next


STOPPED_S = 1.2


def interrupt(host: MachineOfFiles, path: Path, out: Path, *, runs: int) -> None:
    """Run an experiment until so many runs are done, and press Ctrl-C before the next one."""

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        if len(list(out.glob("runs/*"))) == runs:
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        host.run(prepare(path), out, around=around)


def setting_swappiness(host: MachineOfFiles, out: Path, *, run: int) -> Callable[[Next], Any]:
    """Have somebody else set what is varied while a run lasts, the `run`th."""

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        yield
        if len(list(out.glob("runs/*"))) == run:
            (host.host / "proc/sys/vm/swappiness").write_text("33\n")

    return around


def in_lines(planned: PlannedExperiment) -> str:
    return "\n".join(planned.lines).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.in_turn
@pytest.mark.slow
def test_what_stopped_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"

    interrupt(host, path, out, runs=3)
    assert host.swappiness == "60"
    before = [run.started for run in on_disk.read(out).runs]
    assert sum(started is not None for started in before) == 4
    again = prepared_again(out, path, allow_exec=False)
    outcome = host.run(again, out, stopped=open_stopped(out, again))
    assert outcome.exit_code == exitcodes.DONE
    assert len(host.seen) == 5
    after = [run.started for run in on_disk.read(out).runs]
    assert after[:3] == before[:3]
    names = [point.name for point in outcome.study.study.points]
    assert len(names) == 9
    assert names[3] == f"{again.document.runs[3].name} (attempt 1)"
    assert len(observations(out).rows) == 8
    finished = open_stopped(out, again)
    assert host.run(again, out, stopped=finished).study.done == finished.earlier.done
    assert len(host.seen) == 5
    assert [len(part) for part in measured_runs(finished.earlier.done)] == [8, 0]


@pytest.mark.in_turn
@pytest.mark.parametrize("lost", ["removed", "damaged"])
def test_a_run_that_nothing_can_be_read_of_is_done_again(tmp_path: Path, lost: str) -> None:
    """Its combination had one run less for good: it counted as complete."""
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"
    host.run(prepare(path), out)
    first = open_stopped(out, prepare(path)).earlier.done[0].point
    assert first.bundle is not None
    if lost == "removed":
        shutil.rmtree(out / first.bundle)
    else:
        (out / first.bundle / "manifest.json").write_text("{")
    stopped = open_stopped(out, prepare(path))
    assert PlannedExperiment(prepare(path), stopped).missing == [first.name]
    (note,) = (one.text for one in stopped.notes)
    assert note == f"done again, because nothing can be read of what they measured: {first.name}"
    outcome = host.run(prepare(path), out, stopped=stopped)
    assert outcome.exit_code == exitcodes.DONE
    assert len(host.seen) == 9
    names = [point.name for point in outcome.study.study.points]
    assert (names[0], names[-1]) == (f"{first.name} (attempt 1)", first.name)
    # An attempt that nothing rests on, and that cannot be read, keeps nobody from the others.
    assert len(observations(out).rows) == 8


@pytest.mark.in_turn
@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_somebody_disturbed_is_done_again_and_both_are_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    """It stayed in the study as done, in no effect: its combination had one run less for good."""
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"
    at, name = next(
        (number, run.name)
        for number, run in enumerate(prepare(path).document.runs, 1)
        if run.levels["swappiness"] == "10"
    )
    ended = host.run(prepare(path), out, around=setting_swappiness(host, out, run=at))
    assert ended.exit_code == exitcodes.FAILED
    assert [one.run for one in observations(out).rows if one.invalid is not None] == [name]
    started = on_disk.read(out).runs[at - 1].started
    (host.host / "proc/sys/vm/swappiness").write_text("60\n")
    for journal in host.state.glob("*"):
        journal.unlink()  # As `loadstone restore` leaves it in another process.

    stopped = open_stopped(out, prepare(path))
    assert PlannedExperiment(prepare(path), stopped).missing[0] == name
    (note,) = (one.text for one in stopped.notes)
    assert f"done again, because something else changed what they rest on: {name} (sysctl of vm.sw" in note
    if killed:  # Once the study says that it begins again, and nothing else does.
        monkeypatch.setattr(on_disk, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            host.run(prepare(path), out, stopped=stopped)
        monkeypatch.undo()
        stopped = open_stopped(out, prepare(path))
    study = host.run(prepare(path), out, stopped=stopped).study.study
    assert (study.status, study.expected) == ("complete", len(study.points))
    names = [one.name for one in study.points]
    assert (names[at - 1], names[at + killed]) == (f"{name} (attempt 1)", name)
    assert len(names) == 9 + killed
    document = on_disk.read(out)
    (attempt,) = (one for one in document.attempts if one.why)
    assert (attempt.name, attempt.started) == (f"{name} (attempt 1)", started)
    assert [one.outcome for one in attempt.settings] == ["changed_by_others"]
    assert [one.run for one in observations(out).rows if one.invalid is None] == [
        run.name for run in sorted(document.runs, key=lambda run: run.started or "")
    ]
    story = story_on_disk(out)
    assert story is not None
    assert "8 of 8 runs done, 8 valid" in tables.counts(story)
    assert f"something else changed what it rests on: {name} (attempt 1), sysctl of" in tables.counts(story)
    assert open_stopped(out, prepare(path)).notes == ()


def stopping(out: Path, *, runs: tuple[int, ...]) -> Callable[[Next], Any]:
    """Have something stop the engine for most of the time of these runs, as a host does that stands still."""

    def stop() -> None:
        bundles = sorted(out.glob("runs/*"))
        if len(bundles) in runs:
            pid = program.engine_pid(bundles[-1])
            time.sleep(0.5)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        begun = len(list(out.glob("runs/*")))

        def wait() -> None:
            program.until(lambda: len(list(out.glob("runs/*"))) > begun, "the next run")
            stop()

        thread = threading.Thread(target=wait)
        thread.start()
        yield
        thread.join()

    return around


def kinds(out: Path) -> list[str | None]:
    return [one.verdict for one in study_on_disk.read(out).points]


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_run_that_something_outside_the_load_spoilt_is_done_once_more(tmp_path: Path) -> None:
    """It stayed as done, in no effect: its combination had one run less for good."""
    host, out = MachineOfFiles(tmp_path), tmp_path / "out"
    path = written(tmp_path, FILE.replace("repeats = 2", "repeats = 1"))
    prepared = prepare(path)
    spoilt = prepared.document.runs[1].name
    host.run(prepared, out, resolve=None, around=stopping(out, runs=(2,)))
    assert [at for at, kind in enumerate(kinds(out)) if kind == "not_valid"] == [1]

    stopped = open_stopped(out, prepared)
    assert PlannedExperiment(prepared, stopped).missing == [spoilt]
    (note,) = (one.text for one in stopped.notes)
    assert f"done once more, because something outside the load made them not valid: {spoilt} (" in note
    study = host.run(
        prepared, out, resolve=None, around=stopping(out, runs=(5,)), stopped=stopped
    ).study.study
    assert [study.points[at].name for at in (1, 4)] == [f"{spoilt} (attempt 1)", spoilt]
    assert [at for at, kind in enumerate(kinds(out)) if kind == "not_valid"] == [1, 4]
    (attempt,) = on_disk.read(out).attempts
    assert (attempt.run, attempt.rule) == (spoilt, "generator_stopped")
    assert [one.run for one in observations(out).rows if one.invalid is not None] == [spoilt]
    story = story_on_disk(out)
    assert story is not None
    words = "something outside the load made it not valid: "
    assert f"{words}{spoilt} (attempt 1), " in tables.counts(story)

    # What comes twice may come always.
    twice = open_stopped(out, prepared)
    assert (PlannedExperiment(prepared, twice).missing, twice.notes) == ([], ())


def test_a_run_that_its_own_load_made_not_valid_is_not_done_again(tmp_path: Path) -> None:
    verdict = {"causes": [{"rule": "generator_stopped", "effect": "not_valid", "text": "It stood still."}]}
    bundle: Any = SimpleNamespace(path=tmp_path)
    write = (tmp_path / "result.json").write_text

    write(json.dumps({"verdict": verdict}))
    assert observe.spoilt(bundle, ()) == attempts.Disturbance("It stood still.", "generator_stopped")
    verdict["causes"].append({"rule": "unwritten_region", "effect": "not_valid", "text": "Holes."})
    write(json.dumps({"verdict": verdict}))
    assert observe.spoilt(bundle, ()) is None
    assert observe.spoilt(bundle, ("unwritten_region",)) is not None
    verdict["causes"] = [{"rule": "foreign_load", "effect": "limited", "text": "It was shared."}]
    write(json.dumps({"verdict": verdict}))
    assert observe.spoilt(bundle, ()) is None
    write("{")
    assert observe.spoilt(bundle, ()) is None


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.in_turn
def test_what_another_resume_did_meanwhile_is_not_done_twice(tmp_path: Path) -> None:
    """The study was read before it was claimed: what the other one did was lost, and done again."""
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"

    interrupt(host, path, out, runs=6)
    early = open_stopped(out, prepare(path))
    host.run(prepare(path), out, stopped=open_stopped(out, prepare(path)))
    before = {one.name: one.read_bytes() for one in out.glob("*.json")}
    with pytest.raises(RefusedError, match="another `resume` has gone on with"):
        host.run(prepare(path), out, stopped=early)
    assert {one.name: one.read_bytes() for one in out.glob("*.json")} == before
    assert not list(host.state.glob("*"))
    assert len(observations(out).rows) == 8


@pytest.mark.in_turn
def test_runs_of_another_host_or_kernel_are_told_before_and_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"

    interrupt(host, path, out, runs=3)
    assert open_stopped(out, prepare(path)).notes == ()
    own = experiment_run.system()
    monkeypatch.setattr(experiment_run, "system", lambda: "another, Linux 7.0")
    stopped = open_stopped(out, prepare(path))
    (note,) = PlannedExperiment(prepare(path), stopped).notes
    assert f"runs so far are of another host or kernel ({own}; this is another, Linux 7.0)" in note.text
    host.run(prepare(path), out, stopped=stopped)
    story = story_on_disk(out)
    assert story is not None
    assert story.systems() == {own: 3, "another, Linux 7.0": 5}
    (doubt,) = tables.doubts(story)
    assert f"different hosts or kernels: {own} (3 runs); another, Linux 7.0 (5 runs)." in doubt


@pytest.mark.in_turn
def test_what_is_missing_takes_as_long_as_what_was_done(tmp_path: Path) -> None:
    """2 s beside each run are assumed; three runs of 2 s in a session of 9 s took 1 s beside each."""
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"

    planned = PlannedExperiment(prepare(path))
    assert planned.length_s == planned.document()["time_s"] == pytest.approx(8 * (2 + 2), abs=1)
    assert "assumed: 2 s beside each run" in in_lines(planned)
    interrupt(host, path, out, runs=3)
    stopped = open_stopped(out, prepare(path))
    session = stopped.document.sessions[0].model_copy(update={"took_s": 9.0})
    document = stopped.document.model_copy(update={"sessions": (session,)})
    rest = PlannedExperiment(prepare(path), dataclasses.replace(stopped, document=document))
    assert rest.length_s == pytest.approx(5 * (2 + 1))
    assert "time: about 15 s for the 5 of 8 runs that are missing" in in_lines(rest)
    assert "as recorded: its 3 runs took 9 s, 1.0 s of each beside its load" in in_lines(rest)
    assert rest.document()["recorded"]["beside_s"] == pytest.approx(1.0)


@pytest.mark.in_turn
def test_a_used_budget_is_told_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    """A larger budget was advised and refused: it changed the file. What was used of it was not told."""
    text = FILE.replace("repeats = 2", 'repeats = 2\nbudget = { time = "20s" }')
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path, text), tmp_path / "out"

    def of_took(took_s: float) -> PlannedExperiment:
        stopped = open_stopped(out, prepare(path))
        session = stopped.document.sessions[0].model_copy(update={"took_s": took_s})
        document = stopped.document.model_copy(update={"sessions": (session,)})
        return PlannedExperiment(prepare(path), dataclasses.replace(stopped, document=document))

    interrupt(host, path, out, runs=3)
    assert "the budget of 20 s has 11 s left: about 3 of 5 missing runs fit" in in_lines(of_took(9.0))
    assert "has 2 s left, and a run takes about 6 s. Allow a larger one in [budget]" in in_lines(
        of_took(18.0)
    )
    written(tmp_path, text.replace('"20s"', '"1h"').replace("[1, 4]", "[1, 8]"))
    with pytest.raises(InputError, match="is not the file that the experiment began with"):
        open_stopped(out, prepare(path))
    written(tmp_path, text.replace('"20s"', '"1h"'))
    assert "budget" not in in_lines(of_took(18.0))
    outcome = host.run(prepare(path), out, stopped=open_stopped(out, prepare(path)))
    assert outcome.document.budget.time_s == 3600
    assert [run.name for run in outcome.document.runs if run.started is None] == []
    assert open_stopped(out, prepare(path)).document.budget.time_s == 3600


@pytest.mark.in_turn
def test_another_file_does_not_go_on(tmp_path: Path) -> None:
    host, path, out = MachineOfFiles(tmp_path), written(tmp_path), tmp_path / "out"

    interrupt(host, path, out, runs=0)
    written(tmp_path, FILE.replace("[1, 4]", "[1, 8]"))
    with pytest.raises(InputError, match="is not the file that the experiment began with"):
        open_stopped(out, prepare(path))
