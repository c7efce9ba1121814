"""What an experiment showed, as values: effects, interactions, shares, drift, and what to choose.

Knows names, ratios and their intervals; a ratio of 1.1 is ten percent more. Knows no page and no
sentence, but the reasons of what is left out. What is not known is None.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from loadstone.frozen_model import FrozenModel

FORMAT: Final = 1

EffectJudgement = Literal["better", "worse", "alike", "open", "confounded", "requested", "unknown"]
Method = Literal["t", "welch", "bootstrap", "none"]
DriftTaken = Literal["blocks", "blocks_and_line", "line", "nothing"]


class RatioInterval(FrozenModel):
    """A ratio with its interval; all but the ratio are null where nothing was repeated."""

    ratio: float
    low: float | None = Field(description="lower end of the 95 % interval, for itself alone")
    high: float | None
    p: float | None = Field(description="corrected by Holm's procedure, where it is one of the tests")
    raw_p: float | None


class LevelEffect(FrozenModel):
    """How much a level of a factor changes a metric, averaged over the levels of all other factors."""

    pattern: str
    metric: str
    factor: str
    level: str
    against: str
    change: RatioInterval | None = Field(description="null: no valid run of one of the two levels")
    together: tuple[float, float] | None = Field(
        description="interval that holds together with those of all other tests, as Holm's procedure leaves "
        "it; it has 1 in it. Null where significant, and where there is no test"
    )
    judgement: EffectJudgement
    method: Method
    first: bool = Field(description="whether it is the metric that most of the allowed error goes to")
    again: bool = Field(description="the same ratios in another unit: no test of its own")
    smallest_seen: float | None = Field(
        description="the least change, as a share, that 80 of 100 such experiments find; null: none"
    )
    power: float | None = Field(description="chance to find a change of the margin")
    more_repeats: int | None = Field(
        description="repeats to add until 80 of 100 cases find the margin; null: not open, or over 1000"
    )
    aliased_with: list[str] = Field(description="effects it cannot be told from")
    depends_on: list[str] = Field(description="factors it interacts with")
    why: str | None = Field(description="why nothing, or not all, is known")


class InteractionContrast(FrozenModel):
    """By how much one factor's effect differs between two levels of another: a ratio of ratios."""

    levels: tuple[str, str] = Field(description="of the first factor: the level, and what it is held against")
    at: tuple[str, str] = Field(description="of the second factor, in the same way")
    change: RatioInterval


class SimpleEffect(FrozenModel):
    """The effect of a level at one level of another factor."""

    factor: str
    level: str
    against: str
    other: str
    at: str
    change: RatioInterval


class Interaction(FrozenModel):
    """Whether the effect of one factor depends on another."""

    pattern: str
    metric: str
    factors: tuple[str, str]
    found: bool | None = Field(description="null: it cannot be known here")
    p: float | None = Field(description="of all its contrasts together, after Holm's correction")
    raw_p: float | None
    largest: InteractionContrast | None
    simple: list[SimpleEffect] = Field(description="effects of each of the two at each level of the other")
    first: bool
    again: bool
    smallest_seen: float | None = Field(
        description="by how much, as a share, one combination has to differ from what the two factors let "
        "expect of it for 80 of 100 such experiments to find it; null: none"
    )
    power: float | None = Field(description="chance to find one that differs by the margin")
    aliased_with: list[str]
    why: str | None


class LevelMean(FrozenModel):
    """What a metric comes to at a level, or at a level of each of two factors, averaged over all others."""

    pattern: str
    metric: str
    levels: dict[str, str] = Field(description="of one factor or two")
    runs: int
    value: float = Field(description="geometric mean, adjusted for blocks and drift")
    low: float | None
    high: float | None


class VarianceShare(FrozenModel):
    """How much of the differences between runs one term explains."""

    pattern: str
    metric: str
    term: str = Field(description="a factor, `a:b`, `order in time`, or `not explained`")
    eta_squared: float = Field(description="share of the sum of squares")
    omega_squared: float | None = Field(
        description="the same without what chance adds; never below 0; null for what chance is made of"
    )


class DriftFound(FrozenModel):
    """Whether a metric moved with the time of the experiment, whatever was set."""

    pattern: str
    metric: str
    change: RatioInterval | None = Field(description="over the whole experiment; null: cannot be known")
    found: bool | None
    taken_out: DriftTaken
    confounded: list[str] = Field(description="factors whose levels follow the time")
    why: str | None


class OutlierRun(FrozenModel):
    """A run that lies further from the others than chance explains."""

    pattern: str
    metric: str
    run: str
    ratio: float = Field(description="what was measured over what the other runs let expect")
    p: float = Field(description="chance of a furthest run so far off, corrected for the number of metrics")


class FittedModel(FrozenModel):
    """The model behind the effects of one metric of one pattern, and what was found of its errors."""

    pattern: str
    metric: str
    runs: int
    terms: list[str]
    blocks: int
    method: Method
    freedom: float | None = Field(description="degrees of freedom of the error")
    noise_share: float | None = Field(description="how much repeats of one combination differ: one deviation")
    normal_p: float | None = Field(description="chance of residuals at least as far from normal")
    equal_noise_p: float | None = Field(description="chance of levels that differ so much in their noise")
    notes: list[str]


class CellValue(FrozenModel):
    """One combination of levels."""

    pattern: str
    metric: str
    levels: dict[str, str]
    runs: int
    left_out: int
    value: float | None = Field(description="geometric mean of valid runs, adjusted for blocks and drift")
    low: float | None
    high: float | None
    why: str | None = Field(description="why there is no data")


class MetricCost(FrozenModel):
    """What a choice changes in another metric, against the first level of every factor."""

    metric: str
    change: RatioInterval


class Recommendation(FrozenModel):
    """The combination to choose for an aim, in one pattern."""

    pattern: str
    metric: str
    larger_is_better: bool
    limit_metric: str | None
    limit_at_most: float | None
    levels: dict[str, str] | None = Field(description="null: none can be recommended")
    value: float | None
    against: dict[str, str] | None = Field(description="the first level of every factor")
    change: RatioInterval | None = Field(
        description="of the aim's metric; null: those levels have no valid run, or are it"
    )
    as_good: list[dict[str, str]] = Field(
        description="combinations not significantly different from it; without a choice: from each other"
    )
    does_not_matter: list[str] = Field(description="factors whose levels make no difference")
    costs: list[MetricCost]
    why: str | None


class LeftOutRun(FrozenModel):
    """A run that no effect rests on."""

    pattern: str
    run: str
    levels: dict[str, str]
    why: str


class LevelNotSet(FrozenModel):
    """A level that could not be set on this machine."""

    factor: str
    level: str
    why: str


class TestedFactor(FrozenModel):
    """A factor, and the levels that were tried."""

    name: str
    levels: list[str]


class Effects(FrozenModel):
    """All of it."""

    format: Literal[1] = FORMAT
    alpha: float
    margin: float = Field(description="what differs by less than this is called alike, as a share")
    factors: list[TestedFactor]
    patterns: list[str]
    first_metric: str | None = Field(description="what the aim is about; else the rate")
    tests: int = Field(description="number of tests of the first metric")
    effects: list[LevelEffect]
    interactions: list[Interaction]
    means: list[LevelMean] = Field(description="of levels, and of pairs of levels")
    shares: list[VarianceShare]
    drift: list[DriftFound]
    outliers: list[OutlierRun]
    models: list[FittedModel]
    cells: list[CellValue]
    recommendations: list[Recommendation]
    left_out: list[LeftOutRun]
    unset: list[LevelNotSet]
    aliased: list[tuple[str, str]]
    more_repeats: int | None = Field(description="repeats that settle all that is open in the first metric")

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return self.model_dump(mode="json")
