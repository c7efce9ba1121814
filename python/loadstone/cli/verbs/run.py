"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL, Flag, Job, LoadOptions, Sheet, job_of
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where
from loadstone.messages import make_error


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
    from loadstone.api.jobs import data_sheet, run_list
    from loadstone.api.one_run import request_of
    from loadstone.api.planning import asked_for
    from loadstone.api.studies.lists import prepare_list
    from loadstone.api.studies.repeats import prepare_repeats
    from loadstone.cli.running import probing, study
    from loadstone.cli.running.one_run import AskedRun, once

    on_hosts = run_options.on_hosts() is not None
    seconds = None if probe is None else probing.read_budget(probe)
    if dry_run and probe is None:
        raise make_error(InputError, "cli.run.dry_run", where=Where(COMMAND_LINE, option="--dry-run"))
    options = {"job": job, **({"more": list(more)} if more else {}), **asdict(load)}
    changes, named, sheet = load.changes(), job_of(job), data_sheet.read(spec)
    if (runs := run_list.read(named, changes, [job_of(one) for one in more], shuffle)) is not None:
        SHELL.refuse("several runs", until=until)
        if on_hosts:
            SHELL.refuse("several runs on hosts", probe=probe)
        output = None if vdbench_output is None else str(vdbench_output)
        options |= {"repeat": repeat, "shuffle": shuffle, "vdbench_output": output, "probe": probe}
        listed = prepare_list(
            runs,
            changes,
            repeat=repeat,
            vdbench_output=vdbench_output,
            sheet=sheet,
            request=request_of(str(runs.language), options),
            say=console.say,
        )
        if dry_run and seconds is not None:
            return probing.dry_runs(listed, seconds, as_json=run_options.json)
        return study.execute(listed, run_options, seconds)
    SHELL.refuse("what is no parameter file of vdbench", vdbench_output=vdbench_output)
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
    run_request = AskedRun(asked_for(named, changes), changes, options, sheet, probe, dry_run)
    return once(run_request, run_options)
