"""`loadstone sweep`: a load at every combination of depths, block sizes, read shares or threads.

Knows how its options are read. Which operating point is recommended is the analysis' business.
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from loadstone import units
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, LoadOptions, OneJob, Sheet, job_of
from loadstone.cli.options.run_options import RunOptions
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next
    from loadstone.study.factors import Name

MAX_FACTORS: Final = 3
GAIN: Final = "10%"


def sweep(
    job: OneJob,
    /,
    *,
    iodepth: str | None = None,
    bs: str | None = None,
    read: str | None = None,
    numjobs: str | None = None,
    gain: str | None = None,
    repeat: int | None = None,
    spec: Sheet = None,
    load: LoadOptions = LoadOptions(),
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a load at every combination of one to three factors, and recommend an operating point.

    Values are a list, as 1,2,4, or a range, as 1..256 (doubling), 1..256:x4 or 0..100:+10.
    Jobs behind a stonewall are swept apart.

    Parameters
    ----------
    iodepth
        I/Os in flight of each clone, as 1..256.
    bs
        Block sizes, as 4k..1m.
    read
        Percents of reads, as 0,50,100 or 0..100:+10.
    numjobs
        Clones of each job, as 1..16.
    gain
        The depth beyond which throughput gains less than this per doubling is recommended [default: 10%].
    repeat
        Passes over all combinations [default: 1].
    """
    from loadstone.analysis.study.sweep import STAGE
    from loadstone.api.jobs import data_sheet
    from loadstone.api.jobs.read_workload import resolution, total_rate, workload
    from loadstone.cli.running import study
    from loadstone.cli.running.hosts import StudyOnHosts
    from loadstone.cli.running.repeat import times
    from loadstone.study import factors
    from loadstone.study.run import StudyRequest
    from loadstone.study.stages import check_one_stage, stages
    from loadstone.study.sweep import SweepController

    # The last is drawn to the right and runs fastest: the one along which an operating point is sought.
    given: dict[Name, str | None] = {"bs": bs, "read": read, "numjobs": numjobs, "iodepth": iodepth}
    axes = _axes(given)
    if gain is not None and iodepth is None and numjobs is None:
        raise InputError(
            "has no effect without --iodepth or --numjobs",
            where=Where(COMMAND_LINE, option="--gain"),
            hint="it is for the depth that is recommended; leave it out",
        )
    gain_share = _gain(gain or GAIN)
    changes = load.changes()
    changes.refuse(("interval", "warmup"), "a sweep")
    asked_for, sheet = workload(job_of(job), changes), data_sheet.read(spec)
    parts = stages(asked_for)
    controller = SweepController(parts, axes, repeat=times(repeat) or 1, rate=total_rate(changes))

    def check(plan: Plan, wanted: Next) -> None:
        check_one_stage(plan, wanted.workload)
        depth = wanted.factors.get("iodepth")
        factors.check(plan, wanted.workload, depth if isinstance(depth, int) else None)

    def resolve(wanted: Next) -> Resolution:
        found = resolution(wanted.workload, changes)
        check(found.plan, wanted)
        return found

    settings = {
        "axes": ([[STAGE, [name for name, _ in parts]]] if len(parts) > 1 else [])
        + [[name, list(values)] for name, values in axes],
        "gain_share": gain_share,
        "repeat": repeat,
    }
    first = study.first_of(controller, run_options, resolve)
    if first is not None and first.duration_ns is not None:
        whole_s = first.duration_ns / 1e9 * controller.expected()
        console.say(f"{controller.expected()} runs, {units.seconds(whole_s)} of load in all")
    asked = StudyRequest(
        kind="sweep",
        name=asked_for.name,
        front_end="sweep",
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "sweep",
            "options": {"job": job, **asdict(load), **given, "gain": gain or GAIN, "repeat": repeat},
        },
        inputs={**asked_for.sources, **sheet.inputs},
        settings=settings,
        notes=study.notes_of(asked_for, first, json=run_options.json),
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


def _axes(given: dict[Name, str | None]) -> list[tuple[Name, tuple[int, ...]]]:
    from loadstone.study import factors

    axes = [
        (name, factors.values(name, text, Where(COMMAND_LINE, option=f"--{name}")))
        for name, text in given.items()
        if text is not None
    ]
    if not axes:
        options = ", ".join(f"--{name}" for name in get_args(factors.Name))
        raise InputError(
            "there is nothing to sweep", where=Where(COMMAND_LINE), hint=f"give one to three of {options}"
        )
    if len(axes) > MAX_FACTORS:
        raise InputError(
            f"{len(axes)} factors at once are too many",
            where=Where(COMMAND_LINE),
            hint=f"vary at most {MAX_FACTORS}: a picture cannot show more",
        )
    return axes


def _gain(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(
            f"found {text!r}, expected a share such as {GAIN}", where=Where(COMMAND_LINE, option="--gain")
        )
    return float(match[1]) / 100
