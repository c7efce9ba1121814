"""What an agent sees of targets on its host, before anything is changed there.

Knows the guard's questions and a target's identity. Changes nothing.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import units
from loadstone.hosts.assignment import SeenTarget
from loadstone.path.discover import discover
from loadstone.path.identity import file_handle, identity
from loadstone.plan.model import TargetKind
from loadstone.plan.safety import guard, in_use
from loadstone.plan.safety.in_use import Snapshot

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


def look_at(plan: Plan, consent: guard.Consent) -> list[SeenTarget]:
    """Look at every target as the guard does, and change nothing."""
    host, written = Snapshot(), guard.written(plan)
    parts = {tree.target for tree in plan.trees if tree.part.count > 1}
    seen_targets = []
    for index, target in enumerate(plan.targets):
        if target.kind is TargetKind.VIRTUAL:
            continue
        finding = guard.examine(target, host, consent) if index in written else None
        node = target.path if target.namesake is None else target.namesake.path
        handle = file_handle(node)
        seen_targets.append(
            SeenTarget(
                path=target.path,
                identity=identity(node),
                also=() if handle is None else (handle,),
                written=index in written,
                size_bytes=target.size_bytes,
                kind=str(target.kind.value),
                forbidden=tuple(finding.forbidden) if finding else (),
                in_use=tuple(finding.in_use) if finding else (),
                needs_consent=tuple(finding.needs_consent) if finding else (),
                named_at=consent.places.get(target.path),
                laid_out_by_run=guard.layout_changes(target),
                is_part=index in parts,
            )
        )
    return seen_targets


def behind(path: str) -> dict[str, Any]:
    """Return what is behind a path, for a check of hosts without a job."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        return {"missing": error.strerror or str(error), "identity": None}
    handle = file_handle(path)
    data_path = discover(path)
    limits = [one for layer in data_path.layers for one in layer.ceilings if one.quantity == "bytes_per_s"]
    lowest = min(limits, key=lambda one: one.per_s, default=None)
    uses = in_use.device_uses if stat.S_ISBLK(mode) else in_use.file_uses
    return {
        "identity": identity(path),
        "also": [] if handle is None else [handle],
        "layers": [layer.name for layer in data_path.layers],
        "ceiling": None if lowest is None else f"{units.bandwidth_decimal(lowest.per_s)} ({lowest.source})",
        "in_use": uses(Path(path), Snapshot()),
    }
