"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.cli import talk
from loadstone.cli.arguments import Job, Load, Sheet
from loadstone.cli.manner import Manner

if TYPE_CHECKING:
    from loadstone.cli.data_sheet import DataSheet
    from loadstone.workload.model import Workload


def run(
    job: Job,
    /,
    *more: str,
    repeat: int | None = None,
    until: str | None = None,
    vdbench_output: Path | None = None,
    spec: Sheet = None,
    load: Load = Load(),
    manner: Manner = Manner(),
) -> int:
    """Run a job file or a named workload, and report.

    Parameters
    ----------
    more
        Parameter files of vdbench that go on where the first one ends.
    repeat
        Run it so many times, and say how far the runs lie apart.
    until
        Repeat until the 95% interval of the mean rate is within a share of it, or time is up: 2%,30m
        [default time: 30m]; with --repeat, at most so many times.
    vdbench_output
        Directory for vdbench's own files, of a parameter file, written while it runs.
    """
    from loadstone.cli import commands, data_sheet, runlist
    from loadstone.cli.load import workload

    options = {"job": job, **({"more": list(more)} if more else {}), **asdict(load)}
    if (found := runlist.read(job, load, more)) is not None:
        from loadstone.cli.repeat import times

        runlist.refuse_given("several runs", until=until)
        options["repeat"] = times(repeat)
        options["vdbench_output"] = None if vdbench_output is None else str(vdbench_output)
        return runlist.execute(found, load, options, manner, data_sheet.read(spec))
    runlist.refuse_given("what is no parameter file of vdbench", vdbench_output=vdbench_output)
    asked_for, sheet = workload(job, load), data_sheet.read(spec)
    commands.check(asked_for)
    if repeat is not None or until is not None:
        from loadstone.cli import repeat as repeats

        return repeats.execute(asked_for, load, {**options, "repeat": repeat, "until": until}, manner, sheet)
    return _once(asked_for, load, options, manner, sheet)


def _once(asked_for: Workload, load: Load, options: dict[str, Any], manner: Manner, sheet: DataSheet) -> int:
    from loadstone.bundle.write import BundleWriter
    from loadstone.cli import commands, finish, schedulers
    from loadstone.cli.consent import consent
    from loadstone.cli.load import resolution
    from loadstone.plan.guard import check_consent
    from loadstone.session import Asked, run_plan

    resolved = resolution(asked_for, load)
    if manner.json:
        # The summary tells the notes; without it they are told here.
        talk.notes(resolved.notes)
    talk.memory(resolved.memory_bytes)
    options |= {"i_accept_data_loss": list(manner.i_accept_data_loss), "json": manner.json}
    asked = Asked(
        request={"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "run", "options": options},
        inputs={**asked_for.sources, **sheet.inputs},
        workload_json=asked_for.model_dump_json(),
        notes=[note.model_dump(mode="json") for note in resolved.notes],
        spec=sheet.spec,
    )
    agreed = consent(manner.i_accept_data_loss)
    check_consent(agreed, [resolved.plan])
    out_dir = manner.directory(asked_for.name)
    BundleWriter.check(out_dir)
    commands.before(asked_for)
    result = finish.Result()
    with schedulers.as_asked(asked_for, resolved.plan):
        outcome = run_plan(
            resolved.plan,
            asked=asked,
            out_dir=out_dir,
            progress=finish.live(wanted=manner.progress),
            consent=agreed,
            result=result.document,
            calibration=manner.calibration,
        )
    commands.after(asked_for)
    return finish.tell(outcome, result, manner, require_valid=manner.require_valid)
