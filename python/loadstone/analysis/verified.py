"""What was read back: how many blocks held what they should, and of how many nothing could be said.

Knows the engine's count at the end of each stream. Where the damage lies is among the problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle


@dataclass(frozen=True, slots=True)
class Verified:
    """Blocks of all streams that checked what they read. `checked` held what they should."""

    checked: int
    damaged: int
    unverified: int


def verified(bundle: Bundle) -> Verified | None:
    """Return what was verified, None when no stream of the run came to the end of checking."""
    ends = [event for event in bundle.events if event.get("type") == "verify_end"]
    if not ends:
        return None
    return Verified(*(sum(int(end[name]) for end in ends) for name in ("checked", "damaged", "unverified")))
