"""Small Plans for the guard: what is written where is all that matters to it."""

from __future__ import annotations

import json
from typing import Any

from loadstone.plan.model import Plan


def target(path: str, kind: str = "file", **changes: Any) -> dict[str, Any]:
    return {
        "path": path,
        "kind": kind,
        "size_bytes": 1 << 20,
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
    } | changes


def plan(
    *targets: dict[str, Any],
    read: int = 0,
    write: int = 100,
    trim: int = 0,
    backend: dict[str, Any] | None = None,
    **limits: Any,
) -> Plan:
    """One stream with the given shares over all targets, 4 KiB random."""
    pattern = {
        "random_percent": 100,
        "random": {"type": "uniform", "repeat": True},
        "stride_bytes": 0,
        "run_length": 1,
        "run_identical": False,
        "sizes": {"type": "fixed", "bytes": 4096},
        "align_bytes": 4096,
    }
    document = {
        "version": 1,
        "interval_ns": 100_000_000,
        "grace_ns": 1_000_000_000,
        "memory_limit_bytes": 256 << 20,
        "targets": list(targets),
        "units": [{"name": "job", "group": 0, "clone": None}],
        "cells": [{"unit": 0, "target": index} for index in range(len(targets))],
        "workers": [{"stage": 0, "backend": backend or {"type": "psync"}, "cpus": [], "nice": 0}],
        "streams": [
            {
                "name": "job.0",
                "worker": 0,
                "files": [
                    {"target": index, "cell": index, "offset_bytes": 0, "length_bytes": one["size_bytes"]}
                    for index, one in enumerate(targets)
                ],
                "file_choice": {"type": "round_robin", "every": 1},
                "seed": 1,
                "iodepth": 1,
                "batch": None,
                "pattern": {
                    "read_percent": read,
                    "write_percent": write,
                    "trim_percent": trim,
                    "trim_then_write": False,
                    "read": pattern,
                    "write": pattern,
                    "trim": pattern,
                },
                "pace": {"read": None, "write": None, "trim": None, "think": None},
                "flush": {"fsync_every": 0, "fdatasync_every": 0, "at_end": False, "on_close": False},
                "payload": {
                    "fill": {"type": "random"},
                    "refill": False,
                    "stamp": True,
                    "compress_percent": 0,
                    "compress_chunk_bytes": 0,
                    "dedupe_percent": 0,
                },
                "limits": {
                    "start_delay_ns": 0,
                    "ramp_ns": 0,
                    "runtime_ns": 0,
                    "time_based": False,
                    "bytes": 1 << 20,
                    "ops": 0,
                    "ends_stage": False,
                }
                | limits,
                "errors": {
                    "continue_read": False,
                    "continue_write": False,
                    "ignore_read": [],
                    "ignore_write": [],
                },
                "log_ios": False,
                "verify": None,
            }
        ],
    }
    return Plan.model_validate_json(json.dumps(document))
