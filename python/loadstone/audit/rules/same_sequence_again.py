"""Rule `same_sequence_again`: the same addresses in the same order were run on these targets before.

Every cache on the way then holds just what is read, in just that order. A fixed seed makes runs
comparable and their second one warm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case


def _judge(case: Case) -> Answer:
    if (
        not case_queries.does(case, "read")
        or case_queries.virtual(case)
        or case_queries.random(case) is False
    ):
        return NotMine()
    again = case.same_sequence_before
    if again is None:
        return cannot_tell("audit.same_sequence_again.earlier")
    if not again:
        return Clear()
    cache = case.declared.cache_bytes if case.declared is not None else None
    evidence: dict[str, float | int | str] = {
        "seeds": ", ".join(str(seed) for job in case.jobs for seed in job.seeds[:1])
    }
    if cache:
        evidence["cache_bytes"] = cache
    return (
        Finding(
            # A cache that is not known of may be none: then the order of addresses is all the same.
            effect="suspect" if cache or case_queries.buffered(case) else "note",
            confidence=0.85 if cache or case_queries.buffered(case) else 0.6,
            text=say("audit.same_sequence_again.cache.text", cache_bytes=cache)
            if cache
            else say("audit.same_sequence_again.unknown_cache.text"),
            evidence=evidence,
            advice=say("audit.same_sequence_again.cache.advice"),
            layer="caches",
        ),
    )


RULE: Final = Rule(
    name="same_sequence_again",
    asks="Were these addresses new to the caches?",
    basis="seed, places and pattern of earlier phases, and of the runs kept beside this one",
    judge=_judge,
)
