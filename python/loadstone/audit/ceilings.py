"""The ceilings that hold for a case, and how much of each it used.

Knows how layers that stand side by side add up and that a path carries no more than its narrowest
place. Knows no rule and no link by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from loadstone.audit.case import Case, OpMeasurement
    from loadstone.path.layers import Ceiling, DataPath

RANDOM_PERCENT: Final = 90.0
TRANSPORTS: Final = {"iSCSI": "Ethernet", "NFS": "Ethernet", "NVMe/TCP": "Ethernet", "FC": "Fibre Channel"}
"""Links that are declared without a rate, and what they run on as a rule."""


@dataclass(frozen=True, slots=True)
class CeilingUse:
    """How much of a ceiling was used. `layer` is what carries it, `op` what it was held against."""

    layer: str
    ceiling: Ceiling
    per_s: float
    """The ceiling of all parts side by side."""
    reached_per_s: float
    op: str

    @property
    def share(self) -> float:
        """Part of the ceiling that was reached."""
        return self.reached_per_s / self.per_s


def uses(case: Case, kinds: Collection[str]) -> list[CeilingUse]:
    """Return every ceiling of these kinds with what was reached, the fullest first."""
    ceiling_uses = [
        use
        for ceiling in (case.declared.ceilings if case.declared else ())
        if ceiling.kind in kinds and _speaks_of(ceiling, case)
        for use in _held(case, ceiling, ceiling.per_s, _declared_name(case, ceiling))
    ]
    for name, ceiling, per_s in _of_paths(case, kinds):
        ceiling_uses += _held(case, ceiling, per_s, name)
    return sorted(ceiling_uses, key=lambda use: -use.share)


def _declared_name(case: Case, ceiling: Ceiling) -> str:
    """Return a declared link as it was written down, anything else by its source."""
    links = case.declared.links if case.declared else ()
    if ceiling.kind != "link" or not case.declared:
        return ceiling.source
    of_links = [one for one in case.declared.ceilings if one.kind == "link"]
    return links[of_links.index(ceiling)] if len(of_links) == len(links) else ceiling.source


def _speaks_of(ceiling: Ceiling, case: Case) -> bool:
    """Whether a ceiling holds for this kind of I/O.

    Bandwidth in order bounds random I/O, too; a rate of random I/O says nothing of I/O in order.
    """
    random = [job.random_percent or 0.0 for job in case.jobs]
    sizes = [size for job in case.jobs for size in job.block_bytes]
    if ceiling.access == "random" and min(random, default=0.0) < RANDOM_PERCENT:
        return False
    most = ceiling.block_bytes_at_most
    return most is None or (bool(sizes) and max(sizes) <= most)


def _held(case: Case, ceiling: Ceiling, per_s: float, layer: str) -> Iterable[CeilingUse]:
    """Hold what was measured against a ceiling: reads, writes, or both together."""
    ops: dict[str, OpMeasurement] = {str(op): measured for op, measured in case.ops.items()}
    wanted = {"read": ("read",), "write": ("write",), "each": ("read", "write"), "both": ("all",)}[ceiling.op]
    for op in wanted:
        measured = case.total if op == "all" else ops.get(op)
        if measured is None:
            continue
        figure = measured.iops if ceiling.quantity == "iops" else measured.bandwidth
        if figure is not None and figure.value > 0 and per_s > 0:
            yield CeilingUse(layer, ceiling, per_s, figure.value, op)


def _of_paths(case: Case, kinds: Collection[str]) -> list[tuple[str, Ceiling, float]]:
    """Return the narrowest place of the targets' paths for each thing that is limited.

    Targets that meet at the same narrowest place share it; different ones add up.
    """
    paths = [target.path_layers for target in case.targets if target.path_layers is not None]
    if not paths or len(paths) < len(case.targets):
        return []
    limited = {
        (ceiling.quantity, ceiling.op)
        for path in paths
        for layer in path.layers
        for ceiling in layer.ceilings
        if ceiling.kind in kinds and _speaks_of(ceiling, case)
    }
    bottlenecks = []
    for quantity, op in sorted(limited):
        places = [_narrowest(case, path, quantity, op, kinds) for path in paths]
        distinct = {place.layers: place for place in places if place is not None}
        if None not in places:
            name = " + ".join(sorted(set().union(*distinct)))
            per_s = sum(place.per_s for place in distinct.values())
            bottlenecks.append((name, next(iter(distinct.values())).ceiling, per_s))
    return bottlenecks


@dataclass(frozen=True, slots=True)
class _LayerSet:
    """Layers that limit a path together."""

    per_s: float
    layers: frozenset[str]
    ceiling: Ceiling


def _narrowest(
    case: Case, path: DataPath, quantity: str, op: str, kinds: Collection[str]
) -> _LayerSet | None:
    """Return the narrowest place of a path, None when nothing limits it.

    Layers side by side (paths of a multipath device, members of an array) carry their sum, which
    is more than a mirror carries: nothing honest lies above it.
    """
    known: dict[str, _LayerSet | None] = {}
    # From the medium up, so that what is below a layer is known when it is looked at.
    for layer in reversed(path.layers):
        own = [
            _LayerSet(ceiling.per_s, frozenset({layer.name}), ceiling)
            for ceiling in layer.ceilings
            if ceiling.kind in kinds
            and (ceiling.quantity, ceiling.op) == (quantity, op)
            and _speaks_of(ceiling, case)
        ]
        parts = [known.get(name) for name in layer.below]
        if parts and None not in parts:
            below = [part for part in parts if part is not None]
            layers = frozenset[str]().union(*(part.layers for part in below))
            own.append(_LayerSet(sum(part.per_s for part in below), layers, below[0].ceiling))
        known[layer.name] = min(own, key=lambda place: place.per_s, default=None)
    return known.get(path.layers[0].name) if path.layers else None
