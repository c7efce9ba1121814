"""What can be said of two single runs: how much runs of one load differ without a cause.

Knows what repeats show that were published. Of 79 loads that were run again and again on real
storage (`examples/published`), half had two runs that differ by more than 1.2 %, a fifth by more than 10 %.
A tenth of their pairs are more than 1.4 times apart; `python -m lab.single_runs` prints that table. The error
of one run knows nothing of it, however long the run was. So a difference between two single runs says which
side is better only where it is more than varies within them, and more than nine of ten such pairs differ by.
Knows no run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.analysis.statistics.significance import Sample

BEYOND: Final = 1.4
"""Single runs that are farther apart may be significant: 29 % less, or 40 % more."""


def are_single(one: Sample | None, other: Sample | None) -> bool:
    """Tell whether neither is of repeats, so that nobody knows how much their runs differ."""
    return all(sample is not None and sample.runs < 2 for sample in (one, other))


def is_beyond(change: float) -> bool:
    """Tell whether a change, as a share, is larger than most between runs of one load."""
    return change <= -1 or abs(math.log1p(change)) > math.log(BEYOND)
