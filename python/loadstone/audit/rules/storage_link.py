"""Rule `storage_link`: the storage's own network interface carried all it can.

The interface counts whole frames, so at least 98 % of a link's bits are in its counters when it is
full (24 of 1,538 bytes are not); 93 % is where `link_ceiling` draws the line, too. Where nobody tells
the rate (virtual machines, tunnels, a limit elsewhere), a rate that lies within 6 % below that of a common
link and does not vary by more than 2 % is that link's, if nothing else on the host is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.watched import LOOPBACK, link_bits_per_s
from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.verdict import BYTES_PER_S

if TYPE_CHECKING:
    from loadstone.analysis.watched import Track
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

NEAR: Final = 0.93
OVER: Final = 1.03
"""Beyond it the rate that was told is not that of the link."""
GUESSED_NEAR: Final = 0.94
GUESSED_OVER: Final = 1.01
STEADY: Final = 0.02
LEAST_ROWS: Final = 4
COMMON_GBIT: Final = (0.1, 1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0)
BUSY_PERCENT: Final = 90.0
CARRIES: Final = 0.5
"""An interface with less than this share of the load's bytes does not carry it."""


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    if host.kind == "local":
        return NotMine()  # Its interfaces are this host's, and `link_ceiling` knows them.
    found = [
        (name, way, track)
        for name in host.things("net")
        if name not in LOOPBACK
        for way in ("rx", "tx")
        if (track := host.track(f"net_{name}_{way}_bytes_per_s")) is not None
    ]
    if not found:
        return cannot_tell("audit.storage_link.counters", host=host.name)
    name, way, most = max(found, key=lambda one: one[2].mean.value)
    reached_bits = 8 * most.mean.value
    told_bits = link_bits_per_s(host.facts, name)
    full = max(found, key=lambda one: _share(host, one[0], one[2]))
    if NEAR <= _share(host, full[0], full[2]) <= OVER:
        known_bits = link_bits_per_s(host.facts, full[0]) or 0
        return (_full(host, *full, known_bits, guessed=False),)
    guessed = _common(most, reached_bits)
    if guessed is not None and not _otherwise_full(host):
        return (_full(host, name, way, most, guessed, guessed=True),)
    carried = case.total.bandwidth.value if case.total.bandwidth else None
    if told_bits is None and carried is not None and most.mean.value >= CARRIES * carried:
        return cannot_tell("audit.storage_link.rate", host=host.name, link=name)
    return Clear()


def _share(host: Watched, name: str, track: Track) -> float:
    bits_per_s = link_bits_per_s(host.facts, name)
    return 8 * track.mean.value / bits_per_s if bits_per_s else 0.0


def _common(track: Track, reached_bits: float) -> float | None:
    """Return the common rate that this is, None where it is none or varies too much."""
    values = track.values
    inner = values[1:-1] if len(values) > LEAST_ROWS + 1 else values
    if len(inner) < LEAST_ROWS or float(np.std(inner)) > STEADY * float(np.mean(inner)):
        return None
    rates = [gbit * 1e9 for gbit in COMMON_GBIT]
    return next((one for one in rates if GUESSED_NEAR <= reached_bits / one <= GUESSED_OVER), None)


def _otherwise_full(host: Watched) -> bool:
    cpu = None if host.same_host else host.track("cpu_percent")
    full = [one for one in (cpu, *host.disks_use.values()) if one and one.mean.value >= BUSY_PERCENT]
    limit = host.track("cpu_of_limit_percent")
    return bool(full) or (limit is not None and limit.mean.value >= BUSY_PERCENT)


def _full(host: Watched, name: str, way: str, track: Track, bits_per_s: float, *, guessed: bool) -> Finding:
    """Say that a link is full, of its own rate or of a common one that nobody named."""
    words = "received" if way == "rx" else "sent"
    used = 800 * track.mean.value / bits_per_s
    share = {"of_a_common_link_percent": used}
    advice = say("audit.storage_link.guessed.advice", host=host.name, link=name)
    if not guessed:
        share = {"of_the_link_percent": used, "link_bits_per_s": bits_per_s}
        advice = say("audit.storage_link.full.advice", host=host.name)
    return Finding(
        effect="limited",
        confidence=0.75 if guessed else 0.92,
        text=say(
            "audit.storage_link.guessed.text" if guessed else "audit.storage_link.full.text",
            host=host.name,
            link=name,
            way=words,
            reached_si_bytes_per_s=track.mean.value,
            used_percent=used,
            rate_gbit=f"{bits_per_s / 1e9:g} Gbit/s",
        ),
        evidence={
            "interface": name,
            f"{words}_bytes_per_s": track.mean.value,
            **share,
            "watched_s": host.seconds,
        },
        advice=advice,
        layer=f"link {name} of {host.name}",
        chart=watched_hosts.chart(track, BYTES_PER_S, bits_per_s / 8, "link"),
    )


RULE: Final = Rule(
    name="storage_link",
    asks="Was the storage's network interface full?",
    basis="93 % of the interface's rate in one direction; or, where none is told, a steady rate within 6 % "
    "below a common link's with nothing else full",
    judge=_judge,
)
