"""The tables of an experiment's report as rows of words, the same for a page, paper, Markdown and a terminal.

Knows which rows and columns there are. Draws nothing and computes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.histogram import MIN_BEYOND
from loadstone.effects.aliases import mixed_in_words
from loadstone.effects.design_matrix import written
from loadstone.effects.metric_names import name_of
from loadstone.effects.metric_names import value as value_of
from loadstone.messages import say
from loadstone.report.experiment import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.experiment.story import ExperimentStory


PERCENTILES: Final = {"lat_p99_ns": 0.99, "lat_p999_ns": 0.999}
"""Metrics that need many I/Os, and the share of I/Os that they do not exceed."""
LAST: Final = ("order in time", "not explained")
MOST_SHARED: Final = 1.02
"""Shares that add up to no more than this are as good as all."""
LEAST_SHARED: Final = 0.95


@dataclass(frozen=True, slots=True)
class EffectCell:
    """A level of one pattern: its value, its change against the first level, and what is said of that."""

    value: str
    change: str
    kind: str


@dataclass(frozen=True, slots=True)
class EffectLine:
    """A pattern in one metric."""

    name: str
    first: bool
    cells: tuple[EffectCell, ...]


@dataclass(frozen=True, slots=True)
class FactorTable:
    """A factor: its levels as columns, patterns as rows."""

    factor: str
    levels: tuple[str, ...]
    lines: tuple[EffectLine, ...]


@dataclass(frozen=True, slots=True)
class CombinationRow:
    """One combination of levels in the first metric."""

    pattern: str
    first: bool
    levels: tuple[str, ...]
    runs: str
    value: str
    interval: str
    why: str | None


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting of the machine."""

    control: str
    subject: str
    before: str
    asked: str
    times: int
    outcome: str
    left: bool


@dataclass(frozen=True, slots=True)
class ModelRow:
    """How the effects on one metric of one pattern were computed."""

    pattern: str
    metric: str
    runs: str
    method: str
    noise: str
    normal: str
    equal: str


def matrix(story: ExperimentStory, metrics: Sequence[str]) -> list[FactorTable]:
    """Return a table for each factor, with a line for each pattern and metric."""
    tables = []
    for factor in story.effects.factors:
        meaning = story.meaning(factor.name)
        lines = [
            _line(story, pattern, metric, factor.name, factor.levels, named=list(metrics) != [story.metric])
            for pattern in story.effects.patterns
            for metric in metrics
        ]
        name = factor.name if meaning == factor.name else f"{factor.name} ({meaning})"
        tables.append(FactorTable(name, tuple(factor.levels), tuple(lines)))
    return tables


def _line(
    story: ExperimentStory, pattern: str, metric: str, factor: str, levels: list[str], *, named: bool
) -> EffectLine:
    cells = []
    for at, level in enumerate(levels):
        mean = story.mean(pattern, metric, {factor: level})
        if mean is None:
            cells.append(EffectCell(_missing(story, pattern, metric, (factor, level)), "", "none"))
        elif at == 0:
            cells.append(EffectCell(value_of(mean.value, metric), "", "base"))
        else:
            one = story.effect(pattern, metric, factor, level)
            kind = "unknown" if one is None else one.judgement
            cells.append(EffectCell(value_of(mean.value, metric), words.told(one), kind))
    name = f"{pattern}, {name_of(metric)}" if named else pattern
    return EffectLine(name, metric == story.metric, tuple(cells))


def _missing(story: ExperimentStory, pattern: str, metric: str, level: tuple[str, str]) -> str:
    """Say why a level has no figure: nothing valid was measured, or only together with another's level."""
    valid = (row for row in story.table.rows if row.pattern == pattern and row.invalid is None)
    measured = any(row.levels[level[0]] == level[1] and metric in row.metrics for row in valid)
    return say("report.mark.not_known") if measured else say("report.mark.no_data")


def combinations(story: ExperimentStory) -> list[CombinationRow]:
    """Return all combinations, pattern by pattern."""
    rows = []
    for pattern, cells in story.cells(story.metric).items():
        for at, one in enumerate(cells):
            ends = [value_of(end, story.metric) for end in (one.low, one.high) if end is not None]
            rows.append(
                CombinationRow(
                    pattern=pattern if at == 0 else "",
                    first=at == 0,
                    levels=tuple(one.levels.values()),
                    runs=f"{one.runs}" + (f" of {one.runs + one.left_out}" if one.left_out else ""),
                    value=value_of(one.value, story.metric),
                    interval=" to ".join(ends) or units.NONE,
                    why=one.why,
                )
            )
    return rows


def patterns(story: ExperimentStory) -> list[list[str]]:
    """Return the mean of each metric for each pattern, where nothing was varied."""
    rows = []
    for pattern in story.effects.patterns:
        values = [story.cells(metric).get(pattern) for metric in story.metrics]
        rows.append(
            [
                pattern,
                str(values[0][0].runs if values[0] else 0),
                *(
                    value_of(cells[0].value, metric) if cells else say("report.mark.no_data")
                    for metric, cells in zip(story.metrics, values, strict=True)
                ),
            ]
        )
    return rows


def settings(story: ExperimentStory) -> list[SettingRow]:
    """Return what was changed on the machine; what is not as it was comes first."""
    return [
        SettingRow(
            control=one.control,
            subject=one.subject,
            before=one.before or units.NONE,
            asked=", ".join(one.asked),
            times=one.times,
            outcome=", ".join(words.outcome(part) for part in one.outcomes)
            + (f": {one.why}" if one.why else ""),
            left=one.left,
        )
        for one in sorted(story.changed(), key=lambda one: not one.left)
    ]


def models(story: ExperimentStory) -> list[ModelRow]:
    """Return how each metric of each pattern was computed."""
    return [
        ModelRow(
            pattern=one.pattern,
            metric=name_of(one.metric),
            runs=str(one.runs),
            method=words.METHODS[one.method],
            noise=words.percent(one.noise_share),
            normal=words.p_value(one.normal_p),
            equal=words.p_value(one.equal_noise_p),
        )
        for one in story.effects.models
        if one.metric in story.metrics
    ]


def notes(story: ExperimentStory) -> list[str]:
    """Return what is to be known of the models, each once, with where it holds."""
    places: dict[str, list[str]] = {}
    for one in story.effects.models:
        if one.metric in story.metrics:
            for note in one.notes:
                places.setdefault(note, []).append(f"{one.pattern}, {name_of(one.metric)}")
    every = sum(one.metric in story.metrics for one in story.effects.models)
    return [note if len(where) == every else f"{'; '.join(where)}: {note}" for note, where in places.items()]


def left_out(story: ExperimentStory) -> list[str]:
    """Return the runs that nothing rests on, those with one reason together."""
    by_reason: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in story.effects.left_out:
        chosen = by_reason.setdefault((one.pattern, one.why), {})
        runs = chosen.setdefault(words.levels(one.levels), [])
        if one.run not in runs:
            runs.append(one.run)
    of_pattern = Counter(row.pattern for row in story.table.rows)
    lines = []
    for (pattern, why), combinations in by_reason.items():
        count = sum(map(len, combinations.values()))
        if len(combinations) > 1 and count == of_pattern[pattern]:
            lines.append(f"{pattern}: all {count} runs: {why}")
        else:
            lines += [
                f"{pattern}, {chosen}: {', '.join(runs)}: {why}" for chosen, runs in combinations.items()
            ]
    return lines


def doubts(story: ExperimentStory) -> list[str]:
    """Return what has to be said first: settings that are not as they were, and runs of several hosts."""
    systems = story.systems()
    counted = "; ".join(f"{name} ({_some(count, 'run')})" for name, count in systems.items())
    return [
        say(
            "report.outcome.left",
            setting=f"{row.control} {row.subject}".rstrip(),
            before=row.before,
            reason=_why(row.outcome),
        )
        for row in settings(story)
        if row.left
    ] + ([say("report.experiment.systems", systems=counted)] if len(systems) > 1 else [])


def _why(outcome: str) -> str:
    """Return what there is to say beside that it was not put back."""
    why = outcome.removeprefix(say("report.outcome.failed")).removeprefix(": ").rstrip(".")
    return f": {why}" if why else ""


def counts(story: ExperimentStory) -> str:
    """Say how many runs there are, of what design."""
    record = story.record
    done = len({row.run for row in story.table.rows})
    valid = len({row.run for row in story.table.rows if row.invalid is None})
    text = say(
        "report.experiment.counts",
        done=done,
        runs=len(record.runs),
        valid=valid,
        combinations=record.combinations,
        full=record.full_combinations,
        patterns=len(record.patterns),
        repeats=record.blocks,
    )
    # One that did not complete says so elsewhere; this one has figures, which are in no effect.
    for key, by_rule in (("done_again", False), ("done_once_more", True)):
        own = [one for one in record.attempts if one.why and bool(one.rule) is by_rule]
        runs = "; ".join(f"{one.name}, {one.why.rstrip('.')}" for one in own)
        text += f" {say(f'report.experiment.{key}', runs=runs)}" if runs else ""
    return text


def _some(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def design(story: ExperimentStory) -> str:
    """Say which design it was, and how its runs were ordered."""
    record = story.record
    kind = say(f"report.design.{record.design}")
    if record.order == "random":
        order = say("report.design.random", seed=record.seed)
    else:
        order = say("report.design.in_order")
    rarely = say("report.design.rarely", factors=", ".join(record.rarely)) if record.rarely else ""
    aliased = "".join(
        f" {say('report.design.aliased', term=written(a), other=written(b))}"
        for a, b in story.effects.aliased
    )
    mixed = "".join(f" {sentence}" for sentence in mixed_in_words(record.mixed))
    text = say(
        "report.design.line",
        design=kind,
        order=order,
        rarely=rarely,
        file=record.file,
        blake3=record.file_blake3[:16],
    )
    return f"{text}{aliased}{mixed}"


def terms(story: ExperimentStory) -> list[str]:
    """Return what may explain differences: factors, interactions, and at last what is neither."""
    names = dict.fromkeys(one.term for one in story.effects.shares if one.metric == story.metric)
    return sorted(
        names, key=lambda term: (term in LAST, LAST.index(term) if term in LAST else term.count(":"))
    )


def shares(story: ExperimentStory) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: what explains the differences between runs, by pattern."""
    metric_shares = [one for one in story.effects.shares if one.metric == story.metric]
    rows = []
    for term in terms(story):
        share_by_pattern = {one.pattern: one for one in metric_shares if one.term == term}
        known = [share_by_pattern.get(pattern) for pattern in story.effects.patterns]
        rows.append(
            [written(term), *(units.NONE if one is None else _share(one.eta_squared) for one in known)]
        )
    return [say("report.experiment.share"), *story.effects.patterns], rows


def shared(story: ExperimentStory) -> str:
    """Return what is to be known where the shares of a pattern add up to more than all, or to less."""
    sums: dict[str, float] = {}
    for one in story.effects.shares:
        if one.metric == story.metric:
            sums[one.pattern] = sums.get(one.pattern, 0.0) + one.eta_squared
    over = {name: total for name, total in sums.items() if total > MOST_SHARED}
    under = {name: total for name, total in sums.items() if total < LEAST_SHARED}
    lines = [
        say(key, patterns=", ".join(f"{name} ({words.percent(total)})" for name, total in some.items()))
        for key, some in (("report.experiment.shared", over), ("report.experiment.shared_less", under))
        if some
    ]
    return " ".join(lines)


def _share(of: float) -> str:
    return f"<0.1{units.THIN}%" if 0 < of < 0.001 else words.percent(of)


def drifts(story: ExperimentStory, *, clear_only: bool = False) -> list[str]:
    """Say for each pattern whether the metric drifted; what is the same of several, once.

    `clear_only`: only where it did.
    """
    patterns_by_drift: dict[str, list[str]] = {}
    for one in story.effects.drift:
        if one.metric == story.metric and (one.found or not clear_only):
            patterns_by_drift.setdefault(words.drift(one), []).append(one.pattern)
    return [f"{', '.join(patterns)}: {drift}." for drift, patterns in patterns_by_drift.items()]


def outliers(story: ExperimentStory) -> list[str]:
    """Name the runs that lie far from what the others let expect."""
    by_run: dict[tuple[str, str], list[str]] = {}
    for one in story.effects.outliers:
        if one.metric in story.metrics:
            ratios = f"{name_of(one.metric)} {units.digits(one.ratio)} times"
            by_run.setdefault((one.run, one.pattern), []).append(ratios)
    return [
        say("report.experiment.outlier", run=run, pattern=pattern, ratios=", ".join(ratios))
        for (run, pattern), ratios in by_run.items()
    ]


def interactions(story: ExperimentStory, *, clear_only: bool = False) -> list[str]:
    """Say which factors depend on each other; of those that do not, only which they are, or nothing."""
    several = len(story.effects.patterns) > 1
    firsts = [one for one in story.effects.interactions if one.first]
    lines = [
        (f"{one.pattern}: " if several else "") + words.interaction(one) + "." for one in firsts if one.found
    ]
    others: dict[tuple[str, str], list[str]] = {}
    for one in () if clear_only else firsts:
        if not one.found:
            if one.found is False:
                reason = say("report.interaction.none")
            else:
                why = words.within(one.why or say("report.interaction.no_repeats"))
                reason = say("report.interaction.unknown_why", reason=why)
            others.setdefault((one.pattern, reason.rstrip(".")), []).append(words.pair_of_factors(one))
    return lines + [
        (f"{pattern}: " if several else "") + f"{'; '.join(pairs)}: {reason}."
        for (pattern, reason), pairs in others.items()
    ]


def no_data(story: ExperimentStory) -> list[str]:
    """Say why combinations have no data."""
    return [
        say(
            "report.experiment.cell_no_data_why",
            pattern=one.pattern,
            levels=words.levels(one.levels),
            reason=one.why,
        )
        for cells in story.cells(story.metric).values()
        for one in cells
        if one.why
    ]


def missing(story: ExperimentStory) -> list[str]:
    """Say why combinations were not measured, and why a metric has no value, and what to do."""
    return [
        *_not_done(story),
        *(one for pattern in story.effects.patterns for one in _unmeasured(story, pattern)),
    ]


def _not_done(story: ExperimentStory) -> list[str]:
    """Tell the combinations of which no run completed, those with one reason together."""
    done = {(row.pattern, tuple(row.levels.items())) for row in story.table.rows}
    reasons: dict[tuple[str, str], None] = {}
    not_begun: dict[str, None] = {}
    for run in story.record.runs:
        if (run.pattern, tuple(run.levels.items())) in done:
            continue
        combination = say(
            "report.experiment.cell_no_data", pattern=run.pattern, levels=words.levels(run.levels)
        )
        if (why := story.failed.get(run.name)) is not None:
            reasons[combination, say("report.experiment.not_complete", reason=why.rstrip("."))] = None
        elif run.started is None:
            not_begun[combination] = None
    # Where a repeat began and came to nothing, those that did not begin are no reason beside it.
    tried = {combination for combination, _ in reasons}
    reasons |= {(one, say("report.experiment.not_begun")): None for one in not_begun if one not in tried}
    return [f"{combination}: {reason}" for combination, reason in reasons]


def _unmeasured(story: ExperimentStory, pattern: str) -> list[str]:
    """Tell the metrics that valid runs of a pattern have no value of."""
    valid = [row for row in story.table.rows if row.pattern == pattern and row.invalid is None]
    lines = []
    for metric in dict.fromkeys([*story.table.metrics, *(aim.metric for aim in story.table.aims)]):
        without = [row for row in valid if metric not in row.metrics]
        if not without:
            continue
        at = dict.fromkeys(words.levels(dict(row.levels)) for row in without if row.levels)
        share = "" if len(without) == len(valid) else f" ({'; '.join(at)})"
        why = say("report.experiment.no_record")
        if (percent := PERCENTILES.get(metric)) is not None:
            why = say("report.experiment.few_ios", ios=f"{MIN_BEYOND / (1 - percent):,.0f}")
        lines.append(
            say(
                "report.experiment.unmeasured",
                pattern=pattern,
                metric=name_of(metric),
                runs=say("report.experiment.of_valid", some=len(without), valid=len(valid), share=share),
                reason=why,
            )
        )
    return lines


def unset(story: ExperimentStory) -> list[str]:
    """Say which levels could not be set here."""
    together: dict[tuple[str, str], list[str]] = {}
    for one in story.effects.unset:
        together.setdefault((one.factor, one.why), []).append(one.level)
    return [f"{factor} = {' | '.join(levels)}: {why}" for (factor, why), levels in together.items()]
