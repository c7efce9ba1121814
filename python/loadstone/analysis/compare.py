"""Runs beside each other: every metric of every job, and what can be said of its difference.

Knows which metrics there are and which way is better. The first side is what the others are
held against. Knows no screen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from loadstone.analysis import contrast as statistics
from loadstone.analysis.contrast import Contrast, Sample
from loadstone.analysis.cpu import per_interval
from loadstone.analysis.differences import Difference, differences
from loadstone.analysis.histogram import BUCKETS, values_of
from loadstone.analysis.summary import summarise
from loadstone.bundle import study as on_disk
from loadstone.bundle.layout import OPS
from loadstone.bundle.read import Bundle
from loadstone.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Stats, Total

Quantity = Literal["count", "bytes_per_s", "ns", "errors"]
Judgement = Literal["better", "worse", "same", "unknown"]

PERCENTILES: Final = (50.0, 99.0, 99.9)
MAX_WINDOWS: Final = 400
ALPHA: Final = 0.05
REPEAT: Final = "repeat"
"""The factor of a study by which nothing differs."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity of a job. `more_is_better` is its orientation."""

    name: str
    quantity: Quantity
    more_is_better: bool


METRICS: Final = (
    Metric("IOPS", "count", more_is_better=True),
    Metric("bandwidth", "bytes_per_s", more_is_better=True),
    Metric("latency mean", "ns", more_is_better=False),
    *(Metric(f"latency p{percent:g}", "ns", more_is_better=False) for percent in PERCENTILES),
    Metric("CPU user per I/O", "ns", more_is_better=False),
    Metric("CPU system per I/O", "ns", more_is_better=False),
    Metric("failed I/Os", "errors", more_is_better=False),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One thing to compare. `things` are the runs of each part of it, repeats together."""

    name: str
    path: Path
    things: dict[str, tuple[Summary, ...]]
    verified: bool | None = None
    doubt: str | None = None
    """Why these may not be the numbers that were measured, in a sentence."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One side's value of a metric and how it differs from the first side's."""

    sample: Sample | None
    contrast: Contrast | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one operation of one job; a cell for each side, the first without contrast."""

    thing: str
    job: str
    op: str
    metric: Metric
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rows, what else differs, and what to keep in mind."""

    sides: tuple[Side, ...]
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]


def side(path: Path, *, unverified: bool = False) -> Side:
    """Open a bundle or a study; raises `BundleError` for anything else."""
    if not on_disk.is_study(path):
        one = Bundle.open(path, unverified=unverified)
        return Side(path.name or str(path), path, {"": (summarise(one),)}, one.verified, one.doubt)
    found: dict[str, list[Summary]] = {}
    opened = on_disk.open_all(path, unverified=unverified)
    for point in opened.study.points:
        bundle = opened.bundles.get(point.name) if point.role == "measure" else None
        if bundle is None:
            continue
        factors = {name: value for name, value in point.factors.items() if name != REPEAT}
        told = ", ".join(f"{name} {value}" for name, value in factors.items())
        name = told or ("" if REPEAT in point.factors else point.name)
        found.setdefault(name, []).append(summarise(bundle))
    things = {name: tuple(runs) for name, runs in found.items()}
    return Side(path.name, path, things, opened.verified, opened.doubt)


def compare(paths: Sequence[Path], *, unverified: bool = False) -> Comparison:
    """Compare two or more bundles or studies with the first of them.

    Raises `InputError` for fewer than two, for the same one twice, and when they have nothing
    in common to compare.
    """
    if len(paths) < 2:
        raise InputError("one result alone cannot be compared", hint="name two or more bundles or studies")
    if len({path.resolve() for path in paths}) != len(paths):
        raise InputError("the same result is given twice: it would differ from itself by nothing")
    sides = _named(tuple(side(path, unverified=unverified) for path in paths))
    numbers = [_numbers(one) for one in sides]
    rows = [_row(key, numbers) for key in _keys(numbers)]
    if not rows:
        raise InputError("the results have no job in common", hint=_jobs(sides))
    return Comparison(
        sides, tuple(_judged(rows)), tuple(_differences(sides)), tuple(_warnings(sides, numbers))
    )


def _named(sides: tuple[Side, ...]) -> tuple[Side, ...]:
    """Give sides whose directories are called the same their whole path."""
    names = [one.name for one in sides]
    return tuple(replace(one, name=str(one.path)) if names.count(one.name) > 1 else one for one in sides)


_Key = tuple[str, str, str, Metric]
_Numbers = dict[_Key, "Sample | tuple[int, int]"]
"""Of failures (failed, all), of everything else the sample."""


def _numbers(one: Side) -> _Numbers:
    single = len(one.things) == 1
    found: _Numbers = {}
    for thing, runs in one.things.items():
        apart = [_of_run(run) for run in runs]
        for key in dict.fromkeys(key for numbers in apart for key in numbers):
            known = [numbers[key] for numbers in apart if key in numbers]
            samples = [value for value in known if isinstance(value, Sample)]
            pairs = [value for value in known if not isinstance(value, Sample)]
            name = "" if single else thing
            if samples:
                found[(name, *key)] = statistics.of_runs(samples)
            elif pairs:
                found[(name, *key)] = (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    return found


def _of_run(made: Summary) -> dict[tuple[str, str, Metric], Sample | tuple[int, int]]:
    found: dict[tuple[str, str, Metric], Sample | tuple[int, int]] = {}
    tails = _tails(made)
    for total in made.totals("job"):
        for op, stats in total.ops.items():
            for metric, value in zip(METRICS, _values(made, total, op, stats, tails), strict=True):
                if value is not None:
                    found[total.line.name, op, metric] = value
    return found


_Tails = dict[tuple[int, str], dict[float, float]]


def _values(
    made: Summary, total: Total, op: str, stats: Stats, tails: _Tails
) -> list[Sample | tuple[int, int] | None]:
    lat = stats.latencies.get("lat")
    errors = tails.get((total.line.key, op), {})
    percentiles: list[Sample | tuple[int, int] | None] = []
    for percent in PERCENTILES:
        value = lat.percentile(percent) if lat is not None else None
        error = errors.get(percent)
        freedom = None if lat is None else lat.mean.count - 1
        known = None if error is None or value is None else error * value
        percentiles.append(None if value is None else Sample(value, known, freedom))
    # Threads are shared by the operations of a job: their CPU is told once.
    first = next(iter(total.ops)) == op
    user, system = per_interval(made.measurement, total.line) if first else (None, None)
    return [
        _sample(stats.iops),
        _sample(stats.bandwidth) if stats.bytes else None,
        _sample(lat.mean if lat is not None else None),
        *percentiles,
        _sample(user),
        _sample(system),
        (stats.errors, stats.operations + stats.errors),
    ]


def _sample(estimate: Estimate | None) -> Sample | None:
    if estimate is None:
        return None
    return Sample(estimate.value, estimate.error, None if estimate.error is None else estimate.count - 1)


def _tails(made: Summary) -> _Tails:
    """Return the relative errors of the percentiles of each (job, op)."""
    measurement = made.measurement
    interval_ns = measurement.plan.interval_ns
    every = max(1, -(-measurement.ended_ns // (MAX_WINDOWS * interval_ns)))
    rows: dict[tuple[int, str], list[np.ndarray]] = {}
    for (key, op, _, _), (buckets, counts) in measurement.windows("job", "lat", every, ramp=False).items():
        row = np.zeros(BUCKETS)
        row[buckets] = counts
        rows.setdefault((key, OPS[op]), []).append(row)
    found: _Tails = {}
    for line, windows in rows.items():
        table = np.array(windows)
        used = np.flatnonzero(table.any(axis=0))
        values = values_of(used).astype(np.float64)
        errors = {p: statistics.percentile_error(table[:, used], values, p) for p in PERCENTILES}
        found[line] = {percent: error for percent, error in errors.items() if error is not None}
    return found


def _keys(numbers: Sequence[_Numbers]) -> list[_Key]:
    """Return what the first side and at least one other have, metrics of a job together."""
    first, *others = numbers
    return [key for key in first if any(key in other for other in others)]


def _row(key: _Key, numbers: Sequence[_Numbers]) -> Row:
    thing, job, op, metric = key
    base = numbers[0][key]
    cells = []
    for at, side_numbers in enumerate(numbers):
        value = side_numbers.get(key)
        found = None if at == 0 or value is None else _contrast(base, value)
        cells.append(Cell(_shown(value), found, "unknown"))
    return Row(thing, job, op, metric, tuple(cells))


def _shown(value: Sample | tuple[int, int] | None) -> Sample | None:
    return Sample(float(value[0]), None, None) if isinstance(value, tuple) else value


def _contrast(a: Sample | tuple[int, int], b: Sample | tuple[int, int]) -> Contrast | None:
    if isinstance(a, Sample) and isinstance(b, Sample):
        return statistics.contrast(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        p = statistics.failures(a, b)
        shares = [failed / every if every else 0.0 for failed, every in (a, b)]
        change = shares[1] / shares[0] - 1 if shares[0] else (float("inf") if shares[1] else 0.0)
        return Contrast(change, None, None, p)
    return None


def _judged(rows: list[Row]) -> list[Row]:
    """Correct the p-values of each side for their number, and say what they mean."""
    made = rows
    for at in range(1, len(rows[0].cells)):
        tested = [
            (index, found.p)
            for index, row in enumerate(made)
            if (found := row.cells[at].contrast) is not None and found.p is not None
        ]
        corrected = statistics.holm([p for _, p in tested])
        for (index, _), p in zip(tested, corrected, strict=True):
            row = made[index]
            cells = list(row.cells)
            found = cells[at].contrast
            assert found is not None  # noqa: S101 - it was chosen because it is there
            cells[at] = replace(
                cells[at], contrast=replace(found, p=p), judgement=_judgement(row.metric, found, p)
            )
            made[index] = replace(row, cells=tuple(cells))
    return made


def _judgement(metric: Metric, found: Contrast, p: float) -> Judgement:
    if p >= ALPHA:
        return "same"
    return "better" if (found.change > 0) == metric.more_is_better else "worse"


def _differences(sides: Sequence[Side]) -> list[Difference]:
    shared = [name for name in sides[0].things if all(name in one.things for one in sides)]
    name = shared[0] if shared else None
    firsts = [one.things[name if name is not None else next(iter(one.things))][0].bundle for one in sides]
    return differences(firsts)


def _warnings(sides: Sequence[Side], numbers: Sequence[_Numbers]) -> list[str]:
    warnings = []
    alone = [one.name for one in sides if any(len(runs) == 1 for runs in one.things.values())]
    if alone:
        warnings.append(
            f"one run each of {', '.join(alone)}: the errors are from within a run and know nothing of how "
            "much runs differ; --repeat 3 or more makes the comparison sure"
        )
    for one, found in zip(sides[1:], numbers[1:], strict=True):
        lost = dict.fromkeys((key[0], key[1]) for key in numbers[0] if key not in found)
        lost_jobs = [job for job in lost if not any(key[:2] == job for key in found)]
        if lost_jobs:
            names = ", ".join(" ".join(part for part in job if part) for job in lost_jobs)
            warnings.append(f"{one.name} has no {names}")
    warnings += [f"{one.name}: {one.doubt}" for one in sides if one.doubt]
    for one in sides:
        faults = {fault: None for runs in one.things.values() for run in runs for fault in run.bundle.faults}
        warnings += [f"{one.name}: {fault}" for fault in faults]
        broken = {run.status for runs in one.things.values() for run in runs} - {"complete"}
        if broken:
            warnings.append(f"{one.name} is not complete: {', '.join(sorted(broken))}")
    return warnings


def _jobs(sides: Sequence[Side]) -> str:
    told = []
    for one in sides:
        names = dict.fromkeys(
            total.line.name for runs in one.things.values() for run in runs for total in run.totals("job")
        )
        told.append(f"{one.name} has {', '.join(names) or 'none'}")
    return "; ".join(told)
