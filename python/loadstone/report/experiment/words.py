"""The words of an experiment's report: metrics, changes, the answer in a sentence, what is open.

Knows how each is written. Computes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.effects.metric_names import name_of, value
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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
    "better": say("report.mark.better"),
    "worse": say("report.mark.worse"),
    "alike": say("report.mark.no_difference"),
    "open": say("report.mark.not_significant"),
    "confounded": say("report.mark.follows_time"),
    "requested": say("report.mark.requested"),
    "unknown": say("report.mark.cannot_say"),
}
MARKS: Final = {
    "better": "▲", "worse": "▼", "alike": "=", "open": "", "confounded": "⚠", "unknown": "",
    "requested": say("report.mark.requested"),
}  # fmt: skip
METHODS: Final = {
    "t": say("report.experiment.method_t"),
    "welch": say("report.experiment.method_welch"),
    "bootstrap": say("report.experiment.method_bootstrap"),
    "none": say("report.experiment.method_none"),
}
ONE_NUMBER: Final = 0.15
"""Up to such a difference as much up is about as much down."""
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
        return say("report.mark.not_compared")
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
        return say("report.answer.nothing_varied")
    firsts = [one for one in effects.effects if one.first]
    known = any(one.change is not None for one in firsts)
    if not known and any(_mixed(one) for one in firsts):
        names = list(dict.fromkeys(one.factor for one in firsts if _mixed(one)))
        return say("report.answer.not_separated", factors=" and ".join(names))
    if not known:
        return _nothing_known(story)
    if all(one.judgement == "unknown" for one in firsts):
        return say("report.answer.not_repeated")
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
    alike = {name for name in sizes if _is_alike([one for one in firsts if one.factor == name])}
    clauses = _together(effects, [(name, part) for name, part in parts if part], smallest, alike)
    rest = sum(count for _, count in clauses[MOST_FACTORS:])
    more = say("report.answer.more_factors", factors=rest) if rest > 0 else ""
    return f"{name_of(metric)}: {'; '.join(clause for clause, _ in clauses[:MOST_FACTORS])}{more}."


def _nothing_known(story: ExperimentStory) -> str:
    """Say why no effect is known: the reason of most runs where none of them is valid."""
    reasons = Counter(row.invalid for row in story.table.rows)
    if not reasons or None in reasons:
        return say("report.answer.one_level")
    why, count = reasons.most_common(1)[0]
    reason = (why or "").rstrip(".")
    if len(reasons) == 1:
        return say("report.answer.none_valid", runs=len(story.table.rows), reason=reason)
    return say("report.answer.none_valid_mostly", runs=len(story.table.rows), most=count, reason=reason)


def _together(
    effects: Effects,
    parts: Sequence[tuple[str, str]],
    smallest: Mapping[str, float | None],
    alike: Collection[str],
) -> list[tuple[str, int]]:
    """Say what holds of several factors once, where the first stands; return of how many each is.

    `smallest`: factors without a significant effect, and the smallest one that would have been seen.
    `alike`: factors that make no difference.
    """
    names: dict[str, list[str]] = {}
    for name, part in parts:
        same = "without_effect" if name in smallest else "alike" if name in alike else part
        names.setdefault(same, []).append(name)
    clauses = []
    for text, several in names.items():
        clause = text
        if text == "without_effect":
            clause = _without_effect(several, [smallest[name] for name in several])
        elif text == "alike":
            clause = _without_difference(several, effects.margin)
        clauses.append((clause, len(several)))
    return clauses


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [names[-1]])


def _without_difference(names: Sequence[str], margin: float) -> str:
    key = "report.answer.alike" if len(names) == 1 else "report.answer.all_alike"
    return say(key, factors=_and(names), margin=percent(margin))


def _without_effect(names: Sequence[str], sizes: Sequence[float | None]) -> str:
    """Say that these have no effect, and which would have been seen in all of them, where that is known."""
    known = [one for one in sizes if one is not None]
    detectable = ""
    if known and len(known) == len(sizes):
        detectable = say("report.answer.would_be_seen", difference=either_way(max(known)))
    key = "report.answer.no_effect" if len(names) == 1 else "report.answer.no_effects"
    return say(key, factors=_and(names), seen=detectable)


def _is_alike(effects: Sequence[LevelEffect]) -> bool:
    """Return whether the levels of a factor are known to make no difference that matters."""
    known = [one for one in effects if one.judgement != "unknown"]
    return bool(known) and all(one.judgement == "alike" and not one.depends_on for one in known)


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
        where = say("report.answer.in_pattern", pattern=most.pattern) if several else ""
        size = change(most.change).replace("(", f"({say('report.answer.confidence')} ", 1)
        clause = say(
            "report.answer.effect",
            factor=factor,
            level=most.level,
            change=size,
            against=most.against,
            where=where,
        )
        return clause + (_depending(story, most) or _others(apart, most))
    if any(one.judgement == "confounded" for one in effects):
        return say("report.answer.follows_time", factor=factor)
    if effects and all(one.judgement == "requested" for one in effects):
        return say("report.answer.requested", factor=factor)
    return _not_apart(story, factor, effects)


def _not_apart(story: ExperimentStory, factor: str, effects: Sequence[LevelEffect]) -> str:
    """Write of a factor whose levels are not told apart on average what is known."""
    known = [one for one in effects if one.judgement != "unknown"]
    if crossed := next((one for one in known if one.depends_on), None):
        # Large one way at one level and none or the other way at another: the average says little.
        several = len(story.effects.patterns) > 1
        return say(
            "report.answer.crossed",
            factor=factor,
            level=crossed.level,
            against=crossed.against,
            where=say("report.answer.in_pattern", pattern=crossed.pattern) if several else "",
            changes=_depending(story, crossed).removeprefix(":"),
        )
    if _is_alike(effects):
        return _without_difference([factor], story.effects.margin)
    if not known:
        mixed = [other for one in effects for other in _mixed(one)]
        if mixed and all(one.change is None for one in effects):
            others = " and ".join(dict.fromkeys(mixed))
            return say("report.answer.aliased", factor=factor, others=others)
        if any(one.change is not None for one in effects):
            return say("report.answer.few_runs", factor=factor)
        return say("report.answer.no_data", factor=factor)
    return _without_effect([factor], _open_sizes(effects) or [])


def _others(apart: Sequence[LevelEffect], most: LevelEffect) -> str:
    """Write the other levels that differ from the same one, largest first."""
    same = (most.pattern, most.metric, most.against)
    others = [
        one for one in apart if (one.pattern, one.metric, one.against) == same and one.level != most.level
    ]
    others.sort(key=lambda one: -abs(_log(one)))
    changes = [f"{one.level} {change(one.change)}" for one in others[:MOST_LEVELS]]
    rest = len(others) - len(changes)
    more = say("report.answer.more_levels", levels=rest) if rest else ""
    return "".join(f", {one}" for one in changes) + more


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
    also = say("report.answer.depending", factors=" and ".join(rest)) if rest else ""
    return f": {_simple(clearest, one.factor, one.level, one.against)}{also}"


def _simple(pair: Interaction, factor: str, level: str, against: str) -> str:
    """Write the least and the largest of an effect over the levels of the other factor."""
    effects = [one for one in pair.simple if (one.factor, one.level, one.against) == (factor, level, against)]
    ends = sorted(effects, key=lambda one: one.change.ratio)
    return ", ".join(
        say("report.answer.simple", change=change(one.change), factor=one.other, level=one.at)
        for one in (ends[0], ends[-1])
    )


def _log(one: LevelEffect) -> float:
    return 0.0 if one.change is None else max(one.change.ratio, 1 / max(one.change.ratio, 1e-12)) - 1


def aim(one: Recommendation) -> str:
    """Write an aim: `most IOPS with latency p99 at most 2.00 ms`."""
    limit = ""
    if one.limit_metric is not None:
        most = value(one.limit_at_most, one.limit_metric)
        limit = say("report.choice.limit", metric=name_of(one.limit_metric), most=most)
    key = "report.choice.most" if one.larger_is_better else "report.choice.least"
    return say(key, metric=name_of(one.metric), limit=limit)


def choice(effects: Effects, one: Recommendation) -> str:
    """Write what to choose, or why nothing can be recommended: a choice rests on what was told apart."""
    level_effects = [
        each for each in effects.effects if (each.pattern, each.metric) == (one.pattern, one.metric)
    ]
    if one.levels is None:
        return (
            _no_choice(effects, one, level_effects) if one.as_good else one.why or say("report.choice.none")
        )
    stays = one.levels if one.change is None and one.limit_metric is None else {}
    better = [
        each
        for each in level_effects
        if each.judgement == "better" and stays.get(each.factor) == each.against
    ]
    if better:
        changes = ", ".join(f"{each.factor}={each.level}: {change(each.change)}" for each in better)
        return say("report.choice.averaged", changes=changes)
    recommendation = f"{levels(one.levels)}: {value(one.value, one.metric)}"
    if one.change is not None and one.against is not None:
        against = levels(one.against)
        recommendation += say("report.choice.against", change=change(one.change), levels=against)
        if one.as_good:
            recommendation += say("report.choice.as_good", combinations=len(one.as_good))
    elif one.as_good:
        recommendation += say("report.choice.keep")
    if one.does_not_matter:
        recommendation += say("report.choice.any_level", factors=" and ".join(one.does_not_matter))
    return f"{recommendation}."


def _no_choice(effects: Effects, one: Recommendation, level_effects: Sequence[LevelEffect]) -> str:
    """Say that nothing was told apart, and how many more repeats would tell a difference that matters."""
    margin = percent(effects.margin)
    if level_effects and all(each.judgement == "alike" for each in level_effects):
        return say("report.choice.any", combinations=len(one.as_good), margin=margin)
    undecided = [each.more_repeats for each in level_effects if each.judgement == "open"]
    known = [number for number in undecided if number is not None]
    clause = say("report.choice.undecided", combinations=len(one.as_good))
    if not undecided:
        return f"{clause}."
    difference = say("report.open.difference", margin=margin)
    repeats = _more_repeats(max(known) if len(known) == len(undecided) else None)
    return f"{clause}; {say('report.open.would_show', repeats=repeats, difference=difference)}."


def _more_repeats(number: int | None) -> str:
    return say("report.open.many") if number is None else say("report.open.repeats", repeats=number)


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
        return (one.why or say("report.drift.unknown")).rstrip(".")
    key = "report.drift.significant" if one.found else "report.drift.none"
    return say(key, change=change(one.change), removed=say(f"report.drift.{one.taken_out}"))


def pair_of_factors(one: Interaction) -> str:
    """Name two factors, and how far one combination of theirs would have to be off for it to be seen."""
    names = " and ".join(one.factors)
    if one.found is not False or one.smallest_seen is None:
        return names
    return say("report.interaction.would_be_seen", factors=names, difference=either_way(one.smallest_seen))


def interaction(one: Interaction) -> str:
    """Write how one factor's effect depends on another, where it does."""
    a, b = one.factors
    largest = one.largest
    if largest is None:
        return say("report.interaction.unknown", one=a, other=b)
    level, against = largest.levels
    sizes = _simple(one, a, level, against)
    return say("report.interaction.found", one=a, other=b, level=level, against=against, changes=sizes)


def open_points(effects: Effects) -> list[str]:
    """Return what is not decided, what would have been seen, and how many repeats would decide it."""
    lines = []
    for one in effects.effects:
        if one.judgement != "open" or not one.first:
            continue
        margin = percent(effects.margin)
        least = None if one.smallest_seen is None else either_way(one.smallest_seen)
        shown = say("report.open.difference" if least is None else "report.open.one", margin=margin)
        more = say("report.open.would_show", repeats=_more_repeats(one.more_repeats), difference=shown)
        lines.append(
            say(
                "report.open.factor",
                pattern=one.pattern,
                factor=one.factor,
                level=one.level,
                against=one.against,
                interval=_how_far(effects, one),
                seen="" if least is None else say("report.open.would_be_seen", difference=least),
                more=more,
            )
        )
    return lines


def _how_far(effects: Effects, one: LevelEffect) -> str:
    """Write how far apart they may be; where that alone leaves out no change, all tests do not."""
    own = change(one.change)
    if not _excludes_none(one) or one.change is None or one.together is None:
        return f" ({own})"
    low, high = one.together
    every = change(one.change.model_copy(update={"low": low, "high": high}))
    return say("report.open.all_tests", tests=effects.tests, every=every, own=own)


def _excludes_none(one: LevelEffect) -> bool:
    """Return whether the interval of this effect alone is on one side of no change."""
    return one.change is not None and ((one.change.low or 0.0) > 1 or (one.change.high or 2.0) < 1)


def legend(effects: Effects, design: str) -> str:
    """Say what the marks and ranges mean."""
    return say(
        "report.legend.effects",
        alpha=percent(effects.alpha),
        tests=effects.tests,
        margin=percent(effects.margin),
        others=say("report.legend.first_levels" if design == "one_at_a_time" else "report.legend.averaged"),
    )


def outcome(one: tuple[str, int]) -> str:
    """Write what became of a setting, and how often."""
    name, times = one
    return say(f"report.outcome.{name}") + (f" ({times}×)" if times > 1 else "")


def within(text: str) -> str:
    """Begin with a small letter: what follows a colon. A name keeps its own."""
    return text[:1].lower() + text[1:] if text.startswith("It ") else text


def sentence(text: str) -> str:
    """Begin with a capital letter."""
    return text[:1].upper() + text[1:]
