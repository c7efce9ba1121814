"""Times and rates that a caller gives about a job, as numbers.

Knows their notation in Python and on the command line. What they are good for is known elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.errors import InputError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, size, time_ns
from loadstone.messages import make_error
from loadstone.plan.model import RateProcess
from loadstone.plan.stream import TotalRate

if TYPE_CHECKING:
    from loadstone.api.jobs.job_changes import JobChanges


def nanoseconds(time: str | float, where: Where) -> int:
    """Read a time: seconds, or a text such as 5m. Raises `InputError`."""
    if isinstance(time, str):
        return time_ns(time, Reading(where), SECOND_NS)
    if not 0 < time < 10**9:
        raise make_error(InputError, "api.amount.seconds", where=where, found=str(time))
    return round(time * SECOND_NS)


def seconds(time: str | float | None, changes: JobChanges, name: str) -> int | None:
    """Read a change that is whole seconds; None without it."""
    if time is None:
        return None
    with changes.caller.given(name) as where:
        duration_ns = nanoseconds(time, where)
        if duration_ns % SECOND_NS:
            raise make_error(InputError, "api.amount.whole_seconds", where=where, found=str(time))
        return duration_ns // SECOND_NS


def total_rate(changes: JobChanges) -> TotalRate | None:
    """Read the rate of all jobs and what belongs to it; None without one."""
    caller = changes.caller
    if changes.rate is None:
        for name in ("rate_process", "rate_profile"):
            if getattr(changes, name) is not None:
                raise caller.error("api.option.no_effect_without", name, option=caller.name_of("rate"))
        return None
    return TotalRate(
        iops=_per_second(changes.rate, caller.at("rate")),
        process=rate_process(changes, RateProcess.LINEAR),
        profile=(
            () if changes.rate_profile is None else _profile(changes.rate_profile, caller.at("rate_profile"))
        ),
        where=caller.at("rate"),
    )


def rate_process(changes: JobChanges, unless_given: RateProcess) -> RateProcess:
    """Return how I/Os of a rate are spaced."""
    known = [one.value for one in RateProcess]
    if changes.rate_process is None:
        return unless_given
    if changes.rate_process not in known:
        raise changes.caller.error(
            "api.amount.rate_process",
            "rate_process",
            found=repr(changes.rate_process),
            known=" or ".join(known),
        )
    return RateProcess(changes.rate_process)


def _per_second(amount_per_second: str | float, where: Where) -> float:
    rate = (
        float(size(amount_per_second, Reading(where, kb_base=1000)))
        if isinstance(amount_per_second, str)
        else float(amount_per_second)
    )
    if not 0 < rate < float("inf"):
        raise make_error(InputError, "api.amount.rate", where=where, found=str(amount_per_second))
    return rate


def _profile(text: str, where: Where) -> tuple[tuple[int, float], ...]:
    """Read `TIME:SHARE%,...`, times ascending; nanoseconds and shares of 1."""
    points: list[tuple[int, float]] = []
    for word in text.split(","):
        time, colon, share = word.partition(":")
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)%\s*", share)
        if not colon or match is None:
            raise make_error(InputError, "api.rate_course.point", where=where, found=repr(word))
        points.append((time_ns(time, Reading(where), SECOND_NS), float(match[1]) / 100))
    if points != sorted(points, key=lambda point: point[0]):
        raise make_error(InputError, "api.rate_course.order", where=where)
    if not any(share for _, share in points):
        raise make_error(InputError, "api.rate_course.zero", where=where)
    return tuple(points)
