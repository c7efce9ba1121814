"""Rule `same_sequence_again`: the same addresses in the same order were run on these targets before.

Every cache on the way then holds just what is read, in just that order. A fixed seed makes runs
comparable and their second one warm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import ask
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case


def _judge(case: Case) -> Answer:
    if not ask.does(case, "read") or ask.virtual(case) or ask.random(case) is False:
        return NotMine()
    again = case.same_sequence_before
    if again is None:
        return CannotTell("whether the same addresses were read in the same order before")
    if not again:
        return Clear()
    return (
        Finding(
            effect="suspect",
            confidence=0.9,
            text="The same addresses were gone over in the same order before, on the same target: "
            "whatever cache there is was warm for just these reads.",
            evidence={"seeds": ", ".join(str(seed) for job in case.jobs for seed in job.seeds[:1])},
            advice="give each phase a seed of its own (randseed=), or drop the caches between them",
            layer="caches",
        ),
    )


RULE: Final = Rule(
    name="same_sequence_again",
    asks="Were these addresses new to the caches?",
    basis="seed, places and pattern of earlier phases on the same targets",
    judge=_judge,
)
