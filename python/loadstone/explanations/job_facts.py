"""What of a phase's jobs decides which explanations can hold for it.

Knows neither where that was read nor what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GRID_BYTES: Final = 4096
WHOLE: Final = 0.5
"""A phase that uses more of its targets than this is no short stroke."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One phase. `depth`: of all streams together."""

    reads: bool
    writes: bool
    in_order: bool
    """Some of its I/Os follow each other on the target."""
    paced: bool
    depth: int
    targets: int
    partial: bool
    """It uses less than half of its targets."""
    off_grid: bool
    repeats_payload: bool
    """What it writes is not new every time."""
    in_tree: bool
