"""Which samples count for a rate: those of the operations that were asked for.

Syncs move no data, nor do the opens and closes of a connection. Work in a tree needs operations
nobody asked for: a file is opened before it is read, written when it is created. They have rows of
their own and are in no total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone.bundle.layout import OPS
from loadstone.plan.derived import asked_operations, cells_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from loadstone.plan.model import Plan

MOVES_DATA: Final = frozenset(range(OPS.index("sync")))
"""Numbers of reads, writes and trims."""


def requested(plan: Plan, cells: Collection[int] | None = None) -> dict[int, frozenset[int]]:
    """Return the operations that count of each cell, by their numbers; of some cells, or of all."""
    ops_by_cell: dict[int, frozenset[int]] = {}
    for stream in plan.streams:
        wanted = frozenset(OPS.index(op) for op in asked_operations(stream))
        for cell in cells_of(stream):
            if cells is None or cell in cells:
                ops_by_cell[cell] = ops_by_cell.get(cell, frozenset()) | (
                    wanted if stream.tree else MOVES_DATA
                )
    return ops_by_cell


def is_requested(plan: Plan) -> pl.Expr:
    """Return which rows with the columns `cell` and `op` count."""
    if not plan.trees:
        return pl.col("op") < OPS.index("sync")
    pairs = [cell * len(OPS) + op for cell, ops in requested(plan).items() for op in ops]
    return (pl.col("cell").cast(pl.Int64) * len(OPS) + pl.col("op").cast(pl.Int64)).is_in(pairs)


def added_up_names(plan: Plan) -> frozenset[str]:
    """Return the operations whose rates and latencies may be added up over a whole run, by name.

    Without a tree they are reads, writes and trims; in one anything may have been asked for but flushes.
    """
    if not plan.trees:
        return frozenset(OPS[op] for op in MOVES_DATA)
    return frozenset(OPS) - {"sync", "connection"}
