"""What bundles of earlier formats lack.

Knows for each format which fields of a Plan came after it and what their absence meant. The
Plan itself has no defaults for them: a new one says everything. Knows the column of the tables
that came later, too.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import polars as pl

Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)

_RATE_SINCE_2: Final = {"profile": [], "phase": 0.0}
"""Rates did not change over a run, and clones did not take turns."""
_STREAM_SINCE_2: Final = {"verify": None, "flow": None, "serialize_overlap": False}

_PRIORITY: Final = pl.lit(0, pl.UInt16).alias("priority")
"""All I/Os had the one priority of the engine."""


def filled(table: Table) -> Table:
    """Return a table with the column it did not have yet."""
    return table if "priority" in table.collect_schema() else table.with_columns(_PRIORITY)


def completed(plan: Any, format_: int) -> Any:
    """Return a Plan's document with what its format did not have yet."""
    if not isinstance(plan, dict):
        return plan
    plan = {**plan, "streams": [_walks(stream) for stream in plan.get("streams", ())]}
    if format_ >= 2:
        return plan
    return {**plan, "streams": [_stream(stream) for stream in plan["streams"]]}


def _walks(stream: Any) -> Any:
    """Let strides be of one length, as all were once."""
    pattern = stream.get("pattern") if isinstance(stream, dict) else None
    if not isinstance(pattern, dict):
        return stream
    ways = {op: pattern[op] for op in ("read", "write", "trim") if isinstance(pattern.get(op), dict)}
    ways = {op: {"stride_spread_bytes": 0, **way} for op, way in ways.items()}
    return {**stream, "pattern": {**pattern, **ways}}


def _stream(stream: Any) -> Any:
    if not isinstance(stream, dict):
        return stream
    pace = stream.get("pace")
    if isinstance(pace, dict):
        pace = {op: _rate(rate) for op, rate in pace.items()}
    return {**_STREAM_SINCE_2, **stream, "pace": pace}


def _rate(rate: Any) -> Any:
    return {**_RATE_SINCE_2, **rate} if isinstance(rate, dict) and "amount" in rate else rate
