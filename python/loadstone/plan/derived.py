"""What follows from a Plan and is not written in it: cells, targets and operations of a stream.

Knows the Plan's shape, not how a Plan is made or run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.plan.model import FileOperationCopy, FileOperationMove

if TYPE_CHECKING:
    from loadstone.plan.model import Plan, Stream


def cells_of(stream: Stream) -> frozenset[int]:
    """Return the cells its samples are counted in."""
    return frozenset((stream.tree.cell,) if stream.tree is not None else (use.cell for use in stream.files))


def targets_of(plan: Plan, stream: Stream) -> tuple[int, ...]:
    """Return the numbers of the targets a stream works on, each once; a tree's is its anchor."""
    if stream.tree is None:
        return tuple(dict.fromkeys(use.target for use in stream.files))
    trees = [stream.tree.tree]
    if isinstance(stream.tree.operation, FileOperationCopy | FileOperationMove):
        trees.append(stream.tree.operation.to)
    return tuple(plan.trees[index].target for index in trees)


def asked_operations(stream: Stream) -> frozenset[str]:
    """Return the operations it was asked for; in a tree it does others besides, to get there."""
    shares = (stream.pattern.read_percent, stream.pattern.write_percent, stream.pattern.trim_percent)
    if stream.tree is not None and stream.tree.operation.type != "transfer":
        return frozenset((stream.tree.operation.type,))
    moves = {op for op, share in zip(("read", "write", "trim"), shares, strict=True) if share}
    if stream.headers is not None and stream.headers.only:
        moves -= {"write", "trim"}
    if stream.headers is not None and stream.headers.read_back:
        moves.add("read")
    return frozenset(moves | ({"write"} if stream.pattern.trim_then_write else set()))


def reads_back(stream: Stream) -> bool:
    """Whether it only reads back what other streams of its job wrote."""
    return stream.verify is not None and stream.verify.only_written


def changes_trees(plan: Plan) -> bool:
    """Whether files and directories are there afterwards that were not before, or the reverse."""
    return any(not plan.targets[tree.target].read_only for tree in plan.trees)
