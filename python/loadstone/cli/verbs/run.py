"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL, Flag, Job, LoadOptions, Sheet, job_of
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from loadstone.api.jobs.data_sheet import DataSheet
    from loadstone.api.planning import PlannedJob


def run(
    job: Job,
    /,
    *more: str,
    repeat: int | None = None,
    shuffle: int | None = None,
    until: str | None = None,
    vdbench_output: Path | None = None,
    probe: str | None = None,
    dry_run: Annotated[bool, Flag] = False,
    spec: Sheet = None,
    load: LoadOptions = LoadOptions(),
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a job file or a named workload, and report.

    Parameters
    ----------
    more
        More job files, of any language, or directories of them: one study of all. Parameter files of
        vdbench alone go on where the first one ends.
    repeat
        Run it so many times, and say how far the runs lie apart.
    shuffle
        Run several job files in an order drawn from this number; without it, as they are given.
    until
        Repeat until the 95% interval of the mean rate is within a share of it, or time is up: 2%,30m
        [default time: 30m]; with --repeat, at most so many times.
    vdbench_output
        Directory for vdbench's own files, of a parameter file, written while it runs.
    probe
        After the run, tell by short extra runs what lies behind its number, for so long at most:
        --probe or --probe=60s [default: 20s]. They read, and write only where the run does.
    dry_run
        Print which probes would run, how long they take and what they write; with --probe.
    """
    from loadstone.api import planning
    from loadstone.api.jobs import data_sheet, run_list
    from loadstone.api.one_run import request_of
    from loadstone.api.studies.lists import prepare_list
    from loadstone.api.studies.repeats import prepare_repeats
    from loadstone.cli.running import hosts as on_hosts
    from loadstone.cli.running import study

    on_hosts.refuse_alone(run_options)
    options = {"job": job, **({"more": list(more)} if more else {}), **asdict(load)}
    changes, named, sheet = load.changes(), job_of(job), data_sheet.read(spec)
    if (found := run_list.read(named, changes, [job_of(one) for one in more], shuffle)) is not None:
        SHELL.refuse("several runs", until=until, probe=probe)
        output = None if vdbench_output is None else str(vdbench_output)
        options |= {"repeat": repeat, "shuffle": shuffle, "vdbench_output": output}
        listed = prepare_list(
            found,
            changes,
            repeat=repeat,
            vdbench_output=vdbench_output,
            sheet=sheet,
            request=request_of(str(found.language), options),
            say=console.say,
        )
        return study.execute(listed, run_options)
    SHELL.refuse("what is no parameter file of vdbench", vdbench_output=vdbench_output)
    if dry_run and probe is None:
        raise InputError(
            "has no effect without --probe",
            where=Where(COMMAND_LINE, option="--dry-run"),
            hint="`loadstone plan JOB` prints what the run itself would do",
        )
    if repeat is not None or until is not None:
        SHELL.refuse("several runs", probe=probe)
        repeated = prepare_repeats(
            named,
            changes,
            repeat=repeat,
            until=until,
            sheet=sheet,
            request=request_of("run", {**options, "repeat": repeat, "until": until}),
            here=run_options.hosts is None,
        )
        return study.execute(repeated, run_options)
    if run_options.hosts is not None:
        asked = planning.asked_for(named, changes)
        return on_hosts.once(asked, changes, options, run_options, sheet, probe=probe, dry_run=dry_run)
    planned = planning.planned_job(named, changes)
    return once(planned, options, run_options, sheet, probe=probe, dry_run=dry_run)


def once(
    planned: PlannedJob,
    options: dict[str, Any],
    run_options: RunOptions,
    sheet: DataSheet,
    *,
    probe: str | None,
    dry_run: bool,
) -> int:
    """Do one run, with probes after it where a budget is given for them."""
    from loadstone.api.one_run import HowRun, request_of
    from loadstone.api.running import run_planned
    from loadstone.cli.display import run_summary
    from loadstone.cli.running import probing
    from loadstone.cli.running.consent import consent

    plan = planned.resolved.plan
    seconds = None if probe is None else probing.read_budget(probe)
    if dry_run and seconds is not None:
        return probing.dry_run(plan, seconds, as_json=run_options.json)
    if run_options.json:
        # The summary tells the notes; without it they are told here.
        console.notes(planned.resolved.notes)
    console.memory(planned.memory_bytes)
    if seconds is not None:
        probing.tell_bounds(plan, seconds)
    options |= {
        "probe": probe,
        "i_accept_data_loss": list(run_options.i_accept_data_loss),
        "json": run_options.json,
        "watch": list(run_options.watch),
    }
    agreed = consent(run_options.i_accept_data_loss)
    result = run_planned(
        planned,
        HowRun(
            run_options.directory(planned.asked.name),
            agreed,
            calibration=run_options.calibration,
            progress=run_summary.live(wanted=run_options.progress),
            check=False,
            say=console.say,
        ),
        request_of("run", options),
        sheet=sheet,
        watch=run_options.watched(),
        figures=None if seconds is None else probing.figures(seconds, agreed, progress=run_options.progress),
    )
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)
