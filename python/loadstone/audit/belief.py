"""How probable it is that a number measures the storage, when no rule decided otherwise.

Knows the features of a verdict and the fitted regressions (`explanations/weights.json`); a probability it
gives is a frequency on situations whose truth is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from loadstone.explanations.open_questions import open_part
from loadstone.explanations.strangeness import FAR, strangeness
from loadstone.explanations.weigh import at_a_limit, measuring
from loadstone.explanations.weights import FITTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.readings import Probed
    from loadstone.explanations.weigh import Weighed
    from loadstone.explanations.weights import Fitted
    from loadstone.verdict import Cause, Missing, RuleName

MOST: Final = 0.99
"""No list of rules and explanations is complete."""
DECIDE: Final = ("not_valid", "limited")
"""Effects of findings that decide about a number."""
CREDIBLE: Final = 0.5
"""Findings less sure than this are told and decide nothing."""
SERVED: Final = 0.6
"""What `generator_cpu` is sure of where the CPUs were busy and the generator's threads seldom waited."""
UNSEEN: Final = (0.2, 0.35)
"""Of the rules, so many could not look in situations that are fitted: what lies beyond says no more. Results
of other programs have 60 %, and a slope of what differs by a tenth made coins of all of them."""
ALIKE: Final = 0.6
"""The most that is known of a number that something else would have given with the same readings. No list
of lies that a fit has seen can say more."""
EVEN: Final = 0.5
"""A number measures the storage where that is as probable as all else together."""
AGREED: Final = 0.8
"""Probes agree with the storage from here on: a choice of words; the number stands beside it."""
SAFE: Final = 0.77
"""From this cautious answer on they agree. Of 1374 lies of seeds 713187 to 718350 whose explanation was taken
out 46 were above 0.78, 61 above 0.76 and 77 above 0.74."""
UNSETTLED: Final = 0.65
"""What is told where they do not, and nothing speaks against it. Of such numbers of the calibration 67 % were
the storage's. Of seeds 737148 to 743240 64 % were, by fits that never saw the kind. With other kinds like
these it would be 48 to 78 %. So it is round, and no fit counts it."""
MOSTLY: Final = 0.5
"""A question that concerns this much of the load is open: such numbers are counted apart."""
FARTHEST: Final = 6.0
"""Log odds of explanations beyond this say no more."""
LIMITED_BENDS: Final = (0.3, 0.6)
"""From these parts on in which nothing is idle the regression after probes may take more, or less."""


def looked_at(causes: Sequence[Cause], checked: Sequence[RuleName]) -> set[RuleName]:
    """Return the rules that had something to look at and found nothing that decides."""
    return {*checked, *(cause.rule for cause in causes if cause.effect == "note")}


def grounds(
    causes: Sequence[Cause], missing: Sequence[Missing], checked: Sequence[RuleName]
) -> tuple[list[float], int, int]:
    """Return what belief rests on before probes: suspicions, rules that could not look, those that did."""
    suspicions = [
        one.confidence
        for one in causes
        if one.effect == "suspect" and one.rule != "probes" and not _of_a_busy_host(one)
    ]
    looked = looked_at(causes, checked) - {"probes"}
    return suspicions, len({one.rule for one in missing}), len(looked)


def _of_a_busy_host(cause: Cause) -> bool:
    """Tell whether it says only that others used the CPUs while the load generator got them when it wanted.

    Honest numbers and lies are as often beside others, and what those take is a doubt of each reading. No
    situation that is fitted on has it; counted as a suspicion, it took 20 points of every belief there.
    """
    return "host_cpu_percent" in cause.evidence and cause.confidence <= SERVED


def rests_on_evenness(cause: Cause) -> bool:
    """Tell whether it limits a number because that is more even than its latencies make it.

    Probes try the same again at other depths and sizes. What fell in the run, or met a known limit, they
    cannot take back.
    """
    return cause.effect == "limited" and "if_independent_share" in cause.evidence


def untried(suspicions: Sequence[float], missing: int, looked: int) -> float:
    """Return it where nothing was tried. `suspicions`: confidence of each finding that decides nothing."""
    return min(MOST, FITTED.untried.probability(features(suspicions, missing, looked)))


def probed(
    suspicions: Sequence[float],
    missing: int,
    looked: int,
    weighed: Sequence[Weighed],
    tried: TriedReadings,
) -> float:
    """Return it after probes. `weighed`: the explanations; `tried`: what no list of them can tell."""
    return after_probes(features(suspicions, missing, looked) | of_probes(weighed, tried))


def after_probes(told: dict[str, float], fitted: Fitted = FITTED) -> float:
    """Return it from all features: the cautious answer as often as that turned out to be right.

    Probes agree only where they would with lies that nobody thought of, too: those count in the regression,
    and not in how often it was right. Where they neither agree nor speak against it, all are told alike: how
    the answers differ there depends on which limiters of others a fit has seen.
    """
    answer = cautious(told, fitted)
    frequency = fitted.open_frequency if told["open"] >= MOSTLY else fitted.frequency
    right = frequency.of(answer)
    most = fitted.strange if told["strange"] >= FAR else MOST
    return min(most, UNSETTLED if answer < SAFE and right >= EVEN else right)


def cautious(told: dict[str, float], fitted: Fitted = FITTED) -> float:
    """Return the regression's answer, no more than what nobody can tell from outside leaves."""
    return min(ceiling(told, fitted.limited), fitted.probed.probability(told))


def ceiling(told: dict[str, float], limited: float) -> float:
    """Return what belief there can be at most, however well all other readings agree with the storage.

    One that it does not make counts against it. Of what does the most it can nobody can tell whose limit
    that is, and an open question is one that no probe answered. `limited`: how often such a number was right.
    """
    most = MOST - (MOST - limited) * told["limited"]
    return min(most, MOST - (MOST - ALIKE) * told["open"])


@dataclass(frozen=True, slots=True)
class TriedReadings:
    """What readings say beside the explanations: how far the strangest is off, and what none has settled."""

    strange: float
    open: float

    @classmethod
    def of(cls, job: JobFacts, probed: Probed | None) -> Self:
        """Return what those of these probes say."""
        return cls(strangeness(job, probed), open_part(job, probed))


def of_probes(weighed: Sequence[Weighed], tried: TriedReadings) -> dict[str, float]:
    """Return the features that probes add: what explanations give to the storage, and on what that rests."""
    return given(measuring(weighed), at_a_limit(weighed), tried)


def given(measures: float, limited: float, tried: TriedReadings) -> dict[str, float]:
    """Return the same of numbers.

    `limited`: the part of that in which nothing of the storage is idle. Then its own limit looks like any
    other of that number, and all readings together say less.
    """
    odds = log_odds(measures)
    return {
        "measures": (1 - limited) * odds,
        "measures_limited": limited * odds,
        "limited": limited,
        **{f"limited_{at:g}": max(0.0, limited - at) for at in LIMITED_BENDS},
        "strange": tried.strange,
        "open": tried.open,
        "measures_open": tried.open * max(0.0, odds),
    }


def features(suspicions: Sequence[float], missing: int, looked: int) -> dict[str, float]:
    """Return what the regressions have in common."""
    return {
        # On the scale of log odds: a suspicion of a half says nothing.
        "suspicion": sum(log_odds(one) for one in suspicions if one > 0.5),
        "unseen": min(max(missing / max(1, missing + looked), UNSEEN[0]), UNSEEN[1]),
    }


def turned_out(cause: Cause) -> float:
    """Return how often a finding that a rule makes this sure was right, where enough of them were seen."""
    if cause.effect == "note":
        return cause.confidence
    return frequency_of(FITTED, cause.rule, cause.effect, cause.confidence)


def frequency_of(fitted: Fitted, rule: str, effect: str, confidence: float) -> float:
    """Return how often such findings were right; their confidence where none were counted.

    A suspicion may be what its rule calls a limit: one that was rarely right decides nothing.
    """
    keys = [finding_key(rule, one, confidence) for one in (effect, *(DECIDE if effect == "suspect" else ()))]
    return next((fitted.findings[key] for key in keys if key in fitted.findings), confidence)


def finding_key(rule: str, effect: str, confidence: float) -> str:
    """Name findings of one sort."""
    return f"{rule} {effect} {confidence:.2f}"


def log_odds(chance: float) -> float:
    """Return the logarithm of the odds, bounded."""
    inside = min(max(chance, 1e-9), 1 - 1e-9)
    return max(-FARTHEST, min(FARTHEST, math.log(inside / (1 - inside))))
