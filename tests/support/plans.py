"""Plans as the documents an engine reads, small enough to write down in a test.

Knows the Plan's shape. Knows nothing of workloads: every field is given here.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

IO_URING = {
    "type": "io_uring",
    "registered_files": True,
    "fixed_buffers": True,
    "iopoll": False,
    "sqpoll": False,
}
NULL = {"type": "null"}


def order(block_bytes: int = 4096, random_percent: int = 100, *, repeat: bool = False) -> dict[str, Any]:
    """Addresses and sizes of one operation."""
    return {
        "random_percent": random_percent,
        "random": {"type": "uniform", "repeat": repeat},
        "stride_bytes": 0,
        "stride_spread_bytes": 0,
        "run_length": 1,
        "run_identical": False,
        "sizes": {"type": "fixed", "bytes": block_bytes},
        "align_bytes": block_bytes,
    }


NO_LIMITS: Final = {
    "start_delay_ns": 0,
    "ramp_ns": 0,
    "runtime_ns": 0,
    "time_based": False,
    "bytes": 0,
    "ops": 0,
    "ends_stage": False,
    "ends_stage_on_error": False,
    "max_latency_ns": [0, 0, 0],
    "prepare_only": False,
}
NO_ERRORS: Final = {
    "continue_read": False,
    "continue_write": False,
    "ignore_read": [],
    "ignore_write": [],
    "continue_after": [],
}
NO_FLUSH: Final = {"fsync_every": 0, "fdatasync_every": 0, "at_end": False, "on_close": False}
PAYLOAD: Final = {
    "fill": {"type": "random"},
    "refill": False,
    "stamp": True,
    "compress_percent": 0,
    "compress_chunk_bytes": 0,
    "dedupe_percent": 0,
    "dedupe_set": None,
    "dedupe_unit_bytes": 0,
}


def changed_fields(fields: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The fields, with those of `changes` that are of them, which are taken out there."""
    return copy.deepcopy(dict(fields)) | {key: changes.pop(key) for key in list(changes) if key in fields}


def stream(**changes: Any) -> dict[str, Any]:
    """A stream of 4 KiB reads; `changes` replace fields of it, of its pattern or of its limits."""
    block_bytes, random = changes.pop("block_bytes", 4096), changes.pop("random_percent", 100)
    addresses = order(block_bytes, random, repeat=changes.pop("repeat", False))
    read, trim = changes.pop("read_percent", 100), changes.pop("trim_percent", 0)
    limits = changed_fields(NO_LIMITS, changes)
    flush = changed_fields(NO_FLUSH, changes)
    pace = {"read": None, "write": None, "trim": None, "think": None} | changes.pop("pace", {})
    file = {"target": 0, "cell": 0, "offset_bytes": 0, "length_bytes": changes.pop("length_bytes", 1 << 20)}
    return {
        "name": "job.0",
        "worker": 0,
        "files": [file],
        "file_choice": {"type": "round_robin", "every": 1},
        "seed": 7,
        "iodepth": 16,
        "batch": None,
        "pattern": {
            "read_percent": read,
            "write_percent": 100 - read - trim,
            "trim_percent": trim,
            "trim_then_write": False,
            "read": addresses,
            "write": addresses,
            "trim": addresses,
            "strided": None,
            "rows": None,
        },
        "pace": pace,
        "flush": flush,
        "payload": copy.deepcopy(PAYLOAD),
        "limits": limits,
        "errors": copy.deepcopy(NO_ERRORS),
        "log_ios": False,
        "verify": None,
        "headers": None,
        "connection": None,
        "flow": None,
        "serialize_overlap": False,
        "wait_for": [],
        "search": None,
        "open_files": None,
        "priorities": [],
        "tree": None,
    } | changes


def target(path: Path | str, kind: str = "file", size_bytes: int = 1 << 20, **changes: Any) -> dict[str, Any]:
    """A target."""
    return {
        "path": str(path),
        "kind": kind,
        "size_bytes": size_bytes,
        "direct": False,
        "read_only": False,
        "create": False,
        "sync": "none",
        "exclusive": False,
        "identity": None,
        "layout": None,
        "invalidate": False,
        "advice": None,
        "unlink": False,
        "namesake": None,
        "named": None,
    } | changes


def layout(size_bytes: int) -> dict[str, Any]:
    """A file really written."""
    return {
        "size_bytes": size_bytes,
        "truncate": False,
        "fallocate": "native",
        "write": True,
        "fsync": False,
        "seed": 1,
    }


def plan(
    targets: list[dict[str, Any]],
    streams: list[dict[str, Any]],
    workers: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A Plan with one cell per target."""
    return {
        "version": 1,
        "interval_ns": 100_000_000,
        "grace_ns": 1_000_000_000,
        "memory_limit_bytes": 1 << 30,
        "targets": targets,
        "units": [{"name": "job", "group": 0, "clone": None}],
        "cells": [{"unit": 0, "target": index} for index in range(len(targets))],
        "workers": workers or [worker()],
        "streams": streams,
        "journal": None,
        "recover": None,
        "earlier": [],
        "hand_over": False,
        "steady": [],
        "trees": [],
    } | changes


def worker(backend: dict[str, Any] | None = None, stage: int = 0) -> dict[str, Any]:
    """A thread."""
    return {
        "stage": stage,
        "backend": backend or IO_URING,
        "cpus": [],
        "nice": 0,
        "io_priority": 0,
        "force_async": 0,
    }
