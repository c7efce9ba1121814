"""The data path as a diagram: layers as boxes from the targets down to the medium.

Knows boxes, words and colours; every number comes from the analysis. Layers of one kind under the
same parents share a box with a line for each, so that twenty drives need no more width than two.
Drawn in HTML: text wraps and can be copied on any width of screen, which it cannot in a picture.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.messages import say
from loadstone.report import templates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.path import CeilingReached, LayerUse, Paths
    from loadstone.path.layers import Layer

MAX_MEMBERS: Final = 8
"""With more layers in a box than this the rest are only counted."""
LOW: Final = "#56b4e9"
HIGH: Final = "#e69f00"
FULL: Final = "#d55e00"
"""Colours of a bar below one half, below nine tenths, and from there on."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A share as a bar: width in percent, colour, the share as text, and of what."""

    percent: float
    colour: str
    share: str
    text: str


@dataclass(frozen=True, slots=True)
class DiagramLayer:
    """One layer: name, what it moved, bars, ceilings that nothing was held against, and facts."""

    name: str
    moved: str
    bars: tuple[Bar, ...]
    ceilings: tuple[str, ...]
    facts: tuple[str, ...]
    mark: str | None


@dataclass(frozen=True, slots=True)
class Box:
    """Layers of one kind under the same parents. `under` is told where not everything above is meant."""

    kind: str
    members: tuple[DiagramLayer, ...]
    more: int
    facts: tuple[str, ...]
    """Those that all members have."""
    under: str | None
    mark: str | None


def render(paths: Paths, limited_by: str | None = None) -> str:
    """Return the diagram as HTML. `limited_by`: the layer, or layers joined by +, that a verdict names."""
    marks = _marks(paths, limited_by)
    return templates.render(
        "run/path_diagram.html",
        (),
        levels=levels(paths, marks),
        gaps=paths.gaps,
        phase=paths.phase,
        seconds=_watched(paths),
    )


def members(paths: Paths, limited_by: str | None = None) -> list[tuple[str, DiagramLayer]]:
    """Return the layers that the diagram shows, from the top, each with its kind."""
    boxes = [box for level in levels(paths, _marks(paths, limited_by)) for box in level]
    return [(box.kind, member) for box in boxes for member in box.members]


def in_words(paths: Paths) -> list[tuple[str, str]]:
    """Return each layer from the top, and what it moved, how much of what it can do, and what it is."""
    pairs = []
    for level in levels(paths, {}):
        for box in level:
            for member in box.members:
                bars = [f"{bar.share} {bar.text}" for bar in member.bars]
                words = [member.moved, *bars, *member.ceilings, *box.facts, *member.facts]
                name = f"{box.kind} {member.name}"
                of_phase = f"{paths.phase}, {name}" if paths.phase else name
                pairs.append((of_phase, " · ".join(word for word in words if word)))
            if box.more:
                pairs.append((box.kind, f"{box.more} more"))
    return pairs


def levels(paths: Paths, marks: dict[str, str]) -> list[list[Box]]:
    """Return the boxes, one list for each level from the top."""
    uses = {use.layer.name: use for use in paths.uses}
    groups: dict[tuple[int, str, frozenset[int]], list[LayerUse]] = {}
    group_of: dict[str, int] = {}
    depth_of: dict[int, int] = {}
    for use in paths.uses:
        uppers = [one for one in paths.uses if use.layer.name in one.layer.below]
        parents = frozenset(group_of[one.layer.name] for one in uppers)
        depth = max((depth_of[parent] for parent in parents), default=-1) + 1
        key = (depth, use.layer.kind, parents)
        groups.setdefault(key, []).append(use)
        at = list(groups).index(key)
        group_of[use.layer.name], depth_of[at] = at, depth
    rows: list[list[Box]] = []
    at_depth = {depth: {at for at, one in depth_of.items() if one == depth} for depth in depth_of.values()}
    for (depth, _, parents), members in groups.items():
        while len(rows) <= depth:
            rows.append([])
        whole = parents == at_depth.get(depth - 1, set())
        names = [one for one in uses if group_of[one] in parents]
        rows[depth].append(_box(members, None if whole else _listed(names), marks))
    return rows


def _box(members: list[LayerUse], under: str | None, marks: dict[str, str]) -> Box:
    members = sorted(members, key=lambda use: _natural(use.layer.name))
    facts = [layer_facts(use.layer) for use in members]
    shared = tuple(fact for fact in facts[0] if all(fact in one for one in facts))
    # The fullest are what a reader looks for; of many alike the rest are only counted.
    marked = [use for use in members if use.layer.name in marks]
    shown = members if len(members) <= MAX_MEMBERS else (marked + [m for m in members if m not in marked])
    shown = sorted(shown[:MAX_MEMBERS], key=lambda use: _natural(use.layer.name))
    return Box(
        kind=say(f"report.layer_kind.{members[0].layer.kind}"),
        members=tuple(_member(use, shared, marks.get(use.layer.name)) for use in shown),
        more=len(members) - len(shown),
        facts=shared,
        under=under,
        mark=next((marks[use.layer.name] for use in marked), None),
    )


def _member(use: LayerUse, shared: Sequence[str], mark: str | None) -> DiagramLayer:
    # Nothing written is nothing of a ceiling for writes: no bar, no word.
    bars = [
        _bar(reached.share, say("report.layer.of_ceiling", ceiling=ceiling(reached)))
        for reached in use.held
        if reached.share
    ]
    # A limit counts what its device did: how busy that was is told there.
    if use.busy_share is not None and use.layer.kind != "cgroup":
        queue = (
            say("report.layer.in_flight", outstanding=units.digits(use.outstanding))
            if use.outstanding is not None
            else ""
        )
        bars.append(_bar(use.busy_share, say("report.layer.busy", queue=queue)))
    facts = tuple(fact for fact in layer_facts(use.layer) if fact not in shared)
    open_ = tuple(
        say("report.layer.at_most", ceiling=ceiling(reached)) for reached in use.held if reached.share is None
    )
    return DiagramLayer(use.layer.name, moved(use), tuple(bars), open_, facts, mark)


def _bar(share: float, text: str) -> Bar:
    colour = FULL if share >= 0.9 else HIGH if share >= 0.5 else LOW
    return Bar(min(share, 1.0) * 100, colour, f"{units.digits(share * 100)}{units.THIN}%", text)


def moved(use: LayerUse) -> str:
    """Write what went through a layer; empty when nothing counts it, a dash when its counters are gone."""
    traffic = use.traffic
    if traffic is None:
        return units.NONE if use.layer.counters is not None else ""
    parts = []
    for op, rate, iops in (
        ("read", traffic.read_bytes_per_s, traffic.read_iops),
        ("write", traffic.write_bytes_per_s, traffic.write_iops),
    ):
        if rate or iops:
            counted = f", {units.count(iops)}{units.THIN}IOPS" if iops is not None else ""
            parts.append(f"{op} {units.bandwidth(rate)}{counted}")
    return " · ".join(parts) or say("report.layer.nothing_moved")


def ceiling(held: CeilingReached) -> str:
    """Write a ceiling with what it is for and where it comes from."""
    one = held.ceiling
    rate = f"{units.count(one.per_s)}{units.THIN}IOPS"
    if one.quantity == "bytes_per_s":
        rate = units.bandwidth_decimal(one.per_s)
    direction = {
        "each": say("report.layer.each_way"),
        "both": "",
        "read": say("report.layer.reading"),
        "write": say("report.layer.writing"),
    }[one.op]
    access = f" {one.access}" if one.access else ""
    return f"{rate}{access}{direction} ({one.source})"


def layer_facts(layer: Layer) -> list[str]:
    """Return what is known of a layer, in words, what matters most first."""
    facts = layer.facts
    size, allocated = facts.get("size_bytes"), facts.get("allocated_bytes")
    if layer.kind == "file" and isinstance(size, int) and isinstance(allocated, int):
        first, passed = [_allocation(facts, size)], _LARGE
    else:
        first, passed = [], frozenset()
    words = (_fact(name, value) for name, value in facts.items() if name not in passed)
    return [*first, *(text for text in words if text is not None)]


def _allocation(facts: dict[str, Any], size: int) -> str:
    parts = [
        f"{units.size(facts[name])} {word}"
        for name, word in (
            ("unwritten_bytes", say("report.layer.unwritten")),
            ("hole_bytes", say("report.layer.holes")),
        )
        if facts.get(name)
    ]
    if facts.get("method") == "none":
        parts = [say("report.layer.allocated", size=units.size(facts["allocated_bytes"]))]
    # A file system that knows no extents tells no more than that it knows of no hole.
    whole = (
        say("report.layer.all_written") if facts.get("method") == "fiemap" else say("report.layer.no_holes")
    )
    before = f", {' and '.join(parts)}" if parts else whole if size else ""
    return say("report.run.allocated_before", size=units.size(size), rest=before)


_AS_IT_IS: Final = frozenset(
    ("type", "level", "name", "model", "speed", "link_speed", "link_rates", "state", "target_name", "media")
) | {"links"}
"""Facts whose value says what it is."""
_WORDS: Final = frozenset(
    (
        *("data_profile", "metadata_profile", "server", "version", "compression", "deduplication"),
        *("encryption", "driver", "send_limit", "scheduler", "nr_requests", "queue_depth", "hardware_queues"),
        *("write_cache", "members", "degraded", "sync_action", "paths", "devices", "connections"),
        *("link_width", "narrowest_at", "lanes", "bond_mode", "peers", "peer", "transport", "drives"),
        *("raid", "can_queue"),
    )
)
_SIZES: Final = frozenset(
    (
        *("size_bytes", "total_bytes", "chunk_bytes", "logical_block_bytes", "start_bytes"),
        *("read_bytes_at_most", "write_bytes_at_most", "largest_io_bytes", "cache_bytes"),
    )
)
_LARGE: Final = frozenset(("size_bytes", "total_bytes"))
"""How large something is: an allocation says that, too."""
_YES_OR_NO: Final = {
    "copy_on_write": (say("report.layer.copies_on_write"), say("report.layer.in_place")),
    "direct_io": (say("report.layer.direct"), say("report.layer.through_cache")),
    "rotational": (say("report.layer.rotates"), None),
    "read_only": (say("report.layer.read_only"), None),
    "missing": (say("report.layer.new"), None),
    "thin": (say("report.layer.thin"), None),
    "virtual": (say("report.layer.virtual"), None),
    "synchronous": (say("report.layer.synchronous"), None),
}
_QUIET: Final = {"degraded": 0, "sync_action": "idle", "connections": None, "members": None}
"""Values that are not worth a word."""


def _fact(name: str, value: Any) -> str | None:
    if name in _QUIET and value == _QUIET[name]:
        return None
    if isinstance(value, bool):
        yes_no = _YES_OR_NO.get(name)
        return None if yes_no is None else yes_no[0] if value else yes_no[1]
    if isinstance(value, int) and (number := _number(name, value)) is not None:
        return number
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if name in _AS_IT_IS:
        return text
    return say(f"report.layer_fact.{name}", value=text) if name in _WORDS else None


def _number(name: str, value: int) -> str | None:
    if name in _SIZES:
        return say(f"report.layer_fact.{name}", value=units.size(value))
    if name == "speed_mbit_per_s":
        return f"{value / 1000:g}{units.THIN}Gbit/s" if value >= 1000 else f"{value}{units.THIN}Mbit/s"
    return f"MTU {value}" if name == "mtu_bytes" else None


def _marks(paths: Paths, limited_by: str | None) -> dict[str, str]:
    """Return which layers are marked and with what: the verdict's word goes before our own."""
    named = [name for name in (limited_by or "").split(" + ") if paths.named(name) is not None]
    if named:
        return dict.fromkeys(named, say("report.layer.bottleneck"))
    uses, how = paths.narrowest()
    return dict.fromkeys(
        (use.layer.name for use in uses),
        say("report.layer.at_ceiling") if how == "ceiling" else say("report.layer.always_busy"),
    )


def _watched(paths: Paths) -> str | None:
    return units.seconds(paths.seconds) if paths.seconds else None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _natural(name: str) -> list[tuple[int, str]]:
    """Order sd2 before sd10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
