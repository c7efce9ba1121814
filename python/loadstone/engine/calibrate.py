"""What the engine could do at most: the same Plan on a device that costs nothing.

Knows how to turn a Plan into a short one on the null backend, in a closed loop, and to run
it. The rest of the Plan stays: threads, depths, patterns, sizes, payloads. Knows nothing of
bundles; whoever asks gets an event.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import temporary
from loadstone.engine.process import EngineProcess
from loadstone.errors import LoadstoneError
from loadstone.messages import say
from loadstone.plan import model
from loadstone.plan.backends import on_virtual_clock
from loadstone.plan.derived import cells_of
from loadstone.plan.model import Pace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.plan.model import Plan, Stream

LENGTH_NS: Final = 300_000_000
"""Measured time of all stages together."""
MIN_STAGE_NS: Final = 20_000_000
MAX_STAGES: Final = 15
WARM_NS: Final = 20_000_000
"""Of each stage, not counted: buffers are filled and the caches warm up."""
SHORT_NS: Final = 3_000_000_000
"""A run below this is not worth a calibration of a tenth of its time."""
SHORT_BYTES: Final = 1 << 30
"""The same for a run that ends by its bytes."""
TIMEOUT_S: Final = 10.0


def calibrate(plan: Plan) -> dict[str, Any]:
    """Run the calibration of a Plan and return its event.

    `type` is `calibration`. Either `skipped` says why there is none, or `stages` has for each
    stage `stage`, `ceiling_iops`, `ops` and `measured_ns`, beside `cpu_user_ns`,
    `cpu_system_ns` and `ops` of all of it. Raises nothing: a run does not depend on it.
    """
    why = _not_worth_it(plan)
    if why is not None:
        return {"type": "calibration", "skipped": why}
    try:
        events = _run(null_plan(plan))
    except (LoadstoneError, OSError) as error:
        return {"type": "calibration", "skipped": f"it failed: {error}"}
    return _result(plan, events)


def _not_worth_it(plan: Plan) -> str | None:
    stages = {worker.stage for worker in plan.workers}
    if on_virtual_clock(plan):
        return say("engine.calibration.simulated")
    if plan.trees:
        return say("engine.calibration.trees")
    if len(stages) > MAX_STAGES:
        return say("engine.calibration.stages", stages=len(stages), most=MAX_STAGES)
    lengths = [
        max(_length_ns(stream) for stream in plan.streams if plan.workers[stream.worker].stage == stage)
        for stage in stages
    ]
    if sum(lengths) < SHORT_NS:
        return say("engine.calibration.short", length_ns=sum(lengths), least_ns=SHORT_NS)
    return None


def _length_ns(stream: Stream) -> int:
    limits = stream.limits
    bounds = [SHORT_NS]
    if limits.runtime_ns:
        bounds.append(limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns)
    if not limits.time_based and (limits.ops or 0 < limits.bytes < SHORT_BYTES):
        # How long so many I/Os take is not known before.
        bounds.append(0)
    return min(bounds)


def null_plan(plan: Plan) -> Plan:
    """Return the Plan of the calibration: nothing is opened, paced, flushed or logged."""
    stages = 1 + max(worker.stage for worker in plan.workers)
    length_ns = max(LENGTH_NS // stages, MIN_STAGE_NS)
    limits = model.Limits(
        start_delay_ns=0,
        ramp_ns=WARM_NS,
        runtime_ns=length_ns,
        time_based=True,
        bytes=0,
        ops=0,
        ends_stage=False,
        ends_stage_on_error=False,
        max_latency_ns=(0, 0, 0),
        prepare_only=False,
    )
    changes = {
        "pace": Pace(read=None, write=None, trim=None, think=None),
        "flush": model.Flush(fsync_every=0, fdatasync_every=0, at_end=False, on_close=False),
        "limits": limits,
        "log_ios": False,
        # A device that keeps nothing cannot be verified.
        "verify": None,
        # Nor does it know a priority, and there is nothing to open again.
        "priorities": (),
        "connection": None,
    }
    nowhere = {
        "kind": model.TargetKind.VIRTUAL,
        "create": False,
        "exclusive": False,
        "identity": None,
        "layout": None,
        "invalidate": False,
        "advice": None,
        "unlink": False,
        "namesake": None,
    }
    workers = [worker.model_copy(update={"backend": model.BackendNull()}) for worker in plan.workers]
    return plan.model_copy(
        update={
            "targets": tuple(target.model_copy(update=nowhere) for target in plan.targets),
            "workers": tuple(workers),
            "streams": tuple(stream.model_copy(update=changes) for stream in plan.streams),
        }
    )


def shape(plan: Plan) -> str:
    """Return what the ceiling depends on: Plans of one shape need one calibration."""
    if plan.trees:
        return ""  # It is skipped, and a skipped one is not handed on.
    bare = null_plan(plan)
    seeds = tuple(stream.model_copy(update={"seed": 0}) for stream in bare.streams)
    return bare.model_copy(update={"streams": seeds}).model_dump_json()


def _run(plan: Plan) -> list[dict[str, Any]]:
    with temporary.directory() as directory:
        file = Path(directory) / "plan.json"
        file.write_text(plan.model_dump_json(), encoding="utf-8")
        events: list[dict[str, Any]] = []
        with EngineProcess(file, Path(directory)) as engine:
            for event in engine.events(TIMEOUT_S):
                if event is None:
                    break
                events.append(event)
        return events


def _result(plan: Plan, events: list[dict[str, Any]]) -> dict[str, Any]:
    end = next((event for event in events if event.get("type") == "end"), None)
    if end is None:
        fatal = next((event for event in events if event.get("type") == "fatal"), {})
        reason = fatal.get("message") or say("engine.calibration.ended")
        return {"type": "calibration", "skipped": say("engine.calibration.failed", reason=reason)}
    counted = _counted(events)
    ends = {int(event["stream"]): event for event in events if event.get("type") == "stream_end"}
    stages = []
    for stage in sorted({worker.stage for worker in plan.workers}):
        stream_numbers = [
            i for i, stream in enumerate(plan.streams) if plan.workers[stream.worker].stage == stage
        ]
        ops = sum(
            counted.get(cell, 0)
            for cell in {cell for i in stream_numbers for cell in cells_of(plan.streams[i])}
        )
        stream_ends = [ends[i] for i in stream_numbers if i in ends]
        length_ns = (
            max(e["ended_ns"] for e in stream_ends) - min(e["ramp_end_ns"] for e in stream_ends)
            if stream_ends
            else 0
        )
        if length_ns > 0 and ops:
            rate = ops * 1e9 / length_ns
            stages.append({"stage": stage, "ceiling_iops": rate, "ops": ops, "measured_ns": length_ns})
    cpu = {name: end[name] for name in ("cpu_user_ns", "cpu_system_ns", "ops")}
    return {"type": "calibration", "stages": stages, **cpu}


def _counted(events: Iterable[dict[str, Any]]) -> dict[int, int]:
    """I/Os after the warm-up, by cell."""
    counted: dict[int, int] = {}
    for event in events:
        for row in event.get("rows", ()) if event.get("type") == "tick" else ():
            if not row["ramp"]:
                counted[row["cell"]] = counted.get(row["cell"], 0) + row["ops"]
    return counted
