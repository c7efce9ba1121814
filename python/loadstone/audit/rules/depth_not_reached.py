"""Rule `depth_not_reached`: fewer I/Os were outstanding at the storage than were asked for.

The device counts the time of each I/O itself; its sum over the time is the mean number in flight.
Some of a latency is always spent in the host, so that a fast device never shows the whole depth:
what counts is time that I/Os wait above a device which has no room for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.audit import case_queries
from loadstone.audit.above_device import HELD, above_device, loaded_share
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.plan.backends import BACKENDS

if TYPE_CHECKING:
    from loadstone.audit.above_device import AboveDevice
    from loadstone.audit.case import Case, JobRequest

SHORT: Final = 0.9
AT_ROOM: Final = 0.85

IN_THE_CALLER: Final = ("zram", "ram")
"""Disks in memory whose I/Os are over before the call that begins them."""
ONE_AT_A_TIME: Final = tuple(name for name, row in BACKENDS.items() if not row.native_depth)


def _judge(case: Case) -> Answer:
    outstanding = case_queries.outstanding(case)
    if case_queries.virtual(case) or any(
        job.backend in (case_queries.FILES, case_queries.NULL) for job in case.jobs
    ):
        return NotMine()
    if outstanding is None or case.total.iops is None:
        return (
            NotMine()
            if case.jobs and case_queries.paced(case)
            else cannot_tell("audit.depth_not_reached.outstanding")
        )
    serial = _one_at_a_time(case, outstanding)
    return (serial,) if serial is not None else _outstanding(case, outstanding)


def _outstanding(case: Case, asked: int) -> Answer:
    """Look at how many the generator kept, then at how many were at the device."""
    inflight = _kept(case)
    short = inflight is not None and inflight < SHORT * asked * loaded_share(case)
    # At a rate that the source does not tell of, fewer are outstanding than may be.
    if short and any(job.paced is None for job in case.jobs):
        return cannot_tell("audit.depth_not_reached.inflight")
    if inflight is not None and short and (case.source == "bundle" or case.most_outstanding is not None):
        return (_not_kept(case, asked, inflight),)
    above = above_device(case)
    if above is None or _may_wait_elsewhere(case, asked):
        return cannot_tell("audit.depth_not_reached.inflight")
    return _at_device(case, asked, above)


def _may_wait_elsewhere(case: Case, asked: float) -> bool:
    """Whether the source leaves open that I/Os not at the device are nowhere, or wait for a flush."""
    if any(job.synchronous is None for job in case.jobs) and case_queries.does(case, "write"):
        return True
    latency = case.total.latency
    if latency is None or latency.mean_ns is None or case.total.iops is None:
        return False
    outstanding = case.total.iops.value * latency.mean_ns / 1e9
    return any(job.paced is None for job in case.jobs) and outstanding < SHORT * asked * loaded_share(case)


def _one_at_a_time(case: Case, outstanding: int) -> Finding | None:
    """Look for engines that do one I/O at a time where the jobs asked for more."""
    serial = {str(job.backend) for job in case.jobs if _is_serial(case, job)}
    requested_depth = sum(
        (job.asked_iodepth or job.iodepth or 1) * (job.clones or 1)
        if _is_serial(case, job)
        else (job.iodepth or 1) * (job.clones or 1)
        for job in case.jobs
    )
    if not serial or outstanding >= SHORT * requested_depth:
        return None
    engines = ", ".join(sorted(serial))
    return Finding(
        effect="note" if _in_the_caller(case) else "limited",
        confidence=0.97,
        text=say(
            "audit.depth_not_reached.one_at_a_time.text",
            engine=engines,
            kept_count=outstanding,
            asked=requested_depth,
        ),
        evidence={"outstanding_asked": requested_depth, "outstanding": outstanding, "engine": engines},
        advice=say("audit.depth_not_reached.one_at_a_time.advice", engine=engines),
        layer="the load generator",
    )


def _is_serial(case: Case, job: JobRequest) -> bool:
    """Tell whether its engine does one I/O at a time; other programs have engines that are none of ours."""
    if case.source == "bundle":
        return job.backend in ONE_AT_A_TIME
    return job.asked_iodepth is not None and job.asked_iodepth > (job.iodepth or 1)


def _in_the_caller(case: Case) -> bool:
    """Tell whether all targets are disks in this host's memory: no engine has more at work there."""
    names = [name.removeprefix("block.") for target in case.targets for name in target.carriers]
    names = names or list(case.traffic.carriers if case.traffic is not None else ())
    return bool(names) and all(name.startswith(IN_THE_CALLER) for name in names)


def _kept(case: Case) -> float | None:
    """Return how many I/Os the generator kept outstanding on average, or at most."""
    for depth in (case.queue_depth, case.most_outstanding):
        if depth is not None:
            return depth
    latency = case.total.latency
    if case.total.iops is None or latency is None or latency.mean_ns is None or case.total.kind != "lat":
        return None
    return case.total.iops.value * latency.mean_ns / 1e9 + case_queries.flushing(case)


def _at_device(case: Case, asked: float, above: AboveDevice) -> Answer:
    if case_queries.buffered(case) or above.inflight >= HELD * above.expected or _in_the_caller(case):
        return Clear()
    room = _room(case)
    at_room = room is not None and asked > room and above.inflight >= AT_ROOM * room
    return (_held(case, asked, above, room),) if at_room or above.held else Clear()


def _not_kept(case: Case, asked: float, kept: float) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.85,
        text=say("audit.depth_not_reached.not_kept.text", kept_count=kept, asked=f"{asked:g}"),
        evidence={"outstanding_asked": asked, "outstanding": round(kept, 2)},
        advice=_keep(case),
        layer="the load generator",
    )


def _keep(case: Case) -> str:
    """Say what keeps a depth that the engine did not, as far as it was not done."""
    backends = {str(job.backend) for job in case.jobs}
    writes = case_queries.does(case, "write")
    if len(backends) != 1:
        return say("audit.depth_not_reached.several_engines.advice")
    (backend,) = backends
    if backend in ONE_AT_A_TIME:
        return say("audit.depth_not_reached.one_at_a_time.advice", engine=backend)
    if backend == "libaio":
        return say(
            "audit.depth_not_reached.libaio_writes.advice"
            if writes
            else "audit.depth_not_reached.libaio.advice"
        )
    if backend == "io_uring" and case_queries.buffered(case):
        return say("audit.depth_not_reached.uring_buffered.advice")
    return say("audit.depth_not_reached.blocked.advice", engine=backend)


def _held(case: Case, asked: float, above: AboveDevice, room: int | None) -> Finding:
    inflight, waited_ns = above.inflight, above.waited_ns
    evidence: dict[str, float | int | str] = {
        "outstanding_asked": asked,
        "device_inflight": round(inflight, 2),
        "above_device_ns": round(waited_ns),
        "device": case_queries.under(case),
    }
    at_room = room is not None and inflight >= AT_ROOM * room
    if room is not None:
        evidence["device_queue"] = room
    return Finding(
        effect="limited",
        confidence=0.95 if at_room else 0.7,
        text=say(
            "audit.depth_not_reached.held_at_queue.text" if at_room else "audit.depth_not_reached.held.text",
            inflight_count=inflight,
            asked=f"{asked:g}",
            device=case_queries.under(case),
            waited_ns=waited_ns,
            **({"room": room} if at_room else {}),
        ),
        evidence=evidence,
        advice=_raise(case, asked, room),
        layer=f"{'the queue of' if at_room else 'something above'} {case_queries.under(case)}",
    )


def _raise(case: Case, asked: float, room: int | None) -> str:
    """Say where the queue is that is too short: each kind of carrier keeps it elsewhere."""
    if room is not None and room >= asked:
        return say("audit.depth_not_reached.above_device.advice", device=case_queries.under(case), room=room)
    carriers = case.traffic.carriers if case.traffic is not None else ()
    layers = [layer for one in case.targets if one.path_layers for layer in one.path_layers.layers]
    kinds = {layer.kind for layer in layers}
    if "network_file_system" in kinds:
        return say("audit.depth_not_reached.mount.advice", asked=f"{asked:g}")
    if "multipath" in kinds:
        return say("audit.depth_not_reached.multipath.advice", asked=f"{asked:g}")
    devices: dict[str, Any] = (case.environment or {}).get("devices", {})
    knobs = {_knob(devices.get(name, {})) for name in carriers}
    knob = knobs.pop() if len(knobs) == 1 else None
    if knob is None:
        return say("audit.depth_not_reached.device_queue.advice", asked=f"{asked:g}")
    return say("audit.depth_not_reached.device_knob.advice", knob=knob, device=carriers[0], room=room)


def _room(case: Case) -> int | None:
    """Return how many I/Os the devices take at a time, as their queues say."""
    devices: dict[str, Any] = (case.environment or {}).get("devices", {})
    carriers = case.traffic.carriers if case.traffic is not None else ()
    rooms = [_queue(devices.get(name, {})) for name in carriers]
    known = [room for room in rooms if room is not None]
    return sum(known) if known and len(known) == len(rooms) else None


def _queue(device: dict[str, Any]) -> int | None:
    return min(_queues(device).values(), default=None)


def _knob(device: dict[str, Any]) -> str | None:
    """Return the file of the shorter queue, under the device's directory."""
    known = _queues(device)
    return min(known, key=known.__getitem__) if known else None


def _queues(device: dict[str, Any]) -> dict[str, int]:
    """Return how many I/Os a device takes at a time, by the file that says so."""
    requests = device.get("queue", {}).get("nr_requests")
    depth = device.get("device", {}).get("queue_depth")
    queues = int(device.get("hardware_queues") or 1)
    limits = (("queue/nr_requests", requests, queues), ("device/queue_depth", depth, 1))
    return {name: int(value) * times for name, value, times in limits if value}


RULE: Final = Rule(
    name="depth_not_reached",
    asks="Were as many I/Os outstanding at the storage as asked for?",
    basis="time in queue as the block layer counts it, by Little's law",
    judge=_judge,
)
