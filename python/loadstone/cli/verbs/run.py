"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from loadstone.cli.display import console
from loadstone.cli.options.arguments import SHELL, Flag, Job, LoadOptions, Sheet, job_of
from loadstone.cli.options.run_options import RunOptions

if TYPE_CHECKING:
    from loadstone.api.jobs.job_changes import JobChanges, JobText
    from loadstone.api.jobs.run_list import RunList
    from loadstone.api.jobs.spec_option import DataSheet


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
        Run it so many times, and report the spread between the runs.
    shuffle
        Run several job files in an order drawn from this number; without it, as they are given.
    until
        Repeat until the 95% interval of the mean rate is within a share of it, or time is up: 2%,30m
        [default time: 30m]. With --repeat, at most so many times.
    vdbench_output
        Directory for vdbench's own files, of a parameter file, written while it runs.
    probe
        After the run, tell by short extra runs what lies behind its number, for so long at most:
        --probe or --probe=60s [default: 20s]. They read, and write only where the run does.
    dry_run
        Print which probes would run, how long they take and what they write; with --probe.
    """
    from loadstone.api.jobs import read_runs, spec_option

    if dry_run and probe is None:
        raise SHELL.error("cli.run.dry_run", "dry_run")
    options = {"job": job, **({"more": list(more)} if more else {}), **asdict(load)}
    sheet = spec_option.read(spec)
    job_run = _JobRun(job_of(job), load.changes(), options, sheet, run_options, probe, dry_run)
    runs = read_runs.read(job_run.job, job_run.changes, [job_of(one) for one in more], shuffle)
    if runs is not None:
        SHELL.refuse("several runs", until=until)
        return job_run.run_all(runs, vdbench_output, repeat=repeat, shuffle=shuffle)
    SHELL.refuse("what is no parameter file of vdbench", vdbench_output=vdbench_output)
    return job_run.run_once() if repeat is None and until is None else job_run.run_repeats(repeat, until)


@dataclass(frozen=True, slots=True)
class _JobRun:
    """A job and what the command line says about it."""

    job: str | JobText
    changes: JobChanges
    options: dict[str, Any]
    """As `request.json` keeps them."""
    sheet: DataSheet
    run_options: RunOptions
    probe: str | None
    dry_run: bool

    def run_once(self) -> int:
        from loadstone.api.planning import asked_for
        from loadstone.cli.running.one_run import AskedRun, once

        workload = asked_for(self.job, self.changes)
        request = AskedRun(workload, self.changes, self.options, self.sheet, self.probe, self.dry_run)
        return once(request, self.run_options)

    def run_repeats(self, repeat: int | None, until: str | None) -> int:
        SHELL.refuse("several runs", probe=self.probe)
        from loadstone.api.one_run import request_of
        from loadstone.api.studies.prepared_study import StudyOfJob
        from loadstone.api.studies.repeats import prepare_repeats
        from loadstone.cli.running import several_runs

        request = request_of("run", {**self.options, "repeat": repeat, "until": until})
        is_alone = self.run_options.hosts is None
        repeated = StudyOfJob(self.job, self.changes, self.sheet, request, on_this_host=is_alone)
        return several_runs.execute(prepare_repeats(repeated, repeat=repeat, until=until), self.run_options)

    def run_all(
        self, runs: RunList, vdbench_output: Path | None, *, repeat: int | None, shuffle: int | None
    ) -> int:
        from loadstone.api.one_run import request_of
        from loadstone.api.studies.lists import prepare_list
        from loadstone.cli.running import probing, several_runs
        from loadstone.cli.running.consent import consent_without_asking, would_end

        seconds = None if self.probe is None else probing.read_budget(self.probe)
        if self.run_options.on_hosts() is not None:
            SHELL.refuse("several runs on hosts", probe=self.probe)
        output = None if vdbench_output is None else str(vdbench_output)
        options = {**self.options, "repeat": repeat, "shuffle": shuffle, "vdbench_output": output}
        listed = prepare_list(
            runs,
            self.changes,
            repeat=repeat,
            vdbench_output=vdbench_output,
            sheet=self.sheet,
            request=request_of(str(runs.language), {**options, "probe": self.probe}),
            say=console.say,
        )
        if self.dry_run and seconds is not None:
            probing.dry_runs(listed, seconds, as_json=self.run_options.json)
            consent = consent_without_asking(self.run_options.i_accept_data_loss)
            return would_end(listed.refusal(consent))
        return several_runs.execute(listed, self.run_options, seconds)
