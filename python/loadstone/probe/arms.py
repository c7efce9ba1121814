"""From the arms of a probe to a Plan: each turn of an arm is a stage of its own.

Knows how streams of the run are changed for an arm, and that none of them may write where the run was not
allowed to. Runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.analysis.filling import FILLED
from loadstone.errors import RefusedError
from loadstone.messages import make_error
from loadstone.plan import model
from loadstone.probe.base import Base, flushes_every, largest_block, waits_for_flushes, writes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.model import FileUse, Plan, Stream

INTERVAL_NS: Final = 50_000_000
MIN_INTERVAL_NS: Final = 10_000_000
RAMP_SHARE: Final = 0.1
MOST_RAMP: Final = 0.5
"""Of a turn, where flushes of a deep load have to queue up first."""
LEAST_BLOCKS: Final = 256
WEAR: Final = 2.0
"""An arm may write so many times what the run would have written in its time."""
_PRIME: Final = 0x9E37_79B9_7F4A_7C15


def as_it_is(stream: Stream) -> Stream:
    """Leave a stream as the run had it."""
    return stream


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """One arm. `change`: of each stream of the run. `keep`: only these streams.

    `same_addresses`: the order of addresses of the run itself, or (a number) of all arms with this one.
    """

    name: str
    change: Callable[[Stream], Stream] = as_it_is
    keep: Callable[[Stream], bool] = field(default=lambda _: True)
    without_device: bool = False
    same_addresses: int | None = None
    share: float = 1.0
    """Its length, of that of an arm."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The arms of a probe in the order in which they have their turns."""

    order: tuple[ArmPlan, ...]
    arm_s: float

    @property
    def seconds(self) -> float:
        """Time of all turns."""
        return sum(one.share for one in self.order) * self.arm_s * (1 + RAMP_SHARE)


def interleaved(base: Base, *arms: ArmPlan) -> Turns:
    """Return the arms there and back (ABBA): a drift that is even in time falls out."""
    return Turns((*arms, *reversed(arms)), base.arm_s)


def plan_of(base: Base, turns: Turns) -> Plan:
    """Return the Plan of a probe. Raises `RefusedError` if it would write where the run was not to."""
    workers: list[model.Worker] = []
    streams: list[Stream] = []
    for stage, arm in enumerate(turns.order):
        numbers: dict[int, int] = {}
        for stream in base.streams:
            if not arm.keep(stream):
                continue
            if stream.worker not in numbers:
                numbers[stream.worker] = len(workers)
                workers.append(_worker(base, stream, stage, arm))
            changed = arm.change(_turn(stream, stage, arm, turns))
            changed = _bounded(base, _filled(base, changed, stream.iodepth), arm, turns)
            streams.append(
                changed.model_copy(
                    update={
                        "worker": numbers[stream.worker],
                        "files": tuple(use.model_copy(update={"cell": stage}) for use in changed.files),
                        # Only of one file it is known when to close it.
                        "connection": changed.connection if len(changed.files) == 1 else None,
                    }
                )
            )
    plan = _whole(base, turns, workers, streams)
    _check_writes(base, plan)
    return plan


def _whole(base: Base, turns: Turns, workers: list[model.Worker], streams: list[Stream]) -> Plan:
    written = {use.target for stream in streams if writes(stream) for use in stream.files}
    no_device = all(isinstance(worker.backend, model.BackendNull) for worker in workers)
    targets = tuple(
        _target(base, index, target, written=index in written, virtual=no_device)
        for index, target in enumerate(base.plan.targets)
    )
    shortest_ns = int(turns.arm_s * 1e9 / 16)
    units = tuple(
        model.Unit(name=f"{arm.name}-{stage}", group=stage, clone=None)
        for stage, arm in enumerate(turns.order)
    )
    return model.Plan(
        version=1,
        interval_ns=max(MIN_INTERVAL_NS, min(INTERVAL_NS, shortest_ns // 1_000_000 * 1_000_000)),
        grace_ns=base.plan.grace_ns,
        memory_limit_bytes=base.plan.memory_limit_bytes,
        targets=targets,
        units=units,
        cells=tuple(model.Cell(unit=stage, target=None) for stage in range(len(units))),
        workers=tuple(workers),
        streams=tuple(streams),
        journal=None,
        recover=None,
        earlier=(),
        hand_over=False,
        steady=(),
        trees=(),
    )


def _target(base: Base, index: int, target: model.Target, *, written: bool, virtual: bool) -> model.Target:
    changes: dict[str, object] = {
        "layout": None,
        "create": False,
        "read_only": not written,
        "size_bytes": base.size_bytes(index),
    }
    if virtual:
        changes |= {"kind": model.TargetKind.VIRTUAL, "identity": None, "namesake": None}
        changes |= {"exclusive": False, "advice": None, "invalidate": False}
    return target.model_copy(update=changes)


def _worker(base: Base, stream: Stream, stage: int, arm: ArmPlan) -> model.Worker:
    worker = base.plan.workers[stream.worker]
    backend = model.BackendNull() if arm.without_device else worker.backend
    return worker.model_copy(update={"stage": stage, "backend": backend})


def _turn(stream: Stream, stage: int, arm: ArmPlan, turns: Turns) -> Stream:
    """Return a stream of the run as it is in one turn: its time, its bytes, addresses of its own."""
    seconds = turns.arm_s * arm.share
    limits = stream.limits.model_copy(
        update={
            "start_delay_ns": 0,
            "ramp_ns": int(RAMP_SHARE * seconds * 1e9),
            "runtime_ns": int(seconds * 1e9),
            "time_based": True,
            "bytes": 0,
            "ops": 0,
            "ends_stage": False,
            "ends_stage_on_error": False,
            "prepare_only": False,
        }
    )
    return stream.model_copy(
        update={
            "name": f"{arm.name}-{stage}.{stream.name}",
            "seed": _seed(stream, stage, arm),
            "limits": limits,
            "flush": stream.flush.model_copy(update={"at_end": False, "on_close": False}),
            "log_ios": False,
            "verify": None,
            "wait_for": (),
            "search": None,
            "open_files": None,
            "connection": None if arm.without_device else stream.connection,
        }
    )


def _filled(base: Base, stream: Stream, depth: int) -> Stream:
    """Let flushes queue up before what counts begins: until they do, a deep load waits for few of them.

    `depth`: as the run had it. A turn takes no longer for that.
    """
    if not waits_for_flushes(stream):
        return stream
    whole_ns = stream.limits.ramp_ns + stream.limits.runtime_ns
    filled_ns = int(FILLED * base.flush_ns * stream.iodepth / depth)
    ramp_ns = max(stream.limits.ramp_ns, min(filled_ns, int(MOST_RAMP * whole_ns)))
    limits = stream.limits.model_copy(update={"ramp_ns": ramp_ns, "runtime_ns": whole_ns - ramp_ns})
    return stream.model_copy(update={"limits": limits})


def _bounded(base: Base, stream: Stream, arm: ArmPlan, turns: Turns) -> Stream:
    """Let a stream end when it has written its share of what the run would have written in that time."""
    if not writes(stream) or arm.without_device:
        return stream
    seconds = turns.arm_s * arm.share * (1 + RAMP_SHARE)
    written = base.main.written_bytes / max(base.main.seconds, 1e-9) / len(base.streams)
    share = stream.pattern.write_percent / 100
    most = max(WEAR * written * seconds, LEAST_BLOCKS * base.block_bytes)
    if waits_for_flushes(stream):
        # Each of its depth is taken by a flush in the end, behind so many writes.
        most += stream.iodepth * flushes_every(stream) * largest_block([stream])
    most = int(most / max(share, 0.01))
    limits = stream.limits.model_copy(update={"time_based": False, "bytes": most})
    return stream.model_copy(update={"limits": limits})


def _seed(stream: Stream, stage: int, arm: ArmPlan) -> int:
    """Every turn has addresses of its own, unless the arm is about the same ones."""
    if arm.same_addresses == 0:
        return stream.seed
    number = arm.same_addresses if arm.same_addresses is not None else stage + 1000
    return (stream.seed + (number + 1) * _PRIME) % (1 << 63)


def _check_writes(base: Base, probe_plan: Plan) -> None:
    """No probe writes where the run was not allowed to, whatever its author thought."""
    allowed = base.writable()
    for stream in probe_plan.streams:
        if writes(stream) and probe_plan.workers[stream.worker].backend.type != "null":
            for use in stream.files:
                if not _inside(use, allowed.get(use.target, [])):
                    path = probe_plan.targets[use.target].path
                    raise make_error(
                        RefusedError,
                        "probe.arm.elsewhere",
                        path=path,
                        length=use.length_bytes,
                        offset=use.offset_bytes,
                    )


def _inside(use: FileUse, ranges: Sequence[tuple[int, int]]) -> bool:
    end = use.offset_bytes + use.length_bytes
    return any(low <= use.offset_bytes and end <= high for low, high in ranges)
