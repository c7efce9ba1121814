"""Rows and columns of a table chosen without a query: a study has hundreds of small tables.

Polars plans a query for every `filter` and `select`, which takes longer than to read a run's monitors.
Knows no table of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray


def rows_where(table: pl.DataFrame, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """Return the rows that are chosen, in their order; the table itself where all are."""
    return table if chosen.all() else table[np.flatnonzero(chosen)]


def columns_of(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the columns of these names, in this order; the table itself where it has no others."""
    return table if table.columns == list(names) else table[list(names)]
