"""`loadstone run`: the main job, from a job file to a report.

Knows the order: read, resolve, run, report. Each is done elsewhere.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from loadstone.bundle.write import BundleWriter
from loadstone.cli import commands, finish, runlist, talk
from loadstone.cli.arguments import Flag, Load, Repeat
from loadstone.cli.consent import consent
from loadstone.cli.load import resolution, workload
from loadstone.cli.manner import Manner
from loadstone.path.spec import read as read_spec
from loadstone.plan.guard import check_consent
from loadstone.session import Asked, run_plan


def run(
    job: str,
    /,
    *,
    load: Load = Load(),
    out: Path | None = None,
    i_accept_data_loss: Annotated[tuple[str, ...], Repeat] = (),
    json: Annotated[bool, Flag] = False,
    progress: bool = True,
    report: bool = True,
    calibration: bool = True,
    require_valid: Annotated[bool, Flag] = False,
    repeat: int | None = None,
    until: str | None = None,
    spec: Path | None = None,
) -> int:
    """Run a job file or a named workload, and report.

    Parameters
    ----------
    job
        A job file of fio, vdbench or Iometer, `-` for standard input, or a name from `loadstone workloads`.
    out
        Directory of the bundle; it must not exist or be empty [default: ./loadstone-runs/TIME-NAME].
    i_accept_data_loss
        Path of a target whose content may be lost (repeat for several); typed out, one by one.
    json
        Print one JSON document at the end instead of the summary.
    progress
        Show the run while it runs (on a terminal only).
    report
        Write the report into the bundle.
    calibration
        Measure for 0.3 s before the run what the load generator can do without a device.
    require_valid
        End with exit code 98 when the verdict is 'not valid' or 'cannot tell'.
    repeat
        Run it so many times, and say how far the runs lie apart.
    until
        Repeat until the 95% interval of the mean rate is within a share of it, or time is up: 2%,30m
        [default time: 30m]; with --repeat, at most so many times.
    spec
        A data sheet of the storage as TOML (docs/spec.md): results are told as a share of it.
    """
    if (found := runlist.read(job, load)) is not None:
        runlist.refuse_given("several runs", repeat=repeat, until=until, spec=spec)
        manner = Manner(
            out=out or default_directory(found.name),
            i_accept_data_loss=i_accept_data_loss,
            json=json,
            progress=progress,
            report=report,
            calibration=calibration,
            require_valid=require_valid,
        )
        return runlist.execute(found, load, {"job": job, **asdict(load)}, manner)
    asked_for = workload(job, load)
    commands.check(asked_for)
    sheet = None if spec is None else read_spec(spec)
    if spec is not None:
        asked_for = asked_for.model_copy(
            update={"sources": {**asked_for.sources, str(spec): spec.read_bytes()}}
        )
    if repeat is not None or until is not None:
        from loadstone.cli import repeat as repeats

        options = {"job": job, **asdict(load), "repeat": repeat, "until": until}
        manner = Manner(
            out=out or default_directory(asked_for.name),
            i_accept_data_loss=i_accept_data_loss,
            json=json,
            progress=progress,
            report=report,
            calibration=calibration,
            require_valid=require_valid,
            spec=sheet,
        )
        return repeats.execute(asked_for, load, options, manner)
    resolved = resolution(asked_for, load)
    if json:
        # The summary tells the notes; without it they are told here.
        talk.notes(resolved.notes)
    talk.memory(resolved.memory_bytes)
    options = {"job": job, **asdict(load), "i_accept_data_loss": list(i_accept_data_loss), "json": json}
    asked = Asked(
        request={"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "run", "options": options},
        inputs=dict(asked_for.sources),
        workload_json=asked_for.model_dump_json(),
        notes=[note.model_dump(mode="json") for note in resolved.notes],
        spec=sheet,
    )
    agreed = consent(i_accept_data_loss)
    check_consent(agreed, [resolved.plan])
    out_dir = out or default_directory(asked_for.name)
    BundleWriter.check(out_dir)
    commands.before(asked_for)
    result = finish.Result()
    outcome = run_plan(
        resolved.plan,
        asked=asked,
        out_dir=out_dir,
        progress=finish.live(wanted=progress),
        consent=agreed,
        result=result.document,
        calibration=calibration,
    )
    commands.after(asked_for)
    return finish.tell(outcome, result, json=json, report=report, require_valid=require_valid)


def default_directory(name: str) -> Path:
    """Return a new directory under ./loadstone-runs, named after the time and the job."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:64]
    base = Path("loadstone-runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{safe}"
    candidate, number = base, 1
    while candidate.exists():
        number += 1
        candidate = base.with_name(f"{base.name}-{number}")
    return candidate
