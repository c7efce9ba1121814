"""The value of each combination and of each level, as the model has it, with intervals."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING

from loadstone.effects import design_matrix as designs
from loadstone.effects.findings import CellValue, LevelMean
from loadstone.effects.metric_names import name_of
from loadstone.effects.studied_metric import known_of
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import StudiedMetric


def cell_values(table: Observations, one: StudiedMetric) -> Iterator[CellValue]:
    """Yield the value of each requested combination, or the reason why it has none."""
    requested_rows = [row for row in table.rows if row.pattern == one.runs.pattern]
    for levels in designs.cells(table.factors, requested_rows):
        cell_rows = [row for row in requested_rows if dict(row.levels) == levels]
        used = [row for row in one.runs.rows if dict(row.levels) == levels]
        contrast = one.model.design.cell(levels) if used else None
        known = known_of(one.model, contrast)
        ends = known.interval() if known is not None else None
        why = None
        if not used:
            reasons = list(dict.fromkeys(row.invalid.rstrip(".") for row in cell_rows if row.invalid))
            why = (
                say("effects.no_data.cell", reasons="; ".join(reasons))
                if reasons
                else say("effects.no_data.unmeasured", metric=name_of(one.runs.metric))
            )
        yield CellValue(
            pattern=one.runs.pattern,
            metric=one.runs.metric,
            levels=levels,
            runs=len(used),
            left_out=len(cell_rows) - len(used),
            value=None if known is None else math.exp(known.log),
            low=None if ends is None else math.exp(ends[0]),
            high=None if ends is None else math.exp(ends[1]),
            why=why,
        )


def level_means(table: Observations, one: StudiedMetric) -> Iterator[LevelMean]:
    """Return the mean of each level, and of each two levels, over those of the other factors."""
    names = [factor.name for factor in table.factors]
    groups = [*((name,) for name in names), *combinations(names, 2)]
    for group in groups:
        levels = [next(factor.levels for factor in table.factors if factor.name == name) for name in group]
        for chosen in (dict(zip(group, combination, strict=True)) for combination in product(*levels)):
            used = [
                row for row in one.runs.rows if all(row.levels[n] == level for n, level in chosen.items())
            ]
            contrast = one.model.design.mean(chosen) if used else None
            if contrast is None:
                continue
            known = one.model.known(contrast)
            ends = known.interval()
            yield LevelMean(
                pattern=one.runs.pattern,
                metric=one.runs.metric,
                levels=chosen,
                runs=len(used),
                value=math.exp(known.log),
                low=None if ends is None else math.exp(ends[0]),
                high=None if ends is None else math.exp(ends[1]),
            )
