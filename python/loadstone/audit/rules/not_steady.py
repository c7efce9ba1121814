"""Rule `not_steady`: the load did not settle while it was measured.

SNIA's rule over five rounds of equal length says whether it is steady. If not, what matters is how:
a mean over a drift, a ramp or two levels is a number of that run's length and of nothing else. A
mean over rounds that lie apart by noise is a number with an error, and that error is told.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone import units
from loadstone.analysis.steady import MAX_RANGE, MAX_SLOPE, MIN_TREND, ROUNDS, Steady, steady
from loadstone.audit import ask, course
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LEAST_ROUND_S: Final = 0.5
WINDOWS: Final = 40
TREND_P: Final = 0.01
OUTSIDE: Final = 0.20
"""A first or last round this far from the others is a ramp, when the others agree."""
AGREE: Final = 0.10
OUT_OF_RANGE: Final = 1.5
"""So many times the range of the four others is three of their deviations (a range of four normal
values is 2.06 deviations)."""
LEVELS: Final = 0.85
"""Two levels explain this part of the variance: then it was one change, and no noise."""
WELL_KNOWN: Final = 0.10
"""A standard error of the mean up to this part of it: noise took little from the number."""
HARDLY_KNOWN: Final = 0.20
"""Beyond this a number is hardly one, whatever made it so."""


def _judge(case: Case) -> Answer:
    if ask.virtual(case) or ask.paced(case):
        return NotMine()
    rounds = course.course(case, ROUNDS, least_s=LEAST_ROUND_S)
    if rounds is None or len(rounds.values) < ROUNDS or rounds.values.mean() <= 0:
        return CannotTell(f"the course of the load over {ROUNDS} rounds of at least {LEAST_ROUND_S:g} s")
    found = steady(list(rounds.values))
    if found.steady:
        return Clear()
    fine = course.course(case, min(WINDOWS, course.windows_of(case)))
    trend = steady(list(fine.values)).trend_p if fine is not None and len(fine.values) >= MIN_TREND else None
    changed = _ramp(rounds) or (fine and _levels(fine)) or _drift(found, trend)
    return (_changed(case, rounds, found, trend, changed) if changed else _noise(case, rounds, found, trend),)


def _changed(case: Case, rounds: course.Course, found: Steady, trend: float | None, how: str) -> Finding:
    much = found.range_share > 2 * MAX_RANGE or found.slope_share > 2 * MAX_SLOPE
    return Finding(
        effect="suspect",
        confidence=0.9 if much else 0.75,
        text=f"{_apart(rounds, found)}: {how}.",
        evidence=_evidence(rounds, found, trend),
        advice="run longer, with a ramp (ramp_time) as long as the load takes to settle",
        chart=course.chart(case, "IOPS over time", level=float(rounds.values.mean()), level_name="mean"),
    )


def _noise(case: Case, rounds: course.Course, found: Steady, trend: float | None) -> Finding:
    """Tell of rounds that lie apart and show no change: what that costs is in the error of the mean."""
    iops = case.total.iops
    error = iops.error / iops.value if iops is not None and iops.error is not None and iops.value else None
    known = "is not known" if error is None else f"is {units.digits(100 * error)} % of it"
    return Finding(
        effect="note" if error is not None and error <= WELL_KNOWN else "suspect",
        confidence=0.9 if error is not None and error > HARDLY_KNOWN else 0.6,
        text=f"{_apart(rounds, found)}: chance makes that of noise like this load's. "
        f"The standard error of its mean {known}.",
        evidence=_evidence(rounds, found, trend) | ({"error_of_mean_percent": _one(error)} if error else {}),
        advice="run longer: the error of the mean falls with the root of the time",
        chart=course.chart(case, "IOPS over time", level=float(rounds.values.mean()), level_name="mean"),
    )


def _apart(rounds: course.Course, found: Steady) -> str:
    why = []
    if found.range_share > MAX_RANGE:
        why.append(f"lie {100 * found.range_share:.0f} % of their mean apart")
    if found.slope_share > MAX_SLOPE:
        why.append(f"drift by {100 * found.slope_share:.0f} %")
    allowed = f"{100 * MAX_RANGE:.0f} % and {100 * MAX_SLOPE:.0f} % are allowed"
    return f"Five rounds of {units.seconds(rounds.seconds)} {' and '.join(why)} ({allowed})"


def _evidence(rounds: course.Course, found: Steady, trend: float | None) -> dict[str, float | int | str]:
    told: dict[str, float | int | str] = {
        "range_of_mean_percent": _one(found.range_share),
        "slope_of_mean_percent": _one(found.slope_share),
        "rounds": ROUNDS,
        "round_s": round(rounds.seconds, 2),
    }
    if trend is not None and not math.isnan(trend):
        told["trend_p"] = float(f"{trend:.2g}")
    return told


def _one(share: float) -> float:
    return round(100 * share, 1)


def _drift(found: Steady, trend: float | None) -> str | None:
    """Return in words whether the windows are in an order that chance does not make of noise."""
    drifts = found.slope_share > MAX_SLOPE and (trend is None or trend < TREND_P)
    return "all along the load went one way" if drifts else None


def _levels(fine: course.Course) -> str | None:
    """Return in words whether it went from one level to another."""
    step = course.step(fine)
    if step is None or step.explained < LEVELS or abs(step.ratio - 1) <= MAX_RANGE:
        return None
    before, after = units.count(step.before), units.count(step.after)
    return f"after {units.seconds(step.at_s)} it went from {before} to {after} IOPS"


def _ramp(rounds: course.Course) -> str | None:
    """Return in words whether only the first or the last round is out of line."""
    for at, inner, said in (
        (0, rounds.values[1:], "the load was still rising or falling at the start"),
        (-1, rounds.values[:-1], "the load changed at the end"),
    ):
        middle, width = float(np.median(inner)), float(np.ptp(inner))
        off = abs(float(rounds.values[at]) - middle)
        if width <= 2 * AGREE * middle and off > max(OUTSIDE * middle, OUT_OF_RANGE * width):
            return said
    return None


RULE: Final = Rule(
    name="not_steady",
    asks="Had the load settled while it was measured?",
    basis="SNIA PTS 2.0: range at most 20 %, slope at most 10 % over five rounds; Mann-Kendall, two levels",
    judge=_judge,
    explained_by=(
        "throttled",
        "foreign_load",
        "generator_cpu",
        "page_cache_read",
        "writeback_absorbed",
        "first_pass_allocation",
        "unwritten_region",
        "io_errors",
        "too_few_samples",
    ),
)
