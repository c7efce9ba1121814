"""Whether the parts of a Plan fit together: every number that names a part names one that is there.

Knows the references between a Plan's lists, which the engine checks before it runs one. A Plan in
a bundle that breaks them ran nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.bundle.schemas import TEN_YEARS_NS
from loadstone.messages import say
from loadstone.plan.derived import cells_of
from loadstone.plan.model import FileOperationCopy, FileOperationMove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.plan.model import Plan, Stream

MOST_STAGES = 1 << 20


def contradiction(plan: Plan) -> str | None:
    """Return the first reference to something the Plan does not have, in words; None when there is none."""
    for reference, index, count in _references(plan):
        if index >= count:
            return say("bundle.plan.missing", reference=reference, index=index, count=count)
    if not plan.streams or not plan.cells:
        return say("bundle.plan.empty")
    if not 0 < plan.interval_ns <= TEN_YEARS_NS:
        return say("bundle.plan.interval", interval=plan.interval_ns)
    return next(_out_of_bounds(plan), None)


def _references(plan: Plan) -> Iterator[tuple[str, int, int]]:
    units, targets, cells = len(plan.units), len(plan.targets), len(plan.cells)
    for number, cell in enumerate(plan.cells):
        yield f"cells.{number}: unit", cell.unit, units
        yield f"cells.{number}: target", cell.target or 0, targets if cell.target is not None else 1
    for number, tree in enumerate(plan.trees):
        yield f"trees.{number}: target", tree.target, targets
    for number, worker in enumerate(plan.workers):
        yield f"workers.{number}: stage", worker.stage, MOST_STAGES
    for number, stream in enumerate(plan.streams):
        where = f"streams.{number}:"
        yield f"{where} worker", stream.worker, len(plan.workers)
        for use in stream.files:
            yield f"{where} target", use.target, targets
            yield f"{where} cell", use.cell, cells
        for before in stream.wait_for:
            yield f"{where} stream", before, len(plan.streams)
        yield from _of_tree(plan, stream, where)
    for number, rule in enumerate(plan.steady):
        for index in rule.streams:
            yield f"steady.{number}: stream", index, len(plan.streams)


def _of_tree(plan: Plan, stream: Stream, where: str) -> Iterator[tuple[str, int, int]]:
    if stream.tree is None:
        return
    yield f"{where} tree", stream.tree.tree, len(plan.trees)
    yield f"{where} cell", stream.tree.cell, len(plan.cells)
    if isinstance(stream.tree.operation, FileOperationCopy | FileOperationMove):
        yield f"{where} tree", stream.tree.operation.to, len(plan.trees)


def _out_of_bounds(plan: Plan) -> Iterator[str]:
    for number, stream in enumerate(plan.streams):
        if not cells_of(stream):
            yield say("bundle.plan.no_target", number=number)
