"""Which phases of the sides are the same thing: repeats within a side, and partners between sides.

Knows that whoever ordered them, phases of one pattern, depth, rate and settings are repeats, unless
a list named them apart. Between sides the nearest likeness that is unique decides. Computes no number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from loadstone import units
from loadstone.analysis.study.curve import PURPOSE, RATE
from loadstone.comparison import pattern_name
from loadstone.comparison.settings import ANOTHER_LOAD, LOAD_WORDS, load
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from loadstone.comparison.phase import ComparedPhase
    from loadstone.comparison.side import Side


OF_CURVES: Final = (RATE, PURPOSE)
"""Factors that say which load of a curve a run is."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """All repeats of one thing on one side, those that are not valid, too."""

    phases: tuple[ComparedPhase, ...]
    apart_by: frozenset[str] = frozenset()
    """Settings in which its side has another cell that is like it in everything else."""

    @property
    def first(self) -> ComparedPhase:
        """One that stands for all, a valid one where there is one."""
        return next((one for one in self.phases if one.valid), self.phases[0])

    @property
    def valid(self) -> tuple[ComparedPhase, ...]:
        """Those that numbers may rest on."""
        return tuple(one for one in self.phases if one.valid)


@dataclass(frozen=True, slots=True)
class PatternRow:
    """One thing and its cell on each side, None where a side has none."""

    pattern: str
    cells: tuple[Repeats | None, ...]


def cells(side: Side, *, maxima: bool = False) -> list[Repeats]:
    """Put the repeats of a side together, in the order they were met; loads of curves are left out.

    `maxima`: the maximum of a curve is taken for what it is, a load in a closed loop.
    """
    groups: dict[Hashable, list[ComparedPhase]] = {}
    for phase in side.phases:
        if phase.on_a_curve and not (maxima and phase.is_a_maximum):
            continue
        groups.setdefault(_same(phase), []).append(phase)
    return [cell for phases in groups.values() for cell in _one_load_each(phases)]


def _one_load_each(phases: Sequence[ComparedPhase]) -> Iterator[Repeats]:
    """Part phases by the settings that all of them tell, and that are not the same for all."""
    loads = [load(phase) for phase in phases]
    apart_by = frozenset(
        key for key in LOAD_WORDS if all(key in one for one in loads) and len({one[key] for one in loads}) > 1
    )
    parts: dict[Hashable, list[ComparedPhase]] = {}
    for phase, settings in zip(phases, loads, strict=True):
        parts.setdefault(tuple(settings[key] for key in sorted(apart_by)), []).append(phase)
    for part in parts.values():
        yield Repeats(tuple(part), apart_by)


def patterns(side: Side) -> list[PatternRow]:
    """Return all that a side did, each thing under a name of its own; loads of curves one by one."""
    loads = [Repeats((phase,)) for phase in side.phases if phase.on_a_curve]
    return _named([PatternRow(cell.first.pattern, (cell,)) for cell in (*cells(side), *loads)])


def _factors(phase: ComparedPhase) -> tuple[tuple[str, str], ...]:
    left_out = OF_CURVES if phase.is_a_maximum else ()
    return tuple(sorted((name, str(value)) for name, value in phase.factors.items() if name not in left_out))


def _same(phase: ComparedPhase) -> Hashable:
    names: Hashable = phase.name if phase.case.source != "bundle" and phase.number > 1 else ""
    if phase.order_unknown:
        # fio's terse output has "4k read" for random and for sequential ones: the names tell them apart.
        names = phase.names
    return (
        phase.pattern, phase.depth, phase.asked, phase.number, phase.label, _factors(phase), names,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Likeness:
    """What two phases may have in common; a key of None is that of no other phase."""

    key: Callable[[ComparedPhase], Hashable]
    by: Literal["name", "load", "order", "name_alone"]
    """By name: where it pairs some of a pattern the rest of that has other names, and is something else.
    By order: only where nothing else pairs a pattern, and both sides have as many loads of it."""


LIKENESS: Final = (
    Likeness(lambda one: (one.pattern, one.depth, one.asked, one.label, _factors(one), one.names), "name"),
    Likeness(lambda one: (one.pattern, one.label, _factors(one), one.names), "name"),
    Likeness(lambda one: (one.pattern, one.label, _factors(one), one.names, one.number), "order"),
    Likeness(lambda one: (one.pattern, one.depth, _factors(one)), "load"),
    Likeness(lambda one: (one.pattern, one.depth, _factors(one), one.number), "order"),
    Likeness(lambda one: (one.pattern, one.depth), "load"),
    Likeness(lambda one: (one.pattern, one.depth, one.number), "order"),
    Likeness(lambda one: one.pattern, "load"),
    Likeness(lambda one: (one.pattern, one.number), "order"),
    Likeness(
        lambda one: (one.label, one.names, _factors(one)) if one.label or one.names else None, "name_alone"
    ),
    Likeness(lambda one: one.names or None, "name_alone"),
)
"""The nearest first."""


def rows(sides: Sequence[Side]) -> tuple[list[PatternRow], list[list[Repeats]]]:
    """Pair the first side's cells with the others'. Second: what each side has alone."""
    with_curves = [any(phase.on_a_curve for phase in side.phases) for side in sides]
    maxima = any(with_curves) and not all(with_curves)
    first, *others = [cells(side, maxima=maxima) for side in sides]
    partners: list[dict[int, Repeats]] = []
    alone: list[list[Repeats]] = []
    for other in others:
        matches = _partners(first, other)
        partners.append({first_at: other[other_at] for first_at, other_at in matches.items()})
        alone.append([cell for at, cell in enumerate(other) if at not in matches.values()])
    paired = [
        _row((cell, *(matches.get(at) for matches in partners)))
        for at, cell in enumerate(first)
        if any(at in matches for matches in partners)
    ]
    missing = [cell for at, cell in enumerate(first) if not any(at in matches for matches in partners)]
    return _named(paired), [missing, *alone]


def _row(row: tuple[Repeats | None, ...]) -> PatternRow:
    """Make a row, whose name has both where a side did another pattern or another depth under one name."""
    firsts = [one.first for one in row if one is not None]
    name = " → ".join(dict.fromkeys(one.pattern for one in firsts))
    depths = list(dict.fromkeys(str(one.depth) for one in firsts if one.depth))
    return PatternRow(f"{name}, depth {' → '.join(depths)}" if len(depths) > 1 else name, row)


def _partners(mine: Sequence[Repeats], theirs: Sequence[Repeats]) -> dict[int, int]:
    """Return which of the second side's cells each of the first side's is paired with, by their places."""
    matches: dict[int, int] = {}
    of_patterns = [like for like in LIKENESS if like.by != "name_alone"]
    nearest = [_with_settings(like, keys) for keys in _apart_on_both(mine, theirs) for like in of_patterns]
    named: set[str] = set()
    for like in (*nearest, *LIKENESS):
        closed = set() if like.by in ("name", "name_alone") else named
        if like.by == "order":
            closed = {mine[at].first.pattern for at in matches} | _unlike_counts(mine, theirs)
        pairs = {
            at: other
            for at, other in _paired_by(like, mine, theirs, matches).items()
            if mine[at].first.pattern not in closed and may_be_held(mine[at].first, theirs[other].first)
        }
        named |= {mine[at].first.pattern for at in pairs if like.by == "name"}
        matches |= pairs
    return matches


def _apart_on_both(mine: Sequence[Repeats], theirs: Sequence[Repeats]) -> list[tuple[str, ...]]:
    """Return the settings that pair, the strictest first: those that tell the loads of a side apart.

    Where one side did all of it over another working set, the settings that both sides vary still pair.
    """
    first, second = (frozenset().union(*(cell.apart_by for cell in cells)) for cells in (mine, theirs))
    return [tuple(sorted(keys)) for keys in dict.fromkeys((first | second, first & second)) if keys]


def _with_settings(like: Likeness, keys: Sequence[str]) -> Likeness:
    return replace(like, key=lambda one: (like.key(one), tuple(load(one).get(key) for key in keys)))


def _paired_by(
    like: Likeness, mine: Sequence[Repeats], theirs: Sequence[Repeats], matches: Mapping[int, int]
) -> dict[int, int]:
    """Pair the cells that are not paired yet and have a key that no other cell of their side has."""
    # What is left over of several alike is not like what is left over on the other side: of two sweeps
    # of one job the depth that only the first has is not the one that only the second has.
    places, other_places = (
        {key: at for key, at in _unique(cells, like.key).items() if at not in used}
        for cells, used in ((mine, set(matches)), (theirs, set(matches.values())))
    )
    return {at: other_places[key] for key, at in places.items() if key in other_places}


def _unlike_counts(mine: Sequence[Repeats], theirs: Sequence[Repeats]) -> set[str]:
    """Return the patterns of which the sides have not as many loads: their order tells nothing."""
    counts, other_counts = (Counter(cell.first.pattern for cell in cells) for cells in (mine, theirs))
    return {pattern for pattern in counts if counts[pattern] != other_counts[pattern]}


def may_be_held(one: ComparedPhase, other: ComparedPhase) -> bool:
    """Tell whether two phases did the same operations, as far as both tell: reads say nothing of writes."""
    first_ops, other_ops = (
        {op for op, measured in phase.case.ops.items() if measured.operations or measured.iops is not None}
        for phase in (one, other)
    )
    return not first_ops or not other_ops or first_ops == other_ops


@dataclass(frozen=True, slots=True)
class OtherLoad:
    """In what a phase was another load than the first side's, or may have been."""

    differs: str
    """Empty where patterns differ alone, as their row's name says: `4k random read → 8k random read`."""
    certain: bool = True
    """Whether both sides tell it."""


def another_load(one: ComparedPhase, other: ComparedPhase) -> OtherLoad | None:
    """Return in what the second was another load than the first; None for the same load."""
    depths_differ = bool(one.depth and other.depth and one.depth != other.depth)
    parts = [f"{_rate(other)} in place of {_rate(one)}"] if one.asked != other.asked else []
    parts += [f"depth {other.depth} in place of depth {one.depth}"] if depths_differ else []
    of_settings = list(_other_settings(one, other))
    parts += of_settings
    if parts and not depths_differ and not of_settings and not (one.tells_rate and other.tells_rate):
        return OtherLoad(", ".join(parts), certain=False)
    if not parts and one.pattern != other.pattern and pattern_name.may_be_one(one.case, other.case):
        return OtherLoad(say("comparison.pattern.not_told"), certain=False)
    return OtherLoad(", ".join(parts)) if parts or one.pattern != other.pattern else None


def _other_settings(one: ComparedPhase, other: ComparedPhase) -> Iterator[str]:
    """Say which settings, of those that both sides tell, let other work reach the storage."""
    settings, other_settings = load(one), load(other)
    for key in ANOTHER_LOAD:
        if key in settings and settings[key] != other_settings.get(key, settings[key]):
            yield f"{key} {other_settings[key]} in place of {settings[key]}".replace(units.THIN, " ")


def _rate(phase: ComparedPhase) -> str:
    known = phase.tells_rate or any(phase.asked)
    return in_words(phase.asked) if known else say("comparison.pattern.rate_not_known")


def in_words(rates: tuple[float, float]) -> str:
    """Write the rates that a phase was asked for: operations and bytes per second, 0 for no limit."""
    ops, moved = rates
    parts = ([f"{ops:.6g} I/O per s"] if ops else []) + ([f"{moved:.6g} B/s"] if moved else [])
    return " and ".join(parts) or say("comparison.pattern.no_rate")


def _unique(every: Sequence[Repeats], like: Callable[[ComparedPhase], Hashable]) -> dict[Hashable, int]:
    keys: dict[Hashable, list[int]] = {}
    for at, cell in enumerate(every):
        key = like(cell.first)
        if key is not None:
            keys.setdefault(key, []).append(at)
    return {key: places[0] for key, places in keys.items() if len(places) == 1}


def _named(pattern_rows: Sequence[PatternRow]) -> list[PatternRow]:
    """Tell rows of one pattern apart by what differs between them."""
    named = []
    for row in pattern_rows:
        alike = [one for one in pattern_rows if one.pattern == row.pattern]
        named.append(row if len(alike) == 1 else replace(row, pattern=_told_apart(row, alike)))
    return named


def settings_apart(phase: ComparedPhase, others: Sequence[ComparedPhase]) -> str:
    """Name the settings of the first phase by which it is another load than some of the others."""
    return _settings_of((phase,), others)


def _settings_of(phases: Sequence[ComparedPhase], others: Sequence[ComparedPhase]) -> str:
    """Name what `settings_apart` names of the first phase, with its value in each where they differ."""
    loads, of_others = [load(one) for one in phases], [load(one) for one in others]
    parts = [
        f"{key} {' → '.join(dict.fromkeys(one[key] for one in loads if key in one))}"
        for key, value in loads[0].items()
        if any(key in one and one[key] != value for one in of_others)
    ]
    return ", ".join(parts).replace(units.THIN, " ")


def _told_apart(row: PatternRow, alike: Sequence[PatternRow]) -> str:
    firsts = [one.cells[0].first for one in alike if one.cells[0] is not None]
    repeats = row.cells[0]
    assert repeats is not None  # noqa: S101 - rows are the first side's
    phase = repeats.first
    of_row = [cell.first for cell in row.cells if cell is not None]

    def apart(one: ComparedPhase) -> str:
        return settings_apart(one, firsts)

    parts = []
    for name, value in phase.factors.items():
        if len({str(one.factors.get(name)) for one in firsts}) > 1:
            parts.append(f"{name.replace('_', ' ')} {value}")
    for label, of in (
        ("iodepth", lambda one: one.depth),
        ("", lambda one: one.label),
        ("", lambda one: ", ".join(one.names)),
        ("", apart),
        ("phase", lambda one: one.number),
    ):
        if not parts and len({of(one) for one in firsts}) == len(alike):
            # A side may have no name for its run: what it has not is not on the way to what it has.
            of_sides = " → ".join(dict.fromkeys(str(value) for one in of_row if (value := of(one))))
            parts.append(f"{label} {of_sides if of is not apart else _settings_of(of_row, firsts)}".strip())
    if not parts:
        parts.append(f"{phase.label or ', '.join(phase.names)} {phase.number}")
    return f"{phase.pattern}, {', '.join(parts)}"
