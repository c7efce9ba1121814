"""Runs a scenario, asks for the verdict, and holds it against the label.

Knows scenarios and verdicts; stages nothing itself and writes no document.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lab.parts import MissingPartError, Stage, busy_share, cpu_times, stolen_share

from loadstone.analysis.summary import summarise
from loadstone.audit.belief import CREDIBLE
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from lab.verdicts.scenarios import Scenario

    from loadstone.verdict import Cause, Verdict

BUSY = 0.5
"""With more of the CPUs in other hands before a run, what `UNREST` says may be right by itself."""
STOLEN = 0.02
"""So too when the hypervisor took more of the CPUs while a scenario was staged and ran."""
UNREST = ("generator_cpu", "not_steady", "time_structure")
BANDS = ((0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01))


@dataclass(frozen=True)
class ScoredScenario:
    """A scenario and what was said of it; `absent` is why it could not be staged."""

    scenario: Scenario
    verdict: Verdict | None
    busy: bool = False
    absent: str | None = None

    @property
    def findings(self) -> list[Cause]:
        """What the verdict rests on: a note decides nothing, nor does a finding nobody should credit."""
        causes = self.verdict.causes if self.verdict is not None else ()
        return [one for one in causes if one.effect != "note" and one.confidence >= CREDIBLE]

    @property
    def named(self) -> bool:
        """Whether the expected rule found something, and the number was not believed all the same."""
        believed = self.verdict is None or self.verdict.kind == "measures_storage"
        return not believed and any(
            one.rule == self.scenario.expected or (one.rule == "probes" and self.right(one))
            for one in self.findings
        )

    @property
    def false_alarms(self) -> list[Cause]:
        """Findings that are neither expected nor true beside it."""
        return [one for one in self.findings if self.right(one) is False]

    @property
    def uncounted(self) -> bool:
        """Whether the host itself was in such unrest that an honest run could not come out as one."""
        unrest = any(self.right(one) is None for one in self.findings)
        doubted = self.verdict is not None and self.verdict.kind != "measures_storage"
        return self.scenario.expected is None and unrest and doubted and not self.false_alarms

    @property
    def passed(self) -> bool:
        """Whether the label was met: the lie named, or nothing wrong said of an honest run."""
        if self.scenario.expected is not None:
            return self.named
        bad = self.verdict is not None and self.verdict.kind in ("not_valid", "cannot_tell")
        return not self.false_alarms and (self.uncounted or not bad)

    def right(self, cause: Cause) -> bool | None:
        """Whether a finding is right by the label; None when the label cannot know."""
        if cause.rule == "probes" and self.scenario.explained and self.verdict is not None:
            return self.verdict.explanations[0].name in self.scenario.explained
        if cause.rule == self.scenario.expected or cause.rule in self.scenario.also:
            return True
        return None if self.busy and cause.rule in UNREST else False


def score(
    scenario: Scenario, keep: Path | None = None, *, spinning: int = 0, options: Sequence[str] = ()
) -> ScoredScenario:
    """Stage a scenario, run it, judge it, and take it down. `keep`: where its bundle stays.

    `spinning`: programs beside it that use up CPUs; `options`: of its runs.
    """
    try:
        with Stage(options) as stage:
            stage.spin(spinning)
            busy, before = busy_share() >= BUSY, cpu_times()
            bundle = scenario.stage(stage)
            busy = busy or stolen_share(before, cpu_times()) >= STOLEN
            if keep is not None:
                shutil.copytree(bundle, keep)
            return score_bundle(scenario, bundle, busy=busy)
    except MissingPartError as error:
        return ScoredScenario(scenario, None, absent=str(error))


def score_bundle(scenario: Scenario, bundle: Path, *, busy: bool, probes: bool = True) -> ScoredScenario:
    """Judge the bundle of a scenario, or what would have been said without the probes after its run."""
    phases = cases(summarise(Bundle.open(bundle)))
    known = phases if probes else [replace(one, probed=None) for one in phases]
    return ScoredScenario(scenario, judge(known).verdict, busy)


def calibration(every: Iterable[ScoredScenario]) -> list[tuple[float, float, int, int]]:
    """Return for each band of confidence how many findings were right, and how many there were."""
    findings = [(one.right(cause), cause.confidence) for one in every for cause in one.findings]
    rows = []
    for low, high in BANDS:
        band = [right for right, confidence in findings if right is not None and low <= confidence < high]
        rows.append((low, min(high, 1.0), sum(band), len(band)))
    return rows
