"""A Plan as readable lines: what would run on what, for how long, phase by phase.

Knows words. Every value is the Plan's; computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.comparison.pattern_name import size
from loadstone.messages import say
from loadstone.plan.derived import cells_of, targets_of
from loadstone.plan.model import SizesFixed, SizesRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.plan.model import OpPattern, Plan, Stream

MAX_TARGETS: Final = 3


def lines(plan: Plan) -> Iterator[str]:
    """Yield a line for each target, and for each phase its jobs."""
    for target in plan.targets[: 4 * MAX_TARGETS]:
        how = "direct I/O" if target.direct else "through the page cache"
        yield f"target {target.path}: {units.size(target.size_bytes)}, {how}"
    if len(plan.targets) > 4 * MAX_TARGETS:
        yield say("api.plan.more_targets", more=len(plan.targets) - 4 * MAX_TARGETS)
    lengths = stage_lengths_ns(plan)
    for stage, length_ns in enumerate(lengths):
        phase_streams = [one for one in plan.streams if plan.workers[one.worker].stage == stage]
        if len(lengths) > 1:
            yield f"phase {stage + 1} of {len(lengths)}, {_length(length_ns)}"
        jobs: dict[str, list[Stream]] = {}
        for stream in phase_streams:
            jobs.setdefault(stream.name.rpartition(".")[0] or stream.name, []).append(stream)
        for name, streams in jobs.items():
            begin = "  " if len(lengths) > 1 else ""
            yield f"{begin}job {name}: {_job(plan, streams)}"
    if len(lengths) == 1:
        yield f"runs {_length(lengths[0])}"


def _job(plan: Plan, streams: Sequence[Stream]) -> str:
    first = streams[0]
    operation = _pattern(first) if first.tree is None else str(first.tree.operation.type)
    depth = f"iodepth {first.iodepth}"
    clones = f"{len(streams)} clones" if len(streams) > 1 else ""
    used = dict.fromkeys(plan.targets[at].path for stream in streams for at in targets_of(plan, stream))
    named = list(used)
    more = f" and {len(named) - MAX_TARGETS} more" if len(named) > MAX_TARGETS else ""
    where = f"on {', '.join(named[:MAX_TARGETS])}{more}"
    rate = "at a fixed rate" if any((first.pace.read, first.pace.write, first.pace.trim)) else ""
    backend = plan.workers[first.worker].backend.type
    ramp = f"ramp {units.seconds(first.limits.ramp_ns / 1e9)}" if first.limits.ramp_ns else ""
    return ", ".join(part for part in (operation, depth, clones, rate, backend, ramp, where) if part)


def _pattern(stream: Stream) -> str:
    pattern = stream.pattern
    shares = {
        "read": (pattern.read, pattern.read_percent),
        "write": (pattern.write, pattern.write_percent),
        "trim": (pattern.trim, pattern.trim_percent),
    }
    used = {op: (one, share) for op, (one, share) in shares.items() if share}
    whole = sum(share for _, share in used.values())
    parts = []
    for op, (one, share) in used.items():
        of = "" if len(used) == 1 else f"{100 * share / whole:.3g} % "
        parts.append(f"{of}{_sizes(one)} {_order(one)} {op}")
    return " and ".join(parts)


def _order(one: OpPattern) -> str:
    if one.random_percent in (0, 100):
        return "random" if one.random_percent else "sequential"
    return f"{one.random_percent:.3g} % random"


def _sizes(one: OpPattern) -> str:
    sizes = one.sizes
    if isinstance(sizes, SizesFixed):
        return size(sizes.bytes)
    if isinstance(sizes, SizesRange):
        return f"{size(sizes.min_bytes)}-{size(sizes.max_bytes)}"
    return "/".join(size(entry.bytes) for entry in sizes.table[:4]) + ("/…" if len(sizes.table) > 4 else "")


def _length(length_ns: int | None) -> str:
    return say("api.plan.until_bytes") if length_ns is None else f"for {units.seconds(length_ns / 1e9)}"


def stages_of_cells(plan: Plan) -> list[set[int]]:
    """Return the stages in which the samples of each cell are counted."""
    stages: list[set[int]] = [set() for _ in plan.cells]
    for stream in plan.streams:
        for cell in cells_of(stream):
            stages[cell].add(plan.workers[stream.worker].stage)
    return stages


def stage_lengths_ns(plan: Plan) -> list[int | None]:
    """Planned length of each stage; `None` where a stream has no time limit."""
    lengths: dict[int, int | None] = {}
    for stream in plan.streams:
        stage = plan.workers[stream.worker].stage
        limits = stream.limits
        one = limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns if limits.runtime_ns else None
        before = lengths.get(stage, 0)
        lengths[stage] = None if one is None or before is None else max(before, one)
    return [lengths[stage] for stage in sorted(lengths)]
