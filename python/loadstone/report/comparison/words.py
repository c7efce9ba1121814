"""The words of a comparison: values, changes, verdicts of sides, what the gate says.

Knows how each is written, and that a change has no digit that its interval does not carry.
Computes nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.estimate import Estimate
from loadstone.analysis.study.sweep import named as factor_named
from loadstone.comparison.gate import whole_cases
from loadstone.comparison.matrix import RATES
from loadstone.comparison.metric import LAT_OF_CLAT, METRICS
from loadstone.messages import say
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.analysis.statistics.significance import Contrast, Sample
    from loadstone.analysis.study.sweep import OperatingPoint
    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.gate import Gate, Power
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.comparison.metric import Quantity
    from loadstone.comparison.operating_points import OperatingRow
    from loadstone.comparison.side import Side

STEPS: Final = {"count": "count", "bytes_per_s": "binary", "ns": "time"}
MAX_WHY: Final = 8
"""Of the reasons of a gate so many are told one by one."""
MAX_EACH: Final = 5
"""Of more runs the mean and its error say more than their values."""
MAX_SAID: Final = 4
"""So many sides are told one by one in the answer and the title."""
FACTOR: Final = 10.0
"""What grew by more than this share is written as a factor: `68×`, not `+6681 %`."""
LEAST: Final = -0.999
MOST: Final = 1000.0
"""Shares. An interval that reaches beyond both says nothing."""
FAR: Final = 100.0
"""A bound so many times as far as the change says that there is none."""
MAX_NAMED: Final = 3
"""Of phases that are left out for one reason so many are named."""
MARKS: Final = {"better": "▲", "worse": "▼", "same": "", "unrepeated": "◇", "unknown": ""}


def legend(comparison: ComparisonTable) -> str:
    """Say what the marks and ranges mean."""
    bounded = any(one.contrast is not None and one.contrast.low is not None for one in comparison.effects)
    single = any(one.judgement == "unrepeated" for one in comparison.effects)
    of_clat = any(one.metric in LAT_OF_CLAT for one in comparison.effects)
    alpha = f"{comparison.alpha * 100:.3g}{units.THIN}%"
    return " ".join(
        (
            say("report.comparison.legend", alpha=alpha),
            *([say("report.comparison.unrepeated")] if single else ()),
            *([say("report.comparison.ranges")] if bounded else ()),
            say("report.comparison.error"),
            *([say("report.comparison.clat")] if of_clat else ()),
        )
    )


def of_points(comparison: ComparisonTable) -> str:
    """Say what the points of distributions are; nothing where there are none."""
    cells = [cell for row in comparison.pairs for cell in row.cells if cell is not None]
    printed = any(phase.tails and phase.summary is None for cell in cells for phase in cell.valid)
    return say("report.comparison.points") if printed else ""


def value(sample: Sample | None, quantity: Quantity) -> str:
    """Write a value with its error."""
    if sample is None:
        return units.NONE
    if quantity == "errors":
        return units.count(sample.value)
    return units.with_error(Estimate(sample.value, sample.error, sample.runs, ""), STEPS[quantity])


def short(number: float | None, quantity: Quantity) -> str:
    """Write a value without its error."""
    if number is None:
        return units.NONE
    write = {"ns": units.duration, "bytes_per_s": units.bandwidth}.get(quantity, units.count)
    return write(number)


def entry(one: SideValue, quantity: Quantity) -> str:
    """Write a side's value; what is not valid as it was measured."""
    return value(one.sample, quantity) if one.valid else short(one.raw, quantity)


def left_out(one: SideValue) -> str:
    """Say of how many runs a value is, where some of them are not valid; empty where all are."""
    return (
        say("report.comparison.left_out", valid=one.runs, runs=one.runs + one.left_out)
        if one.left_out
        else ""
    )


def each(one: SideValue, quantity: Quantity) -> str:
    """Write the value of every run of a few; empty for one run, and for more than are read."""
    if not 2 <= len(one.each) <= MAX_EACH:
        return ""
    # One line where it has room for one.
    return f"runs: {', '.join(short(value, quantity) for value in one.each)}".replace(
        " ", "\N{NO-BREAK SPACE}"
    )


def change(contrast: Contrast | None) -> str:
    """Write a change and its interval: `+12 % (+9 to +15)`."""
    if contrast is None:
        return units.NONE
    if math.isinf(contrast.change):
        return say("report.change.from_none")
    if contrast.low is None or contrast.high is None:
        return _with_unit(contrast.change, 0) if contrast.change else say("report.change.none")
    if contrast.low < LEAST and contrast.high > MOST:
        return say("report.change.no_bounds", change=_with_unit(contrast.change, 0))
    if contrast.change > FACTOR:
        high = "any" if contrast.high > FAR * contrast.change else _times(contrast.high)
        return f"{_times(contrast.change)} ({_times(contrast.low)} to {high})"
    width = (contrast.high - contrast.low) * 50
    places = 0 if width >= 1 else (1 if width >= 0.1 else 2)
    low, high = (_bounded(part, places) for part in (contrast.low, contrast.high))
    # Where the other end is a factor, it does not share the unit of the change before it.
    unit = f"{units.THIN}%" if contrast.low <= FACTOR < contrast.high else ""
    return f"{_with_unit(contrast.change, places)} ({low}{unit} to {high})"


def _with_unit(share: float, places: int) -> str:
    return _times(share) if share > FACTOR else f"{units.change(share, places)}{units.THIN}%"


def _bounded(share: float, places: int) -> str:
    if share > MOST:
        return "any"
    return _times(share) if share > FACTOR else units.change(share, places)


def _times(share: float) -> str:
    return f"{units.digits(1 + share)}×"


def told(one: Effect) -> str:
    """Write an effect: its change with its mark, or why there is none."""
    if not one.after.valid:
        return say("report.mark.not_valid")
    if not one.before.valid:
        # Beside a figure that is valid itself.
        return say("report.comparison.first_invalid")
    text = change(one.contrast)
    mark = MARKS[one.judgement]
    return f"{text} {mark}".rstrip()


def kind(side: Side) -> str:
    """Write the verdict of a side, and of how many phases it is."""
    return f"{NAMES[side.verdict]} {counts(side)}".rstrip()


def counts(side: Side) -> str:
    """Count the phases of a side by verdict, in words; empty where there is only one."""
    whole, beyond = sum(side.counts.values()), len(side.beyond)
    if whole == 1 and not beyond:
        return ""
    verdicts = ", ".join(f"{count} {NAMES[name]}" for name, count in side.counts.items())
    if beyond:
        verdicts += say("report.comparison.beyond", loads=beyond)
    return say("report.comparison.counts", verdicts=verdicts, phases=whole + beyond)


def shown(comparison: ComparisonTable) -> list[Effect]:
    """Return the effects that a reader sees: one rate of each pattern."""
    return [one for one in comparison.effects if not one.again]


def headline(comparison: ComparisonTable) -> str:
    """Return the answer in a sentence: how many patterns became better and worse, and the largest change.

    What could not be read is in it: without that the answer might be another.
    """
    left_out = [f"{one.name}: {one.not_read}" for one in comparison.sides if one.not_read]
    return " ".join([_answer(comparison), *left_out])


def _answer(comparison: ComparisonTable) -> str:
    names = [one.name for one in comparison.sides]
    names_by_text: dict[str, list[str]] = {}
    for at, name in enumerate(names[1:], start=1):
        side_effects = [one for one in comparison.effects if one.side == at]
        rated = [one for one in side_effects if one.first] or side_effects
        parts = list(_counted(rated))
        parts += _beside(side_effects, rated)
        parts += _of_parts(comparison, at)
        of_rates = any(one.metric in RATES and _is_unlike(one) for one in side_effects)
        if of_rates and not any(_is_unlike(one) for one in rated):
            parts.append(say("report.comparison.other_rates"))
        if not rated:
            parts.append(say("report.comparison.nothing"))
        names_by_text.setdefault("; ".join(parts), []).append(name)
    if len(names_by_text) > MAX_SAID:
        return _of_many(comparison)
    return " ".join(
        f"{', '.join(alike)} against {names[0]}: {text}." for text, alike in names_by_text.items()
    )


def _counted(rated: Sequence[Effect]) -> Iterator[str]:
    """Say in how many patterns a side is better, worse, not valid, and not to be told."""
    by_judgement: dict[str, list[Effect]] = {}
    invalid = [one for one in rated if not (one.before.valid and one.after.valid)]
    for one in rated:
        if one not in invalid or one.told_apart:
            by_judgement.setdefault(one.judgement, []).append(one)
    for word in ("better", "worse"):
        if effects := by_judgement.get(word):
            yield f"{word} in {_some(effects, rated)}: {_largest(effects)}"
    if invalid:
        yield say("report.comparison.some_not_valid", some=_rest(len(invalid), len(rated)))
    if single := by_judgement.get("unrepeated"):
        yield say("report.comparison.single", where=_some(single, rated), largest=_largest(single))
    if same := by_judgement.get("same"):
        yield say("report.comparison.some_not_significant", some=_rest(len(same), len(rated)))
    mute = by_judgement.get("unknown", [])
    unlike = [one for one in mute if _is_unlike(one)]
    if unlike:
        yield _rest(len(unlike), len(rated)) + say("report.comparison.unlike")
    if len(mute) > len(unlike):
        yield _rest(len(mute) - len(unlike), len(rated)) + say("report.comparison.mute")


def _is_unlike(one: Effect) -> bool:
    """Tell that there is a change, which is of the loads and not of the sides."""
    return one.judgement == "unknown" and one.contrast is not None and one.contrast.p is not None


def title(comparison: ComparisonTable) -> str:
    """Return what is held against what; of many sides how many they are."""
    first, *others = (one.name for one in comparison.sides)
    return f"{', '.join(others) if len(others) <= MAX_SAID else f'{len(others)} sides'} against {first}"


def _of_many(comparison: ComparisonTable) -> str:
    """Return the answer where each side has one of its own: how many are better, and the largest change."""
    kinds: dict[str, int] = {}
    firsts: list[Effect] = []
    for at in range(1, len(comparison.sides)):
        side_effects = [one for one in comparison.effects if one.side == at]
        rated = [one for one in side_effects if one.first] or side_effects
        firsts += rated
        judged = {one.judgement for one in rated}
        kind = " and ".join(word for word in ("better", "worse") if word in judged)
        if not kind and any(not (one.before.valid and one.after.valid) for one in rated):
            kind = say("report.mark.not_valid")
        kind = kind or (say("report.mark.need_repeats") if "unrepeated" in judged else "")
        kind = kind or (
            say("report.mark.not_significant") if "same" in judged else say("report.mark.cannot_say")
        )
        kinds[kind] = kinds.get(kind, 0) + 1
    parts = [", ".join(f"{count} {kind}" for kind, count in kinds.items())]
    for judgement, word in (("better", "best"), ("worse", "worst")):
        effects = [one for one in firsts if one.judgement == judgement]
        if effects:
            most = max(effects, key=_size)
            parts.append(f"{word}: {comparison.sides[most.side].name}, {_largest([most])}")
    return say(
        "report.comparison.of_many",
        others=len(comparison.sides) - 1,
        first=comparison.sides[0].name,
        parts="; ".join(parts),
    )


def _beside(mine: Sequence[Effect], rated: Sequence[Effect]) -> Iterator[str]:
    """Say what other quantities tell that the first one of their pattern does not."""
    firsts = {one.row: one.judgement for one in rated}
    for judgement in ("worse", "better"):
        others = [one for one in mine if one.judgement == judgement and not one.first and not one.again]
        extras = [one for one in others if firsts.get(one.row) != judgement]
        if extras and len(rated) < len(mine):
            yield say("report.comparison.but", judgement=judgement, largest=_largest(extras))


def _of_parts(comparison: ComparisonTable, side: int) -> Iterator[str]:
    """Say which job or operation changed most, where nothing of its pattern says so."""
    for judgement in ("worse", "better"):
        told_of = {
            (one.row, metric)
            for one in comparison.effects
            if one.side == side and one.judgement == judgement
            for metric in (METRICS if one.first else (one.metric,))
        }
        changed = [
            (row, contrast)
            for row in comparison.parts
            if row.cells[side].judgement == judgement
            and (row.pair, row.metric) not in told_of
            and (contrast := row.cells[side].contrast) is not None
        ]
        if changed:
            row, contrast = max(changed, key=lambda one: _distance(one[1]))
            largest = f"{row.metric.name} {change(contrast)}, {row.name}"
            yield say("report.comparison.but", judgement=judgement, largest=largest)


def _largest(effects: Sequence[Effect]) -> str:
    most = max(effects, key=_size)
    return f"{most.metric.name} {change(most.contrast)}, {most.pattern}"


def _size(one: Effect) -> float:
    return _distance(one.contrast)


def _distance(contrast: Contrast | None) -> float:
    """Return how far a change is from none: halving is as far as doubling."""
    share = contrast.change if contrast else 0.0
    return math.inf if share <= -1 else abs(math.log1p(share))


def _some(effects: Sequence[Effect], every: Sequence[Effect]) -> str:
    if len(every) == 1:
        return say("report.comparison.one_pattern")
    return say("report.comparison.of_patterns", some=len(effects), patterns=len(every))


def _rest(rest: int, whole: int) -> str:
    return "" if rest == whole else say("report.comparison.some_of", some=rest, whole=whole)


def excluded(comparison: ComparisonTable) -> list[tuple[str, str, str]]:
    """Return what nothing rests on: the side, its phases (those of one reason together), and why."""
    phases: dict[tuple[str, str], list[str]] = {}
    for one in comparison.excluded:
        # A run of one phase has its name, or that and the number of a repeat.
        is_named = f"{one.run} ".startswith(f"{one.phase} ")
        name = one.run if is_named else f"{one.run} ({one.phase})"
        phases.setdefault((one.side, one.why), []).append(name)
    return [(side, _some_named(names), why) for (side, why), names in phases.items()]


def _some_named(names: Sequence[str]) -> str:
    if len(names) <= MAX_NAMED:
        return ", ".join(names)
    return say(
        "report.comparison.phases",
        phases=len(names),
        names=", ".join(names[:MAX_NAMED]),
        more=len(names) - MAX_NAMED,
    )


def operating(comparison: ComparisonTable) -> list[tuple[str, str, str]]:
    """Write where what was swept would be operated: the factor, the side, and its value, rate and latency."""
    return [
        (_swept(row), side.name, _operated(point))
        for row in comparison.operating
        for side, point in zip(comparison.sides, row.each, strict=True)
        if point is not None
    ]


def _swept(row: OperatingRow) -> str:
    of = ", ".join(factor_named(name, value) for name, value in row.others)
    return f"{of}: {row.axis}" if of else row.axis


def _operated(one: OperatingPoint) -> str:
    at = one.at
    rate = (
        units.with_error(at.bandwidth, "binary")
        if at.large_blocks
        else f"{units.with_error(at.iops, 'count')} IOPS"
    )
    where = say("report.comparison.beyond_largest") if one.value is None else f"{one.value}"
    description = f"{where}: {rate}, mean {units.figure(at.mean_ns, 'time')}"
    return description if one.certain else say("report.comparison.not_sure", point=description)


def gate(judged: Gate, known: Sequence[Power]) -> list[str]:
    """Say what the gate decided, and what it could have seen."""
    outcome = judged.outcome.replace("_", " ")
    lines = [f"gate: {outcome}" + (f": {judged.why[0]}" if judged.why else "")]
    lines += [f"gate: {one}" for one in judged.why[1:MAX_WHY]]
    if len(judged.why) > MAX_WHY:
        lines.append(say("report.comparison.gate_more", count=str(len(judged.why) - MAX_WHY)))
    weakest = min(known, key=lambda one: one.power, default=None)
    if weakest is not None:
        lines.append(
            say(
                "report.comparison.power",
                size=f"{judged.detect * 100:.3g}",
                cases=str(whole_cases(weakest.power)),
                pattern=weakest.subject,
                metric=weakest.metric,
            )
        )
    return lines
