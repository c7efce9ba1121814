"""How much of the differences between runs each term explains.

Knows a fitted model. Each term is held against the model that has all terms but it and those it is
part of (sums of squares of type II). omega² takes off what chance alone would explain
(W. L. Hays, Statistics for Psychologists, 1963).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.effects.findings import VarianceShare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.studied_metric import StudiedMetric

TIME: Final = "order in time"
UNEXPLAINED: Final = "not explained"


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """One term's part, of all differences between runs. An empty name: blocks and time."""

    factors: tuple[int, ...]
    eta: float
    omega: float


def explained(model: MetricModel) -> tuple[list[ExplainedPart], float] | None:
    """Return the part of each term, and what no term explains; None where all runs are the same."""
    design, values = model.design, model.fitted.values
    whole = float(((values - values.mean()) ** 2).sum())
    if whole <= 0:
        return None
    every = range(design.matrix.shape[1])
    noise = model.fitted.variance

    def left(columns: Iterable[int]) -> float:
        matrix = design.matrix[:, sorted(columns)]
        coefficients, *_ = np.linalg.lstsq(matrix, values, rcond=None)
        return float(((values - matrix @ coefficients) ** 2).sum())

    def part(factors: tuple[int, ...], columns: tuple[int, ...], base: set[int]) -> ExplainedPart:
        sum_of_squares = max(0.0, left(base - set(columns)) - left(base | set(columns)))
        omega = (sum_of_squares - len(columns) * noise) / (whole + noise)
        return ExplainedPart(factors, sum_of_squares / whole, max(0.0, omega))

    parts = []
    for term in design.terms:
        above = {
            column for one in design.terms if set(one.factors) > set(term.factors) for column in one.columns
        }
        parts.append(part(term.factors, term.columns, set(every) - above))
    if design.nuisance:
        parts.append(part((), design.nuisance, set(every)))
    return parts, left(every) / whole


def variance_shares(one: StudiedMetric) -> Iterator[VarianceShare]:
    """Return the part of each term, and of what none explains, of a metric of a pattern."""
    explanation = explained(one.model)
    if explanation is None or one.model.fitted.freedom < 1:
        return
    parts, rest = explanation
    for part in parts:
        yield VarianceShare(
            pattern=one.runs.pattern,
            metric=one.runs.metric,
            term=one.model.design.name(part.factors) if part.factors else TIME,
            eta_squared=min(1.0, part.eta),
            omega_squared=part.omega,
        )
    yield VarianceShare(
        pattern=one.runs.pattern,
        metric=one.runs.metric,
        term=UNEXPLAINED,
        eta_squared=min(1.0, max(0.0, rest)),
        omega_squared=None,
    )
