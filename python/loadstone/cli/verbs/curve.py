"""`loadstone curve`: latency against load, the knee, and the load up to which a limit holds.

Knows how its options are read. Which loads are measured is the controller's business, what
they say the analysis'.
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cli.options.arguments import COMMAND_LINE, LoadOptions, OneJob, Sheet, job_of
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from loadstone.analysis.study.slo import Slo
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next

ADAPTIVE = "adaptive"


def curve(
    job: OneJob,
    /,
    *,
    points: str | None = None,
    slo: str | None = None,
    repeat: int | None = None,
    spec: Sheet = None,
    load: LoadOptions = LoadOptions(),
    run_options: RunOptions = RunOptions(),
) -> int:
    """Find the maximum, then measure latency in an open loop at shares of it.

    Jobs behind a stonewall have curves of their own. Several curves in one picture:
    `loadstone report STUDY STUDY...`.

    Parameters
    ----------
    points
        Percents of the maximum, as 10,50,70,80,90,100 (the default), or `adaptive`: where latency changes.
    slo
        A limit on latency, as 'p99<1ms' or 'mean<200us': the highest load that keeps it is searched for.
    repeat
        Measure every load so often [default: once, and what is noisy up to three times].
    """
    from loadstone.api.jobs import data_sheet
    from loadstone.api.jobs.read_workload import rate_process, resolution_at, workload
    from loadstone.cli.running import study
    from loadstone.cli.running.hosts import StudyOnHosts
    from loadstone.cli.running.repeat import times
    from loadstone.plan.model import RateProcess
    from loadstone.study.curve import CurveController, CurveOptions
    from loadstone.study.run import StudyRequest
    from loadstone.study.run_list import ListController
    from loadstone.study.stages import check_one_stage, stages

    for option, given in (("--rate", load.rate), ("--rate-profile", load.rate_profile)):
        if given is not None:
            raise InputError(
                "a curve sets the rates itself", where=Where(COMMAND_LINE, option=option), hint="leave it out"
            )
    changes = load.changes()
    options = CurveOptions(
        percents=percents(points),
        repeat=times(repeat),
        process=rate_process(changes, RateProcess.POISSON),
        slo=limit(slo),
    )
    changes.refuse(("interval", "warmup"), "a curve")
    asked_for, sheet = workload(job_of(job), changes), data_sheet.read(spec)
    parts = stages(asked_for)
    controllers = [
        CurveController(
            part,
            options,
            prefix=f"{name}_" if len(parts) > 1 else "",
            factors={"stage": name} if len(parts) > 1 else {},
        )
        for name, part in parts
    ]
    controller = ListController(controllers)

    def check(plan: Plan, wanted: Next) -> None:
        check_one_stage(plan, wanted.workload)

    def resolve(wanted: Next) -> Resolution:
        found = resolution_at(wanted.workload, changes, wanted.rate)
        check(found.plan, wanted)
        return found

    said = {
        "points": ADAPTIVE if options.percents is None else list(options.percents),
        "repeat": options.repeat,
        "process": options.process.value,
        "slo": slo,
    }
    asked = StudyRequest(
        kind="curve",
        name=asked_for.name,
        front_end="curve",
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "curve",
            "options": {"job": job, **asdict(load), **said},
        },
        inputs={**asked_for.sources, **sheet.inputs},
        settings=said,
        notes=study.notes_of(
            asked_for, study.first_of(controller, run_options, resolve), json=run_options.json
        ),
        spec=sheet.spec,
    )

    return study.execute(
        controller,
        asked,
        run_options,
        resolve,
        after_failure="go_on",
        on_hosts=StudyOnHosts(lambda _: changes, check),
    )


def percents(text: str | None) -> tuple[float, ...] | None:
    """Read `--points`; None for `adaptive`."""
    from loadstone.study.curve import MAX_PERCENT, VDBENCH_PERCENTS

    if text is None:
        return VDBENCH_PERCENTS
    if text.strip() == ADAPTIVE:
        return None
    where = Where(COMMAND_LINE, option="--points")
    found: list[float] = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", word)
        if match is None or not 0 < float(match[1]) <= MAX_PERCENT:
            raise InputError(
                f"found {word.strip()!r}, expected percents from above 0 to {MAX_PERCENT:g}, as 10,50,100",
                where=where,
                hint=f"or `{ADAPTIVE}`, for points where the curve bends",
            )
        if float(match[1]) in found:
            raise InputError(
                f"{word.strip()} is given twice", where=where, hint="--repeat repeats all of them"
            )
        found.append(float(match[1]))
    return tuple(found)


def limit(text: str | None) -> Slo | None:
    """Read `--slo`; None without it."""
    from loadstone.analysis.study import slo as limits

    if text is None:
        return None
    try:
        return limits.read(text)
    except InputError as error:
        raise InputError(error.message, where=Where(COMMAND_LINE, option="--slo"), hint=error.hint) from error
