"""What else differs between runs that are compared: the hosts, the devices, the Plans.

Knows which facts move from minute to minute and are no difference. Judges nothing.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.bundle.read import Bundle

MOVING: Final = (
    "host.uptime_s",
    "host.load_average",
    "host.memory.available_bytes",
    "targets[[]*].allocated_bytes",
    "targets[[]*].file_system_space.*",
    "targets[[]*].missing",
    "targets[[]*].size_bytes",
    "paths[[]*].layers[[]*].facts.*bytes*",
    "paths[[]*].layers[[]*].facts.*share*",
    "paths[[]*].layers[[]*].facts.*extents*",
)
"""Facts of the environment that differ from run to run on the same system."""
OWN: Final = ("*.seed", "*.identity*", "*.run")
"""Parts of a Plan that are its own and no setting."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same on all sides; a side that does not know it has a dash."""

    where: Literal["environment", "plan"]
    key: str
    values: tuple[str, ...]


def differences(sides: Sequence[Bundle]) -> list[Difference]:
    """Return what differs, first the environment, then the Plan, keys ascending."""
    environments = [_flat(side.environment, MOVING) for side in sides]
    plans = [_flat(side.plan.model_dump(mode="json"), OWN) for side in sides]
    return [*_differing("environment", environments), *_differing("plan", plans)]


def _differing(
    where: Literal["environment", "plan"], sides: Sequence[dict[str, str]]
) -> Iterator[Difference]:
    for key in sorted({key for side in sides for key in side}):
        values = tuple(side.get(key, "–") for side in sides)
        if len(set(values)) > 1:
            yield Difference(where, key, values)


def _flat(tree: Any, left_out: tuple[str, ...]) -> dict[str, str]:
    """Return every leaf by its path. Elements of lists are one entry: `streams[*].iodepth`."""
    found: dict[str, dict[str, None]] = {}
    for key, value in _leaves(tree, ""):
        if not any(fnmatch.fnmatchcase(key, pattern) for pattern in left_out):
            found.setdefault(re.sub(r"\[\d+\]", "[*]", key), {})[value] = None
    return {key: ", ".join(values) for key, values in found.items()}


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for name, branch in tree.items():
            yield from _leaves(branch, f"{path}.{name}" if path else str(name))
    elif isinstance(tree, list):
        for at, branch in enumerate(tree):
            yield from _leaves(branch, f"{path}[{at}]")
    elif tree is not None:
        yield path, str(tree)
