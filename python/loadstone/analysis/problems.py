"""What went wrong in a run: one entry per kind of failure, with its place and how often.

Knows the engine's and the coordinator's events. Judges no number.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.bundle.layout import OPS

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle


@dataclass(slots=True)
class Problem:
    """One kind of failure: `kind` as in the result document. `count` is of those that were told."""

    kind: str
    message: str
    count: int = 1
    t_ns: int | None = None
    target: str | None = None
    op: str | None = None
    offset_bytes: int | None = None
    errno: int | None = None


def problems(bundle: Bundle) -> list[Problem]:
    """Return the problems in the order they were first met."""
    by_identity: dict[tuple[object, ...], Problem] = {}
    for event in bundle.events:
        problem = _of_io(bundle, event) or _of_run(bundle, event)
        if problem is None:
            continue
        one_place = problem.kind in {"io_error", "short", "hung", "damage"}
        text = "" if one_place else problem.message
        identity = (problem.kind, problem.target, problem.op, problem.errno, text)
        if identity in by_identity:
            by_identity[identity].count += 1
        else:
            by_identity[identity] = problem
    return [*(Problem("bundle", message) for message in _of_bundle(bundle)), *by_identity.values()]


def _of_bundle(bundle: Bundle) -> list[str]:
    """Return what differs from the seal, and what of the bundle cannot be read at all."""
    # Only of what was looked at it is known whether it can be read.
    bundle.look_at_all()
    return [*([bundle.doubt] if bundle.doubt else []), *bundle.faults]


def _of_run(bundle: Bundle, event: dict[str, Any]) -> Problem | None:
    problem: Problem | None = None
    match event.get("type"):
        case "stream_end" if event.get("reason") == "rate_minimum":
            name = bundle.plan.streams[int(event["stream"])].name
            text = f"{name}: fell below the rate it must keep"
            problem = Problem("rate_minimum", text, t_ns=event.get("t_ns"))
        case "stream_end" if event.get("reason") == "latency":
            name = bundle.plan.streams[int(event["stream"])].name
            text = f"{name}: an I/O took longer than it may"
            problem = Problem("latency", text, t_ns=event.get("t_ns"))
        case "fatal":
            hint = f" ({event['hint']})" if event.get("hint") else ""
            problem = Problem("fatal", f"{event.get('message')}{hint}")
        case "kill":
            problem = Problem("engine", str(event.get("why")))
        case "silent":
            problem = Problem("engine", str(event.get("text")))
        case "uncaught":
            problem = Problem("program", str(event.get("text")))
        case "talk":
            problem = Problem("engine", f"the engine said: {event.get('text')}")
    return problem


def _of_io(bundle: Bundle, event: dict[str, Any]) -> Problem | None:
    if event.get("type") == "hung":
        age_s = int(event.get("age_ns") or 0) / 1e9
        return _io(bundle, event, "hung", f"did not come back within {age_s:.1f} s", None)
    if event.get("type") == "damage":
        kind = str(event.get("kind")).replace("_", " ")
        return _io(bundle, {**event, "op": kind}, "damage", str(event.get("message")), None)
    if event.get("type") != "io_error":
        return None
    number = int(event.get("errno") or 0)
    if not number:
        return _io(bundle, event, "short", f"only {event.get('moved')} bytes moved", None)
    name = errno.errorcode.get(number, str(number))
    return _io(bundle, event, "io_error", f"{os.strerror(number)} ({name})", number)


def _io(bundle: Bundle, event: dict[str, Any], kind: str, what: str, number: int | None) -> Problem:
    at = event.get("target")
    targets = bundle.plan.targets
    target = targets[at].path if isinstance(at, int) and at < len(targets) else None
    code = event.get("op")
    op = OPS[code] if isinstance(code, int) and code < len(OPS) else (str(code) if code else None)
    place = f"{target}: {op} of {event.get('bytes')} bytes at offset {event.get('offset')}"
    return Problem(
        kind,
        f"{place}: {what}",
        t_ns=event.get("t_ns"),
        target=target,
        op=op,
        offset_bytes=event.get("offset"),
        errno=number,
    )
