"""The explanations of a number in its verdict, and what may be said when nothing was tried.

Knows the verdict that the rules came to, what the Plan says and what probes measured. The weighing itself
is done in `explanations`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from loadstone.audit import belief
from loadstone.explanations.as_often_right import as_often_right
from loadstone.explanations.open_questions import open_questions
from loadstone.explanations.weigh import measuring, scaled, weigh
from loadstone.messages import say
from loadstone.verdict import ProbeResult, RankedExplanation, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case
    from loadstone.explanations.readings import Tried
    from loadstone.explanations.weigh import Weighed
    from loadstone.verdict import Cause, RuleName

REMAINS: Final = 0.05
"""An explanation less probable than this does not remain."""
WHOSE: Final = "whose"
"""Evidence of a finding: a limit, which may as well be the storage's own."""


@dataclass(frozen=True, slots=True)
class AfterProbes:
    """The explanations as all evidence weighs them, what was tried, and how probable the storage is."""

    weighed: tuple[Weighed, ...]
    tried: tuple[Tried, ...]
    measures: float | None
    """None where nothing was tried."""
    features: dict[str, float] = field(default_factory=dict)
    """What that rests on."""

    @classmethod
    def of(cls, verdict: Verdict, case: Case) -> Self | None:
        """Weigh the findings of a verdict with what probes measured; None where nothing is to be weighed."""
        if case.job_facts is None:
            return None
        confidences: dict[RuleName, float] = {
            cause.rule: cause.confidence
            for cause in verdict.causes
            if cause.effect != "note" and cause.rule != "probes"
        }
        weighed = weigh(case.job_facts, case.probed, confidences, verdict.checked)
        if not weighed:
            return None
        tried = tuple(one for one in case.probed.tried if one.seconds) if case.probed is not None else ()
        if not tried:
            return cls(tuple(weighed), (), None)
        grounds = belief.grounds(verdict.causes, verdict.missing, verdict.checked)
        readings = belief.TriedReadings.of(case.job_facts, case.probed)
        features = belief.features(*grounds) | belief.of_probes(weighed, readings)
        return cls(tuple(weighed), tried, belief.after_probes(features), features)

    def told(self, causes: Sequence[Cause]) -> list[Weighed]:
        """Return the explanations as they are told beside these findings."""
        if self.measures is None:
            return list(self.weighed)
        says = {one.evidence["points_at"] for one in causes if one.rule == "probes" and one.effect != "note"}
        pointed = next((one.explanation.name for one in self.weighed if one.explanation.says in says), None)
        decided = any(map(_decides, causes))
        return as_often_right(self.weighed, self.measures, self.features, decided=decided, pointed=pointed)

    def chance_of(self, rule: RuleName) -> float:
        """Return how probable what a rule points at is after probes; 1 where nothing was tried."""
        if self.measures is None:
            return 1.0
        likely = scaled(self.weighed, self.measures)
        return sum(one.probability for one in likely if rule in one.explanation.rules)


def with_explanations(verdict: Verdict, case: Case, evidence: AfterProbes | None) -> Verdict:
    """Add the explanations; say of a number that nothing speaks against what was tried."""
    if evidence is None or case.job_facts is None:
        return verdict
    sure = verdict.confidence
    weighed, tried = list(evidence.weighed), evidence.tried
    if evidence.measures is not None:
        weighed = evidence.told(verdict.causes)
        sure = measuring(weighed)
    elif verdict.kind == "measures_storage":
        weighed = scaled(weighed, sure)
    changes: dict[str, Any] = {
        "explanations": tuple(_told(one) for one in weighed),
        "probes": tuple(ProbeResult(name=one.name, bundle=one.bundle, result=one.result) for one in tried),
        "to_decide": None if tried and _settled(weighed) else case.probe_command,
    }
    if verdict.kind == "measures_storage":
        unsettled = list(open_questions(case.job_facts, case.probed))
        changes |= _believed(verdict, case.name, weighed, len(tried), sure, unsettled=unsettled)
    return verdict.model_copy(update=changes)


def as_told(causes: Sequence[Cause], evidence: AfterProbes | None) -> list[Cause]:
    """Return findings, what probes alone point at as sure as it is with all evidence."""
    if evidence is None or evidence.measures is None:
        return list(causes)
    sure = {one.explanation.says: one.probability for one in evidence.told(causes)}
    return [
        one.model_copy(
            update={"confidence": round(min(belief.MOST, sure[str(one.evidence["points_at"])]), 2)}
        )
        if one.rule == "probes"
        else one
        for one in causes
    ]


def _decides(cause: Cause) -> bool:
    """Tell whether a rule decided by what it saw in the run."""
    decides = cause.effect in belief.DECIDE and cause.confidence >= belief.CREDIBLE
    return decides and cause.rule != "probes"


def _settled(weighed: Sequence[Weighed]) -> bool:
    """Tell whether probes left one answer."""
    return max(measuring(weighed), *(one.probability for one in weighed)) >= belief.AGREED


def subject(name: str) -> str:
    """Return what a sentence is about whose verb is in the singular: a phase, which may have several jobs."""
    return f"the load of {name}" if ", " in name or name.endswith(" and others") else name


def capital(it: str) -> str:
    """Begin a sentence with a `subject`; a job's name stays as the user wrote it."""
    return it.replace("the load of ", "The load of ", 1) if it.startswith("the load of ") else it


def _believed(
    verdict: Verdict,
    name: str,
    weighed: Sequence[Weighed],
    tried: int,
    measures: float,
    *,
    unsettled: Sequence[str],
) -> dict[str, Any]:
    """Return what is said of a number that no rule has anything against. `unsettled`: what no probe told."""
    it = subject(name)
    remain = [one for one in weighed if one.probability >= REMAINS]
    checks = len(verdict.checked)
    names = ", ".join(one.explanation.says for one in remain[:3])
    # A disk of the storage that was busy all the time answers the question: the rest comes after it.
    busy = next((f"{cause.text} " for cause in verdict.causes if cause.rule == "storage_disk"), "")
    if not tried:
        sentences = say(
            "verdict.explained.untried", it=capital(it), remaining=len(remain), checks=checks, names=names
        )
        return {"sentences": busy + sentences}
    sure = round(measures, 2)
    if measures >= belief.AGREED:
        says = weighed[0].explanation.says
        sentences = say("verdict.explained.agreed", it=capital(it), checks=checks, probes=tried, says=says)
        return {"sentences": busy + sentences, "confidence": sure}
    limit = weighed[0].explanation if measures < belief.EVEN and _of_unknown_owner(verdict) else None
    if limit is not None and limit.own:
        says, own = limit.says, limit.own
        sentences = say("verdict.explained.whose", it=it, probes=tried, says=says, own=own)
    else:
        key, first = ("left", capital(it)) if measures >= belief.EVEN else ("open", it)
        sentences = say(
            f"verdict.explained.{key}", it=first, probes=tried, remaining=len(remain), names=names
        )
    sentences = " ".join([sentences, *(say("verdict.explained.unsettled", what=one) for one in unsettled)])
    if measures >= belief.EVEN:
        return {"sentences": busy + sentences, "confidence": sure}
    return {"kind": "cannot_tell", "confidence": round(1 - measures, 2), "sentences": sentences}


def _of_unknown_owner(verdict: Verdict) -> bool:
    """Tell whether what speaks most against a number is a limit that may as well be the storage's own."""
    first = verdict.causes[0] if verdict.causes else None
    if first is None or first.effect == "note" or first.confidence < belief.CREDIBLE:
        return False
    return WHOSE in first.evidence


def of_phases(every: Sequence[Verdict], deciding: Verdict) -> dict[str, Any]:
    """Return these fields of several phases: those of the phase that was probed, or of the deciding one."""
    probed = next((one for one in every if one.probes), deciding)
    return {
        "explanations": probed.explanations,
        "probes": probed.probes,
        "to_decide": probed.to_decide,
    }


def _told(one: Weighed) -> RankedExplanation:
    return RankedExplanation.model_validate(
        {
            "name": one.explanation.name,
            "says": one.explanation.says,
            "probability": round(one.probability, 4),
            "for": one.for_,
            "against": one.against,
            "decided_by": one.decided_by,
            "advice": one.explanation.advice,
        }
    )
