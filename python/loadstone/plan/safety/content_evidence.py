"""What a file or device holds, as sentences; none when nothing would be lost.

Puts together what `content` sees and what `signatures` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.plan.safety import content, signatures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def evidence(path: Path, tell: Callable[[float], None] | None = None) -> list[str]:
    """Return what `path` holds. `tell` hears now and then what share was looked at."""
    try:
        looked = content.look(path, tell)
    except OSError as error:
        return [_unreadable(error)]
    if looked.held is None and not looked.samples:
        return []
    if looked.silent:
        return [str(looked.held)]
    try:
        sentences = [f"it carries {signature}" for signature in signatures.read(path)]
    except OSError as error:
        sentences = [_unreadable(error)] if looked.held is None else []
    return sentences if looked.held is None else [*sentences, looked.held]


def _unreadable(error: OSError) -> str:
    return say("plan.held.unreadable", reason=error.strerror)
