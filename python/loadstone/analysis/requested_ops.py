"""Which samples count for a rate: those of the operations that were asked for.

Syncs move no data. Work in a tree needs operations nobody asked for: a file is opened before it is
read, written when it is created. They have rows of their own and are in no total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from loadstone.bundle.layout import OPS
from loadstone.plan.derived import asked_operations, cells_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from loadstone.plan.model import Plan


def requested(plan: Plan, cells: Collection[int] | None = None) -> dict[int, frozenset[int]]:
    """Return the operations that count of each cell, by their numbers; of some cells, or of all."""
    ops_by_cell: dict[int, frozenset[int]] = {}
    everything = frozenset(range(len(OPS))) - {OPS.index("sync")}
    for stream in plan.streams:
        wanted = frozenset(OPS.index(op) for op in asked_operations(stream))
        for cell in cells_of(stream):
            if cells is None or cell in cells:
                ops_by_cell[cell] = ops_by_cell.get(cell, frozenset()) | (
                    wanted if stream.tree else everything
                )
    return ops_by_cell


def is_requested(plan: Plan) -> pl.Expr:
    """Return which rows with the columns `cell` and `op` count."""
    if not plan.trees:
        return pl.col("op") != OPS.index("sync")
    pairs = [cell * len(OPS) + op for cell, ops in requested(plan).items() for op in ops]
    return (pl.col("cell").cast(pl.Int64) * len(OPS) + pl.col("op").cast(pl.Int64)).is_in(pairs)
