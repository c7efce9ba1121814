"""Rule `network_loss`: the network between the load generator and the storage lost data.

A lost segment costs a round trip at least and a timeout at worst, which is a thousand times the
service time of flash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import monitor_readings
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LOST: Final = 1e-4
LEAST: Final = 5
"""Fewer lost segments than this are no pattern."""
REMOTE: Final = ("network_file_system", "network_block", "link")


def _judge(case: Case) -> Answer:
    remote = _remote(case)
    if remote is None:
        return cannot_tell("audit.network_loss.path")
    if not remote:
        return NotMine()
    sent = monitor_readings.total(case.host, "tcp.sent_segments")
    again = monitor_readings.total(case.host, "tcp.retransmitted_segments")
    calls = sum(monitor_readings.total(case.host, f"{prefix}.retransmits") or 0.0 for prefix in remote)
    bad = monitor_readings.total(case.host, *_errors(case))
    if sent is None or again is None:
        return cannot_tell("audit.network_loss.segments")
    lossy = again >= LEAST and again > LOST * sent
    if not lossy and calls < LEAST and (bad or 0) < LEAST:
        return Clear()
    return (_finding(sent, again, calls, bad or 0.0),)


def _finding(sent: float, again: float, calls: float, bad: float) -> Finding:
    share = again / sent if sent else 0.0
    return Finding(
        effect="limited",
        confidence=0.85 if share > 10 * LOST or calls >= LEAST else 0.7,
        text=say(
            "audit.network_loss.lost.text",
            again_count=again,
            sent_count=sent,
            calls_count=calls,
            bad_count=bad,
        ),
        evidence={
            "retransmitted_segments": again,
            "sent_segments": sent,
            "retransmitted_share": float(f"{share:.3g}"),
            "repeated_calls": calls,
            "bad_packets": bad,
        },
        advice=say("audit.network_loss.lost.advice"),
        layer="network",
    )


def _remote(case: Case) -> tuple[str, ...] | None:
    """Return the counted network layers under the targets; None when a path is not known."""
    if not case.targets or any(target.path_layers is None for target in case.targets):
        carried = [name for target in case.targets for name in target.carriers]
        nfs = tuple(name for name in carried if name.startswith("nfs."))
        return nfs or (() if carried and all(name.startswith("block.") for name in carried) else None)
    layers = [layer for target in case.targets if target.path_layers for layer in target.path_layers.layers]
    remote = any(layer.kind in REMOTE for layer in layers if layer.kind != "link" or _is_net(layer.counters))
    return tuple(layer.counters or layer.name for layer in layers if layer.kind in REMOTE) if remote else ()


def _is_net(counters: str | None) -> bool:
    return counters is not None and counters.startswith("net.")


def _errors(case: Case) -> list[str]:
    columns = case.host.columns if case.host is not None else []
    return [
        name
        for name in columns
        if name.startswith("net.") and not name.startswith("net.lo.") and name.endswith(("_errors", "_drops"))
    ]


RULE: Final = Rule(
    name="network_loss",
    asks="Did the network lose data?",
    basis="TCP segments sent again above 1 in 10 000; RPC calls repeated; errors and drops of interfaces",
    judge=_judge,
)
