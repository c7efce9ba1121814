"""Two or more results beside each other, as a whole.

Knows the order: read the sides, pair what is the same, test, and say what was left out. The first
side is what the others are held against. Knows no screen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.significance import Contrast, Sample
from loadstone.analysis.study.sweep import REPEAT
from loadstone.analysis.study.sweep import named as factor_named
from loadstone.audit.find_results import SearchProgress, begin, check_there
from loadstone.comparison import curve_effects, matrix, operating_points, pairing, parts, single_runs, watched
from loadstone.comparison.copies import Measurements
from loadstone.comparison.differences import Difference, differences, environment_of, within
from loadstone.comparison.metric import FAILED, LAT_OF_CLAT
from loadstone.comparison.phase import with_tails
from loadstone.comparison.repeat_command import repeat_command
from loadstone.comparison.settings import first_of
from loadstone.comparison.side import Side, named, side
from loadstone.errors import InputError
from loadstone.helpers import Helpers
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from loadstone.comparison.curve_effects import Curves, SideCurve
    from loadstone.comparison.matrix import Effect
    from loadstone.comparison.measured_values import OfJob, Value
    from loadstone.comparison.metric import Judgement, Metric
    from loadstone.comparison.operating_points import OperatingRow
    from loadstone.comparison.pairing import Repeats
    from loadstone.comparison.phase import ComparedPhase
    from loadstone.comparison.watched import WatchedRow

OF_RATES: Final = ("count", "bytes_per_s")
"""Quantities of work done in a second."""
MOST_TWICE: Final = 2
"""Of the runs that are the first side's, too, so many are named: a study has hundreds."""
MOST_HELD: Final = 8
"""Of the loads of a side that can be compared with nothing, so many are named."""


@dataclass(frozen=True, slots=True)
class JobCell:
    """One side's value of a metric of a job and how it differs from the first side's."""

    sample: Sample | None
    contrast: Contrast | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class JobRow:
    """One metric of one operation of one job; a cell for each side, the first without contrast."""

    thing: str
    job: str
    op: str
    metric: Metric
    cells: tuple[JobCell, ...]
    pair: int = 0
    """Which pattern it is of."""

    @property
    def name(self) -> str:
        """What it is of, in words: `reads of job`, with the pattern where there are several."""
        part = say("comparison.pattern.part", op=self.op, job=self.job)
        return f"{self.thing}: {part}" if self.thing else part


@dataclass(frozen=True, slots=True)
class Excluded:
    """A phase that nothing rests on."""

    side: str
    run: str
    phase: str
    why: str


@dataclass(frozen=True, slots=True)
class Alone:
    """A pattern that one side has and another has not, or a result that could not be read."""

    side: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """All of it."""

    sides: tuple[Side, ...]
    pairs: tuple[pairing.PatternRow, ...]
    curves: tuple[Curves, ...]
    effects: tuple[Effect, ...]
    rows: tuple[JobRow, ...]
    """Jobs and operations one by one."""
    watched: tuple[WatchedRow, ...]
    """What watched hosts of the same name did."""
    differences: tuple[Difference, ...]
    excluded: tuple[Excluded, ...]
    warnings: tuple[str, ...]
    alpha: float
    alone: tuple[Alone, ...] = ()
    """What cannot be compared, because a side does not have it."""
    operating: tuple[OperatingRow, ...] = ()
    """Where the sides' sweeps would be operated."""
    parts: tuple[JobRow, ...] = ()
    """Of loads with several jobs or operations what each did, judged beside the totals that may hide it."""


def compare(
    paths: Sequence[Path], *, unverified: bool = False, alpha: float = matrix.ALPHA
) -> ComparisonTable:
    """Compare two or more results with the first of them.

    Raises `InputError` for what `check_sides` refuses, for a side without a result and for sides without a
    load in common, and `BundleError` for a bundle that cannot be read.
    """
    check_sides(paths)
    with Helpers() as helpers:
        searches = [SearchProgress(unverified=unverified, helpers=helpers) for _ in paths]
        for path, looked in zip(paths, searches, strict=True):
            begin(path, looked)
        sides = [side(path, looked) for path, looked in zip(paths, searches, strict=True)]
    return beside(named(sides), alpha=alpha)


def check_sides(paths: Sequence[Path]) -> None:
    """Raise `InputError` for fewer than two paths, for the same one twice and for one that is not there."""
    if len(paths) < 2:
        raise make_error(InputError, "comparison.sides.one")
    path_by_resolved: dict[Path, Path] = {}
    for path in paths:
        first = path_by_resolved.get(path.resolve())
        if first is not None:
            if first == path:
                raise make_error(InputError, "comparison.sides.twice", path=path)
            raise make_error(InputError, "comparison.sides.same", path=path, other=first)
        path_by_resolved[path.resolve()] = path
        check_there(path)


def beside(sides: tuple[Side, ...], *, alpha: float = matrix.ALPHA) -> ComparisonTable:
    """Compare sides that were read. Raises `InputError` when no load of theirs can be compared."""
    pairs, alone = pairing.rows(sides)
    pairs = [replace(row, cells=tuple(map(_told_in_full, row.cells))) for row in pairs]
    curves_of_sides = [curve_effects.of_side(one) for one in sides]
    curves = curve_effects.paired(curves_of_sides)
    of_curves = list(curve_effects.effects(curves, len(pairs)))
    if not pairs and not of_curves:
        raise make_error(InputError, "comparison.sides.nothing_common", hint=_phases_of_sides(sides))
    job_rows = list(_job_rows(pairs))
    of_parts = parts.parts(job_rows, pairs)
    of_totals = 1 - parts.SHARE if of_parts else 1.0
    effects = tuple(matrix.effects(pairs, of_curves, alpha, share=of_totals))
    alone_of_sides = (*_alone(sides, pairs, alone), *_curves_alone(sides, curves_of_sides, curves))
    of_loads = (*_warnings(sides, pairs, alone), *_of_curves(sides, curves_of_sides, curves))
    return ComparisonTable(
        sides=sides,
        pairs=tuple(pairs),
        curves=tuple(curves),
        effects=effects,
        rows=tuple(_judged(job_rows, alpha)),
        parts=tuple(_judged(of_parts, alpha * parts.SHARE)),
        watched=tuple(watched.rows(sides, alpha, _unlike(sides, effects, alone_of_sides))),
        differences=tuple(_differences(sides, pairs)),
        excluded=tuple(_excluded(sides)),
        warnings=(*_of_errors(sides, pairs, curves, effects), *of_loads),
        alpha=alpha,
        alone=alone_of_sides,
        operating=tuple(operating_points.rows(sides)),
    )


def _unlike(sides: Sequence[Side], effects: Sequence[Effect], alone: Sequence[Alone]) -> set[int]:
    """Return the sides that did other work than the first one, or more or less of it in a second."""
    other_rates = {one.side for one in effects if one.metric.quantity in OF_RATES and one.judgement != "same"}
    names = {one.side for one in alone}
    other_loads = {at for at, one in enumerate(sides) if one.name in names or sides[0].name in names}
    return other_rates | other_loads


def _told_in_full(cell: pairing.Repeats | None) -> pairing.Repeats | None:
    """Return a cell whose only run has errors of its percentiles; repeats do not need them."""
    if cell is None or len(cell.valid) != 1:
        return cell
    return replace(cell, phases=tuple(with_tails(one) if one.valid else one for one in cell.phases))


def _job_rows(pairs: Sequence[pairing.PatternRow]) -> Iterable[JobRow]:
    for number, row in enumerate(pairs):
        by_side = [{} if cell is None else _jobs(cell) for cell in row.cells]
        first, *others = by_side
        thing = row.pattern if len(pairs) > 1 else ""
        for key, base in first.items():
            job, op, metric = key
            holders = [values for values in (first, *others) if key in values]
            if len(holders) < 2 or _is_told_whole(key, holders):
                continue
            cells = []
            for at, values in enumerate(by_side):
                value = values.get(key)
                contrast = None if at == 0 or value is None else _contrast(base, value)
                if contrast is not None and _requested_rate(row.cells[at]) != _requested_rate(row.cells[0]):
                    contrast = replace(contrast, p=None)  # At another rate it is another load's.
                cells.append(JobCell(_shown(value), contrast, "unknown"))
            yield JobRow(thing, job, op, metric, tuple(cells), number)


def _is_told_whole(key: OfJob, holders: Sequence[Mapping[OfJob, Value]]) -> bool:
    """Tell whether all that have a figure of clat have that of lat, too, which says more."""
    job, op, metric = key
    of_lat = LAT_OF_CLAT.get(metric)
    return of_lat is not None and all((job, op, of_lat) in values for values in holders)


def _requested_rate(cell: Repeats | None) -> tuple[float, float] | None:
    return None if cell is None else cell.first.asked


def _jobs(cell: Repeats) -> dict[OfJob, Value]:
    """Return the values of each job over the valid repeats."""
    values: dict[OfJob, Value] = {}
    for key in dict.fromkeys(key for phase in cell.valid for key in phase.jobs):
        known = [phase.jobs[key] for phase in cell.valid if key in phase.jobs]
        samples = [value for value in known if isinstance(value, Sample)]
        pairs = [value for value in known if not isinstance(value, Sample)]
        if samples:
            values[key] = matrix.together(samples, key[2])
        elif pairs:
            values[key] = (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    return values


def _shown(value: Value | None) -> Sample | None:
    return Sample(float(value[0]), None, None) if isinstance(value, tuple) else value


def _contrast(a: Value, b: Value) -> Contrast | None:
    if isinstance(a, Sample) and isinstance(b, Sample):
        return statistics.contrast(*matrix.fair(a, b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return matrix.failures(a, b)
    return None


def _judged(rows: list[JobRow], alpha: float) -> list[JobRow]:
    """Correct the p-values of each side for their number, and say what they mean."""
    judged = rows
    for at in range(1, len(rows[0].cells) if rows else 0):
        tested = [
            (index, contrast.p)
            for index, row in enumerate(judged)
            if (contrast := row.cells[at].contrast) is not None and contrast.p is not None
        ]
        corrected = statistics.holm([p for _, p in tested])
        for (index, _), p in zip(tested, corrected, strict=True):
            row = judged[index]
            cells = list(row.cells)
            contrast = cells[at].contrast
            assert contrast is not None  # noqa: S101 - it was chosen because it is there
            judgement: Judgement = "same"
            if p < alpha:
                judgement = "better" if (contrast.change > 0) == row.metric.more_is_better else "worse"
                of_single = single_runs.are_single(cells[0].sample, cells[at].sample)
                if of_single and row.metric is not FAILED and not single_runs.is_beyond(contrast.change):
                    judgement = "unrepeated"
            cells[at] = replace(cells[at], contrast=replace(contrast, p=p), judgement=judgement)
            judged[index] = replace(row, cells=tuple(cells))
    return judged


def _differences(sides: Sequence[Side], pairs: Sequence[pairing.PatternRow]) -> list[Difference]:
    rows = {row.pattern: [None if cell is None else cell.first for cell in row.cells] for row in pairs}
    whole = next((phases for phases in rows.values() if None not in phases), [None] * len(sides))
    phases = [phase or one.phases[0] for one, phase in zip(sides, whole, strict=True)]
    bundles = [
        next((run.summary.bundle for run in one.runs if run.path == phase.path), None)
        for one, phase in zip(sides, phases, strict=True)
    ]
    environments = [environment_of(bundle, phase.case) for bundle, phase in zip(bundles, phases, strict=True)]
    # Of curves there are no rows: their runs have the same settings but for the rate.
    return differences(environments, rows or {"": phases})


def _excluded(sides: Sequence[Side]) -> Iterable[Excluded]:
    for one in sides:
        beyond = {id(phase) for phase in one.beyond}
        for phase in one.phases:
            if not phase.valid:
                # How much was reached differs in each of them, and says nothing more.
                why = say("comparison.curve.beyond") if id(phase) in beyond else phase.why
                yield Excluded(one.name, phase.run, phase.name, why)


def _alone(
    sides: Sequence[Side], pairs: Sequence[pairing.PatternRow], alone: Sequence[Sequence[Repeats]]
) -> Iterable[Alone]:
    for at, (one, cells) in enumerate(zip(sides, alone, strict=True)):
        for cell in cells:
            others = "no other side has" if at == 0 else f"{sides[0].name} does not have"
            called = _called(cell.first, pairs)
            yield Alone(one.name, called, f"{others} {called}")
        if incomplete := _not_complete(one):
            yield Alone(one.name, one.name, incomplete)
        for passed in (skipped for skipped in one.passed if skipped.broken):
            yield Alone(one.name, passed.path.name, one.said_of(passed))
    for row in pairs:
        for one, repeats in zip(sides, row.cells, strict=True):
            if repeats is None:
                yield Alone(one.name, row.pattern, f"it does not have {row.pattern}")
    yield from _other_loads(sides, pairs)
    yield from _on_two_sides(sides)


def _curves_alone(
    sides: Sequence[Side], of_sides: Sequence[Sequence[SideCurve]], rows: Sequence[Curves]
) -> Iterable[Alone]:
    """Return the curves that are held against none, those of one name that are left out, and other loads."""
    for at, (one, titles) in enumerate(zip(sides, curve_effects.alone(of_sides, rows), strict=True)):
        others = "no other side has" if at == 0 else f"{sides[0].name} does not have"
        for title in titles:
            yield Alone(one.name, title, f"{others} {title}")
        for why in curve_effects.left_out(of_sides[at]):
            yield Alone(one.name, one.name, why)
    for row in rows if all(of_sides) else []:
        if sum(curve is not None for curve in row.each) > 1:
            for one, curve in zip(sides, row.each, strict=True):
                if curve is None:
                    yield Alone(one.name, row.title, f"it does not have {row.title}")
    for one, row, load in _curves_of_other_loads(sides, rows):
        yield Alone(one.name, row.title, f"{row.title} {_is_another_load([row.title], load)}")


def _curves_of_other_loads(
    sides: Sequence[Side], rows: Sequence[Curves]
) -> Iterable[tuple[Side, Curves, pairing.OtherLoad]]:
    for row in rows:
        for at, one in enumerate(sides[1:], 1):
            load = row.another_load(at)
            if load is not None:
                yield one, row, load


def _called(phase: ComparedPhase, pairs: Sequence[pairing.PatternRow]) -> str:
    """Name a phase by its pattern, and where there are rows of that one by what else it is."""
    every = {cell.first.pattern for row in pairs for cell in row.cells if cell is not None}
    if phase.pattern not in every:
        return phase.pattern
    details = (
        [say("comparison.pattern.maximum")]
        if phase.is_a_maximum
        else [factor_named(name, value) for name, value in phase.factors.items() if name != REPEAT]
    )
    alike = [
        cell.first for row in pairs for cell in row.cells if cell and cell.first.pattern == phase.pattern
    ]
    if not details and (apart := pairing.settings_apart(phase, alike)):
        details = [apart]
    named_apart = phase.depth in {one.depth for one in alike}
    details = details or (
        [f"iodepth {phase.depth}"] if phase.depth and not named_apart else list(phase.names)
    )
    return f"{phase.pattern}, {', '.join(details)}"


def _other_loads(sides: Sequence[Side], pairs: Sequence[pairing.PatternRow]) -> Iterable[Alone]:
    for (name, load), patterns in _patterns_of_other_loads(sides, pairs).items():
        for pattern in patterns:
            yield Alone(name, pattern, f"{pattern} {_is_another_load([pattern], load)}")


def _patterns_of_other_loads(
    sides: Sequence[Side], pairs: Sequence[pairing.PatternRow]
) -> dict[tuple[str, pairing.OtherLoad], list[str]]:
    """Return the patterns of each side whose load differs in the same from the first side's."""
    patterns: dict[tuple[str, pairing.OtherLoad], list[str]] = {}
    for row in pairs:
        base = row.cells[0]
        for one, cell in zip(sides[1:], row.cells[1:], strict=True):
            if base is None or cell is None:
                continue
            load = pairing.another_load(base.first, cell.first)
            if load is not None:
                patterns.setdefault((one.name, load), []).append(row.pattern)
    return patterns


def _is_another_load(patterns: Sequence[str], load: pairing.OtherLoad) -> str:
    one, several = (
        ("comparison.sides.another_load", "comparison.sides.other_loads")
        if load.certain
        else ("comparison.sides.perhaps_another_load", "comparison.sides.perhaps_other_loads")
    )
    predicate = say(one if len(patterns) == 1 else several)
    return f"{predicate}: {load.differs}" if load.differs else predicate


def _on_two_sides(sides: Sequence[Side]) -> Iterable[Alone]:
    of_first = Measurements(sides[0].phases)
    for one in sides[1:]:
        for phase in one.phases:
            same = of_first.first_same(phase)
            if same is not None:
                why = f"{phase.run} is the same measurement as {same.run} of {sides[0].name}"
                yield Alone(one.name, phase.pattern, why)


def _measured_twice(sides: Sequence[Side]) -> Iterable[str]:
    """Say of each side which of its runs are the first side's, too."""
    whys: dict[str, list[str]] = {}
    for one in _on_two_sides(sides):
        whys.setdefault(one.side, []).append(one.why)
    for name, every in whys.items():
        # A run of several phases is one run.
        sentences = list(dict.fromkeys(every))
        more = len(sentences) - MOST_TWICE
        yield from (f"{name}: {why}" for why in sentences[:MOST_TWICE])
        if more > 0:
            yield f"{name}: {say('comparison.sides.more_twice', runs=more, first=sides[0].name)}"


def _of_errors(
    sides: Sequence[Side],
    pairs: Sequence[pairing.PatternRow],
    curves: Sequence[Curves],
    effects: Sequence[Effect],
) -> list[str]:
    """Say what the errors of figures do not know, and which figures have none."""
    warnings = list(_of_single_runs(sides, effects))
    beside_repeats = {
        (one.row, at) for one in effects if one.first and not one.of_single_runs for at in (0, one.side)
    }
    single = [
        one.name
        for at, one in enumerate(sides)
        if any(
            (cell := row.cells[at]) is not None
            and (number, at) in beside_repeats
            and len(cell.valid) == 1
            and not _tells_no_error(cell)
            and not _tells_repeats(cell)
            for number, row in enumerate(pairs)
        )
        or any(
            (curve := row.each[at]) is not None
            and (len(pairs) + number, at) in beside_repeats
            and curve.has_single_maximum
            for number, row in enumerate(curves)
        )
    ]
    if single:
        warnings.append(say("comparison.sides.one_run", sides=", ".join(single)))
    # What is tested by the scatter of the other side's repeats can be compared.
    tested = {(one.row, side) for one in effects if one.raw_p is not None for side in (0, one.side)}
    mute = [
        f"{row.pattern} of {one.name}"
        for at, one in enumerate(sides)
        for number, row in enumerate(pairs)
        if (cell := row.cells[at]) is not None and _tells_no_error(cell) and (number, at) not in tested
    ]
    if mute:
        warnings.append(say("comparison.sides.no_error", patterns=_some(mute)))
    return warnings


def _of_single_runs(sides: Sequence[Side], effects: Sequence[Effect]) -> Iterable[str]:
    """Say which patterns are single runs on both sides, what that is worth, and how to repeat them."""
    single = [one for one in effects if one.first and one.of_single_runs and one.raw_p is not None]
    if not single:
        return
    last = max(one.side for one in single)
    commands = [repeat_command(sides[at]) for at in (last, 0)]
    command = next((one for one in commands if one is not None), None)
    remedy = say(
        "comparison.sides.repeat" if command is None else "comparison.sides.repeat_by",
        **({} if command is None else {"command": command}),
    )
    yield say(
        "comparison.sides.single_runs", patterns=_some(list(dict.fromkeys(one.pattern for one in single))),
        beyond=f"{single_runs.BEYOND:g}", remedy=remedy,
    )  # fmt: skip


def _of_curves(
    sides: Sequence[Side], of_sides: Sequence[Sequence[SideCurve]], rows: Sequence[Curves]
) -> Iterable[str]:
    """Say which curves are not compared, and which are of another load."""
    for one, titles, own in zip(sides, curve_effects.alone(of_sides, rows), of_sides, strict=True):
        if titles:
            yield f"only {one.name} has {', '.join(titles)}"
        yield from (f"{one.name}: {why}" for why in curve_effects.left_out(own))
    for one, row, load in _curves_of_other_loads(sides, rows):
        yield f"{one.name}: {row.title} {_is_another_load([row.title], load)}"


def _warnings(
    sides: Sequence[Side], pairs: Sequence[pairing.PatternRow], alone: Sequence[Sequence[Repeats]]
) -> list[str]:
    warnings = list(_unlike_repeats(sides, pairs))
    for (name, load), patterns in _patterns_of_other_loads(sides, pairs).items():
        warnings.append(f"{name}: {_some(patterns)} {_is_another_load(patterns, load)}")
    warnings += _measured_twice(sides)
    warnings += _no_shared_figure(sides, pairs)
    warnings += _not_paired(sides, pairs, alone)
    for one in sides:
        of_side = (*one.doubts, *one.at_once, *_loads_of_one_name(one))
        warnings += [f"{one.name}: {doubt}" for doubt in of_side]
        warnings += [f"{one.name}: {one.said_of(passed)}" for passed in one.passed]
        if broken := _not_complete(one):
            warnings.append(f"{one.name} {broken}")
    return warnings


def _no_shared_figure(sides: Sequence[Side], pairs: Sequence[pairing.PatternRow]) -> Iterable[str]:
    """Say which loads two sides have, and of which they tell no figure of one kind."""
    for row in pairs:
        known = [frozenset() if cell is None else _shown_of(cell) for cell in row.cells]
        for one, metrics in zip(sides[1:], known[1:], strict=True):
            if known[0] and metrics and not known[0] & metrics:
                yield say(
                    "comparison.sides.no_shared_figure", pattern=row.pattern, first=sides[0].name,
                    metrics=", ".join(sorted(known[0])), name=one.name, others=", ".join(sorted(metrics)),
                )  # fmt: skip


def _shown_of(cell: Repeats) -> frozenset[str]:
    """Return the names of the metrics in the matrix that are known of a cell."""
    entries = {metric.name: matrix.entry(cell, metric) for metric in matrix.SHOWN}
    return frozenset(name for name, one in entries.items() if one is not None and one.sample is not None)


def _not_paired(
    sides: Sequence[Side], pairs: Sequence[pairing.PatternRow], alone: Sequence[Sequence[Repeats]]
) -> Iterable[str]:
    """Say which loads have no partner: of one side, or of several that the first side has not."""
    holders: dict[str, list[str]] = {}
    for one, cells in zip(sides, alone, strict=True):
        for called in dict.fromkeys(_called(cell.first, pairs) for cell in cells):
            holders.setdefault(called, []).append(one.name)
    loads: dict[tuple[str, ...], list[str]] = {}
    for called, names in holders.items():
        loads.setdefault(tuple(names), []).append(called)
    for sharing, several in loads.items():
        if len(sharing) == 1:
            yield f"only {sharing[0]} has {', '.join(several)}"
        elif sharing[0] == sides[0].name:
            yield say("comparison.sides.not_told_which", loads=", ".join(several), sides=", ".join(sharing))
        else:
            yield say(
                "comparison.sides.not_first", first=sides[0].name, loads=", ".join(several),
                sides=", ".join(sharing), other=sharing[0],
            )  # fmt: skip


def _unlike_repeats(sides: Sequence[Side], pairs: Sequence[pairing.PatternRow]) -> Iterable[str]:
    """Say in what the repeats of a side are not alike: their mean is of two things."""
    patterns: dict[tuple[str, str], list[str]] = {}
    for row in pairs:
        for one, cell in zip(sides, row.cells, strict=True):
            if cell is not None and len(cell.valid) > 1 and (differing := within(cell.valid)):
                parts = [f"{key} ({values})" for key, values in differing.items()]
                patterns.setdefault((one.name, _some(parts)), []).append(row.pattern)
    for (name, differs), alike in patterns.items():
        yield say("comparison.sides.unlike_repeats", name=name, patterns=_some(alike), differences=differs)


def _loads_of_one_name(one: Side) -> Iterable[str]:
    """Say which results of one file may be repeats, and were not taken for such."""
    counts = Counter(
        (phase.path, phase.names)
        for phase in one.phases
        if phase.case.source != "bundle" and phase.depth is None and phase.names
    )
    for (path, names), count in counts.items():
        if count > 1:
            yield say("comparison.sides.one_by_one", file=path.name, names=", ".join(names), results=count)


def _some(names: Sequence[str]) -> str:
    return first_of(names, separator="; ", most=2)


def _not_complete(one: Side) -> str | None:
    broken = {run.summary.status for run in one.runs} - {"complete"}
    # Of a study that was ended between two runs all that is there is complete.
    broken |= {record.status for _, record in one.studies if record.status == "interrupted"}
    broken |= {"partial" for _, record in one.studies if record.status == "running"}
    return say("comparison.sides.incomplete", status=", ".join(sorted(broken))) if broken else None


def _tells_no_error(cell: Repeats) -> bool:
    entries = [matrix.entry(cell, metric) for metric in matrix.SHOWN[:3]]
    samples = [one.sample for one in entries if one is not None and one.sample is not None]
    return bool(samples) and all(one.error is None for one in samples)


def _tells_repeats(cell: Repeats) -> bool:
    """Tell that one published figure is of several runs, which were all printed."""
    samples = [one for one in cell.first.values.values() if isinstance(one, Sample)]
    return any(one.runs > 1 for one in samples)


def _phases_of_sides(sides: Sequence[Side]) -> str:
    clauses = []
    for one in sides:
        phases = [phase for phase in one.phases if phase.is_a_maximum or not phase.on_a_curve]
        names = list(dict.fromkeys(f"{phase.name} ({_load(phase)})" for phase in phases))
        more = f" and {len(names) - MOST_HELD} more" if names[MOST_HELD:] else ""
        clauses.append(f"{one.name} has {', '.join(names[:MOST_HELD]) or 'none'}{more}")
    return "; ".join(clauses)


def _load(phase: ComparedPhase) -> str:
    """Return what decides whether a phase has a partner."""
    parts = [phase.pattern]
    parts += ["maximum of a curve"] if phase.is_a_maximum else []
    parts += [f"depth {phase.depth}"] if phase.depth is not None else []
    parts += [pairing.in_words(phase.asked)] if any(phase.asked) else []
    return ", ".join(parts)
