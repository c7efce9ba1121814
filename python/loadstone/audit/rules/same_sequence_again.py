"""Rule `same_sequence_again`: the same addresses in the same order were run on these targets before.

Every cache on the way then holds just what is read, in just that order. A fixed seed makes runs
comparable and their second one warm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
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
    cache = case.declared.cache_bytes if case.declared is not None else None
    evidence: dict[str, float | int | str] = {
        "seeds": ", ".join(str(seed) for job in case.jobs for seed in job.seeds[:1])
    }
    if cache:
        evidence["cache_bytes"] = cache
    return (
        Finding(
            # A cache that is not known of may be none: then the order of addresses is all the same.
            effect="suspect" if cache or ask.buffered(case) else "note",
            confidence=0.85 if cache or ask.buffered(case) else 0.6,
            text="The same addresses were gone over in the same order before, on the same target: "
            + (f"a cache of {units.size(cache)}" if cache else "whatever cache there is")
            + " was warm for just these reads.",
            evidence=evidence,
            advice="give each run a seed of its own (randrepeat=0, or randseed=), or drop the caches between",
            layer="caches",
        ),
    )


RULE: Final = Rule(
    name="same_sequence_again",
    asks="Were these addresses new to the caches?",
    basis="seed, places and pattern of earlier phases, and of the runs kept beside this one",
    judge=_judge,
)
