"""A limit on a latency, and whether a run keeps it.

Knows the words of a limit and when a measurement decides: kept or broken by more than its own
error, else undecided. Knows no search.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.tail import Z_95, beyond
from loadstone.errors import InputError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.summary import Summary
    from loadstone.bundle.study import StudyRecord

_UNITS_NS: Final = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True, slots=True)
class Slo:
    """`percent` of the I/Os within `limit_ns`; None: their mean is."""

    text: str
    percent: float | None
    limit_ns: int

    @property
    def allowed(self) -> float:
        """What `value` may be: a share of I/Os, or a mean in nanoseconds."""
        return float(self.limit_ns) if self.percent is None else 1 - self.percent / 100

    def value(self, summary: Summary) -> Estimate | None:
        """Return what a run did: the share of I/Os beyond the limit, or the mean latency.

        A share's error is at least what so few I/Os leave open at the limit itself: none beyond
        it among a hundred is no proof that one per cent would not be.
        """
        data = summary.total.data
        if data is None or not data.operations:
            return None
        if self.percent is None:
            lat = data.latencies.get("lat")
            return None if lat is None else lat.mean
        share = beyond(summary.measurement, [self.limit_ns])[0]
        if share is None or share.error is None:
            return share
        least = math.sqrt(self.allowed * (1 - self.allowed) / data.operations)
        return replace(share, error=max(share.error, least))


def read(text: str) -> Slo:
    """Read `p99<1ms`, `p99.9<=500us` or `mean<200us`; raises `InputError` for anything else."""
    match = re.fullmatch(r"\s*(mean|p(\d+(?:\.\d+)?))\s*<=?\s*(\d+(?:\.\d+)?)\s*([nuµm]?s)\s*", text.lower())
    if match is None:
        hint = "write a percentile or the mean, < and a time: p99<1ms, p99.9<500us, mean<200us"
        if re.match(r"\s*max", text.lower()):
            hint = "a maximum only grows with the length of a run; limit a percentile: p99.99<20ms"
        raise make_error(InputError, "analysis.slo.shape", hint=hint, found=repr(text))
    percent = float(match[2]) if match[2] else None
    if percent is not None and not 0 < percent < 100:
        raise make_error(InputError, "analysis.slo.percentile", found=f"{percent:g}")
    limit_ns = round(float(match[3]) * _UNITS_NS[match[4]])
    if not limit_ns:
        raise make_error(InputError, "analysis.slo.zero", found=repr(text))
    return Slo(text.strip(), percent, limit_ns)


def slo_of(study: StudyRecord) -> Slo | None:
    """Return the limit a curve was asked to find, None without one."""
    text = study.settings.get("slo")
    return read(text) if isinstance(text, str) else None


def decide(slo: Slo, values: Sequence[Estimate | None]) -> bool | None:
    """Tell from the values of one or more runs at one load whether the limit holds; None: undecided.

    Several runs count by their mean; its error is what they show among themselves or what each
    says of itself, whichever is larger.
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    count = len(known)
    mean = sum(value.value for value in known) / count
    errors = [value.error for value in known if value.error is not None]
    if len(errors) < count:
        return None
    within = math.sqrt(sum(error**2 for error in errors)) / count
    between = 0.0
    if count > 1:
        between = math.sqrt(sum((value.value - mean) ** 2 for value in known) / (count - 1) / count)
    margin = Z_95 * max(within, between)
    if mean + margin <= slo.allowed:
        return True
    return False if mean - margin > slo.allowed else None
