"""What the order of a series tells: ranks, and Sen's slope. Knows no unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def average_ranks(values: Numbers) -> Numbers:
    """Return the rank of each value, from 1; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[which]


def sen_slope(values: Numbers) -> float:
    """Return the median slope between all pairs of values, per step."""
    first, second = np.triu_indices(len(values), 1)
    return float(np.median((values[second] - values[first]) / (second - first)))
