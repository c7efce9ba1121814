"""The shape of a verdict: what a number is, what limited it, and why.

Knows names and fields only, as they stand in `result.json`; judges nothing. Rule names may
be added to and never renamed: scripts rely on them.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import ConfigDict, Field

from loadstone.frozen_model import FrozenModel

Effect = Literal["not_valid", "limited", "suspect", "note"]

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
    "swapping",
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
    "generator_stopped",
    "own_limit",
    "layer_flows",
    "time_structure",
    "probes",
    "clock_skew",
    "host_is_limit",
    "hosts_unequal",
    "hosts_overlap",
    "storage_link",
    "storage_cpu",
    "storage_memory_cache",
    "write_amplification",
    "background_work",
    "storage_disk",
]
RULE_NAMES: Final[tuple[RuleName, ...]] = get_args(RuleName)


BYTES_PER_S: Final = "bytes per s"
"""What the points of a chart are where they are a bandwidth; on a page they have the unit that fits."""


class Chart(FrozenModel):
    """A small picture of the evidence: points in order, and a level they are held against."""

    title: str
    x: str = Field(description="what the first of a pair is, with its unit")
    y: str
    points: tuple[tuple[float, float], ...]
    level: float | None = None
    level_name: str | None = None


class Cause(FrozenModel):
    """One finding of one rule."""

    rule: RuleName
    confidence: float = Field(ge=0, le=1, description="how often a finding made this way is right")
    effect: Effect
    layer: str | None = Field(description="the layer of the data path it is about")
    text: str = Field(description="what was found, in one or two sentences")
    evidence: dict[str, float | int | str] = Field(description="numbers carry their unit in the name")
    advice: str
    chart: Chart | None = None
    about: str | None = Field(description="the job or phase; null: the whole result")


class Missing(FrozenModel):
    """Why a rule could not say anything."""

    rule: RuleName
    what: str = Field(description="why, as a clause")
    remedy: str | None = Field(default=None, description="what would let the rule look")
    essential: bool = Field(description="without it the number cannot be believed")
    about: str | None


class LayerFlow(FrozenModel):
    """What one layer under the targets did in the seconds of the load; null: nothing counts it."""

    name: str
    kind: str = Field(description="as in the data path: `file_system`, `loop`, `disk`, …")
    state: tuple[str, ...] = Field(description="what is not as on a plain disk, in words")
    seconds: float = Field(description="length of the comparison; all layers have the same seconds")
    reads: float | None
    writes: float | None
    trims: float | None
    flushes: float | None
    merges: float | None = Field(description="I/Os that were joined to another in this layer's queue")
    read_bytes: float | None
    write_bytes: float | None
    trim_bytes: float | None
    service_ns: float | None = Field(description="mean time of its I/Os by its own clock")
    service_p99_ns: float | None = Field(
        description="99th percentile of the time of a sample of its I/Os; null: not permitted, or too few"
    )
    inflight: float | None = Field(description="mean number of I/Os in it")
    busy_share: float | None = Field(description="part of the time with at least one I/O in it")
    expected_read_bytes: float | None = Field(description="what the layer above gave it, by their kinds")
    expected_write_bytes: float | None
    given_by: str | None = Field(description="the counted layer above, or `the job`")
    agrees: bool | None = Field(description="null: nothing to hold it against")
    why: str | None = Field(
        description="what does not add up, by name: served from memory, never stored, absorbed, reduced, "
        "amplified, cut, merged, read or written by somebody else"
    )


class LayerTime(FrozenModel):
    """Part of a latency that was spent in one layer."""

    name: str
    ns: float


class TimeSplit(FrozenModel):
    """Where a latency went; the parts add up to `measured_ns`."""

    measured_ns: float
    generator_ns: float = Field(description="waiting for the load generator, and on the way to the kernel")
    layers: tuple[LayerTime, ...] = Field(description="from the host down to the medium, each without below")
    unknown_ns: float = Field(description="what no clock explains")


class Time(TimeSplit):
    """Where the mean latency went, and the 99th percentile."""

    p99: TimeSplit | None = None


class RankedExplanation(FrozenModel):
    """What may lie behind a number, and what speaks for it and against it."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True)

    name: str
    says: str = Field(description="the same in words")
    probability: float = Field(ge=0, le=1, description="of all explanations that can hold for this job")
    for_: tuple[str, ...] = Field(alias="for")
    against: tuple[str, ...]
    decided_by: str | None = Field(description="the probe or rule that said most; null: nothing was tried")
    advice: str = Field(description="what would show it, or do away with it")


class ProbeResult(FrozenModel):
    """A short run after the run."""

    name: str
    bundle: str = Field(description="relative to the run's bundle")
    result: str


class Verdict(FrozenModel):
    """What a result is worth."""

    kind: Kind
    limited_by: str | None
    confidence: float = Field(ge=0, le=1)
    sentences: str = Field(description="two sentences in plain words")
    causes: tuple[Cause, ...]
    missing: tuple[Missing, ...]
    checked: tuple[RuleName, ...] = Field(description="rules that looked and found nothing")
    advice: tuple[str, ...] = Field(description="what to change to get a valid number, first things first")
    layers: tuple[LayerFlow, ...] = Field(
        default=(), description="every layer under the targets, in the seconds of the load"
    )
    time: Time | None = Field(default=None, description="where the latency went; null: no clock tells")
    explanations: tuple[RankedExplanation, ...] = Field(default=(), description="the most probable first")
    probes: tuple[ProbeResult, ...] = ()
    to_decide: str | None = Field(
        default=None,
        description="the command that would tell them apart; null: probes ran, or none can",
    )

    @property
    def decided_by(self) -> tuple[RuleName | None, str] | None:
        """The rule that decides it and what it found or misses; None: it measures the storage."""
        if self.kind == "measures_storage":
            return None
        if self.kind in {"not_valid", "limited"} and self.causes:
            return self.causes[0].rule, self.causes[0].text
        essential = next((one for one in self.missing if one.essential), None)
        if essential is not None:
            return essential.rule, f"{essential.what[:1].upper()}{essential.what[1:]}."
        return None, self.sentences


class Phase(FrozenModel):
    """The verdict on one phase: jobs that ran at the same time."""

    name: str
    verdict: Verdict


class Audited(FrozenModel):
    """The verdict on a whole result, and on each of its phases in order."""

    verdict: Verdict
    phases: tuple[Phase, ...]
