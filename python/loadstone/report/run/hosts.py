"""The hosts of a run on several, side by side.

Knows the words and the cells. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import units

if TYPE_CHECKING:
    from loadstone.analysis.path import Paths
    from loadstone.analysis.summary import Summary
    from loadstone.bundle.hosts import HostPart
    from loadstone.report.pictures.drawer import Svg


MOST_PATHS: Final = 4
"""Hosts whose data paths a page shows; those of the others are in their own bundles."""


def page(summary: Summary, charts: list[tuple[str, Svg]]) -> dict[str, Any]:
    """Return what the page shows of the hosts besides their results."""
    record = summary.bundle.hosts
    parts = record.hosts if record is not None else ()
    whole = sum(total.data.operations for total in summary.totals("host") if total.data is not None)
    return {
        "charts": charts,
        "rows": [(part.name, _cells(summary, part, whole)) for part in parts],
        "troubles": troubles(summary),
        "shared": [
            f"{', '.join(f'{host}:{path}' for host, path in one.paths.items())}"
            f"{' (divided)' if one.divided else ''}"
            for one in (record.shared if record is not None else ())
        ],
    }


def paths(summary: Summary) -> list[tuple[str, Paths]]:
    """Return the data paths: of a run on several hosts one for each, whose monitors watched their own."""
    if summary.bundle.hosts is None:
        return [("", one) for one in summary.paths]
    shown = list(summary.by_host.items())[:MOST_PATHS]
    return [(name, one) for name, own in shown for one in own.paths]


def paths_left_out(summary: Summary) -> int:
    """Return of how many hosts `paths` has none because they are too many."""
    return 0 if summary.bundle.hosts is None else max(0, len(summary.by_host) - MOST_PATHS)


def troubles(summary: Summary) -> list[str]:
    """Return what happened between the hosts, and what is missing of some."""
    record = summary.bundle.hosts
    if record is None:
        return []
    errors = [f"{part.name}: {part.error}" for part in record.hosts if part.error]
    events = [
        f"after {one['at_s']:.1f} s: {one['host']}: {one['text']}" for one in record.events if one.get("host")
    ]
    return [*errors, *(text for text in events if not any(text.endswith(one) for one in errors))]


def _cells(summary: Summary, part: HostPart, whole: int) -> list[str]:
    total = next((one for one in summary.totals("host") if one.line.name == part.name), None)
    done = total.data.operations if total is not None and total.data is not None else None
    own = summary.by_host.get(part.name)
    used = None if own is None else own.cpu_of(own.total)
    cpu_ns = (
        None
        if used is None or used[0].user_ns_per_io is None
        else used[0].user_ns_per_io + (used[0].system_ns_per_io or 0.0)
    )
    share = None if done is None or not whole else done / whole
    agent = part.agent_cpu_share
    return [
        part.status,
        units.NONE if share is None else f"{share:.1%}",
        _time(part.start_skew_ns),
        _time(part.clock_error_ns),
        _time(part.clock_offset_ns),
        units.NONE if cpu_ns is None else units.duration(cpu_ns),
        units.NONE if agent is None else f"{agent:.1%}",
    ]


def _time(value_ns: int | None) -> str:
    if value_ns is None:
        return units.NONE
    return "0" if value_ns == 0 else f"{'-' if value_ns < 0 else ''}{units.duration(float(abs(value_ns)))}"
