"""Which streams still searched the depth of a latency target when their run ended.

Knows Plans and samples. Knows no format: fio's figures count what such a stream did, the audit does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


def searching(plan: Plan, samples: pl.DataFrame) -> frozenset[int]:
    """Return the streams that search the depth of a latency target, and have not found it yet.

    `samples` has the columns of contract/README.md: what such a stream did is all `ramp`.
    """
    cells_of = {
        index: {use.cell for use in stream.files}
        for index, stream in enumerate(plan.streams)
        if stream.search is not None and not stream.search.keep_on
    }
    if not cells_of:
        return frozenset()
    counted = set(samples.filter(~pl.col("ramp"))["cell"].unique())
    return frozenset(index for index, cells in cells_of.items() if not cells & counted)
