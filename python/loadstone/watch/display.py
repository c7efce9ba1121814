"""A watched host as one line, for who looks at a run while it runs.

Knows rows as they are written. Knows no terminal.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Mapping

OLD_NS: Final = 5_000_000_000


def line(
    name: str,
    latest: tuple[int, dict[str, int]] | None,
    lost: str | None,
    facts: Mapping[str, Any],
    now_ns: int | None = None,
) -> str:
    """Return `nas: CPU 35 %, busiest disk vda 99 %, in 3 MB/s, out 118 MB/s`."""
    if lost is not None:
        return f"{name}: not watched: {lost}"
    if latest is None:
        return f"{name}: –"
    came_ns, row = latest
    age_ns = (time.monotonic_ns() if now_ns is None else now_ns) - came_ns
    dt_ns = row["dt_ns"]
    parts = [
        _cpu(row),
        _disks(row, row.get("disk.dt_ns", dt_ns), facts),
        _net(row, row.get("net.dt_ns", dt_ns)),
    ]
    old = f"({age_ns / 1e9:.0f} s ago)" if age_ns > OLD_NS else ""
    return f"{name}: {', '.join(filter(None, parts)) or '–'} {old}".rstrip()


def _cpu(row: Mapping[str, int]) -> str:
    kinds = {key: value for key, value in row.items() if key.startswith("cpu.all.")}
    whole = sum(kinds.values())
    if not whole:
        return ""
    idle = sum(kinds.get(f"cpu.all.{kind}_ns", 0) for kind in ("idle", "iowait"))
    return f"CPU {100 * (1 - idle / whole):.0f} %"


def _disks(row: Mapping[str, int], dt_ns: int, facts: Mapping[str, Any]) -> str:
    over = {name for name, one in facts.get("disks", {}).items() if one.get("over")}
    names = {key.split(".")[1] for key in row if key.startswith("disk.") and key.count(".") == 2} - over
    busy = {name: 100 * row[key] / dt_ns for name in names if (key := f"disk.{name}.busy_ns") in row}
    if not busy:
        return ""
    most = max(busy, key=lambda name: busy[name])
    return f"busiest disk {most} {min(busy[most], 100):.0f} %"


def _net(row: Mapping[str, int], dt_ns: int) -> str:
    sums = [
        sum(
            value
            for key, value in row.items()
            if key.startswith("net.") and key.endswith(counter) and ".lo" not in key
        )
        for counter in ("rx_bytes", "tx_bytes")
    ]
    if not any(key.startswith("net.") for key in row):
        return ""
    came, went = (units.bandwidth_decimal(one * 1e9 / dt_ns) for one in sums)
    return f"in {came}, out {went}"
