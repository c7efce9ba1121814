"""The runs of one run definition: its loops, one inside the other, in the order they are written.

Knows order and names. Knows no workload.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.formats.vdbench.rundef import RATE, IoRate, Loop, LoopValue
from loadstone.formats.vdbench.values import Number, shown
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.formats.vdbench.rundef import RunDefinition

MAX_RUNS: Final = 100_000
_WHOLE: Final = ("threads", "depth", "width", "files")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn through all loops: what each has, the outermost first."""

    values: Mapping[str, LoopValue]

    def number(self, loop: str) -> float | None:
        """Return a loop's number, None when there is no such loop."""
        value = self.values.get(loop)
        return value.value if isinstance(value, Number) else None

    def text(self, *, rate_name: str = RATE) -> str:
        """Return how vdbench shows it: `xfersize=4k threads=8`."""
        return " ".join(
            f"{rate_name if loop == RATE else _SHOWN.get(loop, loop)}={_value(loop, value)}"
            for loop, value in self.values.items()
        )


_SHOWN: Final = {"compratio": "comp", "operations": "operation"}
"""Loops that vdbench shows under another name."""


def _value(loop: str, value: LoopValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, IoRate):
        return f"{value.value:.0f}" if value.kind == "number" else str(value)
    if value.percent:
        return f"{value.value:.0f}%"
    return f"{value.value:.0f}" if loop in _WHOLE and value.value < 1024 else shown(value.value)


def turns(run: RunDefinition) -> Iterator[Turn]:
    """Yield the turns of a run definition. A list of rates is the innermost loop."""
    loops = dict(run.loops)
    rates = run.fwdrate or run.iorate
    if len(rates) > 1 and not run.arrivals.variable:
        loops[RATE] = Loop(rates, run.at["fwdrate" if run.fwdrate else RATE])
    count = 1
    for loop in loops.values():
        count *= len(loop.values)
    if count > MAX_RUNS:
        raise make_error(
            InputError, "formats_vdbench.loops.too_many_runs", where=run.where, count=count, max_runs=MAX_RUNS
        )
    for values in itertools.product(*(loop.values for loop in loops.values())):
        yield Turn(dict(zip(loops, values, strict=True)))
