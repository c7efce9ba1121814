"""The runs of a vdbench parameter file, one after the other.

Knows what follows from what was measured: the points of a curve, rates that are a percentage of an
earlier run, `stopcurve=`, and how often everything is done again. Does not know what is in a run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.curve import RATE, RATE_IOPS
from loadstone.formats.vdbench.expand import FORMAT
from loadstone.formats.vdbench.lower import Given, lower
from loadstone.formats.vdbench.rundef import IoRate
from loadstone.formats.vdbench.values import Number
from loadstone.study.controller import Next

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.bundle.study import Factor
    from loadstone.formats.vdbench.expand import ParameterFileRun
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.study.controller import Done

_FACTORS: Final = {"xfersize": "bs", "threads": "iodepth", "rdpct": "read", "iorate": RATE_IOPS}
"""Loops whose values are the same thing under another name elsewhere."""


class ParameterFileController:
    """Runs what a parameter file expands to. `allow_exec`: its commands may run."""

    def __init__(
        self,
        file: ParameterFile,
        runs: Sequence[ParameterFileRun],
        *,
        allow_exec: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._runs = list(runs)
        self._given = Given(allow_exec=allow_exec)
        self._now_s = now_s
        self._began_s: float | None = None
        self._at = 0
        """The next run of this round."""
        self._round = 0
        self._asked: list[ParameterFileRun] = []
        """The run behind each one that was handed out."""
        self._skipped = 0

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run that makes sense after what was measured."""
        if self._began_s is None:
            self._began_s = self._now_s()
        while True:
            if self._at == len(self._runs):
                if not self._again():
                    return None
                self._at, self._round = 0, self._round + 1
            run = self._runs[self._at]
            self._at += 1
            assumptions = self._known_of(run, done)
            if assumptions is None:
                self._skipped += 1
                continue
            pause_s = self._asked[-1].times.pause if self._asked else 0
            self._asked.append(run)
            return self._next_of(run, assumptions, pause_s)

    def known(self) -> Sequence[Next]:
        """Return the runs whose rates are known already: the first round without points."""
        return [
            self._next_of(run, self._given, 0, 0)
            for run in self._runs
            if run.point is None and run.rate.kind != "percent"
        ]

    def expected(self) -> int | None:
        """Return how many runs there will be; None when a time decides."""
        loop = self._file.general.loop
        return None if loop.seconds else len(self._runs) * loop.times - self._skipped

    def most(self) -> int | None:
        """Return how many runs there can be, None when nothing bounds them."""
        return self.expected()

    def _again(self) -> bool:
        loop = self._file.general.loop
        if loop.seconds:
            return self._now_s() - (self._began_s or 0.0) <= loop.seconds
        return self._round + 1 < loop.times

    def _known_of(self, run: ParameterFileRun, done: Sequence[Done]) -> Given | None:
        """Return what earlier runs say about a run; None when it is to be left out."""
        if run.point is None and run.rate.kind != "percent":
            return self._given
        before = list(zip(self._asked, done, strict=False))
        if run.point is None:
            iops = before[-1][1].iops if before else None
            return None if not iops else replace(self._given, rate_iops=rounded(iops, run.rate.value))
        curve = [(earlier, ended) for earlier, ended in before if _same_curve(earlier, run)]
        tops = [index for index, (earlier, _) in enumerate(curve) if earlier.point is None]
        if not tops:
            return None
        (_, maximum), *points = curve[tops[-1] :]
        iops = maximum.iops
        stop_ms = run.definition.stopcurve
        if not iops or (stop_ms is not None and points and _response_ms(points[-1][1]) >= stop_ms):
            return None
        observed = None if run.is_controlled else _observed(run, maximum.summary)
        return replace(self._given, rate_iops=rounded(iops, run.point), observed=observed)

    def _next_of(
        self, run: ParameterFileRun, overrides: Given, pause_s: int, round_number: int | None = None
    ) -> Next:
        number = self._round if round_number is None else round_number
        workload = lower(self._file, run, _open_point(run, overrides))
        name = run.title if not number else f"{run.title} loop {number + 1}"
        factors: dict[str, Factor] = {"rd": run.definition.name, **_factors(run, overrides)}
        if self._file.general.loop.times > 1 or self._file.general.loop.seconds:
            factors["loop"] = number + 1
        prepares = run.name == FORMAT or run.formats is not None
        role = "prepare" if prepares else "maximum" if run.rate.kind == "curve" else "measure"
        return Next(
            name,
            workload.model_copy(update={"name": name}),
            factors,
            role=role,  # type: ignore[arg-type] # one of the three, as written above
            pause_s=pause_s,
        )


def _open_point(run: ParameterFileRun, overrides: Given) -> Given:
    return overrides if run.rate.kind == "percent" else replace(overrides, rate_iops=None, observed=None)


def _same_curve(file_run: ParameterFileRun, run: ParameterFileRun) -> bool:
    is_same_turn = file_run.definition.name == run.definition.name and file_run.turn == run.turn
    return is_same_turn and (file_run.point is not None or file_run.rate.kind == "curve")


def rounded(iops: float, percent: float) -> float:
    """Return a share of a rate as vdbench rounds it: up to the next 10, above 1000 to the next 100."""
    rate = int(iops) * int(percent) // 100
    step = 100 if rate > 1000 else 10
    return float(max(-(-rate // step) * step, step))


def _response_ms(done: Done) -> float:
    """Return what vdbench calls the response time of a run, 0 when nothing was measured."""
    data = done.summary.total.data if done.summary is not None else None
    clat = data.latencies.get("clat") if data is not None else None
    return (clat.mean_ns or 0.0) / 1e6 if clat is not None else 0.0


def _observed(run: ParameterFileRun, summary: Summary | None) -> tuple[float, ...] | None:
    """Return the I/Os of each workload on each SD; file systems have the shares they ask for."""
    if summary is None or run.file_works:
        return None
    counts: dict[str, int] = {}
    for total in summary.totals("job"):
        counts[total.line.name] = total.data.operations if total.data is not None else 0
    operations = []
    for work in run.works:
        name = f"{work.workload.name}.{work.storage.name}"
        parts = work.workload.streams.parts if work.workload.streams else 0
        streams = (counts.get(f"{name}.{number + 1}", 0) for number in range(parts))
        operations.append(float(counts.get(name, 0) + sum(streams)))
    return tuple(operations)


def _factors(run: ParameterFileRun, overrides: Given) -> dict[str, Factor]:
    factors: dict[str, Factor] = {}
    for loop, value in run.turn.values.items():
        name = _FACTORS.get(loop, loop)
        if isinstance(value, Number):
            factors[name] = int(value.value) if value.value == int(value.value) else value.value
        elif isinstance(value, IoRate):
            factors[name] = value.value if value.kind == "number" else str(value)
        else:
            factors[name] = value
    if run.rate.kind == "curve" or run.point is not None:
        # The maximum is a point of its curve too, the one without a rate.
        factors[RATE] = run.point
        factors[RATE_IOPS] = None if run.point is None else overrides.rate_iops
    return factors
