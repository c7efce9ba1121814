"""Who decides which run comes next.

A controller is asked before every run and sees what the runs before it measured. It knows no
engine, no directory and no screen, so all of it is tested without a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from loadstone.analysis.study.run_figures import RunFigures
from loadstone.analysis.study.run_figures import run as numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.bundle.study import Factor, Point
    from loadstone.plan.stream import TotalRate
    from loadstone.workload.model import Workload


@dataclass(frozen=True, slots=True)
class Next:
    """A run to do. `rate`: the total rate of an open loop, None for closed loop or the jobs' own."""

    name: str
    """Unique in the study."""
    workload: Workload
    factors: dict[str, Factor] = field(default_factory=dict)
    role: Literal["measure", "prepare", "maximum"] = "measure"
    rate: TotalRate | None = None
    pause_s: float = 0.0
    """Wait this long before it starts."""


@dataclass(frozen=True)
class Done:
    """A run that ended. `summary` is None when nothing was measured."""

    point: Point
    summary: Summary | None

    @cached_property
    def run(self) -> RunFigures:
        """Its numbers, computed when first asked for."""
        return numbers(self.point, self.summary)

    @property
    def iops(self) -> float | None:
        """I/Os per second of all jobs, None when there were none."""
        if self.summary is None or self.summary.total.data is None or self.summary.total.data.iops is None:
            return None
        return self.summary.total.data.iops.value or None


class Controller(Protocol):
    """Decides what is run next."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run, None when there is no more to do."""

    def known(self) -> Sequence[Next]:
        """Return the runs that are certain to come, to be checked before the first one starts."""

    def expected(self) -> int | None:
        """Return how many runs there will be in all, None when that is not known yet."""

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
