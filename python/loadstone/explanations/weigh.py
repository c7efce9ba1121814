"""From what was measured to how probable each explanation is.

Bayes' rule over the explanations of `names` with the predictions of `predictions`. A reading's likelihood
is the prediction widened by its own error, with a share for readings that nothing predicts. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.explanations.names import UNEXPLAINED, possible
from loadstone.explanations.predictions import (
    ANY_DEPTH,
    DEPENDENCE,
    IN_REGIMES,
    LEAST_ERROR,
    READINGS,
    REGIMES,
    SURPRISE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.names import Explanation
    from loadstone.explanations.predictions import Prediction
    from loadstone.explanations.readings import Probed, ProbeReading
    from loadstone.verdict import RuleName

    Floats: TypeAlias = NDArray[np.float64]

CLEAR: Final = 0.3
"""A rule that looked and found nothing leaves that much of what it would have pointed at."""
MOST_ODDS: Final = 20.0
"""A rule's finding says no more than this: two rules may see one cause."""
TELLS: Final = math.log(1.5)
"""Evidence below this factor is for and against nothing."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """One explanation after all evidence. `for_` and `against` in words."""

    explanation: Explanation
    probability: float
    for_: tuple[str, ...]
    against: tuple[str, ...]
    decided_by: str | None
    """The probe or rule that said most of it."""


def weigh(
    job: JobFacts,
    probed: Probed | None = None,
    found: Mapping[RuleName, float] | None = None,
    checked: Iterable[RuleName] = (),
    without: frozenset[str] = frozenset(),
) -> list[Weighed]:
    """Return the explanations still possible, the most probable first.

    `found`: findings of rules with their confidence, `checked`: rules that found nothing. `without`:
    explanations that are left out of the list, to try what it says of what it does not know.
    """
    rows = [one for one in possible(job) if one.name not in without]
    if not rows:
        return []
    evidence = _of_rules(rows, found or {}, frozenset(checked))
    readings = [] if probed is None else [one for tried in probed.tried for one in tried.readings]
    cells = hypotheses(rows, readings, evidence)
    chances = np.array([sum(one.chance for one in cells if one.row == index) for index in range(len(rows))])
    evidence += _of_probes(rows, probed)
    order = np.argsort(-chances, kind="stable")
    return [_weighed(rows[index], index, chances, evidence) for index in order]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An explanation in one regime: what readings depend on. `row`: the explanation's place."""

    row: int
    name: str
    regime: str
    chance: float


def hypotheses_of(
    job: JobFacts, probed: Probed | None, found: Mapping[RuleName, float], checked: Iterable[RuleName]
) -> list[Hypothesis]:
    """Return the same after everything that was tried, for who chooses what to try next."""
    rows = possible(job)
    readings = [] if probed is None else [one for tried in probed.tried for one in tried.readings]
    return hypotheses(rows, readings, _of_rules(rows, found, frozenset(checked))) if rows else []


def hypotheses(
    rows: Sequence[Explanation], readings: Sequence[ProbeReading], evidence: Sequence[_Evidence] = ()
) -> list[Hypothesis]:
    """Return every explanation in every regime it can hold in, with its probability."""
    cells: list[tuple[int, str, str]] = []
    logs: list[float] = []
    for index, row in enumerate(rows):
        for weight, regime in IN_REGIMES.get(row.name, ANY_DEPTH):
            told = sum(
                math.log(float(likelihood(row.name, regime, one.name, np.array([one.value]), one.error)[0]))
                for one in readings
                if one.name in READINGS
            )
            rules = sum(float(one.factors[index]) for one in evidence)
            cells.append((index, row.name, regime))
            logs.append(math.log(row.odds * weight) + DEPENDENCE * told + rules)
    chances = _normal(np.array(logs))
    return [Hypothesis(*cell, float(chance)) for cell, chance in zip(cells, chances, strict=True)]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What one thing says of each explanation: logarithms of likelihoods."""

    source: str
    text: str
    factors: Floats


def _of_rules(
    rows: Sequence[Explanation], found: Mapping[RuleName, float], checked: frozenset[RuleName]
) -> list[_Evidence]:
    made = []
    for rule in dict.fromkeys(name for row in rows for name in row.rules):
        points = np.array([rule in row.rules for row in rows])
        if rule in found:
            odds = min(MOST_ODDS, found[rule] / max(1e-6, 1 - found[rule]))
            text = f"{rule} was found with {found[rule]:.0%}"
            made.append(_Evidence(rule, text, np.where(points, math.log(max(odds, 1.0)), 0.0)))
        elif rule in checked:
            made.append(_Evidence(rule, f"{rule} found nothing", np.where(points, math.log(CLEAR), 0.0)))
    return made


def _of_probes(rows: Sequence[Explanation], probed: Probed | None) -> list[_Evidence]:
    if probed is None:
        return []
    return [
        _Evidence(tried.name, text(reading), DEPENDENCE * _log_likelihoods(rows, reading))
        for tried in probed.tried
        for reading in tried.readings
        if reading.name in READINGS
    ]


def text(reading: ProbeReading) -> str:
    """Say what was measured: the ratio with its interval."""
    low, high = reading.interval
    asks = READINGS[reading.name].asks
    if reading.name == "one.scaling":
        return f"{asks}: {reading.value:.2f} ({low:.2f} to {high:.2f})"
    return f"{asks}: {_factor(reading.value)} ({_factor(low)} to {_factor(high)})"


def _factor(value: float) -> str:
    return f"{math.exp(max(-20.0, min(20.0, value))):.3g}×"


def _log_likelihoods(rows: Sequence[Explanation], reading: ProbeReading) -> Floats:
    value = np.array([reading.value])
    told = [
        sum(
            weight * float(likelihood(one.name, regime, reading.name, value, reading.error)[0])
            for weight, regime in IN_REGIMES.get(one.name, ANY_DEPTH)
        )
        for one in rows
    ]
    return np.log(told)


def likelihood(explanation: str, regime: str, reading: str, values: Floats, error: float) -> Floats:
    """Return the density of readings under an explanation in a regime."""
    row = READINGS[reading]
    mean, deviation = row.anything
    anything = _density(values, mean, math.hypot(deviation, error))
    if explanation == UNEXPLAINED:
        return anything
    own = math.hypot(error, LEAST_ERROR)
    parts = predicted(explanation, regime, reading)
    told = sum((w * _density(values, m, math.hypot(d, own)) for w, m, d in parts), np.zeros(len(values)))
    return (1 - SURPRISE) * told + SURPRISE * anything


def predicted(explanation: str, regime: str, reading: str) -> Prediction:
    """Return what is predicted of a reading."""
    row = READINGS[reading]
    return REGIMES[regime].get(reading) or row.under.get(explanation, row.others)


def _density(values: Floats, mean: float, deviation: float) -> Floats:
    return np.exp(-(((values - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))


def _normal(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max())
    whole: Floats = shares / shares.sum()
    return whole


def _weighed(row: Explanation, index: int, chances: Floats, evidence: Sequence[_Evidence]) -> Weighed:
    others = np.delete(chances, index)
    weights = others / others.sum() if len(others) and others.sum() > 0 else others
    told: list[tuple[float, _Evidence]] = []
    for one in evidence:
        if len(others):
            rest = float(np.log(max(1e-300, (np.exp(np.delete(one.factors, index)) * weights).sum())))
            told.append((float(one.factors[index]) - rest, one))
    for_ = sorted((pair for pair in told if pair[0] > TELLS), key=lambda pair: -pair[0])
    against = sorted((pair for pair in told if pair[0] < -TELLS), key=lambda pair: pair[0])
    deciding = for_ if chances[index] >= 0.5 else against
    return Weighed(
        explanation=row,
        probability=float(chances[index]),
        for_=tuple(one.text for _, one in for_),
        against=tuple(one.text for _, one in against),
        decided_by=deciding[0][1].source if deciding else None,
    )
