"""Latency against load: the maximum, shares of it, and the load up to which a limit holds.

Knows how points and limits are written. Which loads are measured is the controller's business, what
they say the analysis'.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study import slo as limits
from loadstone.api.jobs.read_workload import resolution_at, workload
from loadstone.api.jobs.times_and_rates import rate_process
from loadstone.api.studies.prepared_study import PreparedStudy, StudyOfJob, times
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.plan.model import RateProcess
from loadstone.study.curve import MAX_PERCENT, VDBENCH_PERCENTS, CurveController, CurveOptions
from loadstone.study.list_controller import ListController
from loadstone.study.stages import check_one_stage, refuse_own_rates, stages

if TYPE_CHECKING:
    from loadstone.analysis.study.slo import Slo
    from loadstone.api.jobs.job_changes import Caller, JobChanges
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next
    from loadstone.workload.model import Workload

ADAPTIVE: Final = "adaptive"


def prepare_curve(
    study: StudyOfJob, *, points: str | None, slo: str | None, repeat: int | None
) -> PreparedStudy:
    """Prepare the curves of a job. Its request gets what was decided beside what was given."""
    changes = study.changes
    options = _options(changes, points, slo, repeat)
    asked_for = workload(study.job, changes)
    controller = _controller(asked_for, options)

    def resolve(wanted: Next) -> Resolution:
        resolved = resolution_at(wanted.workload, changes, wanted.rate)
        check_one_stage(resolved.plan, wanted.workload)
        return resolved

    decided = {
        "points": ADAPTIVE if options.percents is None else list(options.percents),
        "repeat": options.repeat,
        "process": options.process.value,
        "slo": slo,
    }
    first = resolve(controller.known()[0]) if study.on_this_host else None
    request = {**study.request, "options": {**study.request["options"], **decided}}
    return PreparedStudy(
        controller,
        replace(study, request=request).study_request("curve", asked_for, decided, first),
        resolve,
        first=first,
        after_failure="go_on",
        changes_of=lambda _: changes,
        check=lambda plan, wanted: check_one_stage(plan, wanted.workload),
    )


def _options(changes: JobChanges, points: str | None, slo: str | None, repeat: int | None) -> CurveOptions:
    """Read what was asked of a curve. Raises InputError."""
    caller = changes.caller
    for name in ("rate", "rate_profile"):
        if getattr(changes, name) is not None:
            raise caller.error("api.curve.rates", name)
    options = CurveOptions(
        percents=percents(points, caller),
        repeat=times(repeat, caller),
        process=rate_process(changes, RateProcess.POISSON),
        slo=limit(slo, caller),
    )
    changes.refuse(("interval", "warmup"), "a curve")
    return options


def _controller(asked_for: Workload, options: CurveOptions) -> ListController:
    """Return what decides the loads: a curve of each stage. Raises InputError for jobs with rates."""
    refuse_own_rates(asked_for)
    parts = stages(asked_for)
    several = len(parts) > 1
    return ListController(
        [
            CurveController(
                part,
                options,
                prefix=f"{name}_" if several else "",
                factors={"stage": name} if several else {},
            )
            for name, part in parts
        ]
    )


def percents(text: str | None, caller: Caller) -> tuple[float, ...] | None:
    """Read the points of a curve; None for `adaptive`."""
    if text is None:
        return VDBENCH_PERCENTS
    if text.strip() == ADAPTIVE:
        return None
    where = caller.at("points")
    points: list[float] = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", word)
        if match is None or not 0 < float(match[1]) <= MAX_PERCENT:
            raise make_error(
                InputError,
                "api.curve.points",
                where=where,
                found=repr(word.strip()),
                most=f"{MAX_PERCENT:g}",
                adaptive=ADAPTIVE,
            )
        if float(match[1]) in points:
            raise make_error(InputError, "api.curve.twice", where=where, point=word.strip())
        points.append(float(match[1]))
    return tuple(points)


def limit(text: str | None, caller: Caller) -> Slo | None:
    """Read a limit on latency; None without it."""
    if text is None:
        return None
    with caller.given("slo"):
        return limits.read(text)
