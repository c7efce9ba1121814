"""Several runs of the same thing: their mean, how far they lie apart, and whether by chance.

Knows the error between runs, which holds whatever it is that differs from run to run, and sets
it beside the error each run gives itself. Knows no study: it is given numbers, or runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.statistics.distributions import chi_square_upper, t_quantile
from loadstone.analysis.study.run_figures import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.study.run_figures import LineFigures, RunFigures

LEVEL: Final = 0.95
REPEAT: Final = "repeat"
"""In the factors of a run: which time it is, from 1."""
DIFFERENT: Final = 0.01
"""Runs that lie apart as far as this by chance this seldom are said to differ."""


@dataclass(frozen=True, slots=True)
class RepeatedValue:
    """One quantity over repeats. `mean.error` is the standard error between runs.

    `half_width` is Student's interval at `LEVEL`, None for fewer than two values.
    `within_error` is the error a single run gives itself (root mean square over the runs), and
    `chance_p` how often runs of the same mean would lie as far apart as these for that reason
    alone: Birge's chi-square. Both are None when a run has no error of its own.
    """

    values: tuple[float, ...]
    mean: Estimate
    half_width: float | None
    low: float
    high: float
    within_error: float | None
    chance_p: float | None

    @property
    def half_width_share(self) -> float | None:
        """The interval's half width as a share of the mean."""
        if self.half_width is None or not self.mean.value:
            return None
        return self.half_width / abs(self.mean.value)

    @property
    def differ(self) -> bool:
        """Whether something differs from run to run that no run shows within itself."""
        return self.chance_p is not None and self.chance_p < DIFFERENT


@dataclass(frozen=True, slots=True)
class RepeatedLine:
    """One job and operation over repeats; a latency is missing where a run does not have it."""

    job: str
    op: str
    large_blocks: bool
    iops: RepeatedValue | None
    bandwidth: RepeatedValue | None
    mean_ns: RepeatedValue | None
    percentiles_ns: dict[float, RepeatedValue | None]

    @property
    def rate(self) -> RepeatedValue | None:
        """Bandwidth for large blocks, IOPS for others."""
        return self.bandwidth if self.large_blocks else self.iops


def repeated(values: Sequence[float], errors: Sequence[float | None], unit: str) -> RepeatedValue | None:
    """Return what repeats say together, None when there are none."""
    count = len(values)
    if not count:
        return None
    sample = np.asarray(values, np.float64)
    mean = float(sample.mean())
    error = float(sample.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    known = [one for one in errors if one is not None]
    whole = np.asarray(known, np.float64) if len(known) == count else None
    return RepeatedValue(
        values=tuple(float(value) for value in values),
        mean=Estimate(mean, error, count, unit),
        half_width=None if error is None else t_quantile((1 + LEVEL) / 2, count - 1) * error,
        low=float(sample.min()),
        high=float(sample.max()),
        within_error=None if whole is None else float(np.sqrt((whole**2).mean())),
        chance_p=None if whole is None or count < 2 or not (whole > 0).all() else _chance(sample, whole),
    )


def lines(runs: Sequence[RunFigures]) -> list[RepeatedLine]:
    """Return one line per job and operation, and one of the whole where runs have several."""
    measured = [run for run in runs if run.lines]
    if not measured:
        return []
    names = list(dict.fromkeys((line.job, line.op) for run in measured for line in run.lines))
    repeated_lines = [
        _line([line for run in measured for line in run.lines if (line.job, line.op) == n]) for n in names
    ]
    wholes = [run.whole for run in measured if run.whole is not None]
    if len(names) > 1 and wholes:
        repeated_lines.append(_line(wholes))
    return repeated_lines


def again(name: str, number: int) -> str:
    """Return the name of a run of a list in its n-th pass."""
    return name if number == 1 else f"{name} {REPEAT} {number}"


def by_run(runs: Sequence[RunFigures]) -> dict[str, list[RepeatedLine]]:
    """Return the lines of each run of a list that was done several times, by its name; empty for others."""
    passes: dict[str, list[RunFigures]] = {}
    for run in runs:
        number = run.point.factors.get(REPEAT)
        if number is not None:
            passes.setdefault(run.point.name.removesuffix(f" {REPEAT} {number}"), []).append(run)
    lines_by_run = {name: lines(run_passes) for name, run_passes in passes.items() if len(run_passes) > 1}
    return {name: its for name, its in lines_by_run.items() if its}


def narrow(runs: Sequence[RunFigures], share: float) -> bool:
    """Tell whether the interval of the mean rate is within `share` of it, of every line of the runs.

    A run of several jobs at the same time counts as a whole.
    """
    repeated_lines = lines(runs)
    whole = [line for line in repeated_lines if line.job == WHOLE]
    rates = [line.rate for line in whole or [line for line in repeated_lines if line.op != "sync"]]
    shares = [None if rate is None else rate.half_width_share for rate in rates]
    return bool(shares) and all(one is not None and one <= share for one in shares)


def _line(runs: Sequence[LineFigures]) -> RepeatedLine:
    def estimates(of: Callable[[LineFigures], Estimate | None], unit: str) -> RepeatedValue | None:
        known = [one for line in runs if (one := of(line)) is not None]
        return repeated([one.value for one in known], [one.error for one in known], unit)

    def numbers(of: Callable[[LineFigures], int | None]) -> RepeatedValue | None:
        values = [of(line) for line in runs]
        known = [float(one) for one in values if one is not None]
        # A mean over only those runs that had samples enough would be another quantity.
        return repeated(known, [None] * len(known), "ns") if len(known) == len(values) else None

    return RepeatedLine(
        job=runs[0].job,
        op=runs[0].op,
        large_blocks=runs[0].large_blocks,
        iops=estimates(lambda line: line.iops, "1/s"),
        bandwidth=estimates(lambda line: line.bandwidth, "B/s"),
        mean_ns=estimates(lambda line: line.mean_ns, "ns"),
        percentiles_ns={
            percent: numbers(lambda line, percent=percent: line.percentiles_ns[percent])  # type: ignore[misc] # bound now
            for percent in runs[0].percentiles_ns
        },
    )


def _chance(values: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    weights = 1 / errors**2
    mean = float((weights * values).sum() / weights.sum())
    return chi_square_upper(float((weights * (values - mean) ** 2).sum()), len(values) - 1)
