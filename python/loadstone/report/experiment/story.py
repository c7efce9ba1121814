"""What an experiment's report is made of: the record, the runs, what they showed, and the command.

Knows how settings of the machine are added up over the runs. Reads no file and computes no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.control import own_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.bundle.experiment import ExperimentDocument, MachineSetting
    from loadstone.effects.findings import CellValue, Effects, LevelEffect, LevelMean
    from loadstone.effects.observations import Observations


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """One setting of the machine over all runs: what it was, what it was set to, what became of it."""

    control: str
    subject: str
    before: str
    asked: tuple[str, ...]
    times: int
    outcomes: tuple[tuple[str, int], ...]
    why: str
    left: bool
    """Whether it is not as it was before."""


@dataclass(frozen=True, slots=True)
class ExperimentStory:
    """All that a report tells."""

    record: ExperimentDocument
    table: Observations
    effects: Effects
    redo: str
    """The command that runs it again."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Runs that did not complete, and why."""
    runs: Sequence[RunFigures] = ()
    """All that completed."""

    @property
    def metric(self) -> str:
        """The metric that the answer is about."""
        return self.effects.first_metric or "iops"

    @property
    def metrics(self) -> list[str]:
        """All metrics that were measured, the first one first; a rate that says the same is left out."""
        again = {one.metric for one in self.effects.effects if one.again}
        known = dict.fromkeys(one.metric for one in self.effects.models)
        return [self.metric, *(one for one in known if one != self.metric and one not in again)]

    def meaning(self, factor: str) -> str:
        """Return what a factor is, in words; its name where there are none."""
        return next(
            (one.meaning for one in self.record.factors if one.name == factor and one.meaning), factor
        )

    def of_pattern(self, pattern: str, metric: str) -> list[LevelEffect]:
        """Return the effects of a pattern in one metric."""
        return [one for one in self.effects.effects if (one.pattern, one.metric) == (pattern, metric)]

    def effect(self, pattern: str, metric: str, factor: str, level: str) -> LevelEffect | None:
        """Return what a level does against the first level of its factor."""
        first = next(one.levels[0] for one in self.effects.factors if one.name == factor)
        return next(
            (
                one
                for one in self.of_pattern(pattern, metric)
                if (one.factor, one.level, one.against) == (factor, level, first)
            ),
            None,
        )

    def mean(self, pattern: str, metric: str, levels: dict[str, str]) -> LevelMean | None:
        """Return what a metric comes to at a level, or two."""
        return next(
            (
                one
                for one in self.effects.means
                if (one.pattern, one.metric, one.levels) == (pattern, metric, levels)
            ),
            None,
        )

    def cells(self, metric: str) -> dict[str, list[CellValue]]:
        """Return the combinations of each pattern in one metric."""
        by_pattern: dict[str, list[CellValue]] = {}
        for one in self.effects.cells:
            if one.metric == metric:
                by_pattern.setdefault(one.pattern, []).append(one)
        return by_pattern

    def changed(self) -> list[ChangedSetting]:
        """Return what was set on the machine, added up over the runs."""
        groups: dict[tuple[str, str], list[MachineSetting]] = {}
        for one in self._settings():
            groups.setdefault((one.control, one.subject), []).append(one)
        return [_added(control, subject, settings) for (control, subject), settings in groups.items()]

    def systems(self) -> dict[str, int]:
        """Return hosts and kernels, and how many runs are of each; those that are not known are left out."""
        counts: dict[str, int] = {}
        for run in self.record.runs:
            began = [one for one in self.record.sessions if one.began <= (run.started or "")]
            if began and (system := began[-1].system) is not None:
                counts[system] = counts.get(system, 0) + 1
        return counts

    def _settings(self) -> Iterator[MachineSetting]:
        yield from self.record.settings
        for run in self.record.runs:
            yield from run.settings


def _added(control: str, subject: str, settings: list[MachineSetting]) -> ChangedSetting:
    counts: dict[str, int] = {}
    for one in settings:
        name = one.outcome or "not_put_back"
        counts[name] = counts.get(name, 0) + 1
    left = [one for one in settings if one.is_still_changed]
    return ChangedSetting(
        control=control,
        subject=subject,
        before=settings[0].before,
        asked=tuple(
            dict.fromkeys(
                own_group.in_words(one.asked) if control == own_group.OwnGroup.name else one.asked
                for one in settings
            )
        ),
        times=len(settings),
        outcomes=tuple(counts.items()),
        why="; ".join(dict.fromkeys(one.why for one in settings if one.why)),
        left=bool(left),
    )
