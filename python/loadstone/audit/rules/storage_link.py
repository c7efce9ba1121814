"""Rule `storage_link`: the storage's own network interface carried all it can.

What a full link leaves in an interface's counters follows from its frames. A card counts them whole,
and 24 bytes of each (preamble, checksum, gap) are not in its counters: 98.4 % of the rate with an MTU
of 1,500. A virtual interface counts what it passes on, many frames with one header: 94.1 %. A queue's
limit knows no gaps: 100 % and 95.6 %. A second is full from 95 % of that on. A link that is full for
most of the time sets the number, whatever kept it from being full in the rest.
Where nobody tells the rate (virtual machines, tunnels, a limit elsewhere), a rate that lies within 6 %
below that of a common link and does not vary by more than 2 % is that link's, if nothing else on the
host is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.watched import LOOPBACK, link_bits_per_s
from loadstone.audit import watched_hosts
from loadstone.audit.monitor_readings import total
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.verdict import BYTES_PER_S

if TYPE_CHECKING:
    from loadstone.analysis.watched import Track
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched
    from loadstone.messages import Value

FULL: Final = 0.95
"""Of what its counters can show, in one second: TCP that is alone on a link reaches 99 %."""
MOST_OF_IT: Final = 0.5
"""Of the time."""
GAP_BYTES: Final = 24
HEADER_BYTES: Final = 14
TCP_BYTES: Final = 52
"""Of a frame's payload: IP, TCP and its time stamps."""
MTU_BYTES: Final = 1500
MOST_FRAME_BYTES: Final = 22
"""Beyond the MTU: longer ones are several frames, counted as one."""
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
    tracks = [
        (name, direction, track)
        for name in host.things("net")
        if name not in LOOPBACK
        for direction in ("rx", "tx")
        if (track := host.track(f"net_{name}_{direction}_bytes_per_s")) is not None
    ]
    if not tracks:
        return cannot_tell("audit.storage_link.counters", host=host.name)
    name, direction, most = max(tracks, key=lambda one: one[2].mean.value)
    reached_bits = 8 * most.mean.value
    told_bits = link_bits_per_s(host.facts, name)
    full = max(tracks, key=lambda one: _full_share(host, *one))
    if _full_share(host, *full) >= MOST_OF_IT:
        known_bits = link_bits_per_s(host.facts, full[0]) or 0
        return (_full(host, *full, known_bits, guessed=False),)
    guessed = _common(most, reached_bits)
    if guessed is not None and not _otherwise_full(host):
        return (_full(host, name, direction, most, guessed, guessed=True),)
    carried = case.total.bandwidth.value if case.total.bandwidth else None
    if told_bits is None and carried is not None and most.mean.value >= CARRIES * carried:
        return cannot_tell("audit.storage_link.rate", host=host.name, link=name)
    return Clear()


def _full_share(host: Watched, name: str, way: str, track: Track) -> float:
    """Return for which part of the time a link carried all it can; 0 where nobody tells its rate."""
    bits_per_s = link_bits_per_s(host.facts, name)
    if not bits_per_s or 8 * track.mean.value > OVER * bits_per_s:
        return 0.0
    full = 8 * track.values >= FULL * _counted_share(host, name, way) * bits_per_s
    return float(np.sum(track.denominators[full]) / np.sum(track.denominators))


def _counted_share(host: Watched, name: str, way: str) -> float:
    """Return which part of a full link's bits is in its counters, from the frames it carried."""
    link = (host.facts.get("links") or {}).get(name, {})
    shaped = link.get("shaped_bits_per_s")
    gap = 0 if shaped and shaped == link_bits_per_s(host.facts, name) else GAP_BYTES
    mtu = link.get("mtu_bytes") or MTU_BYTES
    sent, frames = (total(host.rows, f"net.{name}.{way}_{counter}") for counter in ("bytes", "packets"))
    counted = mtu + HEADER_BYTES
    if sent and frames:
        counted = sent / frames
        if counted > mtu + MOST_FRAME_BYTES and link.get("mtu_bytes"):
            return float((mtu - TCP_BYTES) / (mtu + HEADER_BYTES + gap))
    return float(counted / (counted + gap))


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
    values: dict[str, Value] = {
        "host": host.name,
        "link": name,
        "way": words,
        "reached_si_bytes_per_s": track.mean.value,
        "used_percent": used,
        "rate_gbit": f"{bits_per_s / 1e9:g} Gbit/s",
    }
    if guessed:
        share = {"of_a_common_link_percent": used}
        text = say("audit.storage_link.guessed.text", **values)
        advice = say("audit.storage_link.guessed.advice", host=host.name, link=name)
    else:
        full_percent = 100 * _full_share(host, name, way, track)
        share = {
            "of_the_link_percent": used,
            "a_full_link_shows_percent": 100 * _counted_share(host, name, way),
            "full_for_percent_of_the_time": full_percent,
            "link_bits_per_s": bits_per_s,
        }
        text = say("audit.storage_link.full.text", full_percent=full_percent, **values)
        advice = say("audit.storage_link.full.advice", host=host.name)
    return Finding(
        effect="limited",
        confidence=0.75 if guessed else 0.92,
        text=text,
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
    basis="half of the time at 95 % of what a full link's counters show: its rate without gaps and, if "
    "virtual, headers. Without a known rate: a steady one within 6 % below a common "
    "link's, with nothing else full",
    judge=_judge,
    scope="either",
)
