"""A curve between points that rises and falls only where the points do.

F. N. Fritsch and J. Butland, A method for constructing local monotone piecewise cubic
interpolants, SIAM J. Sci. Stat. Comput. 5, 1984; the ends by three points, as SciPy's
`PchipInterpolator` has them. Knows no unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def monotone(x: Numbers, y: Numbers, at: Numbers) -> Numbers:
    """Return the curve through points of rising `x`, at places between the first and the last."""
    step = np.diff(x)
    rise = np.diff(y) / step
    slope = _slopes(step, rise)
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(step) - 1)
    width = step[left]
    share = (at - x[left]) / width
    # Cubic Hermite in powers of the share of the way from one point to the next.
    second = 3 * rise[left] - 2 * slope[left] - slope[left + 1]
    third = slope[left] + slope[left + 1] - 2 * rise[left]
    return y[left] + width * share * (slope[left] + share * (second + share * third))


def _slopes(step: Numbers, rise: Numbers) -> Numbers:
    if len(rise) == 1:
        return np.array([rise[0], rise[0]])
    before, after = rise[:-1], rise[1:]
    weight_before, weight_after = 2 * step[1:] + step[:-1], step[1:] + 2 * step[:-1]
    turning = before * after <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (weight_before + weight_after) / (weight_before / before + weight_after / after)
    inner = np.where(turning, 0.0, mean)
    first = _end(step[0], step[1], rise[0], rise[1])
    last = _end(step[-1], step[-2], rise[-1], rise[-2])
    return np.concatenate([[first], inner, [last]])


def _end(step: float, next_step: float, rise: float, next_rise: float) -> float:
    slope = ((2 * step + next_step) * rise - step * next_rise) / (step + next_step)
    if np.sign(slope) != np.sign(rise):
        return 0.0
    if np.sign(rise) != np.sign(next_rise) and abs(slope) > 3 * abs(rise):
        return float(3 * rise)
    return float(slope)
