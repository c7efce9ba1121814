"""The shape of a verdict: what a number is, what limited it, and why.

Knows names and fields only, as they stand in `result.json`; judges nothing. Rule names may
be added to and never renamed: scripts rely on them.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["measures_storage", "limited", "not_valid", "cannot_tell"]

RuleName = Literal[
    "page_cache_read",
    "attributes_cached",
    "writeback_absorbed",
    "unwritten_region",
    "first_pass_allocation",
    "reducible_payload",
    "overlapping_clones",
    "random_equals_sequential",
    "link_ceiling",
    "above_ceiling",
    "throttled",
    "generator_cpu",
    "governor",
    "depth_not_reached",
    "rate_not_reached",
    "littles_law",
    "resized_on_path",
    "not_steady",
    "too_few_samples",
    "not_repeatable",
    "foreign_load",
    "workload_drift",
    "io_errors",
    "network_loss",
    "clock_jump",
    "volatile_ack",
    "short_stroke",
    "unit_mixup",
    "same_sequence_again",
    "state_differs",
]
RULE_NAMES: Final[tuple[RuleName, ...]] = get_args(RuleName)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Chart(_Model):
    """A small picture of the evidence: points in order, and a level they are held against."""

    title: str
    x: str = Field(description="what the first of a pair is, with its unit")
    y: str
    points: tuple[tuple[float, float], ...]
    level: float | None = None
    level_name: str | None = None


class Cause(_Model):
    """One finding of one rule."""

    rule: RuleName
    confidence: float = Field(ge=0, le=1, description="how often a finding made this way is right")
    effect: Literal["not_valid", "limited", "suspect", "note"]
    layer: str | None = Field(description="the layer of the data path it is about")
    text: str = Field(description="what was found, in one or two sentences")
    evidence: dict[str, float | int | str] = Field(description="numbers carry their unit in the name")
    advice: str
    chart: Chart | None = None
    about: str | None = Field(description="the job or phase; null: the whole result")


class Missing(_Model):
    """Why a rule could not say anything."""

    rule: RuleName
    what: str
    essential: bool = Field(description="without it the number cannot be believed")
    about: str | None


class Verdict(_Model):
    """What a result is worth."""

    kind: Kind
    limited_by: str | None
    confidence: float = Field(ge=0, le=1)
    sentences: str = Field(description="two sentences in plain words")
    causes: tuple[Cause, ...]
    missing: tuple[Missing, ...]
    checked: tuple[RuleName, ...] = Field(description="rules that looked and found nothing")
    advice: tuple[str, ...] = Field(description="what to change to get a valid number, first things first")

    @property
    def decided_by(self) -> tuple[RuleName | None, str] | None:
        """The rule that decides it and what it found or misses; None: it measures the storage."""
        if self.kind == "measures_storage":
            return None
        if self.kind in {"not_valid", "limited"} and self.causes:
            return self.causes[0].rule, self.causes[0].text
        essential = next((one for one in self.missing if one.essential), None)
        if essential is not None:
            return essential.rule, f"Missing: {essential.what}."
        return None, self.sentences


class Phase(_Model):
    """The verdict on one phase: jobs that ran at the same time."""

    name: str
    verdict: Verdict


class Audited(_Model):
    """The verdict on a whole result, and on each of its phases in order."""

    verdict: Verdict
    phases: tuple[Phase, ...]
