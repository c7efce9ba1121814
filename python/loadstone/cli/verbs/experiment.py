"""`loadstone experiment`: a controlled experiment from one file.

Knows how its four actions are asked for and what they print. What is run and set is `experiment`'s.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from loadstone import exitcodes, units
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, Flag, Repeat, pairs
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.experiment.run import ExperimentOutcome, StoppedExperiment
    from loadstone.report.experiment.story import ExperimentStory

Action = Literal["plan", "run", "resume", "report"]


def experiment(
    action: Action,
    path: Path,
    /,
    *,
    set: Annotated[list[str] | None, Repeat] = None,  # noqa: A002 - the name of the option
    leave_out_unset: Annotated[bool, Flag] = False,
    allow_exec: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    output: Annotated[list[Path] | None, Parameter(name=["--output", "-o"])] = None,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a controlled experiment: which setting makes the difference, by how much, and how sure that is.

    Parameters
    ----------
    action
        plan: print what would run, for how long, what is written and what is changed; touch nothing.
        run: do it. resume: do what is missing of one that stopped. report: write its page again.
    path
        The experiment's file (docs/experiments.md), or for resume and report its directory.
    set
        Set a parameter of the file, as NAME=VALUE (repeat for several).
    leave_out_unset
        Go on without the levels that cannot be set on this host.
    allow_exec
        Permit the commands of factors and of job files to run.
    output
        Of report: file to write it to, .html, .md or .pdf (repeat for several).
    """
    from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare

    given = pairs(set or [], "--set", "NAME=VALUE")
    if action == "report":
        _refuse_given("report", set=set, leave_out_unset=leave_out_unset, allow_exec=allow_exec)
        return _report(path, run_options, output or [])
    _refuse_given(action, output=output)
    if action == "resume":
        _refuse_given(
            "resume, which keeps what the experiment began with", set=set, leave_out_unset=leave_out_unset
        )
        prepared, stopped = _stopped(path, run_options, allow_exec=allow_exec)
        return _run(prepared, run_options, stopped, allow_exec=allow_exec)
    prepared = prepare(path, ReadOptionsOfExperiment(given, allow_exec, leave_out_unset))
    if action == "plan":
        return _plan(prepared, json=run_options.json)
    return _run(prepared, run_options, None, allow_exec=allow_exec)


def _refuse_given(action: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"has no effect on {action}", where=Where(COMMAND_LINE, option=option))


def _plan(prepared: PreparedExperiment, *, json: bool) -> int:
    from loadstone.cli.main import show
    from loadstone.experiment.announce import announce
    from loadstone.experiment.prepared import why_refused

    told = announce(prepared)
    if json:
        sys.stdout.write(json_format.dumps(told.document(), indent=2) + "\n")
    else:
        console.notes(prepared.notes)
        from loadstone.experiment.announcement_lines import lines

        sys.stdout.write("".join(f"{line}\n" for line in lines(told)))
    sys.stdout.flush()
    refused = why_refused(prepared)
    if refused is not None:
        show(refused)
    barred = refused is not None or any(one["consent"] == "refused" for one in told.consent)
    return exitcodes.USAGE if barred else exitcodes.DONE


def _stopped(
    path: Path, run_options: RunOptions, *, allow_exec: bool
) -> tuple[PreparedExperiment, StoppedExperiment]:
    from loadstone.bundle import experiment as on_disk
    from loadstone.experiment.run import open_stopped, prepared_again

    directory = path if path.is_dir() else run_options.out
    if directory is None:
        raise InputError(
            "says not which experiment goes on",
            where=Where(COMMAND_LINE, option="resume"),
            hint="name its directory: loadstone experiment resume DIRECTORY, or FILE --out DIRECTORY",
        )
    if path.is_dir() and run_options.out is not None:
        raise InputError(
            "has no effect: an experiment goes on in its own directory",
            where=Where(COMMAND_LINE, option="--out"),
        )
    file = Path(on_disk.read(directory).file) if path.is_dir() else path
    prepared = prepared_again(directory, file, allow_exec=allow_exec)
    return prepared, open_stopped(directory, prepared)


def _run(
    prepared: PreparedExperiment,
    run_options: RunOptions,
    stopped: StoppedExperiment | None,
    *,
    allow_exec: bool,
) -> int:
    from loadstone.api.jobs import commands, schedulers
    from loadstone.api.on_hosts import experiment_maker
    from loadstone.api.studies.prepared import result_document
    from loadstone.cli.running.consent import consent
    from loadstone.cli.running.study import shown
    from loadstone.experiment.announce import check_levels
    from loadstone.experiment.prepared import why_refused
    from loadstone.experiment.run import ExperimentMeans, run_experiment

    refused = why_refused(prepared)
    if refused is not None:
        raise refused
    for wanted in prepared.nexts:
        commands.check(wanted.workload)
        schedulers.refuse(wanted.workload)
    calibration = run_options.calibration
    maker = experiment_maker(run_options.on_hosts(), prepared, calibration=calibration, say_to=console.say)
    if maker is None:
        check_levels(prepared)
    console.notes(prepared.notes)
    length = prepared.length_s
    console.say(
        f"{len(prepared.nexts)} runs" + (f", about {units.whole_seconds(length)}" if length else "")
        if stopped is None
        else f"going on: {_missing(prepared, stopped)} of {len(prepared.nexts)} runs are missing"
    )
    outcome = run_experiment(
        prepared,
        out_dir=run_options.directory(prepared.whole.title) if stopped is None else stopped.path,
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "experiment",
            "options": {
                "file": str(prepared.path),
                "set": dict(prepared.options.parameters),
                "allow_exec": allow_exec,
                "hosts": run_options.hosts,
                "divide": run_options.divide,
            },
        },
        consent=consent(run_options.i_accept_data_loss),
        means=ExperimentMeans(
            progress=shown(live=run_options.progress, certain=len(prepared.nexts)),
            tell=console.say,
            result=result_document,
            around=lambda wanted: commands.around(wanted.workload, console.say),
            maker=maker,
        ),
        watch=run_options.watched(),
        calibration=calibration,
        stopped=stopped,
    )
    return _tell(outcome, run_options)


def _missing(prepared: PreparedExperiment, stopped: StoppedExperiment) -> int:
    finished = {one.point.name for one in stopped.earlier.done if one.point.status == "complete"}
    return len([one for one in prepared.nexts if one.name not in finished])


def _tell(outcome: ExperimentOutcome, run_options: RunOptions) -> int:
    """Print what was found and how it ended; the page comes last, because writing it may fail."""
    from loadstone.api.results import REPORT
    from loadstone.experiment.told import measured_runs, story_of

    study = outcome.study
    runs, unread = measured_runs(study.done)
    story = story_of(outcome.document, study.study, runs)
    _print(story, json=run_options.json)
    code = _tell_end(outcome, run_options)
    if unread:
        told = f"left out of these figures, because they cannot be read: {', '.join(unread)}"
        console.say(f"{told}\n  loadstone audit BUNDLE names what is damaged")
        code = code or exitcodes.FAILED
    if story is None:
        code = code or exitcodes.FAILED
    _write(story, [study.path / REPORT] if run_options.report else [])
    return code


def _tell_end(outcome: ExperimentOutcome, run_options: RunOptions) -> int:
    from loadstone.cli.running.study import tell_worth

    if outcome.study.error is not None:
        from loadstone.cli.main import show

        show(outcome.study.error)
    if outcome.document.ended_because:
        console.say(f"ended before its last run: {outcome.document.ended_because}")
    console.say(f"experiment: {outcome.study.path}")
    if outcome.study.study.status != "complete":
        console.say(f"go on with: loadstone experiment resume {outcome.study.path}")
    for one in outcome.still_changed:
        of = f" of {one.subject}" if one.subject else ""
        console.say(
            f"STILL CHANGED on this machine: {one.control}{of}: NOT put back to {one.before}: {one.why}"
        )
    if outcome.still_changed:
        console.say("put it back by hand, or with `loadstone restore`")
        return exitcodes.FAILED
    return tell_worth(outcome.study, run_options)


def _report(path: Path, run_options: RunOptions, files: list[Path]) -> int:
    from loadstone import output as outputs
    from loadstone.api.results import REPORT
    from loadstone.bundle import experiment as on_disk
    from loadstone.experiment.told import story_on_disk
    from loadstone.report.experiment import files as written

    on_disk.read(path)
    for file in files:
        written.check_ending(file)
        outputs.check(file)
    story = story_on_disk(path)
    _print(story, json=run_options.json)
    _write(story, files or ([path / REPORT] if run_options.report else []))
    return exitcodes.DONE if story is not None else exitcodes.FAILED


def _print(story: ExperimentStory | None, *, json: bool) -> None:
    from loadstone.report.experiment import document, text

    if story is None:
        console.say("no run completed: there is nothing to report")
        return
    if json:
        sys.stdout.write(json_format.dumps(document.document(story), indent=2) + "\n")
    else:
        text.terminal(story, console.data())
    sys.stdout.flush()


def _write(story: ExperimentStory | None, files: Sequence[Path]) -> None:
    from loadstone.report.experiment import files as written

    if story is None:
        return
    for file in files:
        written.write(story, file)
        console.say(f"report: {file}")
