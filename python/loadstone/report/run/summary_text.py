"""What a summary says in a line: of rates that were asked for, of what was verified, of the tool's own cost.

Knows words. Every number comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.tool_cost import NEAR
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.document import ResultWatched
    from loadstone.analysis.pacing import Pacing
    from loadstone.analysis.read_back import VerifiedBlocks
    from loadstone.analysis.tool_cost import ToolCost

MOST_HELD: Final = 4
"""Rates that were held are told one by one up to so many."""
DEAREST: Final = 4
"""So many monitors are named."""


def rate(row: Pacing) -> str:
    """Say what a paced operation was asked for, what it did and how late its I/Os started."""
    requested, achieved = (per_second(value, row) for value in (row.asked_per_s, row.achieved_per_s))
    late = late_starts(row)
    return say(
        "report.rate.held" if row.held else "report.rate.not_held",
        job=row.job,
        op=row.op,
        achieved=achieved,
        asked=requested,
        late=f"; {late}" if late else "",
    )


def rates(rows: Sequence[Pacing]) -> list[tuple[str, bool]]:
    """Say what `rate` does of all, and whether each was held; many that were held take one line."""
    held_rows = [row for row in rows if row.held]
    if len(held_rows) <= MOST_HELD:
        return [(rate(row), row.held) for row in rows]
    latest = max((row.wait.max_ns or 0 for row in held_rows if row.wait is not None), default=None)
    late = "" if latest is None else f"; {say('report.rate.latest', latest_ns=latest)}"
    line = say("report.rate.all_held", held=len(held_rows), rates=len(rows), late=late)
    return [*((rate(row), False) for row in rows if not row.held), (line, True)]


def of_verified(verified_blocks: VerifiedBlocks) -> str:
    """Say how many blocks were read back and how many of them were wrong: exactly, a block is a block."""
    checked = f"{verified_blocks.checked:,} block{'s' if verified_blocks.checked != 1 else ''}"
    unknown = (
        say("report.verified.unknown", unverified=f"{verified_blocks.unverified:,}")
        if verified_blocks.unverified
        else ""
    )
    if not verified_blocks.damaged:
        return say("report.verified.clean", checked=checked, unknown=unknown)
    wrong = f"{verified_blocks.damaged:,}"
    return say("report.verified.damaged", checked=checked, wrong=wrong, unknown=unknown)


def per_second(value: float, row: Pacing) -> str:
    """Write a rate in its own unit."""
    return f"{units.count(value)}/s" if row.unit == "ops" else units.bandwidth(value)


def late_starts(row: Pacing) -> str | None:
    """Say how late I/Os started; `None` when none completed."""
    if row.wait is None:
        return None
    known = [(f"p{p:g}", row.wait.percentile(p)) for p in (50.0, 99.0)]
    texts = [f"{name} {units.duration(value)}" for name, value in known if value is not None]
    values = ", ".join([*texts, say("report.rate.at_most", latest=units.duration(row.wait.max_ns))])
    return say("report.rate.late", values=values)


def cost(tool: ToolCost) -> list[str]:
    """Say how near the load generator was to its limit, when that is known."""
    nearest = tool.nearest
    if nearest is None or nearest.share is None:
        return []
    monitors = ""
    if tool.monitor_cpu_share is not None:
        monitors = say("report.generator.monitors", monitor_share=tool.monitor_cpu_share)
    lines = [
        say(
            "report.generator.ceiling",
            ceiling_share=nearest.share,
            ceiling_iops=nearest.ceiling_iops,
            user_ns=tool.user_ns_per_io_null,
            monitors=monitors,
        )
    ]
    if nearest.share > NEAR:
        lines.append(say("report.generator.near", limit_share=NEAR))
    return lines


def monitors(tool: ToolCost) -> str | None:
    """Say what watching cost and which monitors were dearest; None when nobody watched."""
    if tool.monitor_cpu_share is None:
        return None
    dearest = list(tool.monitors.items())[:DEAREST]
    names = [f"{name.replace('_', ' ')} {_percent(share)}" for name, share in dearest]
    most = say("report.generator.dearest", names=", ".join(names)) if names else ""
    return say("report.generator.watching", monitor_share=tool.monitor_cpu_share, most=most)


def _percent(share: float) -> str:
    return f"{units.digits(share * 100)}{units.THIN}%"


def in_unit(value: float, unit: str) -> str:
    """Write a quantity of a watched host."""
    match unit:
        case "percent":
            return units.percent(value)
        case "bytes_per_s":
            return units.bandwidth(value)
        case "bytes":
            return units.size(value)
        case "per_s":
            return f"{units.count(value)}/s"
        case "celsius":
            return f"{value:.0f} °C"
        case _:
            return units.count(value)


def of_watched(one: ResultWatched) -> str:
    """Say how a host was watched, how its times and its clock lie, and what that cost."""
    parts = [" · ".join(filter(None, (one.host, one.system, one.url)))]
    if one.gaps:
        parts.append(say("report.run.gaps", count=len(one.gaps), reason=one.gaps[0].why))
    if one.aligned_within_s is not None:
        parts.append(say("report.run.rows_within", distance_ns=1e9 * one.aligned_within_s))
    if one.clock_offset_s is None or one.clock_error_s is None:
        parts.append(say("report.run.clock_unknown"))
    else:
        offset_ns, error_ns = (1e9 * abs(value) for value in (one.clock_offset_s, one.clock_error_s))
        key = "report.run.clock_ahead" if one.clock_offset_s >= 0 else "report.run.clock_behind"
        parts.append(say(key, offset_ns=offset_ns, error_ns=error_ns))
    costs = [(one.cpu_share_here, say("report.run.here")), (one.cpu_share_there, say("report.run.there"))]
    shares = [
        say("report.run.cpu_share", share=units.percent(100 * share), where=where)
        for share, where in costs
        if share is not None
    ]
    parts += [say("report.run.watching_took", shares=" and ".join(shares))] if shares else []
    return "; ".join(parts) + "."
