"""The table of an experiment: which run had which levels, and what it measured.

Knows names, levels and figures. Does not know how a run is made, where it is kept, nor how an
effect is computed: a simulated experiment fills the same table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

MetricName = Literal[
    "iops", "bandwidth_bytes_per_s", "lat_mean_ns", "lat_p50_ns", "lat_p99_ns", "lat_p999_ns", "cpu_ns_per_io"
]
"""What can be measured of a run; units are in the names."""

LARGER_IS_BETTER: frozenset[str] = frozenset({"iops", "bandwidth_bytes_per_s"})


@dataclass(frozen=True, slots=True)
class Factor:
    """What is varied on purpose. `levels` in the order of the file, as the user wrote them."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """One run, or one pattern of a run with several."""

    run: str
    """Name of the study's point."""
    order: int
    """Position in time, from 0."""
    started_s: float
    """Seconds since the experiment began, to find drift."""
    block: int
    """Number of the block (one pass over all combinations), from 0."""
    levels: Mapping[str, str]
    """Level of every factor."""
    pattern: str
    """Which workload: the name of a matrix row."""
    metrics: Mapping[str, float]
    """By `MetricName`; what was not measured is absent, never zero."""
    asked: tuple[float, float] = (0.0, 0.0)
    """Operations and bytes per second that its load was to do at most; 0: no limit."""
    invalid: str | None = None
    """Why the verdict says that the number is not valid; None: nothing does. Excluded from every effect."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What is wanted. `limit` holds another metric: most IOPS with p99 under a limit."""

    metric: str
    larger_is_better: bool
    limit_metric: str | None = None
    limit_at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """All of an experiment."""

    factors: tuple[Factor, ...]
    rows: tuple[Observation, ...]
    aims: tuple[Aim, ...] = ()
    aliased: tuple[tuple[str, str], ...] = ()
    """Effects that a fraction cannot tell apart, as pairs of names (`a`, `b:c`)."""
    unset_levels: Mapping[str, str] = field(default_factory=dict)
    """`factor=level` to why it could not be set here."""
    metrics: tuple[str, ...] = ()
    """Asked for; the first is what the answer is about. Empty: that of the first aim, else a rate."""
    patterns: tuple[str, ...] = ()
    """In the order of the file; of those that it does not name, in the order that they came."""
    rarely: tuple[str, ...] = ()
    """Factors that are set rarely: within a block all runs of one of their levels follow each other."""

    def requests(self, factor: str, pattern: str) -> bool:
        """Return whether the levels of a factor ask for different rates: then a rate is no result of it."""
        rates: dict[str, set[tuple[float, float]]] = {}
        alone: dict[tuple[str, ...], set[tuple[float, float]]] = {}
        for row in self.rows:
            if row.pattern == pattern:
                level = row.levels[factor]
                others = tuple(value for name, value in row.levels.items() if name != factor)
                rates.setdefault(level, set()).add(row.asked)
                alone.setdefault(others, set()).add(row.asked)
        if any(len(several) > 1 for several in alone.values()):
            return True
        # In a fraction nothing may differ in this factor alone.
        every = [one for of_level in rates.values() for one in of_level]
        return len(rates) > 1 and len(alone) == len(self.rows) and len(every) == len(set(every)) > 1
