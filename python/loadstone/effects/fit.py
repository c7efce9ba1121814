"""Least squares with errors that hold for unequal noise: contrasts, their errors and degrees of freedom.

Knows matrices. Knows no factor and no metric.

The error of a contrast is pooled over all runs, or put together from the variances of groups of
runs with the degrees of freedom of F. E. Satterthwaite (Biometrics Bulletin 2, 1946), which for two
groups is the test of B. L. Welch (Biometrika 34, 1947).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.distributions import beta_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

TUNING: Final = 1.345
"""Huber's constant: 95 % of the efficiency of least squares where errors are normal."""
BETA: Final = 0.7102
"""Mean of the square of a normal value that is cut off at `TUNING`."""
ROUNDS: Final = 40
NO_ROOM: Final = 1e-9
MANY: Final = 1e9
"""Degrees of freedom of an error of zero."""


@dataclass(frozen=True, slots=True)
class LinearFit:
    """A fitted model. `maker` takes values to their residuals; `solver` to the coefficients."""

    matrix: Numbers
    values: Numbers
    solver: Numbers
    maker: Numbers
    coefficients: Numbers
    residuals: Numbers

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the error."""
        return int(self.matrix.shape[0] - self.matrix.shape[1])

    @property
    def variance(self) -> float:
        """Variance of one run."""
        return float(self.residuals @ self.residuals / self.freedom) if self.freedom > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ContrastError:
    """A standard error with its degrees of freedom."""

    error: float
    freedom: float


def fit(matrix: Numbers, values: Numbers) -> LinearFit:
    """Fit by least squares; the matrix has full column rank."""
    solver = np.asarray(np.linalg.pinv(matrix), dtype=np.float64)
    coefficients = solver @ values
    maker = np.eye(len(values)) - matrix @ solver
    return LinearFit(matrix, values, solver, maker, coefficients, values - matrix @ coefficients)


def pooled_error(fitted: LinearFit, contrast: Numbers, floor: float = 0.0) -> ContrastError | None:
    """Return the error of a contrast when all runs are equally noisy; None without repeats."""
    if fitted.freedom < 1:
        return None
    weights = contrast @ fitted.solver
    scale = np.sqrt(max(fitted.variance, floor**2))
    return ContrastError(float(scale * np.linalg.norm(weights)), float(fitted.freedom))


@dataclass(frozen=True, slots=True)
class GroupNoise:
    """How noisy each group of runs is by itself: its variance, and the degrees of freedom behind it.

    A residual holds a part of the noise of every run that its blocks and levels are shared with, so that a
    noisy group looks more even than it is. Its variance is made as much larger as that happens to groups
    that are as unequal as these look. Solving for what they are (MINQUE) leaves small experiments no power.
    """

    group: NDArray[np.int64]
    variances: Numbers
    freedoms: Numbers

    @classmethod
    def of(cls, fitted: LinearFit, group: NDArray[np.int64]) -> GroupNoise | None:
        """Take it from the residuals of each group; None where the fit leaves one of them none."""
        member = np.equal.outer(np.arange(int(group.max()) + 1), group).astype(np.float64)
        mixed = member @ fitted.maker**2 @ member.T
        room = mixed.sum(axis=1)
        if room.min() < NO_ROOM:
            return None
        looks = member @ fitted.residuals**2 / room
        hidden = np.divide(looks * room, mixed @ looks, out=np.ones_like(looks), where=looks > 0)
        return cls(group, looks * np.maximum(1.0, hidden), room**2 / np.diag(mixed))

    def error(self, weights: Numbers, floor: float = 0.0) -> ContrastError:
        """Return the error of a contrast with these weights of runs."""
        parts = np.bincount(self.group, weights**2) * np.maximum(self.variances, floor**2)
        whole = float(parts.sum())
        beneath = float((parts**2 / self.freedoms).sum())
        return ContrastError(math.sqrt(whole), max(1.0, whole**2 / beneath) if beneath else MANY)


def cluster_error(
    fitted: LinearFit, contrast: Numbers, plots: NDArray[np.int64], floor: float = 0.0
) -> ContrastError | None:
    """Return the error of a contrast where runs of one plot share a part of their error.

    The same estimate for whole plots (CR2 with a generalized inverse: J. E. Pustejovsky and E. Tipton,
    Journal of Business and Economic Statistics 36, 2018).
    """
    if fitted.freedom < 1:
        return None
    weights = contrast @ fitted.solver
    columns = []
    variance = 0.0
    for plot in np.unique(plots):
        of_plot = np.flatnonzero(plots == plot)
        sizes, vectors = np.linalg.eigh(fitted.maker[np.ix_(of_plot, of_plot)])
        scale = np.where(sizes > 1e-8, 1 / np.sqrt(np.maximum(sizes, 1e-8)), 0.0)
        adjusted = (vectors * scale) @ (vectors.T @ weights[of_plot])
        variance += float(adjusted @ fitted.residuals[of_plot]) ** 2
        columns.append(fitted.maker[:, of_plot] @ adjusted)
    inner = np.array(columns) @ np.array(columns).T
    whole = float(np.trace(inner))
    if whole <= NO_ROOM * float(weights @ weights):
        return None
    freedom = whole**2 / float((inner**2).sum())
    return ContrastError(math.sqrt(max(variance, floor**2 * float(weights @ weights))), freedom)


def between_plots(fitted: LinearFit, contrast: Numbers, plots: NDArray[np.int64]) -> float:
    """Return which share of a contrast lies between plots: 0 where each plot is held against itself."""
    weights = contrast @ fitted.solver
    counts = np.bincount(plots)
    sums = np.bincount(plots, weights)
    return float((sums[counts > 0] ** 2 / counts[counts > 0]).sum() / max(float(weights @ weights), 1e-300))


def f_upper(value: float, first: float, second: float) -> float:
    """Return how often Fisher's F with so many degrees of freedom is above a value (DLMF 8.17)."""
    return beta_share(second / 2, first / 2, second / (second + first * value)) if value > 0 else 1.0


def f_beyond(share: float, first: float, second: float, shift: float) -> float:
    """Return how often F goes beyond what it passes by chance in `share` of cases (DLMF 8.17).

    `shift`: its noncentrality, what the truth adds to its sum of squares.
    """
    low, high = 0.0, 1.0  # Of second / (second + first * F), which falls as F grows.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beta_share(second / 2, first / 2, middle) < share else (low, middle)
    half, probability = shift / 2, 0.0
    reach = 10 * math.sqrt(half) + 20
    for step in range(max(0, math.floor(half - reach)), math.ceil(half + reach)):
        weight = math.exp(step * math.log(half) - half - math.lgamma(step + 1)) if half else float(step == 0)
        probability += weight * beta_share(second / 2, first / 2 + step, high)
    return probability


def huber(matrix: Numbers, values: Numbers, noisy: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """Return coefficients that far runs pull little, and values for least squares that have their errors.

    P. J. Huber, Robust Statistics, 1981, sections 7.6 to 7.10: the scale by his proposal 2; the
    values are the fit plus the cut residuals over the mean of their slope. `values` has a column
    for each set of data; `noisy`: of each run how noisy its level is, so that far is far for its level.
    """
    count, size = matrix.shape
    spread = np.ones((count, 1)) if noisy is None else noisy[:, None]
    solver = np.linalg.pinv(matrix)
    coefficients = solver @ values
    residuals = (values - matrix @ coefficients) / spread
    scale = np.sqrt((residuals**2).sum(axis=0) / (count - size))
    # Begin where half of the residuals are, so that one far run does not hide itself.
    near = np.median(np.abs(residuals), axis=0) / 0.6745 * np.sqrt(count / (count - size))
    scale = np.where(near > 0, np.minimum(scale, near), scale)
    for _ in range(ROUNDS):
        limit = TUNING * scale
        coefficients = coefficients + solver @ (np.clip(residuals, -limit, limit) * spread)
        residuals = (values - matrix @ coefficients) / spread
        cut = np.clip(residuals, -limit, limit)
        scale = np.sqrt((cut**2).sum(axis=0) / ((count - size) * BETA))
    inside = np.abs(residuals) < TUNING * scale
    slope = np.maximum(inside.mean(axis=0), 1 / count)
    # Huber's correction of small samples (1981, equation 7.6.12).
    slope = slope / (1 + size / count * (1 - slope) / slope)
    return coefficients, matrix @ coefficients + cut * spread / slope
