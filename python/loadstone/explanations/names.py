"""The explanations of a number, as one table.

Each is told in the field's words: a limiter, a cache, the job itself. Knows for which jobs each can hold,
how probable it is before anything was tried, and which findings of the audit point at it. A row more is a
row here and a column of `predictions`; names may be added to and never renamed: scripts rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.explanations.job_facts import JobFacts
    from loadstone.verdict import RuleName

Effect = Literal["measures", "limited", "not_valid"]
UNEXPLAINED: Final = "something_unexplained"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One row. `odds`: before anything was tried; no field data stands behind them."""

    name: str
    says: str
    effect: Effect
    layer: str
    odds: float
    holds: Callable[[JobFacts], bool]
    rules: tuple[RuleName, ...] = ()
    """Findings of these rules are evidence for it."""
    advice: str = ""
    """What would show it, or do away with it."""
    own: str = ""
    """What of the storage's own gives the same readings: nobody can tell from outside whose limit it is."""


def _any(_: JobFacts) -> bool:
    return True


def _reads(job: JobFacts) -> bool:
    return job.reads


def _writes(job: JobFacts) -> bool:
    return job.writes


def _closed(job: JobFacts) -> bool:
    return not job.paced


EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    Explanation(
        "medium",
        "the storage itself at work",
        "measures",
        "the storage",
        3.0,
        _closed,
        advice="repeat the run: the storage itself gives the same rate",
    ),
    Explanation(
        "job_depth",
        "the job's own depth: more I/Os in flight would give more",
        "measures",
        "the job's depth",
        1.5,
        _closed,
        ("depth_not_reached",),
        "raise iodepth until the rate no longer grows",
    ),
    Explanation(
        "job_rate",
        "the job's own rate or think time",
        "measures",
        "the job's rate",
        20.0,
        lambda job: job.paced,
        ("own_limit", "rate_not_reached"),
        "remove the rate to find what the storage can do",
    ),
    Explanation(
        "generator",
        "the load generator: its processors or its engine",
        "limited",
        "the load generator",
        0.7,
        _any,
        ("generator_cpu", "governor"),
        "use larger I/Os, more processors or several hosts",
    ),
    Explanation(
        "iops_limit",
        "a limit on I/Os per second",
        "limited",
        "a cap on I/Os per second",
        1.0,
        _closed,
        ("throttled",),
        "look for a limit in the volume's type, its policy, or the hypervisor",
        own="the storage's own controller",
    ),
    Explanation(
        "bandwidth_limit",
        "a limit on bytes per second, or a link",
        "limited",
        "a cap on bandwidth",
        1.0,
        _closed,
        ("throttled", "link_ceiling"),
        "look for a limit in the volume's type, and at the slowest link",
        own="the storage's own channel",
    ),
    Explanation(
        "burst_credits",
        "burst credits: the rate falls when they are used up",
        "not_valid",
        "burst credits",
        0.7,
        _closed,
        ("throttled",),
        "run longer than the credits last, and report the rate behind them",
    ),
    Explanation(
        "concurrency_limit",
        "a limit on I/Os in flight on the way",
        "limited",
        "a queue on the way",
        0.7,
        lambda job: not job.paced and job.depth > 1,
        ("depth_not_reached",),
        "look at queue_depth of the device, sessions and HBA",
        own="the storage's own parallel parts",
    ),
    Explanation(
        "shared_limit",
        "a limit that the targets share",
        "limited",
        "a cap that the targets share",
        0.7,
        lambda job: not job.paced and job.targets > 1,
        ("throttled",),
        "measure the targets one by one, and look for what they share",
    ),
    Explanation(
        "cache",
        "a cache behind the device answers",
        "not_valid",
        "a cache behind the device",
        1.0,
        _reads,
        ("page_cache_read", "same_sequence_again", "overlapping_clones"),
        "use a span of several times the cache, and new addresses in each run",
    ),
    Explanation(
        "write_cache",
        "a write cache takes the writes, and the rate behind it is lower",
        "not_valid",
        "a write cache",
        1.0,
        _writes,
        ("writeback_absorbed", "volatile_ack"),
        "write longer than the cache lasts, and report the rate behind it",
    ),
    Explanation(
        "first_touch",
        "space that is touched for the first time: allocation, a snapshot, a lazy restore",
        "not_valid",
        "space touched for the first time",
        0.5,
        _any,
        ("first_pass_allocation",),
        "write (or read) the whole range once before you measure",
    ),
    Explanation(
        "unwritten",
        "blocks that were never written are answered without the medium",
        "not_valid",
        "blocks never written",
        1.0,
        _reads,
        ("unwritten_region",),
        "write the whole range before you read it",
    ),
    Explanation(
        "reduction",
        "compression, deduplication or zero detection of what is written",
        "not_valid",
        "compression or deduplication",
        0.7,
        lambda job: job.writes and job.repeats_payload,
        ("reducible_payload",),
        "write data that is new every time: refill_buffers=1",
    ),
    Explanation(
        "position",
        "the part of the device that is used: others are slower",
        "not_valid",
        "the part of the device that is used",
        0.4,
        lambda job: job.partial,
        ("short_stroke",),
        "use the whole device",
    ),
    Explanation(
        "misaligned",
        "I/Os off the grid of the medium",
        "limited",
        "I/Os off the grid",
        0.7,
        lambda job: job.off_grid,
        (),
        "align offset and block size to 4 KiB, or to the stripe",
    ),
    Explanation(
        "background",
        "other work in the storage: scans, rebuilds, neighbours",
        "limited",
        "other work in the storage",
        0.7,
        _any,
        ("foreign_load", "not_steady", "time_structure"),
        "measure again when the storage is idle, and look at what else it does",
    ),
    Explanation(
        UNEXPLAINED,
        "something unexplained",
        "limited",
        "something unexplained",
        0.7,
        _any,
        advice="look at the storage's own counters while the load runs",
    ),
)
BY_NAME: Final = {one.name: one for one in EXPLANATIONS}


def possible(job: JobFacts) -> tuple[Explanation, ...]:
    """Return the explanations that can hold for a job."""
    if job.in_tree:
        return ()
    return tuple(one for one in EXPLANATIONS if one.holds(job))
