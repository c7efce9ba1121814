"""`loadstone run --repeat` and `--until`: one run several times over.

Knows how the two are read. When it is enough is the controller's business.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.api.jobs.read_workload import resolution, total_rate
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.cli.running import study
from loadstone.cli.running.hosts import StudyOnHosts
from loadstone.errors import InputError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, time_ns
from loadstone.study.controller import Next
from loadstone.study.repeat import RepeatController, Until
from loadstone.study.run import StudyRequest

if TYPE_CHECKING:
    from loadstone.api.jobs.changes import JobChanges
    from loadstone.api.jobs.data_sheet import DataSheet
    from loadstone.cli.options.run_options import RunOptions
    from loadstone.plan.resolve import Resolution
    from loadstone.workload.model import Workload

BUDGET_S: Final = 1800.0
MAX_REPEATS: Final = 1000


def execute(
    asked_for: Workload,
    changes: JobChanges,
    options: dict[str, Any],
    run_options: RunOptions,
    sheet: DataSheet,
) -> int:
    """Repeat a Workload and return the exit code."""
    most, until = times(options["repeat"]), precision(options["until"])
    controller = RepeatController(
        Next(asked_for.name, asked_for, rate=total_rate(changes)), most=most, until=until
    )

    def resolve(wanted: Next) -> Resolution:
        return resolution(wanted.workload, changes)

    first = study.first_of(controller, run_options, resolve)
    asked = StudyRequest(
        kind="repeat",
        name=asked_for.name,
        front_end="run",
        request={"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "run", "options": options},
        inputs={**asked_for.sources, **sheet.inputs},
        settings={
            "repeats": most,
            "until_share": until.share if until else None,
            "budget_s": until.budget_s if until else None,
        },
        notes=study.notes_of(asked_for, first, json=run_options.json),
        spec=sheet.spec,
    )

    def closing() -> list[dict[str, Any]]:
        why = controller.ended_because if until is not None else None
        return [{"kind": "info", "text": f"no more repeats: {why}", "where": None}] if why else []

    return study.execute(
        controller, asked, run_options, resolve, closing, on_hosts=StudyOnHosts(lambda _: changes)
    )


def times(number: int | None, option: str = "--repeat") -> int | None:
    """Read how many times; None without it."""
    if number is not None and not 1 <= number <= MAX_REPEATS:
        raise InputError(
            f"found {number}, expected a number from 1 to {MAX_REPEATS}",
            where=Where(COMMAND_LINE, option=option),
        )
    return number


def precision(text: str | None) -> Until | None:
    """Read `SHARE%[,TIME]`; None without it."""
    if text is None:
        return None
    where = Where(COMMAND_LINE, option="--until")
    share, comma, time = text.partition(",")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", share)
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(
            f"found {share!r}, expected a share and perhaps a time, such as 2% or 2%,30m", where=where
        )
    budget_s = time_ns(time, Reading(where), SECOND_NS) / 1e9 if comma else BUDGET_S
    if budget_s <= 0:
        raise InputError(f"the time {time!r} is 0: expected a time such as 30m", where=where)
    return Until(float(match[1]) / 100, budget_s)
