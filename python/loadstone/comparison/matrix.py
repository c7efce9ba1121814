"""The matrix of a comparison: every pattern and quantity, and what can be said of its difference.

Knows which tests are made, how their number is corrected for, and that nothing rests on a phase
that is not valid. Of each pattern one quantity is the first to be tested, with most of the allowed
error: the rate where the load is closed, the mean latency where the rate was asked for. The others
share what is left. Either part is corrected by Holm's procedure, so that chance tells any row of
a comparison apart at most as often as `alpha` says, half of it in each direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.significance import Contrast, Sample
from loadstone.comparison import single_runs
from loadstone.comparison.measured_values import of_all_ios, rounding_error
from loadstone.comparison.metric import (
    AT_PERCENT,
    BANDWIDTH,
    CLAT_AT_PERCENT,
    CLAT_P99,
    FAILED,
    IOPS,
    MEAN,
    P99,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.comparison.measured_values import Value
    from loadstone.comparison.metric import Judgement, Metric
    from loadstone.comparison.pairing import PatternRow, Repeats

ALPHA: Final = 0.05
FIRST_SHARE: Final = 0.8
"""Of `alpha`, for the quantity of each pattern that is tested first."""
RATES: Final = (IOPS, BANDWIDTH)
LATENCIES: Final = (MEAN, P99, CLAT_P99)
SHOWN: Final = (IOPS, BANDWIDTH, *LATENCIES, FAILED)


@dataclass(frozen=True, slots=True)
class SideValue:
    """One quantity of one side. `runs`: how many valid ones it is of; `why`: what was left out, and why."""

    sample: Sample | None
    runs: int
    left_out: int = 0
    why: str | None = None
    raw: float | None = None
    """What was measured where nothing of it is valid: to be shown struck through."""
    each: tuple[float, ...] = ()
    """The value of each valid run, in the order they were met."""
    freedom: float | None = None
    """Degrees of freedom of what tells its error: its runs' spread, or where that is less they themselves."""

    @property
    def valid(self) -> bool:
        """Whether something may rest on it."""
        return self.raw is None


@dataclass(frozen=True, slots=True)
class Effect:
    """How a side differs from the first one in one quantity of one pattern."""

    pattern: str
    metric: Metric
    side: int
    """Its number; the first side is 0."""
    before: SideValue
    after: SideValue
    contrast: Contrast | None
    """`p` is corrected for the number of tests."""
    raw_p: float | None
    judgement: Judgement
    first: bool
    """Whether it is the quantity that is tested first."""
    row: int
    """Which pattern it is of."""
    again: bool = False
    """Whether it is the other rate of a load of one block size, which says the same in another unit."""
    of_asked_rate: bool = False
    """Whether it is a rate that was asked for: slower storage may reach it as well."""

    @property
    def told_apart(self) -> bool:
        """Whether chance does not explain the difference."""
        return self.judgement in ("better", "worse")

    @property
    def of_single_runs(self) -> bool:
        """Whether each side is one run, so that nobody knows how much their runs differ."""
        return self.metric is not FAILED and single_runs.are_single(self.before.sample, self.after.sample)


def effects(
    rows: Sequence[PatternRow], more: Sequence[Effect] = (), alpha: float = ALPHA, *, share: float = 1.0
) -> list[Effect]:
    """Return every effect of every pattern, sides in their order; the judgement is by `alpha`.

    `more`: effects of other things, that are not judged yet. `share`: what all these have of `alpha`.
    """
    judged: list[Effect] = []
    sides = {at for row in rows for at in range(1, len(row.cells))} | {one.side for one in more}
    for side in sorted(sides):
        side_effects = [one for at, row in enumerate(rows) for one in _of_row(at, row, side)]
        judged += _judged([*side_effects, *(one for one in more if one.side == side)], alpha, share)
    return sorted(judged, key=lambda one: (one.row, one.side))


def entry(cell: Repeats, metric: Metric) -> SideValue | None:
    """Return one quantity of a side; None where nobody told it."""
    invalid = [one for one in cell.phases if not one.valid]
    why = invalid[0].why if invalid else None
    known = [one.values[metric] for one in cell.valid if metric in one.values]
    samples = [value for value in known if isinstance(value, Sample)]
    if samples:
        return SideValue(
            together(samples, metric), len(samples), len(invalid), why,
            each=tuple(one.value for one in samples), freedom=freedom_of(samples, metric),
        )  # fmt: skip
    pairs = [value for value in known if not isinstance(value, Sample)]
    if pairs:
        failed = Sample(float(sum(pair[0] for pair in pairs)), None, None)
        return SideValue(failed, len(pairs), len(invalid), why)
    raw = [_number(one.values[metric]) for one in invalid if metric in one.values]
    return SideValue(None, 0, len(invalid), why, sum(raw) / len(raw)) if raw else None


def together(samples: Sequence[Sample], metric: Metric | None = None) -> Sample:
    """Return repeats as one: the error is their spread, and never below what they tell of themselves.

    A run that was copied is no repeat, and copies do not differ. A percentile is that of all I/Os of the
    runs, as on the page of a study, where these have histograms; else the mean of what was printed.
    """
    mean = _mean(samples, metric)
    of_all = of_all_ios(samples)
    if not of_all or not mean.value:
        return mean
    error = None if mean.error is None else mean.error * of_all / mean.value
    return replace(mean, value=of_all, error=error)


def _mean(samples: Sequence[Sample], metric: Metric | None) -> Sample:
    mean = statistics.of_runs(samples)
    within = [None if one.bound else one.error for one in samples]
    known = [error for error in within if error is not None]
    if len(samples) == 1:
        return mean
    if len(known) < len(samples):
        # Without an error of its own: a percentile of a bucket, or a figure that was printed rounded.
        least = rounding_error([one.value for one in samples], metric)
        return replace(mean, error=max(mean.error or 0.0, least))
    own = math.sqrt(sum(error**2 for error in known)) / len(known)
    return replace(mean, error=own, from_within=True) if own > (mean.error or 0.0) else mean


def freedom_of(samples: Sequence[Sample], metric: Metric | None = None) -> float | None:
    """Return of how many degrees of freedom the error of repeats is known.

    A test takes those of their spread alone, and so never finds too much. Where the error is what the runs
    tell of themselves, because they happen to lie nearer, many intervals tell it.
    """
    whole = _mean(samples, metric)
    if len(samples) == 1 or whole.error is None:
        return whole.freedom
    of_runs = [one.freedom for one in samples if one.freedom is not None and not one.bound]
    spread = statistics.of_runs(samples).error or 0.0
    return sum(of_runs) if len(of_runs) == len(samples) and whole.error > spread else whole.freedom


def contrast_of(a: Repeats, b: Repeats, metric: Metric) -> Contrast | None:
    """Compare a quantity of two cells, by their valid runs."""
    if metric is FAILED:
        return _failures(_added(a), _added(b))
    before, after = entry(a, metric), entry(b, metric)
    if before is None or after is None or before.sample is None or after.sample is None:
        return None
    return statistics.contrast(*fair(before.sample, after.sample))


def fair(a: Sample, b: Sample) -> tuple[Sample, Sample]:
    """Let a single run vary as the repeats of the other side do: its own error knows only itself."""
    return _as_spread(a, b), _as_spread(b, a)


def _as_spread(one: Sample, other: Sample) -> Sample:
    if one.runs > 1 or other.runs < 2 or not other.error or not other.freedom or not other.value:
        return one
    between = other.error * math.sqrt(other.runs) / other.value * one.value
    own = None if one.error is None else one.error * one.widening
    if not own or not one.freedom or own < between:
        return replace(one, error=between, freedom=other.freedom, widening=1.0, shared=True)
    if other.from_within:
        return one
    # Repeats may lie near each other by chance: what they tell of runs counts beside what it tells of itself.
    # Welch and Satterthwaite's formula; the repeats' own error is made of the same spread.
    # By shares of the variance: a rate that was held has an error of which the square is nothing.
    ratio = (between / own) ** 2
    of_own, of_runs = 1 / (1 + ratio), ratio / (1 + ratio)
    freedom = 1 / (of_own**2 / one.freedom + (1 + 2 / other.runs) * of_runs**2 / other.freedom)
    return replace(one, error=math.hypot(own, between), freedom=freedom, widening=1.0)


def _of_row(at: int, row: PatternRow, side: int) -> Iterable[Effect]:
    before, after = row.cells[0], row.cells[side]
    if before is None or after is None:
        return
    first = first_metric(before, after) or (BANDWIDTH if before.first.large_blocks else IOPS)
    # Of one block size both rates say the same, also where one side does not tell its order or mix.
    alike = not before.first.has_other_blocks(after.first)
    asked_alike = before.first.asked == after.first.asked
    for metric in SHOWN:
        a, b = entry(before, metric), entry(after, metric)
        if a is None or b is None or (metric is FAILED and not _failed(a, b)):
            continue
        if metric is CLAT_P99 and entry(before, P99) is not None and entry(after, P99) is not None:
            continue
        contrast = contrast_of(before, after, metric)
        # A rate that was asked for is no result where the other side was asked for another.
        is_unlike = (metric in RATES and not asked_alike) or _says_nothing(before, after, metric)
        if contrast is not None and metric in LATENCIES and not asked_alike:
            is_unlike = is_unlike or _is_of_its_rate(before.first.asked, after.first.asked, contrast)
        p = None if contrast is None or is_unlike else contrast.p
        again = metric in RATES and first in RATES and metric is not first and alike
        of_asked_rate = metric in RATES and any((*before.first.asked, *after.first.asked))
        yield Effect(
            row.pattern, metric, side, a, b, contrast, p, "unknown", metric is first, at, again, of_asked_rate
        )


def _is_of_its_rate(before: tuple[float, float], after: tuple[float, float], contrast: Contrast) -> bool:
    """Tell that a latency is shorter where less was asked for, or longer where more was: as everywhere."""
    limits = [(a or math.inf, b or math.inf) for a, b in zip(before, after, strict=True)]
    less, more = any(b < a for a, b in limits), any(b > a for a, b in limits)
    return (less and contrast.change < 0) or (more and contrast.change > 0)


def _says_nothing(before: Repeats, after: Repeats, metric: Metric) -> bool:
    """Tell that a quantity depends on the size of the I/Os, and the sides have other sizes.

    Large ones move more and are fewer. Only where both rates changed to one side is one of them faster.
    """
    if metric is FAILED or not before.first.has_other_blocks(after.first):
        return False
    changes = [contrast_of(before, after, rate) for rate in RATES]
    signs = {one.change > 0 for one in changes if one is not None}
    return metric not in RATES or len(signs) > 1


def first_metric(a: Repeats, b: Repeats) -> Metric | None:
    """Return the quantity to be tested first: what both have, and what the load leaves open."""
    rates = (BANDWIDTH, IOPS) if a.first.large_blocks and b.first.large_blocks else (IOPS, BANDWIDTH)
    latencies = (MEAN, *AT_PERCENT.values(), *CLAT_AT_PERCENT.values())
    order = (*latencies, *rates) if a.first.paced or b.first.paced else (*rates, *latencies)
    for metric in order:
        known = [entry(one, metric) for one in (a, b)]
        if all(one is not None and one.sample is not None for one in known):
            return metric
    return None


def _judged(unjudged: Sequence[Effect], alpha: float, whole: float) -> list[Effect]:
    first = [one for one in unjudged if one.first and one.raw_p is not None]
    others = [one for one in unjudged if not one.first and not one.again and one.raw_p is not None]
    shares = (FIRST_SHARE, whole - FIRST_SHARE) if first and others else (whole, whole)
    corrected: dict[int, float] = {}
    for part, share in zip((first, others), shares, strict=True):
        ps = statistics.holm([one.raw_p or 0.0 for one in part])
        corrected |= {id(one): min(1.0, p / share) for one, p in zip(part, ps, strict=True)}
    # The same rate in another unit is no test of its own: what was found of the first holds for it.
    of_row = {one.row: corrected[id(one)] for one in first}
    return [
        _with(one, of_row.get(one.row) if one.again else corrected.get(id(one)), alpha) for one in unjudged
    ]


def _with(one: Effect, p: float | None, alpha: float) -> Effect:
    if p is None or one.contrast is None:
        return one
    judged: Judgement = "same"
    if p < alpha:
        judged = "better" if (one.contrast.change > 0) == one.metric.more_is_better else "worse"
        if one.of_single_runs and not single_runs.is_beyond(one.contrast.change):
            judged = "unrepeated"
    return replace(one, contrast=replace(one.contrast, p=p), judgement=judged)


def _failed(a: SideValue, b: SideValue) -> bool:
    return any(one.sample is not None and one.sample.value for one in (a, b))


def _added(cell: Repeats) -> tuple[int, int] | None:
    pairs: list[Value] = [one.values[FAILED] for one in cell.valid if FAILED in one.values]
    known = [pair for pair in pairs if not isinstance(pair, Sample)]
    return (sum(pair[0] for pair in known), sum(pair[1] for pair in known)) if known else None


def _failures(a: tuple[int, int] | None, b: tuple[int, int] | None) -> Contrast | None:
    if a is None or b is None:
        return None
    return failures(a, b)


def failures(a: tuple[int, int], b: tuple[int, int]) -> Contrast:
    """Compare shares of I/Os that failed."""
    shares = [failed / every if every else 0.0 for failed, every in (a, b)]
    change = shares[1] / shares[0] - 1 if shares[0] else (math.inf if shares[1] else 0.0)
    return Contrast(change, None, None, statistics.failures(a, b))


def _number(value: Value) -> float:
    return value.value if isinstance(value, Sample) else float(value[0])
