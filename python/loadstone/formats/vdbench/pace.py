"""When the I/Os of a run start: rates, shares of them, arrivals, rates that change.

Knows what each workload of a run gets of its rate. Knows no address and no size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench.rundef import RATE
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.formats.vdbench.expand import ParameterFileRun
    from loadstone.formats.vdbench.rundef import RunDefinition

SECOND_NS: Final = 1_000_000_000
MAX_STEPS: Final = 20_000
_WEIGHTS: Final = 1000
FLOW: Final = 1
AHEAD: Final = 64
"""I/Os: workloads that hold shares of as much as goes do not wait for each other at every one."""

Process = Literal["linear", "poisson", "uniform", "spike"]
PROCESSES: Final[dict[str, Process]] = {
    "exponential": "poisson",
    "uniform": "uniform",
    "deterministic": "linear",
}


@dataclass(frozen=True, slots=True)
class WorkloadPace:
    """One workload on one SD: I/Os per second (None: as many as it can), or a weight among others."""

    iops: float | None = None
    weight: int | None = None
    flow: int = FLOW
    process: Process = "poisson"
    profile: tuple[tuple[int, float], ...] = ()

    def fields(self, reads_percent: float) -> dict[str, Any]:
        """Return the fields of a job with so many reads in a hundred."""
        job_fields: dict[str, Any] = {}
        if self.weight is not None:
            job_fields |= {
                "pacing.flow": self.weight,
                "pacing.flow_id": self.flow,
                "pacing.flow_ahead": AHEAD,
            }
        if self.iops is not None:
            parts = (self.iops * reads_percent / 100, self.iops * (100 - reads_percent) / 100)
            job_fields |= {
                "pacing.rate_iops": (parts[0] or None, parts[1] or None, None),
                "pacing.rate_process": self.process,
                "pacing.rate_profile": self.profile,
            }
        return job_fields


def paces(
    run: ParameterFileRun, rate_iops: float | None, observed: Sequence[float] | None
) -> list[WorkloadPace]:
    """Return the pace of each workload of a run, in its order.

    `rate_iops`: the rate where it follows from earlier runs. `observed`: what the workloads did of
    all I/Os when nothing held them, which the points of a curve keep to.
    """
    definition = run.definition
    if run.rate.kind in ("max", "curve") and not definition.arrivals.variable:
        return _unpaced(run)
    total, profile = _total(run, rate_iops)
    process = _process(definition)
    fixed = sum(_own(run, index) for index in range(len(run.works)))
    rest = max(0.0, total - fixed)
    free = [index for index, work in enumerate(run.works) if not work.workload.iorate]
    shares = _shares(run, free, observed)
    workload_paces = []
    for index, work in enumerate(run.works):
        own = work.workload.iorate
        iops = _own(run, index) if own else rest * shares[index]
        if iops <= 0:
            raise make_error(
                InputError,
                "formats_vdbench.pace.nothing_left",
                where=definition.at.get(RATE, definition.where),
                workload=work.workload.name,
            )
        workload_paces.append(WorkloadPace(iops, process=process, profile=() if own else profile))
    return workload_paces


def _own(run: ParameterFileRun, index: int) -> float:
    """Return the rate a workload asks for on one of its SDs, 0 when it asks for none."""
    rate = run.works[index].workload.iorate
    return 0.0 if rate is None else rate / _many(run, index)


def _many(run: ParameterFileRun, index: int) -> int:
    """Return on how many SDs the workload runs."""
    workload = run.works[index].workload
    return sum(1 for work in run.works if work.workload is workload)


def _shares(run: ParameterFileRun, free: Sequence[int], observed: Sequence[float] | None) -> dict[int, float]:
    """Return what each workload without a rate of its own gets of the rest; together 1."""
    if observed is not None and any(observed[index] for index in free):
        weights = {index: observed[index] for index in free}
    else:
        weights = {
            index: run.works[index].share or 100 / _workloads(run, free) / _many(run, index) for index in free
        }
    whole = sum(weights.values())
    return {index: weight / whole for index, weight in weights.items()}


def _workloads(run: ParameterFileRun, indexes: Sequence[int]) -> int:
    return len({run.works[index].workload.name for index in indexes})


def _unpaced(run: ParameterFileRun) -> list[WorkloadPace]:
    """Return paces of a run as fast as it goes: shares are held where any was asked for."""
    has_skew = any(work.workload.skew for work in run.works)
    weights = in_whole_numbers([work.share or 1.0 for work in run.works])
    workload_paces = []
    for index, work in enumerate(run.works):
        if work.workload.iorate:
            workload_paces.append(WorkloadPace(_own(run, index), process=_process(run.definition)))
        elif has_skew and len(run.works) > 1:
            workload_paces.append(WorkloadPace(weight=weights[index]))
        else:
            workload_paces.append(_beside(run, index))
    return workload_paces


def _beside(run: ParameterFileRun, index: int) -> WorkloadPace:
    """Return the pace of a workload among others on the same SD: its threads serve them in turn."""
    storage = run.works[index].storage.name
    if sum(work.storage.name == storage for work in run.works) == 1:
        return WorkloadPace()
    order = list(dict.fromkeys(work.storage.name for work in run.works))
    return WorkloadPace(weight=1, flow=FLOW + 1 + order.index(storage))


def in_whole_numbers(shares: Sequence[float]) -> list[int]:
    """Return whole numbers in the proportion of shares."""
    numbers = [max(1, round(share * _WEIGHTS)) for share in shares]
    common = math.gcd(*numbers)
    return [number // common for number in numbers]


def _process(definition: RunDefinition) -> Process:
    """Return how I/Os arrive; a spike puts all of a second at its beginning, whatever else was asked for."""
    return "spike" if definition.arrivals.spike else PROCESSES[definition.arrivals.kind]


def _total(run: ParameterFileRun, rate_iops: float | None) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Return the rate of a run and its profile over time."""
    definition = run.definition
    if definition.arrivals.variable:
        return _variable(run)
    if run.rate.kind == "number":
        return run.rate.value, ()
    if rate_iops is None:
        raise make_error(
            InputError,
            "formats_vdbench.pace.rate_not_measured",
            where=definition.at.get(RATE, definition.where),
            rate=str(run.rate),
        )
    return rate_iops, ()


def _variable(run: ParameterFileRun) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Return the highest of the rates, and the steps between them until the run ends."""
    definition = run.definition
    where = definition.at.get(RATE, definition.where)
    rates = definition.iorate
    if len(rates) % 2 or any(rate.kind != "number" for rate in rates):
        raise make_error(InputError, "formats_vdbench.pace.no_pairs", where=where)
    pairs = [(rate.value, int(time.value)) for rate, time in zip(rates[::2], rates[1::2], strict=True)]
    highest = max(rate for rate, _ in pairs)
    length_s = run.times.ramp + run.times.measured
    if highest <= 0 or any(time < 1 for _, time in pairs):
        raise make_error(InputError, "formats_vdbench.pace.no_seconds", where=where)
    if sum(time for _, time in pairs) > run.times.elapsed:
        raise make_error(
            InputError,
            "formats_vdbench.pace.longer_than_run",
            where=where,
            taken=sum(time for _, time in pairs),
            elapsed=run.times.elapsed,
        )
    steps: list[tuple[int, float]] = []
    at = 0
    while at < length_s:
        for rate, time in pairs:
            steps += [(at * SECOND_NS, rate / highest), ((at + time) * SECOND_NS, rate / highest)]
            at += time
        if len(steps) > MAX_STEPS:
            raise make_error(
                RefusedError, "formats_vdbench.pace.too_many_changes", where=where, max_steps=MAX_STEPS // 2
            )
    return highest, tuple(steps)
