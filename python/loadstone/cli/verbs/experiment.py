"""`loadstone experiment`: a controlled experiment from one file.

Knows how its four actions are asked for and what they print. What is run and set is `experiment`'s.
"""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from loadstone import exitcodes, units
from loadstone.cli.display import console, run_summary
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL, Flag, Repeat, pairs
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from loadstone.api.experimenting import Experiment, PlannedExperiment

Action = Literal["plan", "run", "resume", "report"]


def experiment(
    action: Action,
    path: Path,
    /,
    *,
    set: Annotated[list[str] | None, Repeat] = None,  # noqa: A002 - the name of the option
    leave_out_unset: Annotated[bool, Flag] = False,
    allow_exec: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    other_target: Annotated[list[str] | None, Repeat] = None,
    output: Annotated[list[Path] | None, Parameter(name=["--output", "-o"], negative="")] = None,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a controlled experiment: which setting makes the difference, by how much, and how sure that is.

    Parameters
    ----------
    action
        plan: print what would run, for how long, what is written and what is changed; touch nothing. Of a
        directory: what is missing of that experiment, and how long it takes by what its runs took.
        run: do it. resume: do what is missing of one that stopped. report: write its page again.
    path
        The experiment's file (docs/experiments.md), or for resume, report and plan its directory.
    set
        Set a parameter of the file, as NAME=VALUE (repeat for several).
    leave_out_unset
        Go on without the levels that cannot be set on this host.
    allow_exec
        Permit the commands of factors and of job files to run.
    other_target
        Of resume, and plan of a directory: path of a target that may be another one than before (repeat for
        several); typed out.
    output
        Of report: file to write it to, .html, .md or .pdf (repeat for several).
    """
    parameters = pairs(set or [], "--set", "NAME=VALUE")
    begun = "resume" if action == "resume" else "plan of a directory" if path.is_dir() else ""
    of_file = {"set": set, "leave_out_unset": leave_out_unset}
    _refuse_given(action, **({} if action == "report" else {"output": output}))
    resumes = action == "resume" or (action == "plan" and path.is_dir())
    _refuse_given(action, **({} if resumes else {"other_target": other_target}))
    if action == "report":
        _refuse_given("report", **of_file, allow_exec=allow_exec)
        return _report(path, run_options, output or [])
    if begun and action != "run":
        _refuse_given(f"{begun}, which keeps what the experiment began with", **of_file)
        planned = _rest(path, run_options, allow_exec=allow_exec)
    else:
        planned = _of_file(path, parameters, leave_out_unset=leave_out_unset, allow_exec=allow_exec)
    others = other_target or []
    return _plan(planned, run_options, others) if action == "plan" else _run(planned, run_options, others)


def _of_file(
    path: Path, parameters: dict[str, str], *, leave_out_unset: bool, allow_exec: bool
) -> PlannedExperiment:
    from loadstone.api.experimenting import planned

    at = SHELL.at("parameters")
    return planned(path, parameters, at, leave_out_unset=leave_out_unset, allow_exec=allow_exec)


def _refuse_given(action: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise make_error(
                InputError, "cli.option.no_effect_on", where=Where(COMMAND_LINE, option=option), action=action
            )


def _plan(planned: PlannedExperiment, run_options: RunOptions, others: list[str]) -> int:
    from loadstone.cli.running.consent import consent_without_asking, other_targets, would_end

    if run_options.json:
        sys.stdout.write(json_format.dumps(planned.document(), indent=2) + "\n")
    else:
        lines = planned.lines
        console.notes(planned.notes)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    if run_options.hosts is not None:
        return would_end(planned.refused)  # Each host looks at its targets itself, when they run there.
    agreed = consent_without_asking(run_options.i_accept_data_loss)
    return would_end(planned.refusal(agreed, replace(other_targets(others), ask=None)))


def _rest(path: Path, run_options: RunOptions, *, allow_exec: bool) -> PlannedExperiment:
    from loadstone.api.experimenting import plan_rest

    directory = path if path.is_dir() else run_options.out
    if directory is None and not path.exists():
        directory = path  # Whoever reads it says that it is not there.
    if directory is None:
        raise make_error(InputError, "cli.experiment.which", where=Where(COMMAND_LINE, option="resume"))
    if path.is_dir() and run_options.out is not None:
        raise SHELL.error("cli.experiment.own_directory", "out")
    return plan_rest(directory, None if directory == path else path, allow_exec=allow_exec)


def _run(planned: PlannedExperiment, run_options: RunOptions, others: list[str]) -> int:
    from loadstone.api.experimenting import checked, experiment_request, run_planned_experiment
    from loadstone.api.studies.prepared_study import StudyMeans
    from loadstone.cli.running.consent import consent, other_targets
    from loadstone.cli.running.several_runs import shown

    on, calibration = run_options.on_hosts(), run_options.calibration
    maker = checked(planned, on, calibration=calibration, say=console.say)

    def tell_before() -> None:
        console.notes(planned.notes)
        console.say(_plan_line(planned))

    ended = run_planned_experiment(
        planned,
        StudyMeans(
            run_options.directory(planned.title) if planned.stopped is None else planned.stopped.path,
            consent(run_options.i_accept_data_loss),
            calibration=calibration,
            watch=run_options.watched(),
            progress=shown(live=run_options.progress, certain=len(planned.runs)),
            maker=maker,
            say=console.say,
            checked=tell_before,
        ),
        experiment_request("experiment", planned, on),
        other_targets(others),
    )
    return _tell(ended, run_options)


def _plan_line(planned: PlannedExperiment) -> str:
    """Say how many runs there are to do, and how long they take where that is known."""
    number, missing = len(planned.runs), str(len(planned.missing))
    length = units.whole_seconds(planned.length_s) if planned.length_s else None
    if planned.stopped is None:
        if length is None:
            return say("cli.experiment.runs", count=number)
        return say("cli.experiment.runs_about", count=number, length=length)
    if length is None:
        return say("cli.experiment.going_on", missing=missing, count=number)
    return say("cli.experiment.going_on_about", missing=missing, count=number, length=length)


def _tell(ended: Experiment, run_options: RunOptions) -> int:
    """Print what was found and how it ended; the page comes last, because writing it may fail."""
    _print(ended, json=run_options.json)
    code = _tell_end(ended, run_options)
    if ended.unread:
        unread = say("cli.experiment.unread", runs=", ".join(ended.unread))
        console.say(f"{unread}\n  {say('cli.experiment.unread_hint')}")
        code = code or exitcodes.FAILED
    if not ended.has_figures or (run_options.report and not run_summary.reported(ended.report)):
        code = code or exitcodes.FAILED
    return code


def _tell_end(ended: Experiment, run_options: RunOptions) -> int:
    if ended.error is not None:
        from loadstone.cli.main import show

        show(ended.error)
    if ended.ended_because:
        console.say(say("cli.experiment.ended_early", reason=ended.ended_because))
    console.say(f"experiment: {ended.path}")
    if not ended.is_complete:
        console.say(say("cli.experiment.resume", path=ended.path))
    for one in ended.still_changed:
        of = f" of {one.subject}" if one.subject else ""
        setting = f"{one.control}{of}"
        console.say(say("cli.experiment.still_changed", setting=setting, before=one.before, reason=one.why))
    if ended.still_changed:
        console.say(say("cli.experiment.put_back"))
    return ended.exit_code(require_valid=run_options.require_valid)


def _report(path: Path, run_options: RunOptions, files: list[Path]) -> int:
    import loadstone
    from loadstone.api.experimenting import check_report

    for file in files:
        check_report(file)
    opened = loadstone.open_experiment(path)
    _print(opened, json=run_options.json)
    if not opened.has_figures:
        return exitcodes.FAILED
    if files:
        for file in files:
            console.say(f"report: {opened.report(file)}")
    elif run_options.report:
        console.say(f"report: {opened.report()}")
    return exitcodes.DONE


def _print(done: Experiment, *, json: bool) -> None:
    if not done.has_figures:
        console.say(say("cli.experiment.no_run"))
    elif json:
        sys.stdout.write(json_format.dumps(done.document(), indent=2) + "\n")
    else:
        done.print(console.data())
    sys.stdout.flush()
