"""The targets of a stage: how they lay before and after, and what carries them.

Knows a bundle's environment, its data paths and its events `target_state`. Judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loadstone.audit.case import TargetState
from loadstone.path.layers import DataPath, Layer
from loadstone.plan.derived import targets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from loadstone.analysis.measurement import MeasuredLine
    from loadstone.bundle.read import Bundle

COPIES: Final = {"single": 1.0, "raid0": 1.0, "dup": 2.0, "raid1": 2.0, "raid10": 2.0, "raid1c3": 3.0}
"""Of btrfs by the profile of its data; with parity it depends on how much of a stripe is written."""
COUNTED: Final = ("block.", "nfs.")
"""Layers whose counters tell what reached the storage, by the prefix of their columns."""

_States = dict[tuple[Any, Any], dict[str, Any]]
"""Events by their target and when they tell of: `begin` or `end`."""


def targets(bundle: Bundle, line: MeasuredLine) -> list[TargetState]:
    """Return the targets that the streams of a line use, in the Plan's order of use."""
    plan, environment = bundle.plan, bundle.environment
    used = dict.fromkeys(one for index in line.streams for one in targets_of(plan, plan.streams[index]))
    before = {str(one.get("path")): one for one in environment.get("targets", [])}
    paths = {str(one["target"]): one for one in environment.get("paths") or []}
    # A file that was not followed has the path of another one on its mount.
    of_mounts = {_mount(before.get(name, {})): name for name in paths}
    states = _states(bundle)
    target_states = []
    for index in used:
        path = plan.targets[index].path
        facts = before.get(path, {})
        like = path if path in paths else of_mounts.get(_mount(facts))
        layers = None if like is None else _as_target(path, DataPath.model_validate(paths[like]))
        target_states.append(_target(bundle, index, facts, layers, states))
    return target_states


def _mount(facts: dict[str, Any]) -> str:
    """Name the mount of a target; what has none, or none that is known, is like itself alone."""
    return repr(sorted(facts["mount"].items())) if facts.get("mount") else str(facts.get("path"))


def _as_target(target: str, path: DataPath) -> DataPath | None:
    """Return a path as that of a target: under their file system two files have the same."""
    if path.target == target:
        return path
    if not path.layers or path.layers[0].kind != "file":
        return None
    first, *below = path.layers
    own = Layer(name=target, kind="file", below=first.below)
    return DataPath(target=target, layers=(own, *below))


def _target(
    bundle: Bundle, index: int, facts: dict[str, Any], layers: DataPath | None, states: _States
) -> TargetState:
    planned = bundle.plan.targets[index]
    begin, end = (states.get((index, when), {}) for when in ("begin", "end"))
    devices = [bundle.environment.get("devices", {}).get(name, {}) for name in facts.get("devices", [])]
    return TargetState(
        path=planned.path,
        size_bytes=facts.get("size_bytes") or planned.size_bytes or None,
        kind=planned.kind.value,
        file_system=facts.get("mount", {}).get("file_system"),
        allocated_bytes_before=begin.get("allocated_bytes", facts.get("allocated_bytes")),
        allocated_bytes_after=end.get("allocated_bytes"),
        unwritten_bytes_before=_unwritten(begin) if planned.kind == "file" else _unbacked(layers),
        unwritten_bytes_after=_unwritten(end),
        cached_bytes_before=begin.get("cached_bytes"),
        cached_bytes_after=end.get("cached_bytes"),
        carriers=_carriers(facts, layers),
        rotational=_rotational(layers, devices),
        reduces=_reduces(layers),
        path_layers=layers,
    )


def with_stored(target: TargetState, host: pl.DataFrame) -> TargetState:
    """Add what was never written of a device that tells how much it stores (zram)."""
    columns = [f"{name}.stored_bytes" for name in target.carriers]
    if target.size_bytes is None or len(columns) != 1 or columns[0] not in host.columns or not target.is_disk:
        return target
    stored = host[columns[0]].drop_nulls()
    if not len(stored) or target.unwritten_bytes_before is not None:
        return target
    return replace(target, unwritten_bytes_before=max(0, target.size_bytes - int(stored[0])))


def _states(bundle: Bundle) -> _States:
    """Return the first event of each target and time, in one pass: an hour has many."""
    first_events: _States = {}
    for event in bundle.events:
        if event.get("type") == "target_state":
            first_events.setdefault((event["target"], event.get("when")), event)
    return first_events


def _unwritten(state: dict[str, Any]) -> int | None:
    """Return holes and unwritten extents; of a file looked at in part that part stands for all."""
    if "hole_bytes" not in state or not state.get("looked_at_bytes"):
        return None
    unwritten_bytes = int(state["hole_bytes"]) + int(state.get("unwritten_bytes") or 0)
    return round(unwritten_bytes * int(state["size_bytes"]) / int(state["looked_at_bytes"]))


def _unbacked(layers: DataPath | None) -> int | None:
    """Return what was never written of the file under a loop device; None for any other device."""
    file = file_below(layers)
    return _unwritten(file.facts) if file is not None else None


def file_below(path: DataPath | None) -> Layer | None:
    """Return the first file on the only way down from a device; what lies below it may have files, too."""
    layer = path.layers[0] if path is not None and path.layers else None
    while path is not None and layer is not None and layer.kind != "file":
        layer = path.layer(layer.below[0]) if len(layer.below) == 1 else None
    return layer


def _carriers(facts: dict[str, Any], layers: DataPath | None) -> tuple[str, ...]:
    if layers is not None and layers.layers:
        return _nearest(layers)
    return tuple(f"block.{name}" for name in facts.get("devices", [])[:1])


def _nearest(path: DataPath) -> tuple[str, ...]:
    """Return the first counted layers on every way down from the target."""
    counters: dict[str, None] = {}
    waiting, visited = [path.layers[0]], {path.layers[0].name}
    while waiting:
        layer = waiting.pop(0)
        if layer.counters is not None and layer.counters.startswith(COUNTED):
            counters.setdefault(layer.counters)
            continue
        for name in layer.below:
            below = path.layer(name)
            if below is not None and name not in visited:
                visited.add(name)
                waiting.append(below)
    return tuple(counters)


def copies(paths: Sequence[TargetState]) -> float | None:
    """Return how often a byte is written by what lies above the carriers; None where they differ.

    What lies below them, an array's mirror, they do not count.
    """
    factors = {_copies(target.path_layers) for target in paths}
    return factors.pop() if len(factors) == 1 else None


def _copies(path: DataPath | None) -> float | None:
    if path is None:
        return None
    profiles = [layer.facts.get("data_profile") for layer in path.layers if layer.kind == "btrfs"]
    return COPIES.get(str(profiles[0]).lower()) if profiles else 1.0


def _rotational(path: DataPath | None, devices: Sequence[dict[str, Any]]) -> bool | None:
    """Return what the lowest device says that says anything.

    A path knows which devices only guess (virtual disks say that they rotate); without one, the
    kernel's word is taken.
    """
    if path is not None:
        facts = [layer.facts.get("rotational") for layer in path.layers]
        told_by_path = [value for value in facts if isinstance(value, bool)]
        return told_by_path[-1] if told_by_path else None
    flags = [one.get("queue", {}).get("rotational") for one in devices]
    known = [value == "1" for value in flags if value is not None]
    return known[-1] if known else None


def _reduces(path: DataPath | None) -> str | None:
    """Return the layer of a path that says of itself that it compresses or deduplicates."""
    for layer in path.layers if path is not None else ():
        for fact in ("compression", "deduplication"):
            value = layer.facts.get(fact)
            if value and value not in ("off", "none", "no"):
                return f"{layer.kind} {layer.name}: {fact} {value}"
        if layer.kind == "zram":
            return f"zram {layer.name}"
    return None
