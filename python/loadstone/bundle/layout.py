"""The names of a bundle's files and the columns of its tables.

Knows the files of docs/bundles.md and the columns of contract/README.md as constants. Reads and writes
nothing.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import polars as pl

FORMAT: Final = 10
"""Version of the directory's layout and of what stands in its files; a reader refuses every other.

It is raised when a field of the Workload or of the Plan is, with what reads them.
"""

MANIFEST: Final = "manifest.json"
REQUEST: Final = "request.json"
INPUT: Final = "input"
WORKLOAD: Final = "workload.json"
PLAN: Final = "plan.json"
NOTES: Final = "notes.json"
ENVIRONMENT: Final = "environment.json"
EVENTS: Final = "events.jsonl"
HOST: Final = "host.jsonl"
GROWTH: Final = "growth.json"
"""What the files that grow held when they were last looked at; gone when the bundle is sealed (`growth`)."""
HOST_TABLE: Final = "host.parquet"
WATCHED: Final = "watched"
"""Directory with the rows of each host that was watched: `NAME.jsonl`, sealed `NAME.parquet`."""
SUMS: Final = "sums.parquet"
"""What the histograms of the samples come to, made when the bundle is sealed (`sums`)."""
RESULT: Final = "result.json"
PROBES: Final = "probes"
"""Directory of the runs that were made after this one to tell what lies behind its number."""
PROBED: Final = "probes.json"
"""What they measured."""
JOURNAL: Final = "verify.journal"
"""The engine's journal of verified writes, where one was asked for."""
KNOWN_BLOCKS: Final = "verify.known"
"""What the engine knew of verified blocks at the end, where runs after it go on with that."""
STREAMS: Final = {"samples.arrows": "samples.parquet", "ios.arrows": "ios.parquet"}
"""What the engine writes, and what it becomes when the bundle is sealed."""

OpName = Literal[
    "read",
    "write",
    "trim",
    "sync",
    "mkdir",
    "rmdir",
    "create",
    "open",
    "close",
    "delete",
    "getattr",
    "setattr",
    "access",
    "copy",
    "move",
    "connection",
]
OPS: Final[tuple[OpName, ...]] = get_args(OpName)
"""The samples' `op` column is an index into these; from `mkdir` on they are done to files by name."""
LATENCIES: Final = ("lat", "slat", "clat", "wait")
"""The four latencies of an I/O; contract/README.md says between which two moments each runs."""

_PER_LATENCY: Final[dict[str, pl.DataType]] = {
    "sum_ns": pl.Float64(),
    "sumsq_ns2": pl.Float64(),
    "min_ns": pl.UInt64(),
    "max_ns": pl.UInt64(),
    "bucket": pl.List(pl.UInt16()),
    "count": pl.List(pl.UInt32()),
}

SAMPLES: Final = pl.Schema(
    {
        "interval": pl.UInt32(),
        "start_ns": pl.UInt64(),
        "end_ns": pl.UInt64(),
        "stage": pl.UInt32(),
        "cell": pl.UInt32(),
        "op": pl.UInt8(),
        "priority": pl.UInt16(),
        "ramp": pl.Boolean(),
        "ops": pl.UInt64(),
        "bytes": pl.UInt64(),
        "errors": pl.UInt64(),
        "shorts": pl.UInt64(),
        **{f"{latency}_{name}": kind for latency in LATENCIES for name, kind in _PER_LATENCY.items()},
    }
)
"""Columns of `samples.arrows` and `samples.parquet`: one row per (interval, cell, op, priority)."""
COUNTED: Final = pl.Schema({f"{latency}_samples": pl.Int64() for latency in LATENCIES})
"""Added when they are sealed: how many I/Os a row's histograms hold, for who does not read those."""
NUMBERS: Final = tuple(name for name, kind in SAMPLES.items() if not isinstance(kind, pl.List))
"""Columns of the samples without their histograms."""

IOS: Final = pl.Schema(
    {
        "t_ns": pl.UInt64(),
        "stream": pl.UInt32(),
        "target": pl.UInt32(),
        "op": pl.UInt8(),
        "priority": pl.UInt16(),
        "offset": pl.UInt64(),
        "bytes": pl.UInt32(),
        "wait_ns": pl.UInt64(),
        "slat_ns": pl.UInt64(),
        "clat_ns": pl.UInt64(),
        "lat_ns": pl.UInt64(),
        "error": pl.Int32(),
        "ramp": pl.Boolean(),
    }
)
"""Columns of `ios.arrows` and `ios.parquet`: one row per I/O."""

SCHEMAS: Final = {"samples.arrows": SAMPLES, "ios.arrows": IOS}
