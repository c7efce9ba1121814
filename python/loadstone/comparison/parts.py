"""Parts of a load: its jobs and operations one by one, where a total may hide what each of them does.

Knows that reads may become slower while writes become faster, and one LUN while another does, with the
same total. Knows no statistics but the share of the allowed error that parts have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.comparison.metric import CLAT_P99, IOPS, MEAN, P99
from loadstone.comparison.pairing import another_load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.comparison.compare import JobRow
    from loadstone.comparison.pairing import PatternRow
    from loadstone.comparison.phase import ComparedPhase

SHARE: Final = 0.1
"""Of `alpha`, where a comparison has parts: half of what the first quantities leave."""
METRICS: Final = (IOPS, MEAN, P99, CLAT_P99)
"""Bandwidth says the same in another unit, and failures are counted in the total."""


def parts(rows: Sequence[JobRow], pairs: Sequence[PatternRow]) -> list[JobRow]:
    """Return the rows of loads that have several parts; a side that ran another load is not judged."""
    several = [any(map(_has_several, cell.valid)) for pair in pairs for cell in pair.cells[:1] if cell]
    return [_judgeable(row, pairs[row.pair]) for row in rows if row.metric in METRICS and several[row.pair]]


def _has_several(phase: ComparedPhase) -> bool:
    """Tell whether it has several at the same time: repeats under other names are none."""
    return len({(job, op) for job, op, metric in phase.jobs if metric in METRICS}) > 1


def _judgeable(row: JobRow, pair: PatternRow) -> JobRow:
    base = pair.cells[0]
    cells = []
    for cell, repeats in zip(row.cells, pair.cells, strict=True):
        alike = base is not None and repeats is not None and another_load(base.first, repeats.first) is None
        contrast = cell.contrast
        cells.append(cell if alike or contrast is None else replace(cell, contrast=replace(contrast, p=None)))
    return replace(row, cells=tuple(cells))
