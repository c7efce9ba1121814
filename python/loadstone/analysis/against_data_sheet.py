"""What was measured beside what the data sheet promises.

Knows which figure of `path.spec` an operation may be held against: random I/O of small blocks
against IOPS, sequential I/O against bandwidth, anything against the links. Computes no ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from loadstone.analysis.estimate import Estimate
from loadstone.path.spec import Spec
from loadstone.plan.model import SizesFixed, SizesRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadstone.analysis.measurement import Measurement
    from loadstone.analysis.totals import Total
    from loadstone.path.layers import Ceiling
    from loadstone.path.spec import Op
    from loadstone.plan.model import OpPattern, Plan

OPS: Final[tuple[Op, ...]] = ("read", "write")


@dataclass(frozen=True, slots=True)
class SpecRow:
    """One figure, with all jobs that ran at the same time held against it."""

    name: str
    op: Literal["read", "write", "mixed"]
    quantity: Literal["iops", "bytes_per_s"]
    kind: Literal["specified", "link"]
    measured: Estimate
    specified: float
    source: str

    @property
    def share(self) -> float:
        """Part of the figure that was reached."""
        return self.measured.value / self.specified

    @property
    def share_error(self) -> float | None:
        """One standard error of it, from the measurement alone."""
        return None if self.measured.error is None else self.measured.error / self.specified


def spec_of(measurement: Measurement) -> Spec | None:
    """Return the data sheet that a run was given."""
    sheet = measurement.bundle.environment.get("spec")
    return None if sheet is None else Spec.model_validate(sheet)


def rows(measurement: Measurement, stages: list[Total]) -> list[SpecRow]:
    """Return every comparison that can be made; `stages` are the run's totals by stage."""
    spec = spec_of(measurement)
    return [] if spec is None else [row for total in stages for row in _of_stage(spec, measurement, total)]


def nearest(found: Sequence[SpecRow]) -> Estimate | None:
    """Return the share of the figure that a run came nearest to; None without any."""
    row = max(found, key=lambda row: row.share, default=None)
    return None if row is None else Estimate(row.share, row.share_error, row.measured.count, "1")


def best(runs: Iterable[tuple[str, Sequence[SpecRow]]]) -> list[tuple[str, SpecRow]]:
    """Return for each figure the run that came nearest to it, by the run's name."""
    best_rows: dict[tuple[str, ...], tuple[str, SpecRow]] = {}
    for run, every in runs:
        for row in every:
            key = (row.name, row.op, row.quantity, row.kind, row.source)
            if key not in best_rows or row.share > best_rows[key][1].share:
                best_rows[key] = (run, row)
    return list(best_rows.values())


def _of_stage(spec: Spec, measurement: Measurement, total: Total) -> Iterator[SpecRow]:
    plan = measurement.plan
    units = [plan.cells[cell].unit for cell in sorted(total.line.cells)]
    jobs = list(dict.fromkeys(plan.units[unit].name for unit in units))
    name = jobs[0] if len(jobs) == 1 else f"{len(jobs)} jobs, {jobs[0]} to {jobs[-1]}"
    moved = {op: total.ops[op] for op in OPS if op in total.ops and total.ops[op].operations}
    if not moved or total.data is None:
        return
    patterns = {op: _patterns(plan, total, op) for op in moved}
    every = [pattern for op_patterns in patterns.values() for pattern in op_patterns]
    whole: Literal["read", "write", "mixed"] = "mixed" if len(moved) > 1 else next(iter(moved))
    if all(one.random_percent == 100 and _largest(one) <= spec.small_block_bytes for one in every):
        share = moved["read"].operations / total.data.operations if "read" in moved else 0.0
        figure = spec.mixed_iops(share) if len(moved) > 1 else spec.iops(next(iter(moved)))
        yield from _row(name, whole, total.data.iops, figure)
    if len(moved) == 1 and all(one.random_percent == 0 for one in every):
        yield from _row(name, whole, total.data.bandwidth, spec.bandwidth(next(iter(moved))))
    for link in spec.link_ceilings():
        if link.op == "both":
            yield from _row(name, whole, total.data.bandwidth, link)
        else:
            for op, stats in moved.items():
                yield from _row(name, op, stats.bandwidth, link)


def _patterns(plan: Plan, total: Total, op: Op) -> list[OpPattern]:
    """Return how the stage's streams chose offsets and sizes of one operation."""
    patterns = [plan.streams[index].pattern for index in total.line.streams]
    used = [one for one in patterns if (one.read_percent if op == "read" else one.write_percent)]
    return [one.read if op == "read" else one.write for one in used]


def _row(
    name: str, op: Literal["read", "write", "mixed"], measured: Estimate | None, ceiling: Ceiling | None
) -> Iterator[SpecRow]:
    if measured is not None and ceiling is not None:
        kind: Literal["specified", "link"] = "link" if ceiling.kind == "link" else "specified"
        yield SpecRow(name, op, ceiling.quantity, kind, measured, ceiling.per_s, ceiling.source)


def _largest(pattern: OpPattern) -> int:
    if isinstance(pattern.sizes, SizesFixed):
        return pattern.sizes.bytes
    if isinstance(pattern.sizes, SizesRange):
        return pattern.sizes.max_bytes
    return max(entry.bytes for entry in pattern.sizes.table)
