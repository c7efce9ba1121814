"""What a run wrote, as far as its bundle tells: the load with its ramp, and what was laid out before.

Knows a bundle. Knows no budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from loadstone.bundle.layout import OPS

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle


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
