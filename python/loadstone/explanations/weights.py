"""How evidence is combined: the fitted numbers, and where they came from.

Knows the file `weights.json`, which `python -m lab.fit` writes from situations whose truth is known. The
predictions of each probe and the rules stand in files of their own and are not fitted.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from importlib import resources
from typing import Final

from pydantic import Field

from loadstone.frozen_model import FrozenModel

FILE: Final = "weights.json"


class Weights(FrozenModel):
    """How readings and findings become probabilities of explanations."""

    dependence: float = Field(description="weight of a reading: those of one probe share its arms")
    surprise: float = Field(description="share of readings that nothing named predicts, of any reading")
    surprises: dict[str, float] = Field(description="the same share of one reading, where enough were seen")
    unlike: float = Field(description="the same share where something unexplained is")
    measures_odds: float = Field(description="factor of the odds that the number measures the storage")
    unexplained_odds: float = Field(description="factor of the odds of something unexplained")
    clear: float = Field(description="what a rule that found nothing leaves of what it would point at")
    most_odds: float = Field(description="a finding of a rule says no more than this")
    fewer: float = Field(
        description="`unlike` of something unexplained that is like a named one but for little"
    )

    def surprise_of(self, reading: str) -> float:
        """Return the share of this reading that nothing named predicts."""
        return self.surprises.get(reading, self.surprise)


class Logistic(FrozenModel):
    """A calibrated regression: probability from features, on the scale of log odds."""

    intercept: float
    slopes: dict[str, float]

    def probability(self, features: dict[str, float]) -> float:
        """Return the probability; a feature the fit does not know is a mistake."""
        logit = self.intercept + sum(self.slopes[name] * value for name, value in features.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


class Frequency(FrozenModel):
    """How often what was told turned out to be right: never falling, the same between two of one frequency.

    Isotonic regression. `told` rises, and `right` stands beside it.
    """

    told: tuple[float, ...]
    right: tuple[float, ...]

    def of(self, told: float) -> float:
        """Return that of this probability."""
        at = min(max(bisect_right(self.told, told), 1), len(self.told) - 1)
        (low, high), (least, most) = self.told[at - 1 : at + 1], self.right[at - 1 : at + 1]
        share = min(1.0, max(0.0, (told - low) / (high - low))) if high > low else 1.0
        return least + share * (most - least)


class FittedOn(FrozenModel):
    """What the numbers were fitted on."""

    command: str
    seeds: tuple[str, ...] = Field(description="ranges, first and last; never scored")
    situations: int
    kinds: int
    lines_blake3: str = Field(description="of the situations as they were collected")


class Fitted(FrozenModel):
    """The whole file."""

    format: int
    source: FittedOn
    calibrated_on: FittedOn
    weights: Weights
    findings: dict[str, float] = Field(
        description="how often findings were right: by rule, effect and how sure the rule makes them"
    )
    untried: Logistic = Field(description="that a number measures the storage: nothing found, nothing tried")
    probed: Logistic = Field(description="the same after probes")
    strange: float = Field(description="the same at most, where a reading is far from what storage does")
    frequency: Frequency = Field(description="how often what `probed` tells was right")
    open_frequency: Frequency = Field(description="the same where a question of its job is open")
    decided: Frequency = Field(
        description="how often a number measured the storage where a rule decided otherwise, by what the "
        "explanations give to the storage"
    )
    causes: Frequency = Field(
        description="how often the most probable cause was right of lies, by its part of all causes"
    )
    decided_causes: Frequency = Field(description="the same where a rule decided")
    unexplained: Logistic = Field(
        description="that a cause is in no list, where something unexplained is the most probable of all; of "
        "lies one in five is in none"
    )
    pointed: Frequency = Field(
        description="how often what probes point at was right, where the verdict names it, by how probable "
        "it was told to be"
    )
    limited: float = Field(
        description="the same at most, where nothing of the storage is idle: any limit looks like its own"
    )


def load() -> Fitted:
    """Return what was fitted."""
    text = resources.files("loadstone.explanations").joinpath(FILE).read_text("utf-8")
    return Fitted.model_validate(json.loads(text))


FITTED: Final = load()
