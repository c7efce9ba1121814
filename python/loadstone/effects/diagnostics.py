"""What the residuals of a model say of its errors: whether they are normal, and equally large.

Each statistic is held against the same model with normal errors, drawn from a seed, so that its
p-value is right for any design and any number of runs (J.-M. Dufour and others, Simulation-based
finite sample normality tests in linear regressions, Econometrics Journal 1, 1998). Knows no metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.effects.fit import huber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.effects.fit import LinearFit

    Numbers = NDArray[np.float64]

DRAWS: Final = 999
MIN_FREEDOM: Final = 4
"""With fewer the residuals of any errors look alike."""
NO_ROOM: Final = 1e-9
NOT_NORMAL: Final = 0.005
"""Below this p-value errors are not taken for normal."""
UNEQUAL: Final = 0.05
"""Below this p-value levels are taken to differ in noise."""


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """P-values: of errors that are normal, of groups that are equally noisy, of the furthest run."""

    normal_p: float | None
    equal_noise_p: float | None
    furthest: int | None
    furthest_p: float | None
    expected: float | None
    """What the other runs let expect of the furthest one."""
    noisy: Numbers | None
    """Of each run how noisy its level is, of the factor by whose levels errors look most normal."""


UNKNOWN: Final = ErrorShape(None, None, None, None, None, None)


def shape(fitted: LinearFit, groups: Sequence[NDArray[np.int64]], chance: np.random.Generator) -> ErrorShape:
    """Look at the residuals of a model; `groups` numbers the runs by level, once for each factor."""
    if fitted.freedom < MIN_FREEDOM or fitted.variance <= NO_ROOM**2:
        return UNKNOWN
    room = np.diag(fitted.maker)
    used = room > 1e-6
    drawn = chance.normal(size=(DRAWS, len(room))) @ fitted.maker
    every = np.vstack([fitted.residuals, drawn])
    scaled = np.zeros_like(every)
    scaled[:, used] = every[:, used] / np.sqrt(room[used])
    scaled /= np.sqrt((every**2).sum(axis=1, keepdims=True) / fitted.freedom)
    groups = [group for group in groups if len(np.unique(group)) > 1]
    unequal = [_spread(scaled, group) for group in groups]
    parts, noisy = [scaled[:, used]], [np.ones(len(room))]
    if groups:
        # Runs of a noisy level beside those of an even one look like far runs: each is asked by itself.
        resistant = _resistant(fitted, drawn)[:, used]
        medians = [_medians(resistant, group[used]) for group in groups]
        unequal.append(np.max([np.var(np.log(one), axis=1) for one in medians], axis=0))
        parts, noisy = [resistant / one for one in medians], [_of_all(one[0], used) for one in medians]
    # Nobody says which factor makes the noise: what looks normal by one of them is.
    normal = [_normal_p(one) for one in parts]
    most = int(np.argmax(normal))
    part = parts[most]
    far = np.abs(part).max(axis=1)
    at = int(np.flatnonzero(used)[np.abs(part[0]).argmax()])
    return ErrorShape(
        normal_p=normal[most],
        equal_noise_p=_least(unequal) if unequal else None,
        furthest=at,
        furthest_p=float((far >= far[0] - 1e-12).mean()),
        expected=float(fitted.values[at] - fitted.residuals[at] / room[at]),
        noisy=noisy[most],
    )


def _normal_p(part: Numbers) -> float:
    """Return the p-value of residuals that are normal; the first row is theirs, the others are drawn."""
    far, heavy, skewed = np.abs(part).max(axis=1), (part**4).mean(axis=1), np.abs((part**3).mean(axis=1))
    return _least([far, heavy, skewed])


def _resistant(fitted: LinearFit, drawn: Numbers) -> Numbers:
    """Return residuals of Huber's fits: a far run moves no other's, as it does by least squares."""
    values = np.vstack([fitted.values, drawn]).T
    coefficients, _ = huber(fitted.matrix, values)
    return np.asarray((values - fitted.matrix @ coefficients).T)


def _of_all(values: Numbers, used: NDArray[np.bool_]) -> Numbers:
    """Return values of the runs that are used, and 1 of the others."""
    all_values = np.ones(len(used))
    all_values[used] = values
    return all_values


def _medians(scaled: Numbers, group: NDArray[np.int64]) -> Numbers:
    """Return for each run the median absolute residual of its level."""
    sizes, medians = np.abs(scaled), np.empty_like(scaled)
    for one in np.unique(group):
        in_level = group == one
        medians[:, in_level] = np.maximum(np.median(sizes[:, in_level], axis=1, keepdims=True), NO_ROOM)
    return medians


def _spread(scaled: Numbers, group: NDArray[np.int64]) -> Numbers:
    """Return how unequal the mean absolute residuals of the groups are (after H. Levene, 1960)."""
    sizes = np.abs(scaled)
    means = np.array([sizes[:, group == one].mean(axis=1) for one in np.unique(group)])
    counts = np.array([(group == one).sum() for one in np.unique(group)])[:, None]
    whole = sizes.mean(axis=1)
    return np.asarray((counts * (means - whole) ** 2).sum(axis=0) / np.maximum(sizes.var(axis=1), 1e-30))


def _least(statistics: Sequence[Numbers]) -> float:
    """Return one p-value of several statistics: how often the least of theirs is as small by chance."""
    ranks = np.array(
        [len(one) - np.searchsorted(np.sort(one), one - 1e-12 * np.abs(one)) for one in statistics]
    )
    least = ranks.min(axis=0)
    return float((least <= least[0]).mean())
