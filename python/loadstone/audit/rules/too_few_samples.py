"""Rule `too_few_samples`: there was too little of a run to say anything.

A percentile needs ten samples beyond it, a mean an error that is small beside it, and a run more
time than its own start takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

HARDLY_ANY: Final = 100
FOR_P99: Final = 1000
"""Ten samples beyond the 99th percentile."""
SHORT_S: Final = 2.0
TOO_SHORT_S: Final = 1.0
WIDE: Final = 0.10
SEVERITY: Final = ("not_valid", "limited", "suspect", "note")
BEYOND: Final = 10
LONG_S: Final = 10.0


def _judge(case: Case) -> Answer:
    ios = case.total.operations
    if ios is None and case.seconds is None:
        return CannotTell("how many I/Os the number rests on, and how long it took")
    found = [_few(case), _brief(case.seconds), _wide(case)]
    worst = sorted((one for one in found if one is not None), key=lambda one: SEVERITY.index(one.effect))
    return (*worst[:1], *_percentiles(case)) or Clear()


def _longer(seconds: float | None) -> str:
    least = "at least ten seconds, and " if seconds is None or seconds < LONG_S else ""
    return f"run longer: {least}until the error of the mean is as small as you need it"


def _few(case: Case) -> Finding | None:
    ios = case.total.operations
    if ios is None or ios >= FOR_P99:
        return None
    hardly = ios < HARDLY_ANY
    what = "even a mean" if hardly else "a 99th percentile"
    # A percentile that was not printed misleads nobody, and one that was has a finding of its own;
    # how many I/Os came at a rate that was asked for is no chance.
    return Finding(
        effect=("suspect" if ask.paced(case) else "not_valid") if hardly else "note",
        confidence=0.95 if hardly else 0.85,
        text=f"Only {ios} I/Os were measured, too few for {what}.",
        evidence={"completed_ios": ios},
        advice=_longer(case.seconds),
    )


def _brief(seconds: float | None) -> Finding | None:
    if seconds is None or seconds >= SHORT_S:
        return None
    brief = seconds < TOO_SHORT_S
    return Finding(
        effect="not_valid" if brief else "suspect",
        confidence=0.95 if brief else 0.8,
        text=f"Only {units.seconds(seconds)} were measured: caches, queues and clocks had no time to settle.",
        evidence={"measured_s": round(seconds, 3)},
        advice=_longer(seconds),
    )


def _wide(case: Case) -> Finding | None:
    iops = case.total.iops
    if iops is None or iops.error is None or not iops.value or iops.error / iops.value <= WIDE:
        return None
    share = iops.error / iops.value
    return Finding(
        effect="note",
        confidence=0.8,
        text=f"One standard error of the rate is {100 * share:.0f} % of it: too short a run for its noise.",
        evidence={"iops": iops.value, "iops_error": iops.error},
        advice=_longer(case.seconds),
    )


def _percentiles(case: Case) -> list[Finding]:
    """Tell percentiles that a source printed without the samples for them."""
    latency = case.total.latency
    if latency is None or not latency.count:
        return []
    lacking = [
        percent for percent in latency.percentiles_ns if latency.count * (1 - percent / 100) < BEYOND - 0.5
    ]
    if not lacking:
        return []
    lowest = min(lacking)
    return [
        Finding(
            effect="note",
            confidence=0.9,
            text=f"p{lowest:g} was printed from {units.count(latency.count)} I/Os, "
            f"fewer than {BEYOND} of which lie beyond it.",
            evidence={"percentile": lowest, "completed_ios": latency.count},
            advice="leave that percentile out, or measure more I/Os",
        )
    ]


RULE: Final = Rule(
    name="too_few_samples",
    asks="Is there enough of the run to rest a number on?",
    basis="ten samples beyond a percentile; an error of the mean of at most a tenth",
    judge=_judge,
    explained_by=("io_errors",),
)
