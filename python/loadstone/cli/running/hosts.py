"""`--hosts`: one run on several hosts.

Knows what each host is asked to do, and how it is reached. The rest is done in `hosts`.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.errors import InputError, RefusedError, Where

if TYPE_CHECKING:
    from loadstone.cli.options.arguments import LoadOptions
    from loadstone.cli.options.data_sheet import DataSheet
    from loadstone.cli.options.run_options import RunOptions
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.work import HostWork
    from loadstone.workload.model import Workload


def refuse_alone(hosts: str | None, *, divide: bool) -> None:
    """Refuse an option that is for runs on several hosts."""
    if divide and hosts is None:
        raise InputError(
            "has no effect without --hosts",
            where=Where(COMMAND_LINE, option="--divide"),
            hint="leave it out, or name hosts",
        )


def refuse_several(hosts: str | None, what: str) -> None:
    """Refuse hosts for what is more than one run: the runs of a study are not spread over hosts yet."""
    if hosts is not None:
        raise RefusedError(
            f"--hosts is for one run, not for {what}",
            where=Where(COMMAND_LINE, option="--hosts"),
            hint="do the runs one by one; --map '*=localhost' runs vdbench's hosts all here",
        )


def once(
    asked_for: Workload,
    load: LoadOptions,
    options: dict[str, Any],
    run_options: RunOptions,
    sheet: DataSheet,
    *,
    hosts: str,
    divide: bool,
) -> int:
    """Do one run on all hosts at once."""
    from loadstone.api.results import Result, SealedFigures
    from loadstone.cli.display import run_summary
    from loadstone.cli.running.consent import consent
    from loadstone.hosts.coordinator import HostsRequest, run_on_hosts
    from loadstone.hosts.hosts_file import read_hosts
    from loadstone.hosts.reach import Reached
    from loadstone.session import RunRequest

    if run_options.watched():
        raise RefusedError(
            "--watch is for a run on one host",
            where=Where(COMMAND_LINE, option="--watch"),
            hint="watch the storage from a run of its own, or by its own tools",
        )
    named = read_hosts(hosts)
    options |= {
        "hosts": hosts,
        "divide": divide,
        "i_accept_data_loss": list(run_options.i_accept_data_loss),
        "json": run_options.json,
    }
    request = {"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "run", "options": options}
    inputs = {**asked_for.sources, **sheet.inputs}
    if Path(hosts).is_file():
        inputs[hosts] = Path(hosts).read_bytes()
    figures = SealedFigures()
    with Reached(named) as reached:
        outcome = run_on_hosts(
            works(asked_for, load, named, request, inputs, calibration=run_options.calibration),
            named,
            reached.link,
            HostsRequest(
                asked=RunRequest(
                    request=request,
                    inputs=inputs,
                    workload_json=asked_for.model_dump_json(),
                    notes=[],
                    spec=sheet.spec,
                ),
                out_dir=run_options.directory(asked_for.name),
                consent=consent(run_options.i_accept_data_loss),
                progress=run_summary.live(wanted=run_options.progress),
                divide=divide,
                say=console.say,
            ),
            result=figures.document,
        )
    result = Result(outcome.bundle_path, outcome, figures)
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)


def works(
    asked_for: Workload,
    load: LoadOptions,
    named: HostsFile,
    request: dict[str, Any],
    inputs: dict[str, bytes],
    *,
    calibration: bool,
) -> dict[str, HostWork]:
    """Return what each host is asked to do: the same, with random addresses of its own."""
    from loadstone.cli.jobs.read_workload import total_rate
    from loadstone.hosts.work import HostRate, HostWork
    from loadstone.study.random_seeds import own_sequence

    if any(job.exec_prerun is not None or job.exec_postrun is not None for job in asked_for.jobs):
        raise RefusedError(
            "commands of a job file (exec_prerun, exec_postrun) are not run on several hosts",
            hint="run them yourself before and after, and leave --allow-exec out",
        )
    rate = total_rate(load)
    texts = {name: base64.b64encode(content).decode() for name, content in inputs.items()}
    return {
        name: HostWork(
            workload=own_sequence(asked_for, number),
            rate=None if rate is None else HostRate.of(rate, 1 / len(named.host)),
            keep_ioengine=load.keep_ioengine,
            journal=load.journal,
            inputs=texts,
            request=request,
            calibration=calibration,
        )
        for number, name in enumerate(named.names, start=1)
    }
