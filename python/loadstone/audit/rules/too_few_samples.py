"""Rule `too_few_samples`: there was too little of a run to say anything.

A percentile needs ten samples beyond it, a mean an error that is small beside it, and a run more
time than its own start takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

HARDLY_ANY: Final = 100
SPREAD_KNOWN: Final = 30
"""From so many I/Os on their standard deviation says how well their mean is known."""
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
        return cannot_tell("audit.too_few_samples.amount")
    findings = [_few(case), _brief(case.seconds), _wide(case)]
    worst = sorted((one for one in findings if one is not None), key=lambda one: SEVERITY.index(one.effect))
    return (*worst[:1], *_percentiles(case)) or Clear()


def _longer(seconds: float | None) -> str:
    short = seconds is None or seconds < LONG_S
    return say("audit.too_few_samples.ten_seconds.advice" if short else "audit.too_few_samples.longer.advice")


def _few(case: Case) -> Finding | None:
    ios = case.total.operations
    if ios is None or ios >= FOR_P99:
        return None
    hardly = ios < HARDLY_ANY and not _mean_is_known(case, ios)
    # A percentile that was not printed misleads nobody, and one that was has a finding of its own;
    # how many I/Os came at a rate that was asked for is no chance.
    return Finding(
        effect=("suspect" if case_queries.paced(case) else "not_valid") if hardly else "note",
        confidence=0.95 if hardly else 0.85,
        text=say(
            "audit.too_few_samples.mean.text" if hardly else "audit.too_few_samples.p99.text",
            done_ios=ios,
            limit=HARDLY_ANY if hardly else FOR_P99,
        ),
        evidence={"completed_ios": ios},
        advice=_longer(case.seconds),
    )


def _mean_is_known(case: Case, ios: int) -> bool:
    """Whether I/Os that are few are alike: large blocks take their time, and few of them do."""
    latency = case.total.latency
    if ios < SPREAD_KNOWN or latency is None or latency.stddev_ns is None or not latency.mean_ns:
        return False
    return latency.stddev_ns <= WIDE * latency.mean_ns * math.sqrt(ios)


def _brief(seconds: float | None) -> Finding | None:
    if seconds is None or seconds >= SHORT_S:
        return None
    brief = seconds < TOO_SHORT_S
    return Finding(
        effect="not_valid" if brief else "suspect",
        confidence=0.95 if brief else 0.8,
        text=say(
            "audit.too_few_samples.brief.text", measured_s=seconds, limit_s=TOO_SHORT_S if brief else SHORT_S
        ),
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
        text=say("audit.too_few_samples.wide.text", error_share=share, limit_share=WIDE),
        evidence={"iops": iops.value, "iops_error": iops.error},
        advice=_longer(case.seconds),
    )


def _percentiles(case: Case) -> list[Finding]:
    """Tell percentiles that a source printed without the samples for them."""
    _, latency = case.total.printed or ("", None)
    if latency is None or not latency.count:
        return []
    lacking = [percent for percent in latency.printed if latency.count * (1 - percent / 100) < BEYOND - 0.5]
    if not lacking:
        return []
    lowest = min(lacking)
    return [
        Finding(
            effect="note",
            confidence=0.9,
            text=say(
                "audit.too_few_samples.percentile.text",
                percentile=f"{lowest:g}",
                done_ios=latency.count,
                limit=BEYOND,
            ),
            evidence={"percentile": lowest, "completed_ios": latency.count},
            advice=say("audit.too_few_samples.percentile.advice"),
        )
    ]


RULE: Final = Rule(
    name="too_few_samples",
    asks="Is there enough of the run to rest a number on?",
    basis="ten samples beyond a percentile; an error of the mean of at most a tenth",
    judge=_judge,
)
