"""Results beside each other: differences, how sure they are, and what a gate says.

Knows how a comparison becomes a frame. The statistics are `analysis.compare`'s.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from loadstone.analysis import compare as analysis
from loadstone.api.results import Result, Study
from loadstone.audit.run import audit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.verdict import Audited, Verdict

Gate = Literal["passed", "regression", "no_data"]

COLUMNS: dict[str, pl.DataType] = {
    "part": pl.String(),
    "job": pl.String(),
    "op": pl.String(),
    "metric": pl.String(),
    "unit": pl.String(),
    "result": pl.String(),
    "value": pl.Float64(),
    "error": pl.Float64(),
    "change": pl.Float64(),
    "change_low": pl.Float64(),
    "change_high": pl.Float64(),
    "p": pl.Float64(),
    "judgement": pl.String(),
}
"""Columns of `Comparison.frame`."""


class Comparison:
    """Two or more results, held against the first of them."""

    def __init__(self, made: analysis.Comparison) -> None:
        self.made = made

    def __repr__(self) -> str:
        return f"<loadstone.Comparison of {', '.join(self.names)}>"

    @property
    def names(self) -> list[str]:
        """What the results are called here."""
        return [side.name for side in self.made.sides]

    @property
    def warnings(self) -> list[str]:
        """What to keep in mind with the figures."""
        return list(self.made.warnings)

    @cached_property
    def audits(self) -> list[Audited]:
        """The verdict on each result: a study is worth what its worst run is worth."""
        # The first run of a part stands for its repeats.
        return [
            min((audit(runs[0]) for runs in side.things.values()), key=lambda one: one.verdict.confidence)
            for side in self.made.sides
        ]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each result by its name."""
        return {name: one.verdict for name, one in zip(self.names, self.audits, strict=True)}

    def frame(self) -> pl.DataFrame:
        """Return a row per metric and result; `change` is a share of the first result's value."""
        return pl.DataFrame(list(self._rows()), schema=pl.Schema(COLUMNS), orient="row")

    def differences(self) -> pl.DataFrame:
        """Return what else differs: facts of the hosts and settings of the Plans, a column per result."""
        rows = [
            {"where": one.where, "what": one.key, **dict(zip(self.names, one.values, strict=True))}
            for one in self.made.differences
        ]
        return pl.DataFrame(rows, schema=dict.fromkeys(["where", "what", *self.names], pl.String))

    def gate(self, tolerance: float = 0.0) -> Gate:
        """Tell whether something became significantly worse by more than a share; `no_data` is no pass."""
        contrasts = [
            (row, cell) for row in self.made.rows for cell in row.cells[1:] if cell.contrast is not None
        ]
        if not any(cell.judgement != "unknown" for row, cell in contrasts if row.metric.quantity != "errors"):
            return "no_data"
        worse = [
            cell.contrast for _, cell in contrasts if cell.judgement == "worse" and cell.contrast is not None
        ]
        return "regression" if any(abs(one.change) > tolerance for one in worse) else "passed"

    def _rows(self) -> Iterator[dict[str, str | float | None]]:
        for row in self.made.rows:
            for name, cell in zip(self.names, row.cells, strict=True):
                found = cell.contrast
                yield {
                    "part": row.thing,
                    "job": row.job,
                    "op": row.op,
                    "metric": row.metric.name,
                    "unit": row.metric.quantity,
                    "result": name,
                    "value": cell.sample.value if cell.sample else None,
                    "error": cell.sample.error if cell.sample else None,
                    "change": found.change if found else None,
                    "change_low": found.low if found else None,
                    "change_high": found.high if found else None,
                    "p": found.p if found else None,
                    "judgement": cell.judgement,
                }


def compare(*results: Result | Study | Path | str, unverified: bool = False) -> Comparison:
    """Compare runs or studies with the first of them; repeats in a study count as repeats.

    Raises `InputError` for fewer than two and when they have no job in common, `BundleError` for
    what cannot be read.
    """
    paths = [one.path if isinstance(one, Result | Study) else Path(one) for one in results]
    return Comparison(analysis.compare(paths, unverified=unverified))
