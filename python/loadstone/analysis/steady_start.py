"""From when on a run counts that was asked to leave out its start until the load had settled.

Knows how the series is made of which `analysis.steady` says where it settled: the I/Os of every
interval of the measured time, syncs left out. The bundle keeps all of the run; only what counts
is chosen, so the same bundle gives the same answer every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone import units
from loadstone.analysis.requested_ops import is_requested
from loadstone.analysis.statistics.steady import steady_from

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle

OPTION: Final = "ramp_until_steady"
WHOLE: Final = 0.9
"""Intervals shorter than this share of the usual length are the moments of starting and draining."""


@dataclass(frozen=True, slots=True)
class SteadyStart:
    """`from_ns`: since the run's origin; 0 when nothing is left out. `text` says so in words."""

    from_ns: int
    text: str | None


def settled(bundle: Bundle) -> SteadyStart:
    """Return from when on a run counts; all of it when nobody asked, or when it never settled."""
    if not bundle.request.get("options", {}).get(OPTION):
        return SteadyStart(0, None)
    columns = ["interval", "start_ns", "end_ns", "cell", "op", "ramp", "ops"]
    counts = is_requested(bundle.plan)
    pieces = [piece.filter(~pl.col("ramp") & counts) for piece in bundle.sample_pieces(columns)]
    if not pieces:
        return SteadyStart(0, None)
    table = (
        pl.concat(pieces)
        .group_by("interval")
        .agg(pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("ops").sum())
        .sort("interval")
        .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length_ns"))
        .filter(pl.col("length_ns") >= WHOLE * bundle.plan.interval_ns)
    )
    rates = (table["ops"] / table["length_ns"]).to_list()
    start = steady_from(rates)
    if start is None:
        why = "it is too short to tell" if len(rates) < 50 else "it never settled"
        return SteadyStart(0, f"nothing is left out for settling: {why}")
    from_ns = int(table["start_ns"][start])
    left_out_s = (from_ns - int(table["start_ns"][0])) / 1e9
    if not left_out_s:
        return SteadyStart(0, "nothing is left out for settling: the load was steady from the start")
    return SteadyStart(
        from_ns, f"the first {units.seconds(left_out_s)} are left out: the load had not settled"
    )
