"""I/O priorities in the Plan.

Mirrors `crates/engine/src/plan/priority.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from enum import StrEnum

from loadstone.plan.base import F64, U16, U32, Part


class PriorityOp(StrEnum):
    """Operations that can have a priority of their own."""

    READ = "read"
    WRITE = "write"


class PriorityShare(Part):
    """Reads or writes of a stream that have another priority than its thread."""

    op: PriorityOp
    block_bytes: U32 | None
    """Only those of this size; none: of any."""
    percent: F64
    priority: U16
    """As `ioprio_set(2)` has it."""
