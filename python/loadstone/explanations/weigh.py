"""From what was measured to how probable each explanation is.

Bayes' rule over the explanations of `names` with the predictions of `predictions`. A reading's likelihood
is the prediction widened by its own error, with a share for readings that nothing predicts. *Something
unexplained* is like one of the named, with a larger share of such readings: where none of the named fits
all of them, it is what is left. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.explanations.cells import cells_of, likelihoods
from loadstone.explanations.names import BY_NAME, UNEXPLAINED, possible
from loadstone.explanations.predictions import READINGS
from loadstone.explanations.readings import NO_RATES
from loadstone.explanations.weights import FITTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.explanations.cells import Cells, Floats
    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.names import Explanation
    from loadstone.explanations.readings import Probed, ProbeReading
    from loadstone.explanations.weights import Weights
    from loadstone.verdict import RuleName

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
    at_a_limit: float = 0.0
    """The part of its probability in which nothing is idle."""


def weigh(
    job: JobFacts,
    probed: Probed | None = None,
    found: Mapping[RuleName, float] | None = None,
    checked: Iterable[RuleName] = (),
    *,
    without: frozenset[str] = frozenset(),
    weights: Weights = FITTED.weights,
) -> list[Weighed]:
    """Return the explanations still possible, the most probable first.

    `found`: findings of rules with their confidence, `checked`: rules that found nothing. `without`:
    explanations that are left out of the list, to try what it says of what it does not know.
    """
    rows = [one for one in possible(job) if one.name not in without]
    if not rows:
        return []
    evidence = _of_rules(rows, found or {}, frozenset(checked), weights)
    readings = [] if probed is None else [one for tried in probed.tried for one in tried.readings]
    known = hypotheses(rows, readings, evidence, weights)
    chances = known.cells.sums(known.each)
    evidence += _of_probes(rows, probed, weights)
    limited = known.cells.sums(np.where(known.cells.at_a_limit, known.each, 0.0)) / np.maximum(
        chances, 1e-300
    )
    order = np.argsort(-chances, kind="stable")
    return [
        replace(_weighed(rows[index], index, chances, evidence), at_a_limit=float(limited[index]))
        for index in order
    ]


def measuring(weighed: Iterable[Weighed]) -> float:
    """Return how probable it is that the number measures the storage."""
    return min(1.0, sum(one.probability for one in weighed if one.explanation.effect == "measures"))


def at_a_limit(weighed: Sequence[Weighed]) -> float:
    """Return the part of what is given to the storage in which nothing of it is idle."""
    limited = sum(one.probability * one.at_a_limit for one in weighed if one.explanation.effect == "measures")
    return min(1.0, limited / max(1e-300, measuring(weighed)))


def scaled(weighed: Sequence[Weighed], measures: float) -> list[Weighed]:
    """Return the same with this probability that the number measures the storage.

    Between explanations of one sort the shares stay as they are.
    """
    before = measuring(weighed)
    if not 0 < before < 1:
        return list(weighed)
    factors = {True: measures / before, False: (1 - measures) / (1 - before)}
    explanations = [
        replace(one, probability=one.probability * factors[one.explanation.effect == "measures"])
        for one in weighed
    ]
    return sorted(explanations, key=lambda one: -one.probability)


@dataclass(frozen=True, slots=True)
class Chances:
    """How probable each explanation is in each of its regimes, after some evidence."""

    cells: Cells
    each: Floats


def hypotheses_of(
    job: JobFacts,
    probed: Probed | None,
    found: Mapping[RuleName, float],
    checked: Iterable[RuleName],
    weights: Weights = FITTED.weights,
    *,
    without: frozenset[str] = frozenset(),
) -> Chances:
    """Return the same after everything that was tried, for who chooses what to try next."""
    rows = [one for one in possible(job) if one.name not in without]
    readings = [] if probed is None else [one for tried in probed.tried for one in tried.readings]
    return hypotheses(rows, readings, _of_rules(rows, found, frozenset(checked), weights), weights)


def cause_named(known: Chances) -> bool:
    """Tell whether the most probable is a cause with a name: neither the storage nor the unexplained."""
    best = int(np.argmax(known.cells.sums(known.each)))
    name = next(one.name for one in known.cells.every if one.row == best)
    return name != UNEXPLAINED and BY_NAME[name].effect != "measures"


def hypotheses(
    rows: Sequence[Explanation],
    readings: Sequence[ProbeReading],
    evidence: Sequence[_Evidence] = (),
    weights: Weights = FITTED.weights,
) -> Chances:
    """Return every explanation in every regime it can hold in, with its probability."""
    cells = cells_of(rows)
    if not rows:
        return Chances(cells, cells.odds)
    of_rows = np.array([prior(row.name, weights) for row in rows])
    for source in evidence:
        of_rows += source.factors
    logs = np.log(cells.odds) + of_rows[cells.rows]
    for one in readings:
        if one.name in READINGS:
            densities = likelihoods(cells, one.name, np.array([one.value]), one.error, weights)[:, 0]
            logs += weights.dependence * np.log(densities)
    return Chances(cells, _normal(logs))


def prior(explanation: str, weights: Weights) -> float:
    """Return what the fit adds to the logarithm of an explanation's odds."""
    if explanation == UNEXPLAINED:
        return math.log(weights.unexplained_odds)
    return math.log(weights.measures_odds) if BY_NAME[explanation].effect == "measures" else 0.0


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What one thing says of each explanation: logarithms of likelihoods."""

    source: str
    text: str
    factors: Floats


def _of_rules(
    rows: Sequence[Explanation],
    found: Mapping[RuleName, float],
    checked: frozenset[RuleName],
    weights: Weights,
) -> list[_Evidence]:
    evidence = []
    for rule in dict.fromkeys(name for row in rows for name in row.rules):
        points = np.array([rule in row.rules for row in rows])
        if rule in found:
            odds = min(weights.most_odds, found[rule] / max(1e-6, 1 - found[rule]))
            text = f"{rule} was found with {found[rule]:.0%}"
            evidence.append(_Evidence(rule, text, np.where(points, math.log(max(odds, 1.0)), 0.0)))
        elif rule in checked:
            evidence.append(
                _Evidence(rule, f"{rule} found nothing", np.where(points, math.log(weights.clear), 0.0))
            )
    return evidence


def _of_probes(rows: Sequence[Explanation], probed: Probed | None, weights: Weights) -> list[_Evidence]:
    if probed is None:
        return []
    return [
        _Evidence(tried.name, text(reading), _log_likelihoods(rows, reading, weights))
        for tried in probed.tried
        for reading in tried.readings
        if reading.name in READINGS
    ]


def text(reading: ProbeReading) -> str:
    """Say what was measured: the ratio with its interval."""
    low, high = reading.interval
    asks = READINGS[reading.name].asks
    if reading.name in NO_RATES:
        return f"{asks}: {reading.value:.0%}"
    if reading.name == "one.scaling":
        return f"{asks}: {reading.value:.2f} ({low:.2f} to {high:.2f})"
    return f"{asks}: {_factor(reading.value)} ({_factor(low)} to {_factor(high)})"


def _factor(value: float) -> str:
    return f"{math.exp(max(-20.0, min(20.0, value))):.3g}×"


def _log_likelihoods(rows: Sequence[Explanation], reading: ProbeReading, weights: Weights) -> Floats:
    cells = cells_of(rows)
    densities = likelihoods(cells, reading.name, np.array([reading.value]), reading.error, weights)[:, 0]
    factors: Floats = weights.dependence * np.log(cells.sums(densities * cells.odds) / cells.sums(cells.odds))
    return factors


def _normal(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max())
    whole: Floats = shares / shares.sum()
    return whole


def _weighed(row: Explanation, index: int, chances: Floats, evidence: Sequence[_Evidence]) -> Weighed:
    others = np.delete(chances, index)
    weights = others / others.sum() if len(others) and others.sum() > 0 else others
    contributions: list[tuple[float, _Evidence]] = []
    for one in evidence:
        if len(others):
            rest = float(np.log(max(1e-300, (np.exp(np.delete(one.factors, index)) * weights).sum())))
            contributions.append((float(one.factors[index]) - rest, one))
    for_ = sorted((pair for pair in contributions if pair[0] > TELLS), key=lambda pair: -pair[0])
    against = sorted((pair for pair in contributions if pair[0] < -TELLS), key=lambda pair: pair[0])
    deciding = for_ if chances[index] >= 0.5 else against
    return Weighed(
        explanation=row,
        probability=float(chances[index]),
        for_=tuple(one.text for _, one in for_),
        against=tuple(one.text for _, one in against),
        decided_by=deciding[0][1].source if deciding else None,
    )
