"""The words of an experiment's report: metrics, changes, the answer in a sentence, what is open.

Knows how each is written. Computes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.effects.metric_names import name_of, value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.effects.findings import (
        DriftFound,
        Effects,
        Interaction,
        LevelEffect,
        RatioInterval,
        Recommendation,
    )
    from loadstone.report.experiment.story import ExperimentStory

KINDS: Final = {
    "better": "better", "worse": "worse", "alike": "no difference", "open": "not significant",
    "confounded": "follows the time", "unknown": "cannot say",
}  # fmt: skip
MARKS: Final = {"better": "▲", "worse": "▼", "alike": "=", "open": "", "confounded": "⚠", "unknown": ""}
METHODS: Final = {
    "t": "Student's t", "welch": "Welch's t", "bootstrap": "bootstrap", "none": "no error known",
}  # fmt: skip
TAKEN: Final = {
    "blocks": "by blocks", "blocks_and_line": "by blocks and a line of time", "line": "by a line of time",
    "nothing": "not taken out",
}  # fmt: skip
OUTCOMES: Final = {
    "restored": "put back", "unchanged": "was so already", "rebooted": "gone with a restart of the machine",
    "gone": "its device is gone", "changed_by_others": "changed by somebody else: left as it is",
    "not_held": "changed by somebody else during a run",
    "failed": "NOT PUT BACK", "not put back": "NOT PUT BACK", "kept": "kept for the next run",
    "none": "nothing to put back",
}  # fmt: skip
ONE_NUMBER: Final = 0.15
"""Up to such a difference as much up is about as much down."""
NO_EFFECT: Final = "has no significant effect"
ALIKE: Final = "makes no difference"
PLURALS: Final = {NO_EFFECT: "have no significant effect", ALIKE: "make no difference"}
MOST_FACTORS: Final = 3
MOST_LEVELS: Final = 3
"""Beside the one that differs most."""


def change(ratio: RatioInterval | None) -> str:
    """Write a change with its interval: `+12 % (+9 to +15)`; a factor from four times on."""
    if ratio is None:
        return units.NONE
    if ratio.low is None or ratio.high is None:
        return _one(ratio.ratio, 0)
    if ratio.ratio >= 4 or ratio.high >= 11:
        return f"{units.digits(ratio.ratio)}× ({units.digits(ratio.low)} to {_upper(ratio.high)})"
    width = (ratio.high - ratio.low) * 50
    places = 0 if width >= 1 else (1 if width >= 0.1 else 2)
    low, high = (units.change(one - 1, places) for one in (ratio.low, ratio.high))
    return f"{_one(ratio.ratio, places)} ({low} to {high})"


def _upper(ratio: float) -> str:
    return "any" if ratio > 1e4 else units.digits(ratio)


def _one(ratio: float, places: int) -> str:
    if ratio >= 4:
        return f"{units.digits(ratio)}×"
    return f"{units.change(ratio - 1, places)}{units.THIN}%"


def percent(share: float | None) -> str:
    """Write a share with two digits."""
    if share is None:
        return units.NONE
    return units.percent(100 * share)


def p_value(p: float | None) -> str:
    """Write a p-value."""
    if p is None:
        return units.NONE
    return "<0.0001" if p < 1e-4 else f"{p:.2g}"


def levels(chosen: Mapping[str, str]) -> str:
    """Write a combination: `governor=performance, cache=on`."""
    return ", ".join(f"{name}={level}" for name, level in chosen.items())


def told(one: LevelEffect | None) -> str:
    """Write an effect with its mark; the level has a value, but what it is held against may have none."""
    if one is None or one.change is None:
        return "not compared"
    return f"{change(one.change)} {MARKS[one.judgement]}".rstrip()


def either_way(share: float) -> str:
    """Write a difference; of a large one how far it is down, too: half is as far away as twice."""
    if share < ONE_NUMBER:
        return percent(share)
    down, up = units.change(-share / (1 + share), 0), units.change(share, 0)
    return f"{down}{units.THIN}% or {up}{units.THIN}%"


def _mixed(one: LevelEffect) -> list[str]:
    """Return the factors whose effect this cannot be told from."""
    return [other for other in one.aliased_with if ":" not in other]


def headline(story: ExperimentStory) -> str:
    """Return the answer in a sentence: what each factor does to the metric that the experiment is about."""
    effects, metric = story.effects, story.metric
    if not effects.factors:
        return "Nothing was varied: `loadstone compare` holds this against another run of the same file."
    firsts = [one for one in effects.effects if one.first]
    known = any(one.change is not None for one in firsts)
    if not known and any(_mixed(one) for one in firsts):
        names = list(dict.fromkeys(one.factor for one in firsts if _mixed(one)))
        return f"Effects cannot be separated: in valid runs {' and '.join(names)} change only together."
    if not known:
        return _nothing_known(story)
    if all(one.judgement == "unknown" for one in firsts):
        return "Nothing is significant: no combination was repeated, so chance cannot be ruled out."
    ordered = sorted(
        (one.name for one in effects.factors if len(one.levels) > 1), key=lambda name: -_weight(effects, name)
    )
    parts = [
        (name, _of_factor(story, name, [one for one in firsts if one.factor == name])) for name in ordered
    ]
    sizes = {name: _open_sizes([one for one in firsts if one.factor == name]) for name in ordered}
    smallest = {
        name: None if None in one else max(size or 0.0 for size in one)
        for name, one in sizes.items()
        if one is not None
    }
    clauses = _together([(name, part) for name, part in parts if part], smallest)
    rest = sum(count for _, count in clauses[MOST_FACTORS:])
    more = f"; and {rest} more factor{'s' if rest > 1 else ''}" if rest > 0 else ""
    return f"{name_of(metric)}: {'; '.join(clause for clause, _ in clauses[:MOST_FACTORS])}{more}."


def _nothing_known(story: ExperimentStory) -> str:
    """Say why no effect is known: the reason of most runs where none of them is valid."""
    reasons = Counter(row.invalid for row in story.table.rows)
    if not reasons or None in reasons:
        return "No effect is known: no factor has valid runs at two of its levels."
    why, count = reasons.most_common(1)[0]
    runs = "the only run is not" if len(story.table.rows) == 1 else f"none of {len(story.table.rows)} runs is"
    of_which = ":" if len(reasons) == 1 else f". {count} of them:"
    return f"No effect is known: {runs} valid{of_which} {(why or '').rstrip('.')}."


def _together(
    parts: Sequence[tuple[str, str]], smallest: Mapping[str, float | None]
) -> list[tuple[str, int]]:
    """Say what holds of several factors once, where the first stands; return of how many each is.

    `smallest`: factors without a significant effect, and the smallest one that would have been seen.
    """
    names: dict[str, list[str]] = {}
    for name, part in parts:
        same = NO_EFFECT if name in smallest else part.removeprefix(f"{name} ")
        names.setdefault(same if same.startswith((NO_EFFECT, ALIKE)) else part, []).append(name)
    clauses = []
    for text, several in names.items():
        clause = next(part for name, part in parts if name == several[0])
        if len(several) > 1:
            one = next(one for one in PLURALS if text.startswith(one))
            rest = (
                _could([smallest[name] for name in several]) if text == NO_EFFECT else text.removeprefix(one)
            )
            clause = f"{', '.join(several[:-1])} and {several[-1]} {PLURALS[one]}{rest}"
        clauses.append((clause, len(several)))
    return clauses


def _could(sizes: Sequence[float | None]) -> str:
    """Say which difference would have been seen in all of these, where that is known."""
    known = [one for one in sizes if one is not None]
    if not known or len(known) < len(sizes):
        return ""
    return f" (a difference of {either_way(max(known))} would have been seen)"


def _open_sizes(effects: Sequence[LevelEffect]) -> list[float | None] | None:
    """Return what would have been seen of a factor of which nothing else is to be said; None: there is."""
    known = [one for one in effects if one.judgement != "unknown"]
    if not known or any(one.depends_on or one.judgement not in ("alike", "open") for one in known):
        return None
    return [one.smallest_seen for one in known if one.judgement == "open"] or None


def _weight(effects: Effects, factor: str) -> float:
    apart = [
        abs(one.change.ratio if one.change.ratio >= 1 else 1 / one.change.ratio)
        for one in effects.effects
        if one.first and one.factor == factor and one.change is not None
        if one.judgement in ("better", "worse")
    ]
    return max(apart, default=0.0)


def _of_factor(story: ExperimentStory, factor: str, effects: Sequence[LevelEffect]) -> str:
    apart = [one for one in effects if one.judgement in ("better", "worse")]
    several = len(story.effects.patterns) > 1
    if apart:
        # Held against the first level where that shows it, as in the matrix.
        first = next(one.levels[0] for one in story.effects.factors if one.name == factor)
        most = max(apart, key=lambda one: (one.against == first, abs(_log(one))))
        where = f" in {most.pattern}" if several else ""
        size = change(most.change).replace("(", f"(confidence 95{units.THIN}%: ", 1)
        clause = f"{factor}={most.level} gives {size} against {most.against}{where}"
        return clause + (_depending(story, most) or _others(apart, most))
    if any(one.judgement == "confounded" for one in effects):
        return f"{factor} cannot be told from a drift"
    return _not_apart(story, factor, effects)


def _not_apart(story: ExperimentStory, factor: str, effects: Sequence[LevelEffect]) -> str:
    """Write of a factor whose levels are not told apart on average what is known."""
    known = [one for one in effects if one.judgement != "unknown"]
    if crossed := next((one for one in known if one.depends_on), None):
        # Large one way at one level and none or the other way at another: the average says little.
        where = f" in {crossed.pattern}" if len(story.effects.patterns) > 1 else ""
        return (
            f"{factor} has no significant effect on average, but {factor}={crossed.level} against "
            f"{crossed.against}{where} gives{_depending(story, crossed).removeprefix(':')}"
        )
    if known and all(one.judgement == "alike" for one in known):
        return f"{factor} {ALIKE} above {percent(story.effects.margin)}"
    if not known:
        mixed = [other for one in effects for other in _mixed(one)]
        if mixed and all(one.change is None for one in effects):
            return f"{factor} cannot be told from {' and '.join(dict.fromkeys(mixed))}"
        if any(one.change is not None for one in effects):
            return f"{factor}: too few runs to rule out chance"
        return f"{factor}: no data"
    return f"{factor} {NO_EFFECT}{_could(_open_sizes(effects) or [])}"


def _others(apart: Sequence[LevelEffect], most: LevelEffect) -> str:
    """Write the other levels that differ from the same one, largest first."""
    same = (most.pattern, most.metric, most.against)
    others = [
        one for one in apart if (one.pattern, one.metric, one.against) == same and one.level != most.level
    ]
    others.sort(key=lambda one: -abs(_log(one)))
    changes = [f"{one.level} {change(one.change)}" for one in others[:MOST_LEVELS]]
    rest = len(others) - len(changes)
    return "".join(f", {one}" for one in changes) + (f", and {rest} more levels differ" if rest else "")


def _depending(story: ExperimentStory, one: LevelEffect) -> str:
    """Write what an effect comes to at the levels of a factor that it depends on."""
    if not one.depends_on:
        return ""
    interactions = [
        pair
        for pair in story.effects.interactions
        if pair.found and (pair.pattern, pair.metric) == (one.pattern, one.metric)
        if one.factor in pair.factors
    ]
    clearest = min(interactions, key=lambda pair: pair.raw_p or 0.0)
    other = next(name for name in clearest.factors if name != one.factor)
    rest = [name for name in one.depends_on if name != other]
    also = f", depending also on {' and '.join(rest)}" if rest else ""
    return f": {_simple(clearest, one.factor, one.level, one.against)}{also}"


def _simple(pair: Interaction, factor: str, level: str, against: str) -> str:
    """Write the least and the largest of an effect over the levels of the other factor."""
    effects = [one for one in pair.simple if (one.factor, one.level, one.against) == (factor, level, against)]
    ends = sorted(effects, key=lambda one: one.change.ratio)
    return ", ".join(f"{change(one.change)} with {one.other}={one.at}" for one in (ends[0], ends[-1]))


def _log(one: LevelEffect) -> float:
    return 0.0 if one.change is None else max(one.change.ratio, 1 / max(one.change.ratio, 1e-12)) - 1


def aim(one: Recommendation) -> str:
    """Write an aim: `most IOPS with latency p99 at most 2.00 ms`."""
    most = "most" if one.larger_is_better else "least"
    limit = ""
    if one.limit_metric is not None:
        limit = f" with {name_of(one.limit_metric)} at most {value(one.limit_at_most, one.limit_metric)}"
    return f"{most} {name_of(one.metric)}{limit}"


def choice(effects: Effects, one: Recommendation) -> str:
    """Write what to choose, or why nothing can be recommended: a choice rests on what was told apart."""
    level_effects = [
        each for each in effects.effects if (each.pattern, each.metric) == (one.pattern, one.metric)
    ]
    if one.levels is None:
        return (
            _no_choice(effects, one, level_effects)
            if one.as_good
            else one.why or "nothing can be recommended"
        )
    stays = one.levels if one.change is None and one.limit_metric is None else {}
    better = [
        each
        for each in level_effects
        if each.judgement == "better" and stays.get(each.factor) == each.against
    ]
    if better:
        changes = ", ".join(f"{each.factor}={each.level}: {change(each.change)}" for each in better)
        return f"{changes}, averaged over the other factors; no combination is significantly the best."
    recommendation = f"{levels(one.levels)}: {value(one.value, one.metric)}"
    if one.change is not None and one.against is not None:
        recommendation += f", {change(one.change)} against {levels(one.against)}"
        several = "s" if len(one.as_good) > 1 else ""
        recommendation += (
            f"; {len(one.as_good)} other combination{several} not significantly different"
            if one.as_good
            else ""
        )
    elif one.as_good:
        recommendation += ". Keep it: nothing is significantly better"
    if one.does_not_matter:
        recommendation += f"; any level of {' and '.join(one.does_not_matter)} is as good"
    return f"{recommendation}."


def _no_choice(effects: Effects, one: Recommendation, level_effects: Sequence[LevelEffect]) -> str:
    """Say that nothing was told apart, and how many more repeats would tell a difference that matters."""
    margin = percent(effects.margin)
    if level_effects and all(each.judgement == "alike" for each in level_effects):
        return f"any of the {len(one.as_good)} combinations: no level makes a difference above {margin}."
    undecided = [each.more_repeats for each in level_effects if each.judgement == "open"]
    known = [number for number in undecided if number is not None]
    clause = f"no choice: {len(one.as_good)} combinations do not differ significantly"
    if not undecided:
        return f"{clause}."
    if len(known) < len(undecided):
        return f"{clause}; more than a thousand repeats would show a difference of {margin}."
    most = max(known)
    return f"{clause}; {most} more repeat{'' if most == 1 else 's'} would show a difference of {margin}."


def costs(story: ExperimentStory, one: Recommendation) -> str:
    """Write what a choice changes in other metrics, as far as the interval says; marks are for tests."""
    told_costs = []
    for cost in one.costs:
        if cost.metric not in story.metrics:
            continue
        sure = cost.change.low is not None and cost.change.high is not None
        clear = sure and not ((cost.change.low or 0) <= 1 <= (cost.change.high or 0))
        if clear:
            told_costs.append(f"{name_of(cost.metric)} {change(cost.change)}")
    return ", ".join(told_costs)


def drift(one: DriftFound) -> str:
    """Write whether there was a drift, and how it was taken out."""
    if one.change is None:
        return (one.why or "not known").rstrip(".")
    finding = "drifted by" if one.found else "no significant drift:"
    return f"{finding} {change(one.change)} over the experiment; taken out {TAKEN[one.taken_out]}"


def pair_of_factors(one: Interaction) -> str:
    """Name two factors, and how far one combination of theirs would have to be off for it to be seen."""
    names = " and ".join(one.factors)
    if one.found is not False or one.smallest_seen is None:
        return names
    return f"{names} (one combination off by {either_way(one.smallest_seen)} would have been seen)"


def interaction(one: Interaction) -> str:
    """Write how one factor's effect depends on another, where it does."""
    a, b = one.factors
    largest = one.largest
    if largest is None:
        return f"{a} and {b}: not known"
    level, against = largest.levels
    sizes = _simple(one, a, level, against)
    return f"{a} and {b} depend on each other: {a}={level} against {against} gives {sizes}"


def open_points(effects: Effects) -> list[str]:
    """Return what is not decided, what would have been seen, and how many repeats would decide it."""
    lines = []
    for one in effects.effects:
        if one.judgement != "open" or not one.first:
            continue
        margin = percent(effects.margin)
        least = None if one.smallest_seen is None else either_way(one.smallest_seen)
        detectable = "" if least is None else f"; a difference of {least} would have been seen"
        shown = f"one of {margin}" if least is not None else f"a difference of {margin}"
        repeats = f"{one.more_repeats} more repeat{'' if one.more_repeats == 1 else 's'}"
        more = "more than a thousand repeats" if one.more_repeats is None else repeats
        lines.append(
            f"{one.pattern}: {one.factor}={one.level} and {one.factor}={one.against} do not differ "
            f"significantly{_how_far(effects, one)}{detectable}; {more} would show {shown}."
        )
    return lines


def _how_far(effects: Effects, one: LevelEffect) -> str:
    """Write how far apart they may be; where that alone leaves out no change, all tests do not."""
    own = change(one.change)
    if not _excludes_none(one) or one.change is None or one.together is None:
        return f" ({own})"
    low, high = one.together
    every = change(one.change.model_copy(update={"low": low, "high": high}))
    return f": {every} with all {effects.tests} tests together, {own} if it were the only one"


def _excludes_none(one: LevelEffect) -> bool:
    """Return whether the interval of this effect alone is on one side of no change."""
    return one.change is not None and ((one.change.low or 0.0) > 1 or (one.change.high or 2.0) < 1)


def legend(effects: Effects, design: str) -> str:
    """Say what the marks and ranges mean."""
    others = "with the other factors at their first level" if design == "one_at_a_time" else (
        "averaged over the other factors"
    )  # fmt: skip
    tests = "1 test" if effects.tests == 1 else f"{effects.tests} tests"
    return (
        f"▲ better, ▼ worse: significant at {percent(effects.alpha)}, corrected for {tests} of "
        f"this metric. = no difference above {percent(effects.margin)}: the whole interval is within it. "
        f"Without a mark: not significant. The range is the 95 % interval of the change, {others}. It is "
        "for this change alone, not widened for the number of tests: it may leave out 0 without a mark."
    )


def outcome(one: tuple[str, int]) -> str:
    """Write what became of a setting, and how often."""
    name, times = one
    return f"{OUTCOMES.get(name, name)}{f' ({times}×)' if times > 1 else ''}"


def within(text: str) -> str:
    """Begin with a small letter: what follows a colon. A name keeps its own."""
    return text[:1].lower() + text[1:] if text.startswith("It ") else text


def sentence(text: str) -> str:
    """Begin with a capital letter."""
    return text[:1].upper() + text[1:]
