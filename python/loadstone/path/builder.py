"""A data path while it is being found.

Knows the layers found so far, in their order, where the kernel's trees are, and how a small file
is read. Several ways down meet in the same layer, which is told once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.path.block import SYS
from loadstone.path.layers import DataPath, Layer
from loadstone.path.mounts import PROC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from loadstone.path.layers import Ceiling, LayerKind


@dataclass
class Builder:
    """Layers by name, nearest first."""

    sys: Path = SYS
    proc: Path = PROC
    layers: dict[str, Layer | None] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    def begin(self, name: str) -> bool:
        """Keep a layer's place above those that will be found under it; False when it is known."""
        if name in self.layers:
            return False
        self.layers[name] = None
        return True

    def add(
        self,
        name: str,
        kind: LayerKind,
        facts: Mapping[str, Any],
        *,
        below: Iterable[str] = (),
        ceilings: Iterable[Ceiling | None] = (),
        counters: str | None = None,
    ) -> str:
        """Put a layer where it was begun, or at the end; facts that are None are not known."""
        self.layers[name] = Layer(
            name=name,
            kind=kind,
            below=tuple(dict.fromkeys(below)),
            facts={key: value for key, value in facts.items() if value is not None},
            ceilings=tuple(ceiling for ceiling in ceilings if ceiling is not None),
            counters=counters,
        )
        return name

    def gap(self, text: str) -> None:
        """Say what could not be seen, and why."""
        if text not in self.gaps:
            self.gaps.append(text)

    def path(self, target: str) -> DataPath:
        """Return what was found."""
        layers = tuple(layer for layer in self.layers.values() if layer is not None)
        return DataPath(target=target, layers=layers, gaps=tuple(self.gaps))


def text(path: Path) -> str | None:
    """Content of a small file of sysfs without its line end, `None` when it cannot be read."""
    try:
        return path.read_text(errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def number(path: Path) -> int | None:
    """Return a file that holds one decimal number."""
    content = text(path)
    try:
        return None if content is None else int(content)
    except ValueError:
        return None
