"""What was read back: how many blocks held what they should, and of how many nothing could be said.

Knows the engine's count at the end of each stream. Where the damage lies is among the problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from loadstone.bundle.read import Bundle


@dataclass(frozen=True, slots=True)
class VerifiedBlocks:
    """Blocks of streams that checked what they read; `damaged` are among the `checked`."""

    checked: int
    damaged: int
    unverified: int


def verified(bundle: Bundle, streams: Container[int] | None = None) -> VerifiedBlocks | None:
    """Return what was verified by some streams, or by all; None when none came to the end of checking."""
    ends = [
        event
        for event in bundle.events
        if event.get("type") == "verify_end" and (streams is None or int(event["stream"]) in streams)
    ]
    if not ends:
        return None
    right, damaged, unverified = (
        sum(int(end[name]) for end in ends) for name in ("checked", "damaged", "unverified")
    )
    return VerifiedBlocks(right + damaged, damaged, unverified)
