"""Runs of the same load taken together: one rate, one latency, each with its error.

Knows how runs are added up: means with the error they show among themselves or tell of
themselves, whichever is larger; percentiles of all I/Os of all runs, never a mean of percentiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.statistics.distributions import t_quantile
from loadstone.analysis.study.run_figures import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.run_figures import LineFigures

NOTHING_KNOWN: Final = math.log(1000)
"""An interval wider than this factor, as two runs far apart have one, says nothing."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """What several runs measured."""

    runs: int
    iops: Estimate
    bandwidth: Estimate
    mean_ns: Estimate
    percentiles_ns: dict[float, int | None]
    intervals_ns: dict[float, tuple[int, int] | None]
    """95 % interval of each percentile."""
    large_blocks: bool
    asked_iops: float | None
    held: bool | None
    sheet_share: Estimate | None = None
    """Of the data sheet's figure it came nearest to."""

    @property
    def rate(self) -> Estimate:
        """Bandwidth for large blocks, IOPS for others."""
        return self.bandwidth if self.large_blocks else self.iops


def pooled(found: Sequence[LineFigures]) -> Pooled | None:
    """Return runs together; None without any that moved data."""
    found = [one for one in found if one.iops is not None and one.mean_ns is not None]
    if not found:
        return None
    histograms = [one.latency.histogram for one in found if one.latency is not None]
    percentiles = sum(histograms[1:], histograms[0]).percentiles(PERCENTILES)
    shares = [one.sheet_share for one in found]
    helds = [one.held for one in found if one.held is not None]
    return Pooled(
        runs=len(found),
        iops=_together([one.iops for one in found], "1/s"),
        bandwidth=_together([one.bandwidth for one in found], "B/s"),
        mean_ns=_together([one.mean_ns for one in found], "ns"),
        percentiles_ns=percentiles,
        intervals_ns={p: _interval(p, value, found) for p, value in percentiles.items()},
        large_blocks=all(one.large_blocks for one in found),
        asked_iops=found[0].asked_iops,
        held=all(helds) if helds else None,
        sheet_share=_together(shares, "1") if all(one is not None for one in shares) else None,
    )


def _together(estimates: Sequence[Estimate | None], unit: str) -> Estimate:
    known = [one for one in estimates if one is not None]
    count = len(known)
    mean = sum(one.value for one in known) / count
    errors = [one.error for one in known if one.error is not None]
    within = math.sqrt(sum(error**2 for error in errors)) / count if len(errors) == count else None
    between = None
    if count > 1:
        between = math.sqrt(sum((one.value - mean) ** 2 for one in known) / (count - 1) / count)
    known_errors = [error for error in (within, between) if error is not None]
    return Estimate(mean, max(known_errors) if known_errors else None, count, unit)


def _interval(percent: float, value: int | None, runs: Sequence[LineFigures]) -> tuple[int, int] | None:
    """Return the 95 % interval of a percentile: the runs' own, narrower for several, or their spread.

    In logarithms: a latency is off by a factor, and is never below zero.
    """
    if not value:
        return None
    count = len(runs)
    alone = [interval for one in runs if (interval := one.intervals_ns.get(percent)) is not None]
    known = [one for measured in runs if (one := measured.percentiles_ns.get(percent))]
    if len(alone) < count and (count == 1 or len(known) < count):
        return None
    below = above = spread = 0.0
    if len(alone) == len(known) == count:
        pairs = list(zip(known, alone, strict=True))
        below = sum(math.log(middle / max(low, 1)) for middle, (low, _) in pairs) / count**1.5
        above = sum(math.log(high / middle) for middle, (_, high) in pairs) / count**1.5
    if len(known) == count > 1:
        logs = [math.log(one) for one in known]
        mean = sum(logs) / count
        deviation = math.sqrt(sum((one - mean) ** 2 for one in logs) / (count - 1))
        spread = t_quantile(0.975, count - 1) * deviation / math.sqrt(count)
    if max(below, above, spread) > NOTHING_KNOWN:
        return None
    return round(value * math.exp(-max(below, spread))), round(value * math.exp(max(above, spread)))
