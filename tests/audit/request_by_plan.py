"""What a Plan says that a job does, read from its streams: another way to what a Workload asked for.

The audit takes a case's requests from the Workload; this holds them against what is planned.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from loadstone.plan.derived import asked_operations, targets_of
from loadstone.plan.model import OpenSync, SizesFixed, SizesRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import OpPattern, Plan, Sizes, Stream

OPS = ("read", "write", "trim")


def request(plan: Plan, streams: Sequence[Stream]) -> dict[str, Any]:
    """Return the fields of a JobRequest that a Plan decides nothing of, for the streams of one job."""
    stages = [plan.workers[stream.worker].stage for stream in streams]
    does = [stream for stream, stage in zip(streams, stages, strict=True) if stage == min(stages)]
    first = does[0]
    reads_again = max(stages) > min(stages) or any(
        (one.verify is not None and (one.verify.read_before_write or one.verify.read_after_write))
        or (one.headers is not None and one.headers.read_back and not one.headers.only)
        for one in does
    )
    weights = _weights(first)
    moving, by_name = weights[0] + weights[1], first.tree is not None and _by_name(first)
    found = {
        "clones": len(does),
        "operation": first.tree.operation.type if first.tree is not None and by_name else None,
        "read_percent": None if by_name or reads_again or not moving else 100 * weights[0] / moving,
        "random_percent": None if by_name else _random(first),
        "block_bytes": {} if by_name else _mixed(first),
        "synchronous": 1 in (first.flush.fsync_every, first.flush.fdatasync_every)
        or all(plan.targets[number].sync is not OpenSync.NONE for number in targets_of(plan, first)),
        "end_fsync": first.flush.at_end or first.flush.on_close,
        "flushes": any(first.flush.model_dump().values()),
        "paced": any(_paced(stream) for stream in does),
        "thinks": any(stream.pace.think is not None for stream in does),
        "runtime_s": first.limits.runtime_ns / 1e9 or None,
        "ramp_s": first.limits.ramp_ns / 1e9,
    }
    for at, op in enumerate(("read", "write")):
        exact = {} if first.tree is not None or not weights[at] else _exact(_ops(first)[at])
        found[f"{op}_block_bytes"] = exact
    if first.headers is not None and first.headers.only:
        whole = all(_exact(op) for op in _ops(first))
        reads = _mixed(first) if whole else {}
        found |= {"read_percent": 100.0, "read_block_bytes": reads, "write_block_bytes": {}}
    return found


def _by_name(stream: Stream) -> bool:
    return not asked_operations(stream) & set(OPS)


def _ops(stream: Stream) -> tuple[OpPattern, ...]:
    return stream.pattern.read, stream.pattern.write, stream.pattern.trim


def _weights(stream: Stream) -> tuple[int, int, int]:
    return stream.pattern.read_percent, stream.pattern.write_percent, stream.pattern.trim_percent


def _random(stream: Stream) -> float:
    weighted = zip(_ops(stream), _weights(stream), strict=True)
    return sum(op.random_percent * weight for op, weight in weighted) / sum(_weights(stream))


def _mixed(stream: Stream) -> dict[int, float]:
    mixed: dict[int, float] = defaultdict(float)
    for op, weight in zip(_ops(stream), _weights(stream), strict=True):
        for size, share in sizes(op.sizes).items() if weight else ():
            mixed[size] += share * weight / sum(_weights(stream))
    return dict(mixed)


def _exact(op: OpPattern) -> dict[int, float]:
    found = sizes(op.sizes)
    once = op.random_percent > 0 and op.random.type == "uniform" and not op.random.repeat
    return {} if once and len(found) > 1 else found


def sizes(asked: Sizes) -> dict[int, float]:
    """Return sizes with their shares; of a range 64 at most."""
    if isinstance(asked, SizesFixed):
        return {asked.bytes: 1.0}
    if isinstance(asked, SizesRange):
        span = asked.max_bytes - asked.min_bytes
        count = min(span // asked.step_bytes + 1, 64)
        return {asked.min_bytes + span * at // max(1, count - 1): 1 / count for at in range(count)}
    whole = sum(entry.weight for entry in asked.table)
    found: dict[int, float] = defaultdict(float)
    for entry in asked.table:
        found[entry.bytes] += entry.weight / whole
    return dict(found)


def _paced(stream: Stream) -> bool:
    pace = stream.pace
    rates = (pace.read, pace.write, pace.trim, pace.think, stream.flow)
    return stream.tree.rate is not None if stream.tree is not None else any(one is not None for one in rates)
