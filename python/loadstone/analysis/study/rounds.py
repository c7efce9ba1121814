"""What rounds of the same runs came to: each cell's series, and the window that counts.

Knows the runs of a study by round and cell, and the last five rounds that were compared. Knows
no chart. What steady means is `analysis.steady`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.analysis.statistics.steady import ROUNDS, SteadyCheck, steady

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.study.run_figures import RunFigures

FACTOR: Final = "round"


@dataclass(frozen=True, slots=True)
class RoundsCell:
    """One run of each round. `values`: by round, of the quantity that is looked at."""

    name: str
    factors: Mapping[str, str]
    values: Mapping[int, float]
    max_ns: Mapping[int, int]
    moved_bytes: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Rounds:
    """All cells in their order, the one that is tracked, and the window its state is read from."""

    quantity: str
    cells: tuple[RoundsCell, ...]
    tracked: RoundsCell
    window: tuple[int, ...]
    """The rounds that were compared, oldest first; fewer than five when there were not as many."""
    found: SteadyCheck

    def mean(self, cell: RoundsCell) -> float | None:
        """Return a cell's mean over the window; None when it has none."""
        known = [cell.values[number] for number in self.window if number in cell.values]
        return sum(known) / len(known) if known else None

    def longest_ns(self, cell: RoundsCell) -> int | None:
        """Return a cell's longest latency in the window."""
        return max((cell.max_ns[n] for n in self.window if n in cell.max_ns), default=None)


def rounds(runs: Sequence[RunFigures], settings: Mapping[str, Any]) -> Rounds | None:
    """Read a study of rounds; None when no round was finished."""
    rule = settings["rounds"]
    quantity, every = str(rule["quantity"]), int(rule["every"])
    parts: dict[str, list[RunFigures]] = {}
    for run in runs:
        number = run.point.factors.get(FACTOR)
        if isinstance(number, int):
            parts.setdefault(run.point.name.removeprefix(f"round-{number} "), []).append(run)
    cells = tuple(_cell(name, round_runs, quantity) for name, round_runs in parts.items())
    tracked = next((cell for cell in cells if cell.name == rule["tracks"] and cell.values), None)
    if tracked is None:
        return None
    last = max(tracked.values)
    window = [
        last - every * back for back in reversed(range(ROUNDS)) if last - every * back in tracked.values
    ]
    return Rounds(quantity, cells, tracked, tuple(window), steady([tracked.values[n] for n in window]))


def _cell(name: str, runs: Sequence[RunFigures], quantity: str) -> RoundsCell:
    values: dict[int, float] = {}
    longest: dict[int, int] = {}
    moved: dict[int, float] = {}
    for run in runs:
        number = int(run.point.factors[FACTOR] or 0)
        estimate = getattr(run.whole, quantity) if run.whole is not None else None
        if run.whole is None or estimate is None:
            continue
        values[number] = estimate.value
        moved[number] = run.whole.operations * (run.whole.block_bytes or 0)
        if run.whole.max_ns is not None:
            longest[number] = run.whole.max_ns
    factors = {key: str(value) for key, value in runs[0].point.factors.items() if key != FACTOR}
    return RoundsCell(name, factors, values, longest, moved)
