"""Which workers and targets are active in each run of a test, and how deep.

Knows Iometer's eight types of test and their order: workers outermost, then targets, then
outstanding I/Os. Knows no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.formats.iometer.setup import check_cycling
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.errors import Where
    from loadstone.formats.iometer.managers import Manager
    from loadstone.formats.iometer.setup import Cycling, Setup

MAX_RUNS: Final = 10_000
IDLE: Final = "idle"

Place = tuple[int, int]
"""A worker: its manager's place and its own."""

if TYPE_CHECKING:
    _Choose = Callable[[dict[Place, int], int], dict[Place, int]]


@dataclass(frozen=True, slots=True)
class CycleStep:
    """One run of a cycle."""

    active: dict[Place, int]
    """How many of its targets, from the first on, each worker uses; workers with none are left out."""
    depth: int | None = None
    """Outstanding I/Os in place of the workers' own."""
    factors: dict[str, int] = field(default_factory=dict)


def able(managers: Sequence[Manager], index: int) -> dict[Place, int]:
    """Return the targets of every worker that has something to do at a place of its list."""
    return {
        (at, number): len(worker.targets)
        for at, manager in enumerate(managers)
        for number, worker in enumerate(manager.workers)
        if index < len(worker.specs) and worker.specs[index][0].lower() != IDLE and worker.targets
    }


def steps(setup: Setup, whole: dict[Place, int], where: Where) -> list[CycleStep]:
    """Return the runs of one place of the lists, in order. Raises InputError for an endless cycle."""
    kind = setup.test_type
    if kind in _TARGETS:
        check_cycling(setup.targets, "disk", where)
    if kind in _WORKERS:
        check_cycling(setup.workers, "worker", where)
    if kind in _DEPTHS:
        check_cycling(setup.depth, "queue depth", where)
    cycle_steps = _steps(setup, whole) if whole else []
    if len(cycle_steps) > MAX_RUNS:
        raise make_error(
            InputError,
            "formats_iometer.run_cycle.too_many_runs",
            where=where,
            found=len(cycle_steps),
            max_runs=MAX_RUNS,
        )
    return cycle_steps


def _steps(setup: Setup, whole: dict[Place, int]) -> list[CycleStep]:
    kind = setup.test_type
    cycle_steps = [CycleStep(whole)]
    for name, cycling, choose in (
        ("workers", setup.workers, _workers if kind in _WORKERS else None),
        ("targets", setup.targets, _TARGETS.get(kind)),
    ):
        if choose is not None:
            cycle_steps = [
                CycleStep(active, factors={**step.factors, name: count})
                for step in cycle_steps
                for count, active in _growing(cycling, step.active, choose)
            ]
    if kind not in _DEPTHS:
        return cycle_steps
    depths = list(_depths(setup))
    return [
        CycleStep(s.active, depth, {**s.factors, "iodepth": depth}) for s in cycle_steps for depth in depths
    ]


def _values(cycling: Cycling) -> Iterator[int]:
    """Yield the values of a cycle without an end; multiplying by 1 adds 1, as in Iometer."""
    value = cycling.start
    while True:
        yield value
        value = value * cycling.step if cycling.exponential and cycling.step > 1 else value + cycling.step


def _depths(setup: Setup) -> Iterator[int]:
    for number, value in enumerate(_values(setup.depth)):
        if value > (setup.depth.end or 0) or number > MAX_RUNS:
            return
        yield value


def _growing(
    cycling: Cycling, whole: dict[Place, int], choose: _Choose
) -> Iterator[tuple[int, dict[Place, int]]]:
    """Yield what is active for each value, as long as more becomes active."""
    before = 0
    for value in _values(cycling):
        active = {place: count for place, count in choose(whole, value).items() if count}
        if sum(active.values()) <= before:
            return
        before = sum(active.values())
        yield value, active


def _each(whole: dict[Place, int], count: int) -> dict[Place, int]:
    """Take this many targets of every worker."""
    return {place: min(targets, count) for place, targets in whole.items()}


def _workers(whole: dict[Place, int], count: int) -> dict[Place, int]:
    """Take so many workers of every manager, each with all its targets."""
    worker_counts: dict[int, int] = {}
    chosen = {}
    for place, targets in whole.items():
        worker_counts[place[0]] = worker_counts.get(place[0], 0) + 1
        if worker_counts[place[0]] <= count:
            chosen[place] = targets
    return chosen


def _by_manager(whole: dict[Place, int], count: int) -> dict[Place, int]:
    """Take so many targets of every manager, its first workers' first."""
    left: dict[int, int] = {}
    chosen = {}
    for place, targets in whole.items():
        chosen[place] = min(targets, left.setdefault(place[0], count))
        left[place[0]] -= chosen[place]
    return chosen


def _in_a_row(whole: dict[Place, int], count: int) -> dict[Place, int]:
    """Take so many targets in all, the first managers' first."""
    chosen = {}
    for place, targets in whole.items():
        chosen[place] = min(targets, count)
        count -= chosen[place]
    return chosen


_WORKERS: Final = ("CYCLE_WORKERS", "CYCLE_WORKERS_AND_TARGETS")
_DEPTHS: Final = ("CYCLE_OUTSTANDING_IOS", "CYCLE_OUTSTANDING_IOS_AND_TARGETS")
_TARGETS: Final[dict[str, _Choose]] = {
    "CYCLE_TARGETS": _each,
    "INCREMENT_TARGETS_PARALLEL": _by_manager,
    "INCREMENT_TARGETS_SERIAL": _in_a_row,
    "CYCLE_WORKERS_AND_TARGETS": _each,
    "CYCLE_OUTSTANDING_IOS_AND_TARGETS": _each,
}
"""The types of test in which targets cycle, and how they are chosen."""
