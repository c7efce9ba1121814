"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, Flag, Job, LoadOptions, Sheet
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from loadstone.cli.options.data_sheet import DataSheet
    from loadstone.workload.model import Workload


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
    from loadstone.cli.jobs import runlist
    from loadstone.cli.jobs.read_workload import workload
    from loadstone.cli.options import data_sheet
    from loadstone.cli.running import commands
    from loadstone.cli.running import hosts as on_hosts

    on_hosts.refuse_alone(run_options)
    options = {"job": job, **({"more": list(more)} if more else {}), **asdict(load)}
    if (found := runlist.read(job, load, more, shuffle)) is not None:
        from loadstone.cli.running.repeat import times

        runlist.refuse_given("several runs", until=until, probe=probe)
        options["repeat"] = times(repeat)
        options["shuffle"] = shuffle
        options["vdbench_output"] = None if vdbench_output is None else str(vdbench_output)
        return runlist.execute(found, load, options, run_options, data_sheet.read(spec))
    runlist.refuse_given("what is no parameter file of vdbench", vdbench_output=vdbench_output)
    asked_for, sheet = workload(job, load), data_sheet.read(spec)
    commands.check(asked_for)
    if dry_run and probe is None:
        raise InputError(
            "has no effect without --probe",
            where=Where(COMMAND_LINE, option="--dry-run"),
            hint="`loadstone plan JOB` prints what the run itself would do",
        )
    if repeat is not None or until is not None:
        from loadstone.cli.running import repeat as repeats

        runlist.refuse_given("several runs", probe=probe)
        return repeats.execute(
            asked_for, load, {**options, "repeat": repeat, "until": until}, run_options, sheet
        )
    if run_options.hosts is not None:
        runlist.refuse_given("a run on several hosts", probe=probe)
        return on_hosts.once(asked_for, load, options, run_options, sheet)
    return once(asked_for, load, options, run_options, sheet, probe=probe, dry_run=dry_run)


def once(
    asked_for: Workload,
    load: LoadOptions,
    options: dict[str, Any],
    run_options: RunOptions,
    sheet: DataSheet,
    *,
    probe: str | None,
    dry_run: bool,
) -> int:
    """Do one run, with probes after it where a budget is given for them."""
    from loadstone.api.one_run import HowRun, run_once
    from loadstone.bundle.write import BundleWriter
    from loadstone.cli.display import run_summary
    from loadstone.cli.jobs.read_workload import resolution
    from loadstone.cli.running import commands, probing, schedulers
    from loadstone.cli.running.consent import consent
    from loadstone.engine.plan_check import memory_bytes
    from loadstone.plan.safety.guard import check_consent
    from loadstone.session import RunRequest

    resolved = resolution(asked_for, load)
    seconds = None if probe is None else probing.read_budget(probe)
    if dry_run and seconds is not None:
        return probing.dry_run(resolved.plan, seconds, as_json=run_options.json)
    if run_options.json:
        # The summary tells the notes; without it they are told here.
        console.notes(resolved.notes)
    console.memory(memory_bytes(resolved.plan))
    if seconds is not None:
        probing.tell_bounds(resolved.plan, seconds)
    options |= {
        "probe": probe,
        "i_accept_data_loss": list(run_options.i_accept_data_loss),
        "json": run_options.json,
        "watch": list(run_options.watch),
    }
    asked = RunRequest(
        request={"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "run", "options": options},
        inputs={**asked_for.sources, **sheet.inputs},
        workload_json=asked_for.model_dump_json(),
        notes=[note.model_dump(mode="json") for note in resolved.notes],
        spec=sheet.spec,
        watch=run_options.watched(),
    )
    agreed = consent(run_options.i_accept_data_loss)
    check_consent(agreed, [resolved.plan])
    settings = HowRun(
        run_options.directory(asked_for.name),
        agreed,
        calibration=run_options.calibration,
        progress=run_summary.live(wanted=run_options.progress),
        check=False,
    )
    BundleWriter.check(settings.out)
    commands.before(asked_for)
    probed = None if seconds is None else probing.figures(seconds, agreed, progress=run_options.progress)
    with schedulers.as_asked(asked_for, resolved.plan):
        result = run_once(resolved.plan, asked, settings, probed)
    commands.after(asked_for)
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)
