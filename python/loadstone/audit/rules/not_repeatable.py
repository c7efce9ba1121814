"""Rule `not_repeatable`: the same measurement again gives another number.

What changes from run to run is the error that a single run cannot know. SPC-1 permits 5 % between
its repeated runs; a number whose repeats lie further apart stands for the runs and not for the
storage.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, Rule, cannot_tell
from loadstone.messages import say
from loadstone.verdict import Chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case

VARIATION: Final = 0.05
"""Coefficient of variation of three or more runs."""
PAIR: Final = 0.10
"""Of two runs nothing but their distance is known."""


def _judge(case: Case) -> Answer:
    values = [one.value for one in case.repeats]
    if len(values) < 2 or fmean(values) <= 0:
        return cannot_tell("audit.not_repeatable.second")
    mean = fmean(values)
    spread = (max(values) - min(values)) / mean
    variation = stdev(values) / mean if len(values) > 2 else None
    if (variation is None and spread <= PAIR) or (variation is not None and variation <= VARIATION):
        return Clear()
    evidence: dict[str, float | int | str] = {
        "runs": len(values),
        "lowest": min(values),
        "highest": max(values),
        "spread_percent": 100 * spread,
    }
    if variation is not None:
        evidence["coefficient_of_variation_percent"] = 100 * variation
    return (
        Finding(
            effect="suspect",
            confidence=0.85 if len(values) > 2 else 0.7,
            text=_said(values, spread),
            evidence=evidence,
            advice=say("audit.not_repeatable.spread.advice"),
            chart=_chart(values, mean) if len(values) > 2 else None,
        ),
    )


def _said(values: Sequence[float], spread: float) -> str:
    rest = values[1:]
    if len(rest) > 1 and (max(rest) - min(rest)) / fmean(rest) <= VARIATION:
        return say(
            "audit.not_repeatable.first_run.text",
            first_count=values[0],
            others=len(rest),
            lowest_count=min(rest),
            highest_count=max(rest),
        )
    return say(
        "audit.not_repeatable.spread.text",
        runs=len(values),
        lowest_count=min(values),
        highest_count=max(values),
        spread_share=spread,
        limit_share=VARIATION if len(values) > 2 else PAIR,
    )


def _chart(values: Sequence[float], mean: float) -> Chart:
    return Chart(
        title="Runs in order",
        x="run",
        y="result",
        points=tuple((float(index + 1), value) for index, value in enumerate(values)),
        level=mean,
        level_name="mean",
    )


RULE: Final = Rule(
    name="not_repeatable",
    asks="Does the same measurement give the same number again?",
    basis="SPC-1: repeated runs agree within 5 %",
    judge=_judge,
)
