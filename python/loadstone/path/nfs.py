"""NFS mounts: their server, their options, and what the kernel counts about each.

Knows /proc/self/mountstats (statvers 1.0 and 1.1; format: the kernel's fs/nfs/super.c and
net/sunrpc/stats.c) and NFS mount options (nfs(5)). Does not know routes or links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.path.mounts import PROC, unescape

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.path.mounts import Mount

KINDS: Final = ("nfs", "nfs4")
NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class OpCounts:
    """One remote procedure, since the mount: times are sums over all calls."""

    calls: int
    transmissions: int
    timeouts: int
    queue_ns: int
    rtt_ns: int
    execute_ns: int


@dataclass(slots=True)
class MountCounts:
    """What one mount did. Bytes: what programs asked for, and what went over the wire."""

    asked_read_bytes: int = 0
    asked_write_bytes: int = 0
    wire_read_bytes: int = 0
    wire_write_bytes: int = 0
    connections: int = 0
    """Transports in use, as `nconnect` made them."""
    reconnects: int = 0
    backlog: int = 0
    """Sum over all calls of those that waited for a slot."""
    ops: dict[str, OpCounts] = field(default_factory=dict)


def server(mount: Mount) -> tuple[str, str]:
    """Return the server's name and the export of a mount (`host:/export`, `[::1]:/export`)."""
    match = re.fullmatch(r"\[([^\]]+)\]:(.*)|([^:]+):(.*)", mount.source)
    if match is None:
        return mount.source, ""
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def options(mount: Mount) -> dict[str, str]:
    """Return the mount's options in force; one without a value maps to the empty text."""
    pairs = (word.partition("=") for word in mount.super_options.split(","))
    return {name: value for name, _, value in pairs if name}


def counts(proc: Path = PROC) -> dict[str, MountCounts]:
    """Return what is counted, by mount point; empty where there is no NFS client."""
    try:
        lines = (proc / "self" / "mountstats").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    mount_counts: dict[str, MountCounts] = {}
    current_counts: MountCounts | None = None
    for line in lines:
        match = re.match(r"device (\S+) mounted on (\S+) with fstype (\S+)(.*)", line)
        if match:
            current_counts = None
            if match[3] in KINDS and "statvers=1" in match[4]:
                current_counts = mount_counts.setdefault(unescape(match[2]), MountCounts())
        elif current_counts is not None:
            _add(current_counts, line.strip())
    return mount_counts


def _add(here: MountCounts, line: str) -> None:
    name, colon, rest = line.partition(":")
    fields = rest.split()
    if not colon or not fields:
        return
    if name == "bytes":
        normal_read, normal_write, direct_read, direct_write, wire_read, wire_write = map(int, fields[:6])
        here.asked_read_bytes += normal_read + direct_read
        here.asked_write_bytes += normal_write + direct_write
        here.wire_read_bytes += wire_read
        here.wire_write_bytes += wire_write
    elif name == "xprt" and fields[0] in {"tcp", "rdma"} and len(fields) > 10:
        here.connections += 1
        # The first connection is one, too.
        here.reconnects += max(int(fields[3]) - 1, 0)
        here.backlog += int(fields[10])
    elif re.fullmatch(r"[A-Z_0-9]+", name) and len(fields) >= 8:
        calls, sent, timeouts, _, _, queue, rtt, execute = map(int, fields[:8])
        times = (queue * NS_PER_MS, rtt * NS_PER_MS, execute * NS_PER_MS)
        here.ops[name] = OpCounts(calls, sent, timeouts, *times)
