"""A sweep: every combination of the values of its factors, in the order written.

Knows the order: the last factor runs fastest, and repeats are whole passes, so that a drift
shows as a difference between passes and not as an effect of a factor.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.analysis.study.sweep import REPEAT, STAGE, shown
from loadstone.study import factors
from loadstone.study.controller import Done, Next

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.stream import TotalRate
    from loadstone.study.factors import Name
    from loadstone.workload.model import Workload


class SweepController:
    """All runs of a sweep. `parts`: the Workload of each stage, by name."""

    def __init__(
        self,
        parts: Sequence[tuple[str, Workload]],
        axes: Sequence[tuple[Name, Sequence[int]]],
        *,
        repeat: int = 1,
        rate: TotalRate | None = None,
    ) -> None:
        self._runs: list[Next] = []
        for again in range(1, repeat + 1):
            for stage, work in parts:
                for chosen in itertools.product(*(values for _, values in axes)):
                    names = [name for name, _ in axes]
                    run = _run(work, dict(zip(names, chosen, strict=True)), again)
                    self._runs.append(replace(_of_stage(run, stage) if len(parts) > 1 else run, rate=rate))

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next combination."""
        return self._runs[len(done)] if len(done) < len(self._runs) else None

    def known(self) -> Sequence[Next]:
        """Return all of them."""
        return self._runs

    def expected(self) -> int:
        """Return how many there are."""
        return len(self._runs)

    def most(self) -> int:
        """Return how many runs there can be."""
        return len(self._runs)


def _run(work: Workload, chosen: dict[Name, int], again: int) -> Next:
    for name, value in chosen.items():
        work = factors.apply(work, name, value)
    factor_texts = [f"{name}={shown(name, value)}" for name, value in chosen.items()]
    return Next(
        name=",".join(factor_texts) + (f"-{again}" if again > 1 else ""),
        workload=work,
        factors={**{str(name): value for name, value in chosen.items()}, REPEAT: again},
    )


def _of_stage(run: Next, stage: str) -> Next:
    return replace(run, name=f"{stage},{run.name}", factors={STAGE: stage, **run.factors})
