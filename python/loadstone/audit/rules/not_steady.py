"""Rule `not_steady`: the load did not settle while it was measured.

SNIA's rule over five rounds of equal length says whether it is steady. If not, what matters is how:
a mean over a drift, a ramp or two levels is a number of that run's length and of nothing else. A
mean over rounds that lie apart by noise is a number with an error, and that error is told.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.steady import MAX_RANGE, MAX_SLOPE, MIN_TREND, ROUNDS, SteadyCheck, steady
from loadstone.audit import beside_others, case_queries, timeline
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LEAST_ROUND_S: Final = 0.5
WINDOWS: Final = 40
TREND_P: Final = 0.001
"""As rare as what `time_structure` takes for no chance."""
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
    if case_queries.virtual(case) or case_queries.paced(case):
        return NotMine()
    filling_ns = timeline.filling_ns(case)
    rounds = timeline.load_timeline(case, ROUNDS, least_s=LEAST_ROUND_S, skip_ns=filling_ns)
    if rounds is None or len(rounds.values) < ROUNDS or rounds.values.mean() <= 0:
        return cannot_tell("audit.not_steady.windows", rounds=ROUNDS, window_s=LEAST_ROUND_S)
    check = steady(list(rounds.values))
    if check.steady:
        return Clear()
    windows = min(WINDOWS, timeline.windows_of(case))
    fine = timeline.load_timeline(case, windows, skip_ns=filling_ns)
    trend = steady(list(fine.values)).trend_p if fine is not None and len(fine.values) >= MIN_TREND else None
    changed = _stalled(case) or _ramp(rounds) or (fine and _levels(fine)) or _drift(rounds, check, trend)
    finding = _changed(case, rounds, check, trend, changed) if changed else _noise(case, rounds, check, trend)
    low, high = float(rounds.values.min()), float(rounds.values.max())
    can = beside_others.can_change(case, low, high, rounds.seconds * 1e9)
    return (beside_others.told(case, finding) if can else finding,)


def _changed(
    case: Case, rounds: timeline.LoadTimeline, found: SteadyCheck, trend: float | None, how: str
) -> Finding:
    much = found.range_share > 2 * MAX_RANGE or found.slope_share > 2 * MAX_SLOPE
    return Finding(
        effect="suspect",
        confidence=0.9 if much else 0.75,
        text=f"{_apart(rounds, found)} {how}",
        evidence=_evidence(rounds, found, trend),
        advice=say("audit.not_steady.changed.advice"),
        chart=timeline.chart(case, "IOPS over time", level=float(rounds.values.mean()), level_name="mean"),
    )


def _noise(case: Case, rounds: timeline.LoadTimeline, found: SteadyCheck, trend: float | None) -> Finding:
    """Tell of rounds that lie apart and show no change: what that costs is in the error of the mean."""
    iops = case.total.iops
    error = iops.error / iops.value if iops is not None and iops.error is not None and iops.value else None
    if trend is None:
        known = say("audit.not_steady.few.text")
    elif error is None:
        known = say("audit.not_steady.noise_unknown.text")
    else:
        known = say("audit.not_steady.noise.text", error_percent=100 * error)
    return Finding(
        effect="note" if error is not None and error <= WELL_KNOWN else "suspect",
        confidence=0.9 if error is not None and error > HARDLY_KNOWN else 0.6,
        text=f"{_apart(rounds, found)} {known}",
        evidence=_evidence(rounds, found, trend) | ({"error_of_mean_percent": _one(error)} if error else {}),
        advice=say("audit.not_steady.noise.advice"),
        chart=timeline.chart(case, "IOPS over time", level=float(rounds.values.mean()), level_name="mean"),
    )


def _apart(rounds: timeline.LoadTimeline, found: SteadyCheck) -> str:
    window: dict[str, float] = {"window_s": rounds.seconds}
    ranged = {"range_share": found.range_share, "range_limit_share": MAX_RANGE}
    sloped = {"slope_share": found.slope_share, "slope_limit_share": MAX_SLOPE}
    if found.range_share > MAX_RANGE and found.slope_share > MAX_SLOPE:
        return say("audit.not_steady.both.text", **window, **ranged, **sloped)
    if found.range_share > MAX_RANGE:
        return say("audit.not_steady.range.text", **window, **ranged)
    return say("audit.not_steady.slope.text", **window, **sloped)


def _evidence(
    rounds: timeline.LoadTimeline, found: SteadyCheck, trend: float | None
) -> dict[str, float | int | str]:
    evidence: dict[str, float | int | str] = {
        "range_of_mean_percent": _one(found.range_share),
        "slope_of_mean_percent": _one(found.slope_share),
        "rounds": ROUNDS,
        "round_s": round(rounds.seconds, 2),
    }
    if trend is not None and not math.isnan(trend):
        evidence["trend_p"] = float(f"{trend:.2g}")
    return evidence


def _one(share: float) -> float:
    return round(100 * share, 1)


def _drift(rounds: timeline.LoadTimeline, found: SteadyCheck, trend: float | None) -> str | None:
    """Return in words whether the windows are in an order that chance does not make of noise.

    Where they are too few for a test, every round has to lie beyond the one before it: one time in sixty.
    """
    steps = np.diff(rounds.values)
    one_way = bool((steps > 0).all() or (steps < 0).all())
    drifts = found.slope_share > MAX_SLOPE and (one_way if trend is None else trend < TREND_P)
    return say("audit.not_steady.trend.text") if drifts else None


def _stalled(case: Case) -> str | None:
    """Return in words that the load stood still at times: that is no noise."""
    if case.stops:
        stopped_ns = sum(end - begin for begin, end in case.stops)
        return say("audit.not_steady.stopped.text", stopped_ns=stopped_ns)
    stalls = timeline.stalls(case)
    if stalls is None:
        return None
    return say("audit.not_steady.stalled.text", stalled_ns=sum(one.length_ns for one in stalls.every))


def _levels(fine: timeline.LoadTimeline) -> str | None:
    """Return in words whether it went from one level to another."""
    step = timeline.step(fine)
    if step is None or step.explained < LEVELS or abs(step.ratio - 1) <= MAX_RANGE:
        return None
    return say(
        "audit.not_steady.level.text", at_s=step.at_s, before_count=step.before, after_count=step.after
    )


def _ramp(rounds: timeline.LoadTimeline) -> str | None:
    """Return in words whether only the first or the last round is out of line."""
    for at, inner, key in (
        (0, rounds.values[1:], "audit.not_steady.start.text"),
        (-1, rounds.values[:-1], "audit.not_steady.end.text"),
    ):
        middle, width = float(np.median(inner)), float(np.ptp(inner))
        off = abs(float(rounds.values[at]) - middle)
        if width <= 2 * AGREE * middle and off > max(OUTSIDE * middle, OUT_OF_RANGE * width):
            return say(key)
    return None


RULE: Final = Rule(
    name="not_steady",
    asks="Had the load settled while it was measured?",
    basis="SNIA PTS 2.0: range at most 20 %, slope at most 10 % over five rounds; Mann-Kendall, two levels",
    judge=_judge,
)
