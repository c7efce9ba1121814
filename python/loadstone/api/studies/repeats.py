"""One run several times over: so often, or until its mean rate is known.

Knows how a precision is written. When it is enough is the controller's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from loadstone.api.jobs.read_workload import resolution
from loadstone.api.jobs.times_and_rates import nanoseconds, total_rate
from loadstone.api.planning import asked_for
from loadstone.api.studies.prepared_study import PreparedStudy, StudyOfJob, times
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.study.controller import Next
from loadstone.study.repeat import RepeatController, Until

if TYPE_CHECKING:
    from loadstone.api.jobs.job_changes import Caller
    from loadstone.plan.resolve import Resolution

BUDGET_S: Final = 1800.0


def prepare_repeats(study: StudyOfJob, *, repeat: int | None, until: str | None) -> PreparedStudy:
    """Prepare a job that is repeated."""
    changes = study.changes
    most, precise = times(repeat, changes.caller), precision(until, changes.caller)
    job_workload = asked_for(study.job, changes)
    controller = RepeatController(
        Next(job_workload.name, job_workload, rate=total_rate(changes)), most=most, until=precise
    )

    def resolve(wanted: Next) -> Resolution:
        return resolution(wanted.workload, changes)

    def closing() -> list[dict[str, Any]]:
        why = controller.ended_because if precise is not None else None
        return [{"kind": "info", "text": f"no more repeats: {why}", "where": None}] if why else []

    first = resolve(controller.known()[0]) if study.on_this_host else None
    settings = {
        "repeats": most,
        "until_share": precise.share if precise else None,
        "budget_s": precise.budget_s if precise else None,
    }
    return PreparedStudy(
        controller,
        study.study_request("repeat", job_workload, settings, first, front_end="run"),
        resolve,
        first=first,
        closing=closing,
        changes_of=lambda _: changes,
    )


def precision(text: str | None, caller: Caller) -> Until | None:
    """Read `SHARE%[,TIME]`; None without it."""
    if text is None:
        return None
    where = caller.at("until")
    share, comma, time = text.partition(",")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", share)
    if match is None or not 0 < float(match[1]) < 100:
        raise make_error(InputError, "api.amount.until", where=where, found=repr(share))
    budget_s = nanoseconds(time, where) / 1e9 if comma else BUDGET_S
    if budget_s <= 0:
        raise make_error(InputError, "api.amount.until_time", where=where, found=repr(time))
    return Until(float(match[1]) / 100, budget_s)
