"""Explanations told as often as such ones turned out to be right.

Knows weighed explanations and the counts in `weights.json`. Weights say which explanation is the most
probable; how often that is right was counted on other situations, because readings depend on each other in
ways that no table of predictions has. The order among causes stays as it was weighed. Pure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.explanations.names import UNEXPLAINED
from loadstone.explanations.weigh import measuring, scaled
from loadstone.explanations.weights import FITTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.explanations.weigh import Weighed
    from loadstone.explanations.weights import Fitted

STEEPEST: Final = 64.0
HALVINGS: Final = 40
LEAST_SHARE: Final = 0.001
LEAST_STORAGE: Final = 0.01
LEAST_SURE: Final = 0.005
"""Nearer to nothing no two shares can be told apart."""
OF_BELIEF: Final = ("limited", "open", "strange", "suspicion")
"""Features of the belief that tell something of the unexplained, too."""


def as_often_right(
    weighed: Sequence[Weighed],
    measures: float,
    features: Mapping[str, float],
    *,
    decided: bool,
    pointed: str | None = None,
    fitted: Fitted = FITTED,
) -> list[Weighed]:
    """Return explanations after probes with probabilities that are frequencies.

    `measures`: how probable it is that the number measures the storage. Where a rule `decided` otherwise,
    what the explanations give to the storage is told as often as that was right beside such a finding.
    `features`: those of the belief that it does. `pointed`: the explanation that a finding of probes names;
    None where none does.
    """
    every = _causes_as_often_right(weighed, measures, features, decided=decided, fitted=fitted)
    return _as_pointed(every, pointed, fitted)


def _causes_as_often_right(
    weighed: Sequence[Weighed],
    measures: float,
    features: Mapping[str, float],
    *,
    decided: bool,
    fitted: Fitted,
) -> list[Weighed]:
    sure = fitted.decided.of(measuring(weighed)) if decided else measures
    every = scaled(weighed, sure)
    causes = [one for one in every if one.explanation.effect != "measures"]
    whole = sum(one.probability for one in causes)
    if len(causes) < 2 or whole <= 0:
        return every
    shares = [one.probability / whole for one in causes]
    if causes[0].explanation.name == UNEXPLAINED:
        doubts = _doubts(every, shares[0], measuring(weighed), features, decided=decided)
        right = fitted.unexplained.probability(doubts)
        # Counted of all numbers of which nothing is more probable, honest ones among them.
        right = min(1.0, right / whole) if every[0] is causes[0] else right
    else:
        right = (fitted.decided_causes if decided else fitted.causes).of(shares[0])
    tempered_shares = tempered(shares, right)
    own = [one for one in every if one.explanation.effect == "measures"]
    again = [
        replace(one, probability=whole * share) for one, share in zip(causes, tempered_shares, strict=True)
    ]
    return sorted([*own, *again], key=lambda one: -one.probability)


def _as_pointed(every: list[Weighed], pointed: str | None, fitted: Fitted) -> list[Weighed]:
    """Tell what probes point at as often as such was right; all others share the rest as before.

    Something unexplained has counts of its own, and keeps them.
    """
    before = next((one.probability for one in every if one.explanation.name == pointed), 1.0)
    if pointed == UNEXPLAINED or before >= 1:
        return every
    right = fitted.pointed.of(before)
    rest = (1 - right) / (1 - before)
    again = [
        replace(one, probability=right if one.explanation.name == pointed else one.probability * rest)
        for one in every
    ]
    return sorted(again, key=lambda one: -one.probability)


def doubts_of_unexplained(
    weighed: Sequence[Weighed],
    measures: float,
    features: Mapping[str, float],
    *,
    decided: bool,
    fitted: Fitted,
) -> dict[str, float] | None:
    """Return what tells how often something unexplained is right; None where another is more probable."""
    every = scaled(weighed, fitted.decided.of(measuring(weighed)) if decided else measures)
    if every[0].explanation.name != UNEXPLAINED:
        return None
    whole = sum(one.probability for one in every if one.explanation.effect != "measures")
    return _doubts(every, every[0].probability / whole, measuring(weighed), features, decided=decided)


def _doubts(
    every: Sequence[Weighed], share: float, storage: float, features: Mapping[str, float], *, decided: bool
) -> dict[str, float]:
    """Return its share of all causes, what is left to the storage, and what else is in doubt.

    Where its cause has no name, readings fit the storage (as weighed, and as believed) better than they do
    any other cause.
    """
    return {
        "share": _log_odds(share, LEAST_SHARE),
        "storage": math.log(storage + LEAST_STORAGE),
        "sure": _log_odds(measuring(every), LEAST_SURE),
        "decided": float(decided),
        **{name: features[name] for name in OF_BELIEF},
    }


def _log_odds(share: float, least: float) -> float:
    bounded = min(max(share, least), 1 - least)
    return math.log(bounded / (1 - bounded))


def tempered(shares: Sequence[float], first: float) -> list[float]:
    """Return shares of the same order of which the first, the largest one, is this large.

    Each to the same power: no less than all alike, and no more than the steepest power gives.
    """
    logs = [math.log(max(share, 1e-300)) for share in shares]

    def to_the(power: float) -> list[float]:
        values = [math.exp(power * (log - logs[0])) for log in logs]
        return [value / sum(values) for value in values]

    low, high = 0.0, STEEPEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if to_the(middle)[0] < first else (low, middle)
    return to_the(high)
