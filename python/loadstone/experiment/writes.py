"""What a run writes: as its Plan has it before, and as its bundle tells after.

Knows load, ramp, files that are laid out, and targets brought into a state. Knows no budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from loadstone import units
from loadstone.bundle.layout import OPS
from loadstone.errors import InputError, Where
from loadstone.experiment import allocation
from loadstone.messages import make_error
from loadstone.plan.safety import guard

if TYPE_CHECKING:
    from loadstone.bundle.experiment import ExperimentRun
    from loadstone.bundle.read import Bundle
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.plan.model import Plan


def written_bytes(bundle: Bundle) -> int:
    """Return the bytes that a run wrote."""
    write = OPS.index("write")
    load = sum(
        int(piece.filter(pl.col("op") == write)["bytes"].sum())
        for piece in bundle.sample_pieces(("op", "bytes"))
    )
    laid_out: dict[object, int] = {}
    for event in bundle.events:
        if event.get("type") == "layout":
            target = event.get("target")
            laid_out[target] = max(laid_out.get(target, 0), int(event.get("done_bytes", 0)))
    return load + sum(laid_out.values())


def least_written(plan: Plan, state: str | None) -> int:
    """Return what a run writes at least, with what brings its targets into a state."""
    before = sum(laid_out_bytes(plan).values()) if state is None else allocation.written_bytes(plan, state)
    return before + (most_written(plan) or 0)


def laid_out_bytes(plan: Plan) -> dict[str, int]:
    """Return what is written into each file that is not there yet, or too short."""
    return {
        one.path: one.layout.size_bytes
        for one in plan.targets
        if one.layout is not None and one.layout.write and guard.layout_changes(one)
    }


def most_written(plan: Plan) -> int | None:
    """Return what the load of a run may write; None where its time decides."""
    most = 0
    for stream in plan.streams:
        if not (stream.pattern.write_percent or stream.pattern.trim_percent):
            continue
        limits = stream.limits
        if limits.time_based or not limits.bytes:
            return None
        most += limits.bytes
    return most


def written_refusal(prepared: PreparedExperiment, run: ExperimentRun, plan: Plan) -> InputError | None:
    """Return the error of a budget that is too small for what a run writes at least; None where it is not."""
    budget = prepared.document.budget.written_bytes
    least = least_written(plan, prepared.asked(run).allocation)
    if budget is None or least <= budget:
        return None
    return make_error(
        InputError,
        "experiment.budget.no_run_written",
        where=Where(str(prepared.path), option="budget.written"),
        least=units.size(least),
        budget=units.size(budget),
    )
