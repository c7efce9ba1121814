"""The run that is probed: its phase, what it measured, and what it was allowed to write.

Knows the Plan and the figures of one phase. Starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.explanations.not_probed import why_not_probed
from loadstone.messages import say
from loadstone.plan.derived import asked_operations
from loadstone.plan.model import SizesFixed, SizesRange
from loadstone.probe.sample_size import seconds_per_arm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.explanations.job_facts import JobFacts
    from loadstone.plan.model import FileUse, Plan, Sizes, Stream
    from loadstone.probe.figures import Figures

MIB: Final = 1 << 20
LEAST_S: Final = 0.25
MOST_S: Final = 2.0
PART: Final = 1 / 40
"""Of the budget, at most, for one turn of an arm: two slow probes shall not use up all of it. A tenth in its
place was tried on 120 slow situations of seeds 140001 to 140301. Beliefs were further off (Brier score 0.081
in place of 0.065), and four probes were done in place of five."""


@dataclass(frozen=True, slots=True)
class Base:
    """What probes start from. `main`: the figures of the phase. `budget_s`: for all probes together.

    `known_facts`: what decides which explanations can hold; None: what its jobs do is not known.
    `taken`: what others on this host's CPUs could take of the rate meanwhile; None: it was not watched.
    """

    plan: Plan
    stage: int
    known_facts: JobFacts | None
    main: Figures
    budget_s: float
    taken: float | None = None

    @property
    def facts(self) -> JobFacts:
        """What decides which explanations can hold, of a phase that can be probed."""
        if self.known_facts is None:
            raise AssertionError("a phase of unknown jobs cannot be probed")
        return self.known_facts

    @property
    def streams(self) -> list[Stream]:
        """The streams of the phase."""
        return streams_of(self.plan, self.stage)

    @property
    def targets(self) -> tuple[int, ...]:
        """The targets of the phase."""
        return tuple(dict.fromkeys(use.target for stream in self.streams for use in stream.files))

    @property
    def depth(self) -> int:
        """The depth of its first stream; probes change all of them in proportion."""
        return self.streams[0].iodepth

    @property
    def block_bytes(self) -> int:
        """The largest size of its I/Os."""
        return largest_block(self.streams)

    @property
    def arm_s(self) -> float:
        """How long one arm takes, each time it has its turn."""
        wanted = seconds_per_arm(self.main) / 2
        return min(MOST_S, PART * self.budget_s, max(LEAST_S, wanted))

    @property
    def fills(self) -> bool:
        """Whether flushes queue up behind each other at its start, in a deep queue."""
        return any(waits_for_flushes(stream) for stream in self.streams)

    @property
    def flush_ns(self) -> float:
        """How long a flush takes, by Little's law: the time of its depth that its I/Os do not account for."""
        depth = sum(stream.iodepth for stream in self.streams)
        beside_ns = max(0.0, depth / self.main.rate * 1e9 - self.main.mean_ns)
        return beside_ns * max((flushes_every(stream) for stream in self.streams), default=0)

    def size_bytes(self, target: int) -> int:
        """Return the length of a target; of a file that the run made, as it made it."""
        plan_target = self.plan.targets[target]
        ends = [
            use.offset_bytes + use.length_bytes
            for stream in self.plan.streams
            for use in stream.files
            if use.target == target
        ]
        return max([plan_target.size_bytes, *ends])

    def writable(self) -> dict[int, list[tuple[int, int]]]:
        """Return what the run was allowed to write: of each target, first and last byte of each range."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for stream in self.plan.streams:
            if writes(stream):
                for use in stream.files:
                    ranges.setdefault(use.target, []).append(_range(use))
        return ranges

    def why_not(self) -> str | None:
        """Say why nothing can be probed here; None when it can."""
        if self.known_facts is None:
            return say("probe.base.unknown_jobs")
        return why_not_probed(self.plan, self.streams)


def writes(stream: Stream) -> bool:
    """Tell whether a stream writes what it was asked to."""
    return "write" in asked_operations(stream)


def waits_for_flushes(stream: Stream) -> bool:
    """Tell whether its writes are in flight beside flushes."""
    return writes(stream) and stream.iodepth > 1 and flushes_every(stream) > 0


def flushes_every(stream: Stream) -> int:
    """Return after how many writes it flushes; 0: never."""
    return max(stream.flush.fsync_every, stream.flush.fdatasync_every)


def reads(stream: Stream) -> bool:
    """Tell whether it reads."""
    return "read" in asked_operations(stream)


def streams_of(plan: Plan, stage: int) -> list[Stream]:
    """Return the streams of a stage."""
    return [stream for stream in plan.streams if plan.workers[stream.worker].stage == stage]


def block_sizes(stream: Stream) -> set[int]:
    """Return the sizes of its reads and writes, of a range or a table the smallest and the largest."""
    shares = (stream.pattern.read_percent, stream.pattern.write_percent)
    ops = (stream.pattern.read, stream.pattern.write)
    return set().union(*(_sizes(op.sizes) for share, op in zip(shares, ops, strict=True) if share))


def largest_block(streams: Iterable[Stream]) -> int:
    """Return the largest size of their I/Os."""
    return max((size for stream in streams for size in block_sizes(stream)), default=4096)


def _sizes(sizes: Sizes) -> set[int]:
    if isinstance(sizes, SizesFixed):
        return {sizes.bytes}
    if isinstance(sizes, SizesRange):
        return {sizes.min_bytes, sizes.max_bytes}
    return {entry.bytes for entry in sizes.table}


def _range(use: FileUse) -> tuple[int, int]:
    return use.offset_bytes, use.offset_bytes + use.length_bytes
