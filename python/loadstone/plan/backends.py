"""What each backend of the engine can do and asks for, and which one does the I/O of a named engine.

Knows the columns, which are explained in `crates/plan/src/backend.rs`. The rows are the engine's:
`make docs` makes `backends.json` of `contract/backends.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One row."""

    name: str
    virtual_time: bool
    virtual_targets: bool
    trees: bool
    named_targets: bool
    nvme_targets: bool
    keeps_data: str
    polls: bool
    priorities: bool
    force_async: bool
    reopens: bool
    native_depth: bool
    max_iodepth: int | None
    synchronous: bool
    reads: bool
    writes: bool
    trims: bool
    flushes: bool
    direct: str
    reads_need_write_access: bool


_ROWS: Final = json.loads(Path(__file__).with_name("backends.json").read_text(encoding="utf-8"))
BACKENDS: Final = {row["name"]: Capabilities(**row) for row in _ROWS}
_OF_ENGINE: Final = {
    **dict.fromkeys(("sync", "vsync", "pvsync", "pvsync2"), "psync"),
    **dict.fromkeys(("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"), "names"),
    "e4defrag": "move_extents",
    "libaio": "io_uring",
}
"""Engines with another backend than that of their name."""


def on_virtual_clock(plan: Plan) -> bool:
    """Whether a run's seconds are a model's, so that nothing counted on this host is of the same time."""
    return any(BACKENDS[worker.backend.type].virtual_time for worker in plan.workers)


def of_engine(name: str) -> Capabilities:
    """Return what the backend can do that does an engine's I/O; without one of its own it is a ring."""
    return BACKENDS.get(_OF_ENGINE.get(name, name)) or BACKENDS["io_uring"]
