"""The results of several hosts as one: their Plans after each other, their events on one clock.

Knows where each number of a Plan and of an event stands. The tables stay where they are
(`bundle.hosts`). Computes no figure: CPU time and the engines' ceilings are added up, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loadstone.bundle.hosts import HostPart, SharedSeen
from loadstone.errors import InputError
from loadstone.messages import say
from loadstone.path.layers import DataPath
from loadstone.plan.model import BackendMoveExtents, FileOperationCopy, FileOperationMove, Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.bundle.read import Bundle
    from loadstone.path.spec import Spec
    from loadstone.plan.model import Cell, Steady, Stream, Target, Tree, Unit, Worker

OWN: Final = frozenset(
    {
        "hello", "armed", "start", "tick", "end", "calibration", "monitor_cost", "fine_samples",
        "engine_exit", "stage", "stop", "verified", "kill", "silent",
    }
)  # fmt: skip
"""Events that are made anew for all hosts together, or say nothing beyond one."""
SUMS: Final = (
    "cpu_user_ns", "cpu_system_ns", "spun_ns", "voluntary_switches", "involuntary_switches", "major_faults",
    "minor_faults", "rss_peak_bytes", "ops",
)  # fmt: skip
MOST_NAMED: Final = 3
"""Hosts that are named where all of them are meant."""
REASONS: Final = ("failed", "stopped", "done")


@dataclass(slots=True)
class MergedPlan:
    """The Plan of all hosts, and whose part is where."""

    plan: Plan
    parts: tuple[HostPart, ...]


@dataclass(slots=True)
class _Lists:
    """The lists of a Plan while they are put together."""

    targets: list[Target] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    steady: list[Steady] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)


def merged_plan(plans: Mapping[str, Plan], shared: Sequence[SharedSeen] = ()) -> MergedPlan:
    """Put the Plans of hosts together; a target that several see is one target of the result."""
    lists, parts = _Lists(), []
    known: dict[str, int] = {}
    for host, plan in plans.items():
        targets = tuple(_target(lists, host, one, shared, known) for one in plan.targets)
        parts.append(_appended(lists, host, plan, targets))
    first = next(iter(plans.values()))
    plan = first.model_copy(
        update={
            "memory_limit_bytes": sum(one.memory_limit_bytes for one in plans.values()),
            "targets": tuple(lists.targets),
            "units": tuple(lists.units),
            "cells": tuple(lists.cells),
            "workers": tuple(lists.workers),
            "streams": tuple(lists.streams),
            "steady": tuple(lists.steady),
            "trees": tuple(lists.trees),
            "journal": None,
            "recover": None,
            "earlier": (),
            "hand_over": False,
        }
    )
    return MergedPlan(plan, tuple(parts))


def _appended(lists: _Lists, host: str, plan: Plan, targets: tuple[int, ...]) -> HostPart:
    """Append what one host does, and return which part of all it is."""
    part = HostPart(
        name=host,
        bundle=None,
        status="running",
        first_unit=len(lists.units),
        first_cell=len(lists.cells),
        first_stream=len(lists.streams),
        first_worker=len(lists.workers),
        targets=targets,
        units=len(plan.units),
        cells=len(plan.cells),
        streams=len(plan.streams),
    )
    first_tree = len(lists.trees)
    lists.units += plan.units
    lists.cells += [
        one.model_copy(
            update={
                "unit": one.unit + part.first_unit,
                "target": None if one.target is None else targets[one.target],
            }
        )
        for one in plan.cells
    ]
    lists.workers += [_worker(one, targets) for one in plan.workers]
    lists.trees += [one.model_copy(update={"target": targets[one.target]}) for one in plan.trees]
    lists.streams += [_stream(one, part, first_tree) for one in plan.streams]
    lists.steady += [
        one.model_copy(update={"streams": tuple(at + part.first_stream for at in one.streams)})
        for one in plan.steady
    ]
    return part


def check_alike(plans: Mapping[str, Plan]) -> None:
    """Refuse Plans whose intervals differ: their samples could not be put together."""
    lengths = {host: plan.interval_ns for host, plan in plans.items()}
    if len(set(lengths.values())) > 1:
        intervals = ", ".join(f"{host}: {length / 1e9:g} s" for host, length in lengths.items())
        raise InputError(say("hosts.intervals.refusal", lengths=intervals), hint=say("hosts.intervals.hint"))


def _target(
    lists: _Lists, host: str, target: Target, shared: Sequence[SharedSeen], known: dict[str, int]
) -> int:
    for one in shared:
        if one.paths.get(host) == target.path:
            if one.identity not in known:
                known[one.identity] = len(lists.targets)
                paths = set(one.paths.values())
                name = (
                    paths.pop() if len(paths) == 1 else " = ".join(f"{h}:{p}" for h, p in one.paths.items())
                )
                lists.targets.append(target.model_copy(update={"path": name, "identity": None}))
            return known[one.identity]
    lists.targets.append(target.model_copy(update={"path": f"{host}:{target.path}", "identity": None}))
    return len(lists.targets) - 1


def _worker(worker: Worker, targets: Sequence[int]) -> Worker:
    if isinstance(worker.backend, BackendMoveExtents):
        backend = worker.backend.model_copy(update={"donor": targets[worker.backend.donor]})
        return worker.model_copy(update={"backend": backend})
    return worker


def _stream(stream: Stream, part: HostPart, first_tree: int) -> Stream:
    tree = stream.tree
    if tree is not None:
        operation = tree.operation
        if isinstance(operation, FileOperationCopy | FileOperationMove):
            operation = operation.model_copy(update={"to": operation.to + first_tree})
        tree = tree.model_copy(
            update={
                "tree": tree.tree + first_tree,
                "cell": tree.cell + part.first_cell,
                "operation": operation,
            }
        )
    return stream.model_copy(
        update={
            "worker": stream.worker + part.first_worker,
            "files": tuple(
                use.model_copy(
                    update={"target": part.targets[use.target], "cell": use.cell + part.first_cell}
                )
                for use in stream.files
            ),
            "wait_for": tuple(at + part.first_stream for at in stream.wait_for),
            "tree": tree,
        }
    )


def with_hosts_in_names(merged: MergedPlan) -> Plan:
    """Return the Plan with the host before each job's name, for a display that shows them apart."""
    units = list(merged.plan.units)
    for part in merged.parts:
        for at in range(part.first_unit, part.first_unit + part.units):
            units[at] = units[at].model_copy(update={"name": f"{part.name} {units[at].name}"})
    return merged.plan.model_copy(update={"units": tuple(units)})


def shifted_event(event: Mapping[str, Any], part: HostPart) -> dict[str, Any]:
    """Return a host's event with the run's clock and numbers, and the host's name."""
    shifted = dict(event)
    if isinstance(shifted.get("t_ns"), int):
        shifted["t_ns"] = max(0, shifted["t_ns"] + part.shift_ns)
    for key, first in (("stream", part.first_stream), ("worker", part.first_worker)):
        if isinstance(shifted.get(key), int):
            shifted[key] += first
    for key in ("target", "found_target"):
        if isinstance(shifted.get(key), int) and shifted[key] < len(part.targets):
            shifted[key] = part.targets[shifted[key]]
    for key in ("text", "message"):
        if isinstance(shifted.get(key), str):
            shifted[key] = f"{part.name}: {shifted[key]}"
    return {**shifted, "host": part.name}


def merged_events(
    bundles: Sequence[tuple[HostPart, Bundle]], origin_unix_ns: int | None
) -> list[dict[str, Any]]:
    """Return the events of a run on hosts from those of each."""
    every = [(part, bundle.events) for part, bundle in bundles]
    merged: list[dict[str, Any]] = []
    starts = [event for _, events in every for event in events if event.get("type") == "start"]
    calibration = _calibration([_last(events, "calibration") for _, events in every])
    if calibration is not None:
        merged.append(calibration)
    if starts and origin_unix_ns is not None:
        startup_ns = max(int(event.get("startup_ns", 0)) for event in starts)
        merged.append({"type": "start", "unix_ns": origin_unix_ns, "startup_ns": startup_ns})
    merged += _stages(every)
    merged += _ticks(every)
    merged += [
        shifted_event(event, part)
        for part, events in every
        for event in events
        if event.get("type") not in OWN
    ]
    if any(event.get("type") == "stop" for _, events in every for event in events):
        merged.append({"type": "stop"})
    ends = [(part, event) for part, events in every if (event := _last(events, "end")) is not None]
    if ends:
        merged.append(_end(ends))
    codes = [
        event.get("code") for _, events in every for event in events if event.get("type") == "engine_exit"
    ]
    if codes and all(isinstance(code, int) for code in codes):
        merged.append({"type": "engine_exit", "code": next((code for code in codes if code), 0)})
    elif codes:
        merged.append({"type": "engine_exit"})
    return merged


def _last(events: Iterable[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    matching = [event for event in events if event.get("type") == kind]
    return matching[-1] if matching else None


def _stages(every: Sequence[tuple[HostPart, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Return the beginning of each stage: when the first host was there."""
    began: dict[int, int] = {}
    for part, events in every:
        for event in events:
            if event.get("type") == "stage":
                at, stage = int(event["t_ns"]) + part.shift_ns, int(event["stage"])
                began[stage] = min(began.get(stage, at), at)
    return [{"type": "stage", "t_ns": max(0, at), "stage": stage} for stage, at in sorted(began.items())]


def _ticks(every: Sequence[tuple[HostPart, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Return the engines' CPU time together, at the times of all of their ticks."""
    accounts = []
    for part, events in every:
        rows = sorted(
            (int(one["t_ns"]) + part.shift_ns, int(one["cpu_user_ns"]), int(one["cpu_system_ns"]))
            for one in events
            if one.get("type") in {"tick", "end"} and {"t_ns", "cpu_user_ns", "cpu_system_ns"} <= one.keys()
        )
        if rows:
            accounts.append(np.array([(part.shift_ns, 0, 0), *rows], np.float64).T)
    if not accounts:
        return []
    longest = max(accounts, key=lambda one: one.shape[1])
    times = longest[0][1:]
    user = sum(np.interp(times, one[0], one[1]) for one in accounts)
    system = sum(np.interp(times, one[0], one[2]) for one in accounts)
    return [
        {
            "type": "tick",
            "t_ns": max(0, round(float(times[at]))),
            "interval": at,
            "cpu_user_ns": round(float(user[at])),
            "cpu_system_ns": round(float(system[at])),
        }
        for at in range(len(times))
    ]


def _calibration(calibrations: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what all engines together could do without a device; nothing where one does not know."""
    known = [one for one in calibrations if one is not None]
    if not known:
        return None
    skipped = next((one["skipped"] for one in known if one.get("skipped")), None)
    if skipped is None and len(known) < len(calibrations):
        skipped = "not every host made one"
    if skipped is not None:
        return {"type": "calibration", "skipped": skipped}
    stages: dict[int, float] = {}
    for one in known:
        for stage in one.get("stages", ()):
            stages[int(stage["stage"])] = stages.get(int(stage["stage"]), 0.0) + float(stage["ceiling_iops"])
    return {
        "type": "calibration",
        "stages": [{"stage": stage, "ceiling_iops": iops} for stage, iops in sorted(stages.items())],
        **{
            name: sum(int(one.get(name, 0)) for one in known)
            for name in ("ops", "cpu_user_ns", "cpu_system_ns")
        },
    }


def _end(ends: Sequence[tuple[HostPart, dict[str, Any]]]) -> dict[str, Any]:
    events = [event for _, event in ends]
    reasons = [str(event.get("reason")) for event in events]
    return {
        "type": "end",
        "t_ns": max(0, *(int(event.get("t_ns", 0)) + part.shift_ns for part, event in ends)),
        "reason": next((one for one in REASONS if one in reasons), "failed"),
        **{name: sum(int(event.get(name, 0)) for event in events) for name in SUMS},
    }


def merged_environment(
    environments: Mapping[str, dict[str, Any]],
    parts: Sequence[HostPart],
    plan: Plan,
    spec: Spec | None = None,
) -> dict[str, Any]:
    """Return where the run ran: each host's environment, and all targets with the host before them.

    `spec`: the data sheet of the storage, which ends each path.
    """
    hosts = {name: one.get("host", {}) for name, one in environments.items()}
    named = list(hosts)
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    first: dict[str, Any] = next(iter(hosts.values()), {})
    alike = {
        key: value
        for key, value in first.items()
        if key not in {"host_name", "uptime_s", "load_average"}
        and all(one.get(key) == value for one in hosts.values())
    }
    environment: dict[str, Any] = {
        "host": {"host_name": f"{len(parts)} hosts: {', '.join(named[:MOST_NAMED])}{more}", **alike},
        "hosts": hosts,
        "targets": [],
        "devices": {},
        "paths": [],
    }
    paths = {target.path for target in plan.targets}
    for name, one in environments.items():
        for target in one.get("targets", ()):
            own = f"{name}:{target.get('path')}"
            shown = own if own in paths else target.get("path")
            environment["targets"].append(
                {**target, "path": shown, "devices": [f"{name}:{each}" for each in target.get("devices", ())]}
            )
        environment["devices"] |= {f"{name}:{key}": value for key, value in one.get("devices", {}).items()}
        for path in one.get("paths") or ():
            own = f"{name}:{path.get('target')}"
            environment["paths"].append({**path, "target": own if own in paths else path.get("target")})
    if spec is not None:
        environment["spec"] = spec.model_dump(mode="json", exclude_none=True)
        environment["paths"] = [
            spec.under(DataPath.model_validate(path)).model_dump(mode="json", exclude_defaults=True)
            for path in environment["paths"]
        ]
    return environment
