"""When the load generator itself stood still, and what of a run does not count for it.

The engine tells a wake-up that came much too late (`stopped`): a signal, a frozen machine, a host
that ran something else. What was in flight then waited for the engine, not for the storage. Knows
which intervals are left out for it; judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone import units

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle

SLACK_NS: Final = 30_000_000
"""The threads of the engine go on within this of each other."""
MOST_LEFT_OUT: Final = 0.5
"""Where more of the run would go, stops are a part of it and nothing is left out."""


@dataclass(frozen=True)
class Stops:
    """`times` of the stops, and the spans `left_out`: the whole intervals they reach into."""

    times: tuple[tuple[int, int], ...] = ()
    left_out: tuple[tuple[int, int], ...] = ()

    @property
    def stopped_ns(self) -> int:
        """All stops together."""
        return sum(end - begin for begin, end in self.times)

    @cached_property
    def text(self) -> str | None:
        """Say what was left out; None when the engine never stood still."""
        if not self.times:
            return None
        many = f"{len(self.times)} times" if len(self.times) > 1 else "once"
        lost = sum(end - begin for begin, end in self.left_out)
        consequence = (
            f"{units.seconds(lost / 1e9)} around it are left out" if lost else "nothing is left out for it"
        )
        stopped = units.seconds(self.stopped_ns / 1e9)
        return f"the load generator stood still {many}, for {stopped} in all: {consequence}"


def stops(bundle: Bundle) -> Stops:
    """Return the stops that the engine told, and what is left out for them."""
    times = _times(bundle)
    if not times:
        return Stops()
    interval = bundle.plan.interval_ns
    windows = [
        (begin // interval * interval, -(-(end + SLACK_NS) // interval) * interval) for begin, end in times
    ]
    # A worker that was kept from its cut has rows that reach beyond the grid.
    bounds = [
        pair
        for piece in bundle.sample_pieces(["start_ns", "end_ns"])
        for pair in piece.unique().iter_rows()
        if any(pair[0] < last and pair[1] > first for first, last in windows)
    ]
    left_out = merged([*windows, *bounds])
    end_ns = max((end for piece in bundle.sample_pieces(["end_ns"]) for end in piece["end_ns"]), default=0)
    left_out = [(begin, min(end, end_ns)) for begin, end in left_out if begin < end_ns]
    if sum(end - begin for begin, end in left_out) > MOST_LEFT_OUT * end_ns:
        left_out = []
    return Stops(tuple(times), tuple(left_out))


def _times(bundle: Bundle) -> list[tuple[int, int]]:
    stop_events = [event for event in bundle.events if event.get("type") == "stopped"]
    return [(int(one["t_ns"]) - int(one["stopped_ns"]), int(one["t_ns"])) for one in stop_events]


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans apart and ascending."""
    merged_spans: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged_spans and begin <= merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], max(merged_spans[-1][1], end))
        else:
            merged_spans.append((begin, end))
    return merged_spans


def without(spans: list[tuple[int, int]], left_out: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Return spans without what is left out."""
    remaining = spans
    for first, last in left_out:
        remaining = [
            part
            for begin, end in remaining
            for part in ((begin, min(end, first)), (max(begin, last), end))
            if part[0] < part[1]
        ]
    return remaining


def outside(left_out: tuple[tuple[int, int], ...], start: str = "start_ns", end: str = "end_ns") -> pl.Expr:
    """Return which rows with these bounds lie outside of what is left out, by their middle.

    Hosts cut their rows at different times: if all that touch a span went, more than its time would go.
    """
    hit = pl.lit(False)
    middle = (pl.col(start) + pl.col(end)) // 2
    for first, last in left_out:
        hit = hit | ((middle >= first) & (middle < last))
    return ~hit
