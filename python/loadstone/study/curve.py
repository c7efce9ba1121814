"""A latency curve: the maximum, an open loop at shares of it, and a search for a limit.

Knows which load is measured next: the rungs of a ladder, then points where the curve bends, what
is noisy again, and loads between one that keeps a limit and one that breaks it. Each step sees
all runs before it. What the runs say is read in `analysis.curve`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.curve import PURPOSE, RATE, REPEAT, LoadPoint, loads, percent_of
from loadstone.plan.model import RateProcess
from loadstone.plan.stream import TotalRate
from loadstone.study.controller import Next

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.slo import Slo
    from loadstone.bundle.study import Factor
    from loadstone.study.controller import Done
    from loadstone.workload.model import Workload

VDBENCH_PERCENTS: Final = (10.0, 50.0, 70.0, 80.0, 90.0, 100.0)
"""What vdbench's `iorate=curve` walks."""
START_PERCENTS: Final = (10.0, 30.0, 50.0, 70.0, 90.0, 100.0)
MAX_POINTS: Final = 16
MAX_JUMP: Final = math.log(1.4)
"""Neighbours whose latencies differ by more have a point put between them."""
MIN_GAP_PERCENT: Final = 2.5
NEAR_KNEE_PERCENT: Final = 10.0
"""Beside the point of largest power neighbours are no farther than this."""
NOISE: Final = 0.05
"""A standard error of the mean latency above this share of it is worth another run."""
MAX_RUNS: Final = 3
"""At one load, when nobody says how many."""
MAX_SEARCH: Final = 20
"""Runs spent on the search, repeats of what is undecided among them."""
MIN_PERCENT: Final = 1.0
"""A limit that is broken below this much of the maximum is not kept at any load worth the name."""
PRECISION: Final = 0.02
"""Of the load: how near the loads that keep and that break a limit are brought together."""
BEYOND: Final = 1.25
MAX_PERCENT: Final = 500.0


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """What is asked of a curve. `percents` None: where the curve bends. `repeat` None: what is noisy."""

    percents: tuple[float, ...] | None = VDBENCH_PERCENTS
    repeat: int | None = None
    process: RateProcess = RateProcess.POISSON
    slo: Slo | None = None
    pause_s: float = 0.0


class CurveController:
    """Decides the runs of one curve. `factors` are those of all its runs."""

    def __init__(
        self,
        workload: Workload,
        options: CurveOptions,
        *,
        prefix: str = "",
        factors: dict[str, Factor] | None = None,
    ) -> None:
        self._workload = workload
        self._options = options
        self._prefix = prefix
        self._factors = factors or {}
        self._over = False

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run."""
        wanted = self._maximum(done) or self._rung(done)
        self._over = wanted is None
        return wanted

    def known(self) -> Sequence[Next]:
        """Return the maxima: the rates of the others are not known yet."""
        return [self._named("maximum", "ladder", None, number) for number in range(1, self._times + 1)]

    def expected(self) -> int | None:
        """Return the number of runs of a fixed ladder, noise aside; None where results decide."""
        options = self._options
        if options.percents is None or options.slo is not None or self._over:
            return None
        return self._times * (1 + len(options.percents))

    def most(self) -> int | None:
        """Return how many runs there can be: every point as often as noise may ask, and the whole search."""
        options = self._options
        points = MAX_POINTS if options.percents is None else len(options.percents)
        again = MAX_RUNS if options.repeat is None else options.repeat
        return self._times + points * again + (MAX_SEARCH if options.slo is not None else 0)

    @property
    def _times(self) -> int:
        return self._options.repeat or 1

    def _maximum(self, done: Sequence[Done]) -> Next | None:
        if len(done) >= self._times:
            return None
        return self._named("maximum", "ladder", None, len(done) + 1)

    def _rung(self, done: Sequence[Done]) -> Next | None:
        """Return the next run of the open loop; None too when there is no maximum to take shares of."""
        points = loads([one.run for one in done], self._options.slo)
        maximum = next((load.iops.value for load in points if load.percent is None), None)
        if not maximum:
            return None
        rungs = [load for load in points if load.percent is not None]
        ran = [percent for one in done if (percent := percent_of(one.run)) is not None]
        searched = [percent_of(one.run) for one in done if one.point.factors.get(PURPOSE) == "search"]
        for purpose, percent in (
            ("ladder", self._ladder(ran)),
            ("bend", self._bend(rungs, ran)),
            ("noise", self._noisy(rungs, ran, searched)),
            ("search", self._search(rungs, ran) if len(searched) < MAX_SEARCH else None),
        ):
            if percent is not None:
                next_run = self._named(f"{percent:g}%", purpose, percent, ran.count(percent) + 1)
                rate = TotalRate(iops=maximum * percent / 100, process=self._options.process)
                return replace(next_run, rate=rate)
        return None

    def _ladder(self, ran: Sequence[float]) -> float | None:
        """Return the next rung: all of them once, then all of them again."""
        percents = self._options.percents or START_PERCENTS
        for already in range(self._times):
            for percent in percents:
                if ran.count(percent) <= already:
                    return percent
        return None

    def _bend(self, rungs: Sequence[LoadPoint], ran: Sequence[float]) -> float | None:
        """Return the middle of the gap in which latency changes most; None once all gaps are small."""
        if self._options.percents is not None:
            return None
        for percent in dict.fromkeys(ran):
            if ran.count(percent) < self._times:
                return percent
        if len(set(ran)) >= MAX_POINTS:
            return None
        power = [load.iops.value / load.mean_ns.value for load in rungs]
        peak = power.index(max(power)) if power else 0
        gaps = []
        for index, (low, high) in enumerate(itertools.pairwise(rungs)):
            width = (high.percent or 0.0) - (low.percent or 0.0)
            jump = abs(math.log(high.mean_ns.value / low.mean_ns.value))
            beside = index in (peak - 1, peak)
            middle = _rounded(((low.percent or 0.0) + (high.percent or 0.0)) / 2)
            wanted = jump > MAX_JUMP or (beside and width > NEAR_KNEE_PERCENT)
            # Past saturation latency depends on the length of the run, and a bend there says nothing.
            if wanted and width > MIN_GAP_PERCENT and middle not in ran and low.held is not False:
                gaps.append((jump, middle))
        return max(gaps)[1] if gaps else None

    def _noisy(
        self, rungs: Sequence[LoadPoint], ran: Sequence[float], searched: Sequence[float | None]
    ) -> float | None:
        """Return the load whose latency is known worst.

        Not past saturation, where there is no mean to be known, and not of a search, which asks
        for a limit and not for a mean.
        """
        if self._options.repeat is not None:
            return None
        noisy = [
            (load.mean_ns.error / load.mean_ns.value, load.percent)
            for load in rungs
            if load.percent is not None
            and load.percent not in searched
            and load.held is not False
            and load.mean_ns.error is not None
            and load.mean_ns.error > NOISE * load.mean_ns.value
            and ran.count(load.percent) < MAX_RUNS
        ]
        return max(noisy)[1] if noisy else None

    def _search(self, rungs: Sequence[LoadPoint], ran: Sequence[float]) -> float | None:
        """Return a load between the highest that meets the limit and the lowest that exceeds it."""
        if self._options.slo is None or not rungs:
            return None
        breaks = next((load.percent for load in rungs if load.keeps is False), None)
        below = [load for load in rungs if load.percent is not None and load.percent < (breaks or math.inf)]
        holds = max((load.percent or 0.0 for load in below if load.keeps), default=0.0)
        open_ = [
            load.percent for load in below if load.percent and load.keeps is None and load.percent > holds
        ]
        again = [percent for percent in open_ if ran.count(percent) < MAX_RUNS]
        if again:
            return again[0]
        if breaks is None:
            higher = _rounded(max(ran) * BEYOND)
            return higher if not open_ and higher <= MAX_PERCENT else None
        low, high = (holds, open_[0] if open_ else breaks), (open_[-1] if open_ else holds, breaks)
        edge = max(low, high, key=lambda gap: gap[1] - gap[0])
        middle = _rounded(sum(edge) / 2)
        wide = edge[1] - edge[0] > PRECISION * breaks
        return middle if wide and middle not in ran and middle >= MIN_PERCENT else None

    def _named(self, name: str, purpose: str, percent: float | None, number: int) -> Next:
        again = f"-{number}" if number > 1 else ""
        return Next(
            name=f"{self._prefix}{name}{again}",
            workload=self._workload,
            factors={**self._factors, RATE: percent, REPEAT: number, PURPOSE: purpose},
            role="maximum" if percent is None else "measure",
            pause_s=self._options.pause_s,
        )


def _rounded(percent: float) -> float:
    return float(f"{percent:.4g}")
