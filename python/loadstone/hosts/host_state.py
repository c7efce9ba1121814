"""What a coordinator knows of one host besides its phase, and of all of them together.

Knows shapes only: filled by `coordinator`, read by `ending`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.hosts.agent_links import Clocks, Link
    from loadstone.hosts.assignment import SeenTarget
    from loadstone.plan.model import Plan


@dataclass(slots=True)
class HostState:
    """What is known of one host besides its phase."""

    link: Link
    told: dict[str, Any] = field(default_factory=dict)
    """What it said of itself."""
    clocks: Clocks | None = None
    seen: tuple[SeenTarget, ...] = ()
    planned: Plan | None = None
    armed_plan: Plan | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, str]] = field(default_factory=list)
    started: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None
    refused: dict[str, Any] | None = None
    agent_cpu_s: float = 0.0
    """What its agent took of a CPU during the load, as far as it said so."""
    agent_s: float = 0.0
    """In how many seconds."""
    has_bundle: bool = False


def origins(hosts: Mapping[str, HostState]) -> dict[str, int]:
    """Return the origin of each host's run on our monotonic clock."""
    return {
        name: state.clocks.monotonic.here(int(state.started["monotonic_ns"]))
        for name, state in hosts.items()
        if state.started is not None and state.clocks is not None
    }


def notes_of_hosts(hosts: Mapping[str, HostState]) -> list[dict[str, Any]]:
    """Return what was said of the job on every host once, and what was said on some with their names."""
    by_text: dict[str, tuple[dict[str, Any], dict[str, None]]] = {}
    for name, state in hosts.items():
        for note in state.notes:
            by_text.setdefault(str(note.get("text")), (note, {}))[1][name] = None
    return [
        note if len(names) == len(hosts) else {**note, "text": f"{', '.join(names)}: {text}"}
        for text, (note, names) in by_text.items()
    ]


def indented(error: str) -> str:
    """Return an error of one host as it stands in a list of several: its own lines further in."""
    return error.replace("\n", "\n  ")


def error_of(message: Mapping[str, Any]) -> str | None:
    """Return what went wrong in a run that ended, as its host says it."""
    error = message.get("error")
    return str(error["error"]) if isinstance(error, dict) else None
