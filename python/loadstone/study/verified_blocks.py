"""What one run of a study knows of verified blocks at its end, for those after it.

Knows which run used a target last, and which of its targets it was. What is known stands in a file
of that run's bundle, which only the engine reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.bundle import layout
from loadstone.plan.model import Earlier, EarlierTarget

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan


@dataclass(frozen=True, slots=True)
class _StatePlace:
    """Where it stands what is known of a target."""

    path: Path
    number: int
    block_bytes: int


@dataclass(slots=True)
class KnownBlocks:
    """What is known up to now, by the path of each target."""

    _of: dict[str, _StatePlace] = field(default_factory=dict)
    _first: Path | None = None
    """Whose stamps all have, also those of runs on other targets."""

    def before(self, plan: Plan) -> Plan:
        """Return the Plan with what the runs before it knew of its targets."""
        if not plan.hand_over or self._first is None:
            return plan
        block_bytes = _block_bytes(plan)
        pairs: dict[Path, list[EarlierTarget]] = {self._first: []}
        for number, target in enumerate(plan.targets):
            place = self._of.get(target.path)
            if place is not None and place.block_bytes == block_bytes:
                pairs.setdefault(place.path, []).append(EarlierTarget(there=place.number, here=number))
        earlier = tuple(Earlier(path=str(path), targets=tuple(targets)) for path, targets in pairs.items())
        return plan.model_copy(update={"earlier": earlier})

    def after(self, plan: Plan, bundle: Path) -> None:
        """Take note of what a run told. Of the targets of one that told nothing nothing is known."""
        path = (bundle / layout.KNOWN_BLOCKS).absolute()
        has_blocks = plan.hand_over and path.is_file()
        for number, target in enumerate(plan.targets):
            if has_blocks:
                self._of[target.path] = _StatePlace(path, number, _block_bytes(plan))
            elif not target.read_only:
                self._of.pop(target.path, None)
        if has_blocks and self._first is None:
            self._first = path


def _block_bytes(plan: Plan) -> int:
    return next((one.verify.block_bytes for one in plan.streams if one.verify is not None), 0)
