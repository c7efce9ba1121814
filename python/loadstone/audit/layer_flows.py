"""What went through each layer under the targets, held against what its neighbour above gave it.

Knows a path's layers, the monitors' counters over the seconds of the load, and what each kind of
layer does on purpose: a mirror writes twice, a stripe hands on as much as it gets, a journal in
data mode writes again, a loop without direct I/O keeps pages. What does not add up gets a name.
Judges no number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.analysis.path import merged_layers
from loadstone.audit import layer_state, monitor_readings, served
from loadstone.verdict import LayerFlow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from loadstone.audit.case import Moved, Op, TargetState
    from loadstone.path.layers import DataPath, Layer

OPS: Final[tuple[Op, ...]] = ("read", "write", "trim")
SLACK: Final = 0.05
"""Metadata, and the two clocks of the comparison."""
EDGES_S: Final = 0.1
LEAST_BYTES_PER_S: Final = 64 * 1024
"""Less than this is metadata of a file system, whatever its share."""
MIRRORED: Final = {"raid1": 2.0, "raid10": 2.0, "dup": 2.0, "raid1c3": 3.0, "raid1c4": 4.0}
DIVIDE: Final = ("btrfs", "md", "multipath", "lvm", "dm", "fuse")
"""Kinds of layers that divide what they get among those below."""
PARITY: Final = ("raid4", "raid5", "raid6")


def keeps_parity(layer: Layer) -> bool:
    """Tell whether a layer computes parity of what is written to it."""
    return any(one in _profile(layer) for one in PARITY)


def _profile(layer: Layer) -> str:
    """Return how an array lays its data out; nothing of what is none."""
    return str(layer.facts.get("data_profile") or layer.facts.get("level") or "").lower()


@dataclass(slots=True)
class _Flow:
    """What one layer did, or was given, in the seconds of the comparison."""

    ios: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    flushes: float | None = None
    merges: float | None = None
    time_ns: dict[str, float] = field(default_factory=dict)
    busy_ns: float | None = None
    p99_ns: float | None = None


def flows(
    host: pl.DataFrame,
    asked: dict[Op, Moved],
    targets: Sequence[TargetState],
    by_target: Mapping[str, dict[Op, Moved]] | None = None,
) -> tuple[LayerFlow, ...]:
    """Return every layer, each after all that stand on it. `host`: the rows of the comparison.

    `asked` is what the load did in the time of these rows, and `by_target` its part on each path; none
    where the parts are not known.
    """
    paths = [one.path_layers for one in targets if one.path_layers is not None]
    seconds = monitor_readings.seconds(host)
    if not paths or len(paths) < len(targets) or seconds < monitor_readings.MIN_SECONDS:
        return ()
    layers = merged_layers(paths)
    loads = _loads(asked, paths, by_target or {})
    shared = _shared(loads, layers)
    layer_flows: list[LayerFlow] = []
    handed: dict[str, _Expected] = {}
    for layer in layers:
        uppers = [handed[upper.name] for upper in layers if layer.name in upper.below]
        if layer.name in loads:
            uppers.append(_Expected(loads[layer.name], upper="the job"))
        elif layer.name == shared:
            uppers = [_Expected(_flow_of([asked]), upper="the job")]
        expected = _together(uppers)
        flow = _counted(layer, host)
        agreements = [_held(flow, expected, op, seconds) for op in ("read", "write")]
        layer_flows.append(_row(layer, flow, expected, seconds, agreements[0], agreements[1]))
        # What was counted is what the next layer gets, whatever was expected here.
        handed_down = _Expected(flow, upper=layer.name) if flow is not None else expected
        handed[layer.name] = handed_down.below(layer)
    return tuple(layer_flows)


def _loads(
    asked: dict[Op, Moved], paths: Sequence[DataPath], by_target: Mapping[str, dict[Op, Moved]]
) -> dict[str, _Flow | None]:
    """Return what the job gave each layer it works on; None where its part of the load is not known."""
    targets_of: dict[str, list[str]] = {}
    for path in paths:
        if path.layers:
            targets_of.setdefault(path.layers[0].name, []).append(path.target)
    if len(targets_of) == 1:
        return dict.fromkeys(targets_of, _flow_of([asked]))
    return {
        name: _flow_of([by_target[one] for one in targets]) if by_target.keys() >= set(targets) else None
        for name, targets in targets_of.items()
    }


def _shared(loads: dict[str, _Flow | None], layers: Sequence[Layer]) -> str | None:
    """Return the layer right below all that the job works on, where only the whole load is known."""
    below = {layer.below for layer in layers if layer.name in loads}
    if None not in loads.values() or len(below) != 1:
        return None
    names = below.pop()
    return names[0] if len(names) == 1 else None


def _flow_of(parts: Sequence[dict[Op, Moved]]) -> _Flow:
    return _Flow(
        ios={op: sum(part[op].ios for part in parts) for op in OPS},
        bytes={op: sum(part[op].bytes for part in parts) for op in OPS},
    )


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a layer should see: the flow above it, times what lies between, and what may change it."""

    flow: _Flow | None
    write_factor: float = 1.0
    shares: int = 1
    """Members that divide it among them."""
    unsure: bool = False
    """Something between decides itself how much goes on (parity, copy on write)."""
    memory: str | None = None
    """The layer between that keeps data in memory."""
    amplifies: str | None = None
    """The layer between that writes more than it is given, and why."""
    reduces: str | None = None
    unstored: str | None = None
    """The layer between that answers for what was never written."""
    upper: str | None = None

    def below(self, layer: Layer) -> _Expected:
        """Return what each of a layer's members gets."""
        state = layer_state.facts(layer)
        profile = _profile(layer)
        members = len(layer.below) if layer.kind in DIVIDE else 1
        copies = MIRRORED.get(profile, 1.0)
        if layer.kind == "md" and profile == "raid1":
            copies = float(members)
        missing = layer.facts.get("degraded")
        if layer.kind == "btrfs" and isinstance(missing, int):
            # Nobody writes the copies of members that are not there.
            copies = max(1.0, copies * members / (members + missing))
        changed: dict[str, Any] = {
            "write_factor": self.write_factor * copies,
            "shares": self.shares * max(1, members),
            "unsure": self.unsure or keeps_parity(layer),
            "memory": state.memory or self.memory,
            "amplifies": state.amplifies or self.amplifies,
            "reduces": state.reduces or self.reduces,
            "unstored": state.unstored or self.unstored,
        }
        return replace(self, **changed)


def _together(every: Sequence[_Expected]) -> _Expected:
    """Return what comes from all layers above; None in it where one of them is not known."""
    if len(every) == 1:
        return every[0]
    # A mirror beside something else on the same disk: what is written how often is not known.
    if not every or len({(one.write_factor, one.shares) for one in every}) > 1:
        return _Expected(None)
    known = [one.flow for one in every if one.flow is not None]
    if len(known) < len(every):
        return _Expected(None)
    whole = _Flow(
        ios={op: sum(one.ios.get(op, 0.0) for one in known) for op in OPS},
        bytes={op: sum(one.bytes.get(op, 0.0) for one in known) for op in OPS},
    )
    return replace(
        every[0],
        flow=whole,
        unsure=any(one.unsure for one in every),
        memory=_first(one.memory for one in every),
        amplifies=_first(one.amplifies for one in every),
        reduces=_first(one.reduces for one in every),
        unstored=_first(one.unstored for one in every),
    )


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


def _counted(layer: Layer, host: pl.DataFrame) -> _Flow | None:
    """Return what a layer's own counters say; None where it has none."""
    prefix = layer.counters
    if prefix is None or prefix.startswith("net.") or layer.kind == "cgroup":
        return None
    moved = {op: monitor_readings.total(host, f"{prefix}.{op}_bytes") for op in OPS}
    if moved["read"] is None or moved["write"] is None:
        return None
    merges = [monitor_readings.total(host, f"{prefix}.{op}_merges") for op in OPS]
    known = [one for one in merges if one is not None]
    return _Flow(
        ios={op: monitor_readings.total(host, f"{prefix}.{op}s") or 0.0 for op in OPS},
        bytes={op: one or 0.0 for op, one in moved.items()},
        flushes=monitor_readings.total(host, f"{prefix}.flushes"),
        merges=sum(known) if known else None,
        time_ns={
            op: time_ns
            for op in ("read", "write", "trim", "flush")
            if (time_ns := monitor_readings.total(host, f"{prefix}.{op}_time_ns")) is not None
        },
        busy_ns=monitor_readings.total(host, f"{prefix}.busy_ns"),
        p99_ns=served.p99_ns(host, prefix.partition(".")[2]),
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """One direction held against the neighbour above."""

    expected: float | None = None
    agrees: bool | None = None
    why: str | None = None


def _held(flow: _Flow | None, expected: _Expected, op: Op, seconds: float) -> _Held:
    if flow is None or expected.flow is None:
        return _Held()
    factor = expected.write_factor if op == "write" else 1.0
    due, done = expected.flow.bytes.get(op, 0.0) * factor, flow.bytes.get(op, 0.0)
    if expected.shares > 1:
        return _Held(expected=due / expected.shares)  # Each member by itself may have any part of it.
    least = LEAST_BYTES_PER_S * seconds
    slack = SLACK + EDGES_S / seconds
    if abs(done - due) <= max(least, slack * max(due, done)):
        return _Held(due, agrees=True, why=_cut_or_merged(flow, expected, op))
    if expected.unsure:
        return _Held(due)
    return _Held(due, agrees=False, why=_less(expected, op) if done < due else _more(expected, op))


def _less(expected: _Expected, op: Op) -> str:
    if op == "read" and expected.unstored:
        return f"never stored: {expected.unstored}"
    if expected.memory:
        word = "served from memory" if op == "read" else "absorbed in memory"
        return f"{word}: {expected.memory}"
    if expected.reduces:
        return f"reduced: {expected.reduces}"
    return "served from memory on the way" if op == "read" else "absorbed on the way"


def _more(expected: _Expected, op: Op) -> str:
    if expected.amplifies and (op == "write" or "copies" in expected.amplifies):
        return f"amplified: {expected.amplifies}"
    if op == "read" and expected.memory:
        return f"read ahead or by somebody else: {expected.memory}"
    return "written by somebody else" if op == "write" else "read by somebody else"


def _cut_or_merged(flow: _Flow, expected: _Expected, op: Op) -> str | None:
    expected_ios, done = (one.ios.get(op, 0.0) for one in (expected.flow or flow, flow))
    if min(expected_ios, done) < 1:
        return None
    if done > 1.2 * expected_ios:
        return f"cut: {units.digits(done / expected_ios)} I/Os for each one {op}"
    return (
        f"merged: {units.digits(expected_ios / done)} I/Os into one {op}"
        if expected_ios > 1.2 * done
        else None
    )


def _row(  # noqa: PLR0917 - the parts of one row
    layer: Layer, flow: _Flow | None, expected: _Expected, seconds: float, reads: _Held, writes: _Held
) -> LayerFlow:
    known = [one.agrees for one in (reads, writes) if one.agrees is not None]
    whys = [one.why for one in (reads, writes) if one.why is not None]
    waited = sum(flow.time_ns.values()) if flow is not None else None
    ios = flow.ios if flow is not None else {}
    done = sum(ios.values())
    return LayerFlow(
        name=layer.name,
        kind=layer.kind,
        state=layer_state.facts(layer).words,
        seconds=round(seconds, 3),
        reads=ios.get("read"),
        writes=ios.get("write"),
        trims=ios.get("trim"),
        flushes=flow.flushes if flow is not None else None,
        merges=flow.merges if flow is not None else None,
        read_bytes=flow.bytes.get("read") if flow is not None else None,
        write_bytes=flow.bytes.get("write") if flow is not None else None,
        trim_bytes=flow.bytes.get("trim") if flow is not None else None,
        service_ns=waited / done if waited is not None and done else None,
        service_p99_ns=flow.p99_ns if flow is not None else None,
        inflight=waited / 1e9 / seconds if waited is not None else None,
        busy_share=min(1.0, flow.busy_ns / 1e9 / seconds) if flow and flow.busy_ns is not None else None,
        expected_read_bytes=reads.expected,
        expected_write_bytes=writes.expected,
        given_by=expected.upper,
        agrees=all(known) if known else None,
        why="; ".join(dict.fromkeys(whys)) or None,
    )
