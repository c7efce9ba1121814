"""The 99th percentile of a layer's own clock, from the sample of its I/Os that the monitors followed.

Knows the columns `served.<device>.*` (`monitor.served`). Neighbouring I/Os are slow together, so
that many slow ones may be one event: how well the percentile is known is taken from the rows of a
second (a bootstrap over them: Lahiri, Resampling Methods for Dependent Data, ch. 2, blocks that do
not overlap), not from the number of I/Os.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.histogram import MIN_BEYOND
from loadstone.monitor.served import width

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

SHARE: Final = 0.99
"""The percentile: p99."""
LEAST_ROWS: Final = 5
"""Seconds; fewer do not tell how much they differ."""
DRAWS: Final = 200
"""Of the bootstrap."""
WIDEST: Final = 1.5
"""Largest ratio of the ends of the 90 % interval: beyond it, the next run may say something else."""


def p99_ns(host: pl.DataFrame, device: str) -> float | None:
    """Return the 99th percentile of a device's I/Os in ns; None where it is not known well enough.

    I/Os whose end was not seen are slower than all others.
    """
    prefix = f"served.{device}."
    names = [name for name in host.columns if name.startswith(prefix)]
    if host.height < LEAST_ROWS or not names:
        return None
    middles = np.array([_middle(name.removeprefix(prefix)) for name in names])
    order = np.argsort(middles)
    counts = host.select(names).fill_null(0).to_numpy().astype(np.int64)[:, order]
    if counts.sum() * (1 - SHARE) < MIN_BEYOND:
        return None
    drawn = np.random.default_rng(0).integers(host.height, size=(DRAWS, host.height))
    p99s = _percentiles(counts[drawn].sum(axis=1), middles[order])
    low, high = np.quantile(p99s, (0.05, 0.95), method="nearest")
    if not high <= WIDEST * low < np.inf:
        return None
    return float(_percentiles(counts.sum(axis=0, keepdims=True), middles[order])[0])


def _middle(name: str) -> float:
    """Return the time in ns that stands for a column; infinite for what was not seen to end."""
    kind, _, rest = name.partition("_")
    if kind != "from":
        return np.inf
    low = int(rest.removesuffix("_ns"))
    return low + width(low) / 2


def _percentiles(counts: NDArray[np.int64], middles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the percentile of each row of counts."""
    total = np.cumsum(counts, axis=1)
    at: NDArray[np.float64] = middles[np.argmax(total >= SHARE * total[:, -1:], axis=1)]
    return at
