"""Rule `not_steady`: the load did not settle while it was measured.

SNIA's rule over five rounds of equal length, and a test for a trend over finer windows. A mean
over a drift is a number of that run's length and of nothing else.
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


def _judge(case: Case) -> Answer:
    if ask.virtual(case) or ask.paced(case):
        return NotMine()
    rounds = course.course(case, ROUNDS, least_s=LEAST_ROUND_S)
    if rounds is None or len(rounds.values) < ROUNDS or rounds.values.mean() <= 0:
        return CannotTell(f"the course of the load over {ROUNDS} rounds of at least {LEAST_ROUND_S:g} s")
    fine = course.course(case, min(WINDOWS, course.windows_of(case)))
    trend = steady(list(fine.values)).trend_p if fine is not None and len(fine.values) >= MIN_TREND else None
    found = steady(list(rounds.values))
    if found.steady:
        return Clear()
    return (_finding(case, rounds, found, trend),)


def _finding(case: Case, rounds: course.Course, found: Steady, trend: float | None) -> Finding:
    ramp = _ramp(rounds)
    evidence: dict[str, float | int | str] = {
        "range_of_mean_percent": round(100 * found.range_share, 1),
        "slope_of_mean_percent": round(100 * found.slope_share, 1),
        "rounds": ROUNDS,
        "round_s": round(rounds.seconds, 2),
    }
    if trend is not None and not math.isnan(trend):
        evidence["trend_p"] = float(f"{trend:.2g}")
    why = []
    if found.range_share > MAX_RANGE:
        why.append(f"lie {100 * found.range_share:.0f} % of their mean apart")
    if found.slope_share > MAX_SLOPE:
        why.append(f"drift by {100 * found.slope_share:.0f} %")
    return Finding(
        effect="suspect",
        confidence=_confidence(found, ramp, trend),
        text=f"Five rounds of {units.seconds(rounds.seconds)} {' and '.join(why)}"
        f" ({100 * MAX_RANGE:.0f} % and {100 * MAX_SLOPE:.0f} % are allowed)"
        + (f": {ramp}." if ramp else "."),
        evidence=evidence,
        advice="run longer, with a ramp (ramp_time) as long as the load takes to settle",
        chart=course.chart(case, "IOPS over time", level=float(rounds.values.mean()), level_name="mean"),
    )


def _confidence(found: Steady, ramp: str | None, trend: float | None) -> float:
    """Return how sure it is: chance may throw five rounds apart, and seldom puts forty in order."""
    drifts = found.slope_share > MAX_SLOPE and (trend is None or trend < TREND_P)
    return 0.9 if drifts or ramp or found.range_share > 2 * MAX_RANGE else 0.75


def _ramp(rounds: course.Course) -> str | None:
    """Return in words whether only the first or the last round is out of line."""
    for at, inner, said in (
        (0, rounds.values[1:], "the load was still rising or falling at the start"),
        (-1, rounds.values[:-1], "the load changed at the end"),
    ):
        middle = float(np.median(inner))
        agree = middle > 0 and float(np.ptp(inner)) <= 2 * AGREE * middle
        if agree and abs(float(rounds.values[at]) / middle - 1) > OUTSIDE:
            return said
    return None


RULE: Final = Rule(
    name="not_steady",
    asks="Had the load settled while it was measured?",
    basis="SNIA PTS 2.0: range at most 20 %, slope at most 10 % over five rounds; Mann-Kendall for a trend",
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
