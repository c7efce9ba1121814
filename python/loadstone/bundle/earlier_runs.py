"""Runs kept beside a new one that went over the same places in the same order.

Knows Plans of bundles in one directory. Does not know what any cache made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from loadstone import input_file
from loadstone.bundle import layout
from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Stream

MOST: Final = 50
"""Of more runs only the newest are looked at: a new one waits for it."""
MOST_BYTES: Final = 1 << 20


def sequence(plan: Plan, stream: Stream) -> tuple[object, ...] | None:
    """Return what decides the order of a stream's addresses; None when none of them is random."""
    pattern = stream.pattern
    ops = ((pattern.read, pattern.read_percent), (pattern.write, pattern.write_percent))
    if stream.tree is not None or not any(op.random_percent and percent for op, percent in ops):
        return None
    places = tuple(
        (plan.targets[use.target].path, use.offset_bytes, use.length_bytes) for use in stream.files
    )
    return (stream.seed, places, pattern)


def same_sequence(plan: Plan, directory: Path, own: Path) -> list[str]:
    """Return the names of runs in a directory that share a sequence of addresses with a Plan."""
    sequences = {
        stream_sequence for stream in plan.streams if (stream_sequence := sequence(plan, stream)) is not None
    }
    if not sequences or not directory.is_dir():
        return []
    plans = [path for path in directory.glob(f"*/{layout.PLAN}") if path.parent != own]
    plans = [path for path in plans if path.stat().st_size <= MOST_BYTES]
    newest = sorted(plans, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST]
    return sorted(path.parent.name for path in newest if sequences & _sequences(path))


def _sequences(path: Path) -> set[tuple[object, ...]]:
    """Return the sequences of a Plan on disk; one that cannot be read has none to tell."""
    try:
        plan = Plan.model_validate_json(input_file.start(path, MOST_BYTES))
    except (OSError, ValidationError):
        return set()
    return {
        stream_sequence for stream in plan.streams if (stream_sequence := sequence(plan, stream)) is not None
    }
