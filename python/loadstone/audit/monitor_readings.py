"""What the monitors saw, in the time that counts.

Knows the columns of the host table and how its seconds lie on the seconds of the load. A row of
the table stands for the `dt_ns` before its `t_ns`; the load is cut at those edges, so that what
was asked for and what was moved are of the same time. Judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import polars as pl

from loadstone.audit.case import CarrierTraffic, Moved, Op
from loadstone.audit.targets import copies
from loadstone.bundle.table_rows import columns_of, rows_where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.audit.case import TargetState

OPS: Final[tuple[Op, ...]] = ("read", "write", "trim")
SLACK_NS: Final = 20_000_000
"""How far a row may reach beyond the measured time: the monitors wake up a little late."""
COUNTED: Final = ("ops", "errors", "bytes")
AMOUNTS: Final = ("start_ns", "end_ns", *COUNTED)
"""Of samples or their sums over time: when it was, and what was done."""
UNWATCHED_NS: Final = 2_000_000_000
"""More than a second that was not over, and one that came late."""
MIN_SECONDS: Final = 0.5
"""Over less, the edges of the seconds weigh as much as what lies between them."""


def to_the_end(host: pl.DataFrame, cost: dict[str, Any] | None, bounds_ns: tuple[int, int]) -> pl.DataFrame:
    """Return no rows where the monitors ended before the measured time: what came later nobody saw."""
    given_up = "all" in ((cost or {}).get("failed") or {})
    seen_ns = max(host["t_ns"].drop_nulls().to_list(), default=0)
    return host.clear() if given_up and seen_ns < bounds_ns[1] - UNWATCHED_NS else host


def outside(host: pl.DataFrame, left_out: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Return the rows that reach into nothing that is left out of the figures."""
    for first, last in left_out:
        end, length = _times(host)
        host = rows_where(host, (end <= first) | (end - length >= last))
    return host


def within(host: pl.DataFrame, bounds_ns: tuple[int, int]) -> pl.DataFrame:
    """Return the rows of which most lies in the measured time."""
    end, length = _times(host)
    middle = end - length // 2
    return rows_where(host, (middle >= bounds_ns[0]) & (middle <= bounds_ns[1]))


def inside(host: pl.DataFrame, bounds_ns: tuple[int, int]) -> pl.DataFrame:
    """Return the rows that lie in the measured time as a whole."""
    end, length = _times(host)
    return rows_where(host, (end - length >= bounds_ns[0] - SLACK_NS) & (end <= bounds_ns[1] + SLACK_NS))


def _times(host: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return host["t_ns"].to_numpy(), host["dt_ns"].to_numpy()


def total(host: pl.DataFrame | None, *columns: str) -> float | None:
    """Return the sum of columns over all rows, None when none of them is there."""
    if host is None:
        return None
    known_columns = set(host.columns)
    values = [host[name] for name in columns if name in known_columns]
    if all(one.null_count() == len(one) for one in values):
        return None
    return float(sum(cast("float", one.sum()) for one in values))


def seconds(host: pl.DataFrame | None) -> float:
    """Return the time that the rows stand for."""
    return (total(host, "dt_ns") or 0.0) / 1e9


def levels(host: pl.DataFrame | None, column: str) -> list[float]:
    """Return what a column said, in the order of time."""
    if host is None or column not in host.columns:
        return []
    return [float(value) for value in host[column].drop_nulls().to_list()]


def traffic(
    host: pl.DataFrame, series: pl.DataFrame, targets: Sequence[TargetState], bounds_ns: tuple[int, int]
) -> CarrierTraffic | None:
    """Return what went through the targets' carriers.

    None when one of them is not watched, or lies below another: it moves the same bytes again.
    """
    carriers = tuple(dict.fromkeys(name for target in targets for name in target.carriers))
    known = [f"{name}.{op}_bytes" for name in carriers for op in ("read", "write")]
    if not carriers or any(not target.carriers or _below(target) & set(carriers) for target in targets):
        return None
    if not set(known) <= set(host.columns):
        return None
    rows = inside(host, bounds_ns).drop_nulls(known)
    if seconds(rows) < MIN_SECONDS:
        return None
    return CarrierTraffic(
        carriers=tuple(name.partition(".")[2] for name in carriers),
        seconds=seconds(rows),
        asked=load(series, rows),
        moved={op: _moved(rows, carriers, op) for op in OPS},
        merges=total(rows, *(f"{name}.{op}_merges" for name in carriers for op in OPS)),
        inflight=_inflight(rows, carriers),
        flushes=total(rows, *(f"{name}.flushes" for name in carriers)),
        copies=copies(targets),
    )


def _below(target: TargetState) -> set[str]:
    """Return the counted layers under a target's own carriers."""
    layers = target.path_layers.layers if target.path_layers is not None else ()
    return {layer.counters for layer in layers if layer.counters is not None} - set(target.carriers)


def load(series: pl.DataFrame, rows: pl.DataFrame) -> dict[Op, Moved]:
    """Return what the load did of each operation in the time that rows stand for."""
    times = stretches(rows)
    amounts, ops = columns_of(series, AMOUNTS), series["op"]
    return {op: moved_in(rows_where(amounts, (ops == op).to_numpy()), times) for op in OPS}


def load_bytes(series: pl.DataFrame, rows: pl.DataFrame, op: str) -> NDArray[np.float64]:
    """Return the bytes that the load moved in the time of each row; windows do not overlap."""
    own = series.filter(pl.col("op") == op).sort("start_ns")
    if own.height == 0:
        return np.zeros(rows.height)
    edges = own.select("start_ns", "end_ns").to_numpy().astype(np.float64).ravel()
    sums = np.cumsum(own["bytes"].to_numpy().astype(np.float64))
    moved = np.column_stack([np.concatenate([[0.0], sums[:-1]]), sums]).ravel()
    end, length = (rows[name].to_numpy().astype(np.float64) for name in ("t_ns", "dt_ns"))
    row_bytes: NDArray[np.float64] = np.interp(end, edges, moved) - np.interp(end - length, edges, moved)
    return row_bytes


def _moved(rows: pl.DataFrame, carriers: tuple[str, ...], op: Op) -> Moved:
    return Moved(
        ios=total(rows, *(f"{name}.{op}s" for name in carriers)) or 0.0,
        bytes=total(rows, *(f"{name}.{op}_bytes" for name in carriers)) or 0.0,
    )


def _inflight(rows: pl.DataFrame, carriers: tuple[str, ...]) -> float | None:
    """Return the summed latency over the time: Little's law, counted by the devices themselves."""
    waited_ns = total(rows, *(f"{name}.{op}_time_ns" for name in carriers for op in OPS))
    return None if waited_ns is None else waited_ns / 1e9 / seconds(rows)


def stretches(rows: pl.DataFrame) -> list[tuple[int, int]]:
    """Return the times that rows cover without a gap; of a whole run it is one."""
    if not rows.height:
        return []
    ends, lengths = _times(rows)
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    starts = ends - lengths[order]
    apart = starts[1:] > ends[:-1]
    firsts, lasts = starts[np.r_[True, apart]], ends[np.r_[apart, True]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def moved_in(series: pl.DataFrame, times: Sequence[tuple[int, int]]) -> Moved:
    """Return what was done in some `stretches`; a window that straddles an edge of one counts in part."""
    if series.height == 0:
        return Moved(0.0, 0.0)
    begin, end = (series[name].to_numpy().astype(np.float64) for name in ("start_ns", "end_ns"))
    covered = np.zeros(len(begin))
    for first, last in times:
        covered += np.clip(np.minimum(end, last) - np.maximum(begin, first), 0, None)
    parts: NDArray[np.float64] = covered / np.maximum(end - begin, 1)
    done, failed, amount = (float((series[name].to_numpy() * parts).sum()) for name in COUNTED)
    # What failed was asked for, too, and the device counts it; its size is that of the others.
    return Moved(done + failed, amount * (1 + failed / done) if done else 0.0)
