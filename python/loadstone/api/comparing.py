"""Results beside each other: differences, how sure they are, and what a gate says.

Knows how a comparison becomes a frame, and which of a report's forms it takes. The statistics are the room
`comparison`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from loadstone.api.results import Result, Study
from loadstone.comparison import compare as whole
from loadstone.comparison import gate as gates
from loadstone.comparison.matrix import ALPHA
from loadstone.errors import InputError, Where
from loadstone.messages import make_error
from loadstone.verdict import Audited, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.comparison.gate import Power
    from loadstone.screen import Screen
    from loadstone.verdict import Verdict

Gate = Literal["passed", "regression", "no_data", "not_valid", "not_detectable"]
DETECT = gates.DETECT
least_detected = gates.least_detected

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

    def __init__(self, comparison: whole.ComparisonTable) -> None:
        self.made = comparison

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

    @property
    def has_broken(self) -> bool:
        """Whether something under a path is a result, or may be one, and could not be read."""
        return any(side.not_read for side in self.made.sides)

    @property
    def audits(self) -> list[Audited]:
        """The verdict on each result, and on each of its phases."""
        return [
            Audited(
                verdict=side.worst.verdict,
                phases=tuple(Phase(name=one.name, verdict=one.verdict) for one in side.phases),
            )
            for side in self.made.sides
        ]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each result by its name: that of the phase that is worst off."""
        return {side.name: side.worst.verdict for side in self.made.sides}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many phases of each result have which verdict."""
        return {side.name: {str(k): n for k, n in side.counts.items()} for side in self.made.sides}

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

    def matrix(self) -> pl.DataFrame:
        """Return a row per pattern, quantity and result: both values, the change, and what it means."""
        rows = [
            {
                "pattern": one.pattern,
                "metric": one.metric.name,
                "result": self.names[one.side],
                "before": one.before.sample.value if one.before.sample else None,
                "after": one.after.sample.value if one.after.sample else None,
                "change": one.contrast.change if one.contrast else None,
                "change_low": one.contrast.low if one.contrast else None,
                "change_high": one.contrast.high if one.contrast else None,
                "judgement": one.judgement,
            }
            for one in self.made.effects
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def document(
        self, *, detect: float = DETECT, tolerance: float = 0.0, gated: bool = False
    ) -> dict[str, Any]:
        """Return the document of `loadstone compare --json`; with `gated` it has the gate's answer."""
        from loadstone.report.comparison import document

        gate = self.decide(detect=detect, tolerance=tolerance) if gated else None
        powers = self.powers(detect=detect, tolerance=tolerance)
        return document.document(self.made, powers, detect, gate)

    def markdown(self) -> str:
        """Return the comparison as tables in Markdown."""
        from loadstone.report.comparison import text

        return text.markdown(self.made)

    def print(self, screen: Screen | None = None) -> None:
        """Print the comparison as the command line does."""
        from loadstone.report.comparison import text
        from loadstone.screen import Screen

        text.terminal(self.made, screen or Screen(highlight=False))

    def report(self, path: Path | str) -> Path:
        """Write the comparison (.html, .md or .pdf; any other ending is a page) and return where."""
        from loadstone.report.comparison import files

        files.write(self.made, Path(path))
        return Path(path)

    def gate(self, tolerance: float = 0.0, detect: float | None = None) -> Gate:
        """Tell whether something became worse by more than a share; only `passed` is a pass.

        `detect`: the regression it must be able to see [0.05, or twice the tolerance,
        and of a large one half of what is left].
        """
        size = detect if detect is not None else least_detected(tolerance)
        return self.decide(detect=size, tolerance=tolerance).outcome

    def decide(self, *, detect: float = DETECT, tolerance: float = 0.0) -> gates.Gate:
        """Return what the gate says, with its reasons.

        Raises `InputError` for a tolerance of all: no rate can fall by more, so every gate would pass.
        """
        if tolerance >= 1:
            where = Where("gate", option="tolerance")
            raise make_error(InputError, "cli.compare.all", where=where, found=f"{tolerance:.0%}")
        comparison = self.made
        known = self.powers(detect=detect, tolerance=tolerance)
        return gates.gate(
            comparison.effects,
            comparison.sides,
            known,
            detect=detect,
            tolerance=tolerance,
            alone=comparison.alone,
            parts=comparison.parts,
        )

    def gate_sentences(self, *, detect: float = DETECT, tolerance: float = 0.0) -> list[str]:
        """Return what the gate says, in sentences: why it passes or not, and what it could have seen."""
        from loadstone.report.comparison import words

        gate = self.decide(detect=detect, tolerance=tolerance)
        return words.gate(gate, self.powers(detect=detect, tolerance=tolerance))

    def powers(self, *, detect: float = DETECT, tolerance: float = 0.0) -> list[Power]:
        """Return the chance of finding a regression of this size, pattern by pattern."""
        comparison = self.made
        return gates.powers(
            comparison.effects, comparison.sides, detect=detect, alpha=comparison.alpha, tolerance=tolerance
        )

    def _rows(self) -> Iterator[dict[str, str | float | None]]:
        for row in self.made.rows:
            for name, cell in zip(self.names, row.cells, strict=True):
                contrast = cell.contrast
                yield {
                    "part": row.thing,
                    "job": row.job,
                    "op": row.op,
                    "metric": row.metric.name,
                    "unit": row.metric.quantity,
                    "result": name,
                    "value": cell.sample.value if cell.sample else None,
                    "error": cell.sample.error if cell.sample else None,
                    "change": contrast.change if contrast else None,
                    "change_low": contrast.low if contrast else None,
                    "change_high": contrast.high if contrast else None,
                    "p": contrast.p if contrast else None,
                    "judgement": cell.judgement,
                }


def check_report(path: Path, *, any_ending: bool = False) -> None:
    """Raise `InputError` where a comparison could not be written: before anything is computed."""
    from loadstone import output
    from loadstone.report.comparison import files

    files.check_ending(path, any_ending=any_ending)
    output.check(path)


def check_sides(paths: Sequence[Path]) -> None:
    """Raise `InputError` for fewer than two paths, for the same one twice and for one that is not there."""
    whole.check_sides(paths)


def compare(
    *results: Result | Study | Path | str, unverified: bool = False, alpha: float = ALPHA
) -> Comparison:
    """Compare results with the first of them: runs, studies, other tools' results, directories of those.

    Raises `InputError` for fewer than two and when they have nothing in common, `BundleError` for
    what cannot be read.
    """
    paths = [one.path if isinstance(one, Result | Study) else Path(one) for one in results]
    return Comparison(whole.compare(paths, unverified=unverified, alpha=alpha))
