"""Watched hosts of two or more results: what each did before and after.

Knows that hosts are the same that have the same name with `--watch`, and which quantities are better
when they are lower, where the sides did the same. Only valid runs are used. Values of several vary as the
runs do; p-values of a side are corrected for their number by Holm's procedure. A quantity that a side does
not have is missing there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from loadstone.analysis import watched
from loadstone.analysis.statistics import significance as statistics
from loadstone.comparison import matrix, measured_values, single_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from loadstone.analysis.statistics.significance import Contrast, Sample
    from loadstone.analysis.watched import Track
    from loadstone.comparison.side import Side

WatchedJudgement = Literal["better", "worse", "differs", "same", "unrepeated", "unknown"]
Key = tuple[str, str]

LOWER_IS_BETTER: Final = (
    "_busy_percent",
    "cpu_percent",
    "_queue",
    "_celsius",
    "busiest_core_percent",
    "throttled_percent",
)
HIGHER_IS_BETTER: Final = ("_hit_percent",)


@dataclass(frozen=True, slots=True)
class WatchedCell:
    """One side's value, and how it differs from the first side's."""

    sample: Sample | None
    contrast: Contrast | None = None
    judgement: WatchedJudgement = "unknown"


@dataclass(frozen=True, slots=True)
class WatchedRow:
    """One quantity of one host; a cell for each side, the first without contrast."""

    host: str
    key: str
    name: str
    unit: str
    cells: tuple[WatchedCell, ...]


def rows(sides: Sequence[Side], alpha: float, unlike: Collection[int] = ()) -> list[WatchedRow]:
    """Return every quantity that two sides have, the first of them among them.

    `unlike`: the sides that did other work than the first one, or as much of it in another time. A host
    that is less busy with less work is no better.
    """
    by_side = [_of_side(side) for side in sides]
    quantities = []
    for key, (track, _) in by_side[0].items():
        if not any(key in other for other in by_side[1:]):
            continue
        samples = [one[key][1] if key in one else None for one in by_side]
        cells = tuple(
            WatchedCell(sample, _contrast(samples[0], sample) if at else None)
            for at, sample in enumerate(samples)
        )
        quantities.append(WatchedRow(key[0], key[1], track.name, track.unit, cells))
    return _judged(quantities, len(sides), alpha, unlike)


def _of_side(side: Side) -> dict[Key, tuple[Track, Sample]]:
    """Return the quantities of a side's runs, each with its error."""
    every: dict[Key, list[tuple[Track, Sample]]] = {}
    not_valid = {phase.path for phase in side.phases if not phase.valid}
    for run in side.runs:
        if run.path in not_valid:
            continue
        measurement = run.summary.measurement
        bounds = watched.span_ns(measurement)
        for host in watched.hosts(measurement.bundle):
            for track in watched.tracks(watched.within(host.rows, bounds), host.facts):
                one = measured_values.sample(track.mean)
                if one is not None:
                    every.setdefault((host.name, track.key), []).append((track, one))
    return {
        key: (tracked[0][0], matrix.together([one for _, one in tracked])) for key, tracked in every.items()
    }


def _contrast(a: Sample | None, b: Sample | None) -> Contrast | None:
    return None if a is None or b is None else statistics.contrast(*matrix.fair(a, b))


def _judged(
    watched_rows: list[WatchedRow], sides: int, alpha: float, unlike: Collection[int] = ()
) -> list[WatchedRow]:
    judged_rows = watched_rows
    for at in range(1, sides):
        tested = list(_tested(judged_rows, at))
        corrected = statistics.holm([p for _, p in tested])
        for (index, _), p in zip(tested, corrected, strict=True):
            row, cells = judged_rows[index], list(judged_rows[index].cells)
            contrast = cells[at].contrast
            assert contrast is not None  # noqa: S101 - it was chosen because it is there
            judged: WatchedJudgement = "same"
            if p < alpha:
                judged = "differs" if at in unlike else _judgement(row.key, contrast.change)
            if judged != "same" and single_runs.are_single(cells[0].sample, cells[at].sample):
                judged = judged if single_runs.is_beyond(contrast.change) else "unrepeated"
            cells[at] = replace(cells[at], contrast=replace(contrast, p=p), judgement=judged)
            judged_rows[index] = replace(row, cells=tuple(cells))
    return judged_rows


def _tested(watched_rows: Sequence[WatchedRow], at: int) -> Iterator[tuple[int, float]]:
    for index, row in enumerate(watched_rows):
        contrast = row.cells[at].contrast
        if contrast is not None and contrast.p is not None:
            yield index, contrast.p


def _judgement(key: str, change: float) -> WatchedJudgement:
    if key.endswith(HIGHER_IS_BETTER):
        return "better" if change > 0 else "worse"
    if key.endswith(LOWER_IS_BETTER):
        return "better" if change < 0 else "worse"
    return "differs"
