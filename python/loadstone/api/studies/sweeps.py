"""A load at every combination of one to three factors.

Knows how factors and the gain are written. Which operating point is recommended is the analysis' business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, get_args

from loadstone import units
from loadstone.analysis.study.sweep import STAGE
from loadstone.api.jobs.read_workload import resolution, workload
from loadstone.api.jobs.times_and_rates import total_rate
from loadstone.api.studies.prepared_study import PreparedStudy, StudyOfJob, times
from loadstone.messages import say
from loadstone.study import factors
from loadstone.study.stages import check_one_stage, stages
from loadstone.study.sweep import SweepController

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.api.jobs.job_changes import Caller
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next
    from loadstone.workload.model import Workload

MAX_FACTORS: Final = 3
GAIN: Final = "10%"
FactorName = factors.Name
"""`iodepth`, `bs`, `read` or `numjobs`."""


def prepare_sweep(
    study: StudyOfJob, values: Mapping[FactorName, str | None], *, gain: str | None, repeat: int | None
) -> PreparedStudy:
    """Prepare a sweep over factors, the last of which runs fastest."""
    changes, caller = study.changes, study.changes.caller
    axes = _axes(values, caller)
    gain_share = _gain(gain, {name for name, _ in axes}, caller)
    changes.refuse(("interval", "warmup"), "a sweep")
    asked_for = workload(study.job, changes)
    parts, passes = stages(asked_for), times(repeat, caller)
    controller = SweepController(parts, axes, repeat=passes or 1, rate=total_rate(changes))

    def check(plan: Plan, wanted: Next) -> None:
        check_one_stage(plan, wanted.workload)
        depth = wanted.factors.get("iodepth")
        factors.check(plan, wanted.workload, depth if isinstance(depth, int) else None)

    def resolve(wanted: Next) -> Resolution:
        resolved = resolution(wanted.workload, changes)
        check(resolved.plan, wanted)
        return resolved

    first = resolve(controller.known()[0]) if study.on_this_host else None
    settings = {"axes": _axes_of(parts, axes), "gain_share": gain_share, "repeat": passes}
    return PreparedStudy(
        controller,
        study.study_request("sweep", asked_for, settings, first),
        resolve,
        first=first,
        length=_length(first, controller.expected()),
        after_failure="go_on",
        changes_of=lambda _: changes,
        check=check,
    )


def _axes(texts: Mapping[FactorName, str | None], caller: Caller) -> list[tuple[FactorName, tuple[int, ...]]]:
    axes = [
        (name, factors.values(name, text, caller.at(name)))
        for name, text in texts.items()
        if text is not None
    ]
    if not axes:
        options = ", ".join(caller.name_of(name) for name in get_args(factors.Name))
        raise caller.error("api.sweep.nothing", options=options)
    if len(axes) > MAX_FACTORS:
        raise caller.error("api.sweep.too_many", factors=len(axes), most=MAX_FACTORS)
    return axes


def _axes_of(
    parts: Sequence[tuple[str, Workload]], axes: Sequence[tuple[FactorName, tuple[int, ...]]]
) -> list[list[Any]]:
    """Return the axes of the study: its stages, where there are several, and its factors."""
    by_stage = [[STAGE, [name for name, _ in parts]]] if len(parts) > 1 else []
    return [*by_stage, *([name, list(values)] for name, values in axes)]


def _length(first: Resolution | None, runs: int) -> str:
    """Say how long all runs load together, where the first one's time is known."""
    if first is None or first.duration_ns is None:
        return ""
    return say("api.sweep.length", runs=runs, length=units.seconds(first.duration_ns / 1000000000.0 * runs))


def _gain(gain: str | None, varied: set[FactorName], caller: Caller) -> float:
    """Read what a doubled depth must gain. Raises InputError, also where no depth is varied."""
    if gain is not None and not {"iodepth", "numjobs"} & varied:
        raise caller.error(
            "api.sweep.gain_alone", "gain", depth=caller.name_of("iodepth"), clones=caller.name_of("numjobs")
        )
    text = gain or GAIN
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or not 0 < float(match[1]) < 100:
        raise caller.error("api.sweep.gain", "gain", found=repr(text), example=GAIN)
    return float(match[1]) / 100
