"""What short runs after the run found: another explanation than the storage itself.

Rests on what probes measured after the run, weighed by Bayes' rule (`loadstone.explanations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import belief
from loadstone.audit.explained import WHOSE
from loadstone.audit.rule import Clear, Finding, NotMine, Rule
from loadstone.explanations.names import UNEXPLAINED
from loadstone.explanations.weigh import scaled, weigh
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.rule import Answer
    from loadstone.explanations.names import Explanation
    from loadstone.verdict import Effect

LIKELY: Final = 0.5
"""Below this no single explanation is told as the cause."""


def judge(case: Case) -> Answer:
    """Name the explanation that the probes leave as the most probable one, where it is not the storage."""
    if case.probed is None or case.job_facts is None:
        return NotMine()
    probes = sum(one.seconds > 0 for one in case.probed.tried)
    if not probes:
        return NotMine()
    weighed = weigh(case.job_facts, case.probed)
    tried = belief.TriedReadings.of(case.job_facts, case.probed)
    best = scaled(weighed, belief.probed((), 0, 1, weighed, tried))[0]
    row, sure, weighed_by = best.explanation, best.probability, best.decided_by
    if row.effect == "measures" or sure < LIKELY:
        return Clear()
    return (
        Finding(
            effect=effect_of(row),
            confidence=round(min(0.99, sure), 2),
            text=_text(row, probes, sure),
            evidence={
                "points_at": row.says,
                "probability_percent": round(100 * sure, 1),
                "by": weighed_by or "all of them",
                "probes": probes,
                **({WHOSE: "not known"} if row.own else {}),
            },
            advice=row.advice,
            layer=row.layer,
        ),
    )


def effect_of(row: Explanation) -> Effect:
    """Return what it means that probes point at an explanation other than the storage.

    A limit that the storage's own would look like is no finding about who set it.
    """
    return "suspect" if row.name == UNEXPLAINED or row.own else row.effect  # type: ignore[return-value] # see above


def _text(row: Explanation, probes: int, sure: float) -> str:
    points = say(
        "audit.probes.points.text",
        probes=probes,
        says=row.says,
        probability_percent=100 * sure,
        limit_percent=100 * LIKELY,
    )
    return f"{points} {say('audit.probes.whose.text', own=row.own)}" if row.own else points


RULE: Final = Rule(
    name="probes",
    asks="Do short runs after the run agree with the storage itself as what set the number?",
    basis="Bayes' rule over the explanations; predictions of each probe in `explanations/predictions.py`",
    judge=judge,
)
