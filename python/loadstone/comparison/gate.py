"""The gate: whether something became worse, and whether it would have been seen.

Knows the chance that a test finds a regression of a stated size, from the errors of the two
sides. A gate passes only where that chance is large for every pattern; a side that is not valid
passes nothing. Computes no difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from loadstone.analysis.statistics.distributions import t_quantile, t_upper
from loadstone.analysis.statistics.significance import ratio_error
from loadstone.comparison.matrix import FIRST_SHARE, fair
from loadstone.comparison.single_runs import BEYOND
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.comparison.compare import Alone, JobRow
    from loadstone.comparison.matrix import Effect
    from loadstone.comparison.side import Side

GateOutcome = Literal["passed", "regression", "not_valid", "no_data", "not_detectable"]

DETECT: Final = 0.05
ENOUGH: Final = 0.8
"""A regression must be found in so many of 100 cases for a pass to mean something."""
LARGEST: Final = 10.0
"""A change by this factor is not looked for any more: nothing smaller would be found."""


@dataclass(frozen=True, slots=True)
class Power:
    """The chance to find a regression of the stated size in one pattern; 0 where no error is known."""

    pattern: str
    subject: str
    """The pattern; of more than two sides with the name of the side."""
    metric: str
    side: str
    power: float
    smallest: float | None
    """The smallest regression that would be found often enough, as a share; None: none."""
    of_single_runs: bool = False
    """Whether each side is one run, so that only what is beyond most repeats is found."""
    of_asked_rate: bool = False
    """Whether all that both sides tell is a rate that was asked for."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate says, and why."""

    outcome: GateOutcome
    why: tuple[str, ...]
    detect: float


def least_detected(tolerance: float) -> float:
    """Return the regression that a gate must be able to see unless told: twice what it lets pass.

    Of a large tolerance what is halfway to all: no rate can fall by more than that.
    """
    return max(DETECT, min(2 * tolerance, (1 + tolerance) / 2))


def powers(
    effects: Sequence[Effect], sides: Sequence[Side], *, detect: float, alpha: float, tolerance: float = 0.0
) -> list[Power]:
    """Return the power of the first test of every pattern, for each side but the first."""
    all_powers = []
    for at in range(1, len(sides)):
        firsts = [one for one in effects if one.side == at and one.first]
        # The strictest step of Holm's procedure: what one regression alone has to pass.
        each = alpha * FIRST_SHARE / max(1, len(firsts))
        for one in firsts:
            # Whether storage is slower shows in no rate that was asked for, while it is reached.
            power, smallest = (0.0, None) if one.of_asked_rate else _power(one, detect, each, tolerance)
            all_powers.append(
                Power(
                    one.pattern, of_side(one.pattern, at, sides), one.metric.name, sides[at].name, power,
                    smallest, one.of_single_runs, one.of_asked_rate,
                )
            )  # fmt: skip
    return all_powers


def gate(
    effects: Sequence[Effect],
    sides: Sequence[Side],
    known: Sequence[Power],
    *,
    detect: float,
    tolerance: float = 0.0,
    alone: Sequence[Alone] = (),
    parts: Sequence[JobRow] = (),
) -> Gate:
    """Decide. A regression is told before a lack of power, and a side that is not valid before both.

    `alone`: what only one side has; in a pattern that was not measured again nothing was seen. `parts`:
    jobs and operations, one of which may be worse where their total is not.
    """
    invalid = [
        f"{one.name} is not valid: {one.worst.run}: {one.worst.why}"
        for one in sides
        if one.verdict == "not_valid"
    ]
    if invalid:
        return Gate("not_valid", tuple(invalid), detect)
    worse = [
        one
        for one in effects
        if one.judgement == "worse" and one.contrast is not None and abs(one.contrast.change) > tolerance
    ]
    reasons = [
        f"{of_side(one.pattern, one.side, sides)}: {one.metric.name} is worse by"
        f" {_percent(abs(one.contrast.change))}"
        for one in _once(worse)
        if one.contrast is not None
    ]
    reasons += _worse_parts(parts, sides, tolerance)
    if reasons:
        return Gate("regression", tuple(reasons), detect)
    if alone:
        return Gate("no_data", tuple(dict.fromkeys(f"{one.side}: {one.why}" for one in alone)), detect)
    if not any(one.raw_p is not None for one in effects if one.metric.quantity != "errors"):
        why = "no pattern has an error on both sides: repeat the runs, or measure for longer"
        return Gate("no_data", (why,), detect)
    weak = [one for one in known if one.power < ENOUGH]
    untested = {one.pattern for one in effects} - {one.pattern for one in known}
    if weak or untested:
        unrepeated = [one for one in effects if one.judgement == "unrepeated" and _is_worse(one)]
        reasons = [_unrepeated(one, sides) for one in _once(unrepeated)]
        reasons += [_weak(one, detect) for one in weak]
        reasons += [f"{pattern}: no rate and no latency on both sides" for pattern in sorted(untested)]
        return Gate("not_detectable", tuple(reasons), detect)
    return Gate("passed", (), detect)


def of_side(subject: str, side: int, sides: Sequence[Side]) -> str:
    """Return what a reason is about: of more than two sides with the name of the one it is of."""
    return subject if len(sides) == 2 else f"{sides[side].name}: {subject}"


def _worse_parts(parts: Sequence[JobRow], sides: Sequence[Side], tolerance: float) -> Iterator[str]:
    """Say which jobs and operations became worse."""
    for row in parts:
        for at, cell in enumerate(row.cells):
            contrast = cell.contrast
            if cell.judgement == "worse" and contrast is not None and abs(contrast.change) > tolerance:
                change = _percent(abs(contrast.change))
                part = of_side(row.name, at, sides)
                yield say("comparison.gate.part", part=part, metric=row.metric.name, change=change)


def _once(worse: Sequence[Effect]) -> list[Effect]:
    """Leave out the other rate of a load of one block size: it is the same reason in another unit."""
    firsts = {(one.row, one.side) for one in worse if one.first}
    return [one for one in worse if not (one.again and (one.row, one.side) in firsts)]


def _is_worse(one: Effect) -> bool:
    return one.contrast is not None and (one.contrast.change < 0) == one.metric.more_is_better


def _unrepeated(one: Effect, sides: Sequence[Side]) -> str:
    change = 0.0 if one.contrast is None else abs(one.contrast.change)
    return say(
        "comparison.gate.unrepeated",
        pattern=of_side(one.pattern, one.side, sides),
        metric=one.metric.name,
        change=_percent(change),
    )


def _weak(one: Power, detect: float) -> str:
    if one.of_asked_rate:
        return say("comparison.gate.asked_rate", pattern=one.subject)
    key = "weak" if one.smallest is None else "weak_with_smallest"
    return say(
        f"comparison.gate.{'single_runs' if one.of_single_runs else key}",
        pattern=one.subject,
        regression=_percent(detect),
        metric=one.metric,
        cases=whole_cases(one.power),
        least=round(ENOUGH * 100),
        **({} if one.smallest is None or one.of_single_runs else {"smallest": _percent(one.smallest)}),
    )


def whole_cases(power: float) -> int:
    """Return in how many of 100 cases a regression would be found at least."""
    return math.floor(power * 100)


def _percent(share: float) -> str:
    if math.isinf(share):
        return say("comparison.gate.factor")
    # Without an exponent, which three digits of more than 999 would have.
    return f"{share * 100:.3g} %" if share < 9.995 else f"{share * 100:.0f} %"


def _power(one: Effect, detect: float, alpha: float, tolerance: float) -> tuple[float, float | None]:
    before, after = one.before.sample, one.after.sample
    error = None if before is None or after is None else ratio_error(*fair(before, after))
    if error is None:
        return 0.0, None
    more = one.metric.more_is_better
    if more and tolerance >= 1:
        return 1.0, None  # No rate can fall by more than all of it.
    least = max(_logarithm(tolerance, more=more), math.log(BEYOND) if one.of_single_runs else 0.0)
    known = known_freedom(one, error.freedom)

    def at(share: float) -> float:
        return chance(_logarithm(share, more=more), error.of_log, error.freedom, alpha, least, known=known)

    low, high = 0.0, min(LARGEST, 0.99 if more else LARGEST)
    if at(high) < ENOUGH or error.of_log == 0:
        return at(detect), None  # Of figures that are all alike there is no smallest change.
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) < ENOUGH else (low, middle)
    return at(detect), high


def known_freedom(one: Effect, of_test: float) -> float:
    """Return of how many degrees of freedom the error of a change is known.

    The test has Welch's, which are as few as those of the side that happened to scatter more. What is known
    is at least that, and what both sides tell together (as in Student's test): they ran one load. Where
    the runs lie nearer than each of them knows itself, its intervals tell the error.
    """
    before, after = one.before.sample, one.after.sample
    if before is None or after is None:
        return of_test
    fair_pair = fair(before, after)
    own, other = (one.before, one.after), (one.after, one.before)
    freedoms = [
        (b if sample.shared else a).freedom or of_test
        for sample, a, b in zip(fair_pair, own, other, strict=True)
    ]
    if any(sample.shared for sample in fair_pair):
        return max(of_test, min(freedoms))
    told_fully = ratio_error(*(replace(a, freedom=b) for a, b in zip(fair_pair, freedoms, strict=True)))
    of_both = before.runs + after.runs - 2 if min(before.runs, after.runs) > 1 else 0
    return max(of_test, 0.0 if told_fully is None else told_fully.freedom, of_both)


def _logarithm(share: float, *, more: bool) -> float:
    """Return the size of a change for the worse by a share: a rate falls, a latency grows."""
    return -math.log1p(-min(share, 0.9999)) if more else math.log1p(share)


def chance(
    change: float,
    error: float,
    freedom: float,
    alpha: float,
    tolerance: float = 0.0,
    *,
    known: float | None = None,
) -> float:
    """Return how often a two-sided t-test that has this error finds a change of this size on its own side.

    `error` is the standard error as it was estimated, with its degrees of freedom; all three are
    logarithms. The test is passed beyond a known multiple of that error; what would be measured
    lies around the change as far as the true error makes it, and of that no more is known than
    the estimate: in multiples of it the distance is Student's (G. E. P. Box and G. C. Tiao, Bayesian
    Inference in Statistical Analysis, 1973, 2.4). `known`: its degrees of freedom, where more is known of
    the error than the test takes. With the test's own few, distances of many errors seem likelier than
    they are: what is rarely found was told too high, and what is nearly always found too low. Tried with
    `lab.comparisons`.
    """
    if error == 0:
        return float(change > tolerance)
    limit = max(t_quantile(1 - alpha / 2, freedom), tolerance / error)
    return t_upper(limit - change / error, freedom if known is None else known)
