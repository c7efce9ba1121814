"""`loadstone probe`: what a target's number would measure, told by short runs.

Knows how a word and a few options become a job: it is run for some seconds and probed, as by
`loadstone run --probe`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from loadstone.cli.options.arguments import COMMAND_LINE, Flag, LoadOptions
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import Where


def probe(
    target: str,
    /,
    *more: str,
    rw: Literal["randread", "read", "randwrite", "write", "randrw", "rw"] = "randread",
    bs: str = "4k",
    iodepth: int = 32,
    runtime: str = "5s",
    size: str | None = None,
    budget: str = "20s",
    dry_run: Annotated[bool, Flag] = False,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a load for a few seconds, and tell by probes what lies behind its number.

    It reads, unless --rw says otherwise; then the target is checked, and consent is asked for, as for any
    run, and probes write nowhere else.

    Parameters
    ----------
    target
        A file or block device.
    more
        Targets that are used at the same time.
    rw
        What to do.
    bs
        Block size.
    iodepth
        I/Os in flight.
    runtime
        How long the load runs before the probes.
    size
        How much of the target is used [default: all of it].
    budget
        Longest time of all probes together.
    dry_run
        Print which probes would run, how long they take and what they write.
    """
    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.api.probed import probe_workload
    from loadstone.cli.running.one_run import AskedRun, once

    shape: dict[str, Any] = {"rw": rw, "bs": bs, "iodepth": iodepth, "runtime": runtime, "size": size}
    asked_for = probe_workload([target, *more], asked_at=Where(COMMAND_LINE), **shape)
    load = LoadOptions()
    options: dict[str, Any] = asdict(load) | {"target": [target, *more], **shape, "budget": budget}
    run_request = AskedRun(asked_for, load.changes(), options, DataSheet(), budget, dry_run)
    return once(run_request, run_options)
