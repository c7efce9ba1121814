"""What a summary says in a line: of rates that were asked for, of what was verified, of the tool's own cost.

Knows words. Every number comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.tool import NEAR

if TYPE_CHECKING:
    from loadstone.analysis.pacing import Pacing
    from loadstone.analysis.tool import Tool
    from loadstone.analysis.verified import Verified

DEAREST: Final = 4
"""So many monitors are named."""


def rate(row: Pacing) -> str:
    """Say what a paced operation was asked for, what it did and how late its I/Os started."""
    asked, achieved = (per_second(value, row) for value in (row.asked_per_s, row.achieved_per_s))
    held = "rate held" if row.held else "RATE NOT HELD"
    late = late_starts(row)
    return f"{held}: {row.job} {row.op}: {achieved} of {asked} asked for{f'; {late}' if late else ''}"


def of_verified(found: Verified) -> str:
    """Say how many blocks were read back and how many of them were wrong: exactly, a block is a block."""
    wrong = f"{found.damaged:,}" if found.damaged else "none"
    unsure = f"; of {found.unverified:,} more nothing could be said" if found.unverified else ""
    return f"{found.checked:,} block{'s' if found.checked != 1 else ''} checked, {wrong} damaged{unsure}"


def per_second(value: float, row: Pacing) -> str:
    """Write a rate in its own unit."""
    return f"{units.count(value)}/s" if row.unit == "ops" else units.bandwidth(value)


def late_starts(row: Pacing) -> str | None:
    """Say how late I/Os started; `None` when none completed."""
    if row.wait is None:
        return None
    known = [(f"p{p:g}", row.wait.percentile(p)) for p in (50.0, 99.0)]
    texts = [f"{name} {units.duration(value)}" for name, value in known if value is not None]
    return "started late by " + ", ".join([*texts, f"at most {units.duration(row.wait.max_ns)}"])


def cost(tool: Tool) -> list[str]:
    """Say how near the load generator was to its limit, when that is known."""
    nearest = tool.nearest
    if nearest is None or nearest.share is None:
        return []
    monitors = ""
    if tool.monitor_cpu_share is not None:
        monitors = f"; monitors took {tool.monitor_cpu_share * 100:.1f} % of a processor"
    lines = [
        f"Load generator: {units.digits(nearest.share * 100)} % of the {units.count(nearest.ceiling_iops)} "
        f"IOPS it does here without a device ({units.duration(tool.user_ns_per_io_null)} user per I/O)"
        + monitors
    ]
    if nearest.share > NEAR:
        lines.append("note: above half of its own limit a load generator measures itself, too")
    return lines


def monitors(tool: Tool) -> str | None:
    """Say what watching cost and which monitors were dearest; None when nobody watched."""
    if tool.monitor_cpu_share is None:
        return None
    dearest = list(tool.monitors.items())[:DEAREST]
    names = [f"{name.replace('_', ' ')} {_percent(share)}" for name, share in dearest]
    most = f", most of it: {', '.join(names)}" if names else ""
    return f"Watching took {_percent(tool.monitor_cpu_share)} of a processor{most}."


def _percent(share: float) -> str:
    return f"{units.digits(share * 100)}{units.THIN}%"
