"""How the targets' files lie on their file systems when a run begins and when it has ended.

Makes the events `target_state`. Not a collector: to ask every second would make the file systems
flush or lock what is being measured. Knows files only; a device has no holes that the host sees.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone.path.extents import allocation
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from loadstone.plan.model import Plan

MAX_TARGETS: Final = 64
"""Of more files only the first are looked at: the run waits for it."""


def states(plan: Plan, when: Literal["begin", "end"]) -> list[dict[str, Any]]:
    """Return one event per file that is there; what a file system does not say is left out."""
    files = [(at, one.path) for at, one in enumerate(plan.targets) if one.kind is TargetKind.FILE]
    events: list[dict[str, Any]] = []
    for at, path in files[:MAX_TARGETS]:
        file_allocation = allocation(path)
        if file_allocation is not None:
            known = {name: value for name, value in asdict(file_allocation).items() if value is not None}
            events.append({"type": "target_state", "when": when, "target": at, **known})
    return events
