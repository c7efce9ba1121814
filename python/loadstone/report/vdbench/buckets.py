"""Response-time histograms as vdbench prints them: its buckets, counts and bars.

Knows the default bounds and those of `histogram=`. A count is exact to the width of our own
buckets, which are within 0.8 % of their values: one that straddles a bound counts where its middle is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.histogram import values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.histogram import Histogram
    from loadstone.report.vdbench.interval_lines import Layout

DEFAULT_US: Final = (
    *(20, 40, 60, 80, 100, 200, 400, 600, 800),
    *(1000 * ms for ms in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800, 1000, 2000)),
)
"""Upper bounds; the last bucket has none."""
_UNITS_US: Final = {"u": 1, "m": 1000, "s": 1_000_000}
_PER_PERCENT: Final = 0.5
"""Letters of a bar for one percent."""
_COUNT_WIDTH: Final[dict[Layout, int]] = {"50407": 13, "50406": 12}


def bounds_us(text: str) -> tuple[tuple[int, ...], bool]:
    """Return the upper bounds that `histogram=` asks for, and whether empty buckets are left out."""
    words = [word for word in text.split(",") if word]
    bounds = tuple(int(word[:-1]) * _UNITS_US[word[-1]] for word in words if word != "suppress")
    return bounds or DEFAULT_US, "suppress" in words


def counts(histogram: Histogram, bounds: Sequence[int]) -> list[int]:
    """Count in each bucket: the lower bound is in it, the upper is not."""
    used = np.flatnonzero(histogram.counts)
    places = np.searchsorted(np.array(bounds) * 1000, values_of(used), side="right")
    return [int(n) for n in np.bincount(places, histogram.counts[used], len(bounds) + 1)]


def table(title: str, histogram: Histogram, text: str = "", layout: Layout = "50407") -> list[str]:
    """Return the lines of one histogram; none when it is empty."""
    total = histogram.count
    if not total:
        return []
    bounds, suppress = bounds_us(text)
    per_bucket = counts(histogram, bounds)
    first, last = 0, len(per_bucket) - 1
    if suppress:
        filled = [at for at, count in enumerate(per_bucket) if count]
        # One empty bucket stays on each side.
        first, last = max(filled[0] - 1, 0), min(filled[-1] + 1, last)
    wide = _COUNT_WIDTH[layout]
    names = f" {'min(ms)':>8} <  {'max(ms)':>10} {'count':>{wide}} {'%%':>8} {'cum%%':>8}"
    lines = [title, f"{names}  '+': Individual%; '+-': Cumulative%", ""]
    below = sum(per_bucket[:first])
    for at in range(first, last + 1):
        share, before = 100 * per_bucket[at] / total, 100 * below / total
        below += per_bucket[at]
        low = _ms(0 if at == 0 else bounds[at - 1])
        high = "max" if at == len(bounds) else _ms(bounds[at])
        bar = "+" * int(share * _PER_PERCENT) + "-" * int(before * _PER_PERCENT)
        lines.append(
            f" {low:>8} < {high:>11} {per_bucket[at]:>{wide},} {share:8.4f} {100 * below / total:8.4f}  {bar}"
        )
    return [*lines, ""]


def _ms(us: int) -> str:
    """Return milliseconds in at most 8 letters."""
    text = f"{us / 1000:.3f}"
    return text[:8].rstrip(".") if len(text) > 8 else text
