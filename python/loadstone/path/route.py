"""Which network interface leads to an address.

Knows the kernel's routing tables in /proc/net (route, ipv6_route, fib_trie; formats: the kernel's
net/ipv4/fib_trie.c and net/ipv6/route.c). Knows no policy rules, and resolves no names.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from typing import TYPE_CHECKING, Final

from loadstone.path.mounts import PROC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOOPBACK: Final = "lo"
UP: Final = 0x1
REJECT: Final = 0x200

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def interface_to(address: str, proc: Path = PROC) -> str | None:
    """Return the interface of the most specific route; `None` when there is none, or no address."""
    try:
        wanted: Address = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if wanted.is_loopback or (wanted.version == 4 and str(wanted) in _own(proc)):
        return LOOPBACK
    routes = _routes4(proc) if wanted.version == 4 else _routes6(proc)
    fitting = [
        (network.prefixlen, -metric, name)
        for network, metric, name in routes
        if network.version == wanted.version and wanted in network
    ]
    return max(fitting)[2] if fitting else None


def _routes4(proc: Path) -> Iterator[tuple[Network, int, str]]:
    for line in _lines(proc / "net" / "route")[1:]:
        name, destination, _, flags, _, _, metric, mask, *_ = line.split()
        if int(flags, 16) & UP and not int(flags, 16) & REJECT:
            bits = int(mask, 16).bit_count()
            yield ipaddress.IPv4Network((_little(destination), bits), strict=False), int(metric), name


def _routes6(proc: Path) -> Iterator[tuple[Network, int, str]]:
    for line in _lines(proc / "net" / "ipv6_route"):
        destination, bits, _, _, _, metric, _, _, flags, name = line.split()
        if int(flags, 16) & UP and not int(flags, 16) & REJECT:
            address = ipaddress.IPv6Address(bytes.fromhex(destination))
            yield ipaddress.IPv6Network((address, int(bits, 16)), strict=False), int(metric, 16), name


def _own(proc: Path) -> set[str]:
    """IPv4 addresses of this host: what is sent to them never leaves it."""
    own: set[str] = set()
    before = ""
    for line in _lines(proc / "net" / "fib_trie"):
        match = re.search(r"\|-- (\S+)", line)
        if match:
            before = match[1]
        elif "/32 host LOCAL" in line:
            own.add(before)
    return own


def _little(word: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(struct.pack("<I", int(word, 16)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
