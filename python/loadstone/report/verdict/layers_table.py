"""The layers of a verdict as a table, and its latencies, the mean and p99, each as a waterfall.

Knows a verdict's `layers` and `time`, and how they are written. Judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.verdict import LayerFlow, Time, TimeSplit, Verdict

GENERATOR: Final = say("report.layer.generator")
UNKNOWN: Final = say("report.layer.unknown_time")
MOST_FILES: Final = 4
"""More files that nothing counts and of which nothing is to be said are one row."""
LEAST_SHARE: Final = 0.002
"""Parts smaller than this are left out of the picture."""


def page(verdict: Verdict) -> dict[str, Any]:
    """Return what the page's template shows."""
    seconds = verdict.layers[0].seconds if verdict.layers else 0.0
    return {
        "times": _times(verdict.time),
        "layers": _rows(verdict.layers),
        "layers_time": units.seconds(seconds),
    }


def _times(time: Time | None) -> list[dict[str, Any]]:
    """Return the waterfalls: of the mean, and of p99."""
    times = [] if time is None else [(say("report.layer.mean_latency"), time), ("p99", time.p99)]
    return [{"name": name, "parts": waterfall(one)} for name, one in times if one is not None]


def waterfall(time: TimeSplit) -> list[dict[str, str | float]]:
    """Return the parts of a latency from the top down; each begins where the one above ends."""
    named = [(GENERATOR, time.generator_ns), *((one.name, one.ns) for one in time.layers)]
    parts: list[dict[str, str | float]] = []
    begun = 0.0
    for name, spent_ns in [*named, (UNKNOWN, time.unknown_ns)]:
        share = spent_ns / time.measured_ns if time.measured_ns else 0.0
        if share >= LEAST_SHARE:
            parts.append(
                {
                    "name": name,
                    "text": units.duration(spent_ns),
                    "share": f"{100 * share:.0f}{units.THIN}%",
                    "left": round(100 * begun, 2),
                    "width": round(100 * share, 2),
                }
            )
        begun += share
    return parts


def _rows(layers: Sequence[LayerFlow]) -> list[dict[str, str]]:
    plain = [one for one in layers if one.kind == "file" and one.read_bytes is None and not one.state]
    if len(plain) <= MOST_FILES:
        return [_row(layer) for layer in layers]
    files = _row(plain[0]) | {"name": say("report.layer.more_files", file=plain[0].name, more=len(plain) - 1)}
    return [files, *(_row(layer) for layer in layers if layer not in plain)]


def _row(layer: LayerFlow) -> dict[str, str]:
    due = [one for one in (layer.expected_read_bytes, layer.expected_write_bytes) if one is not None]
    adds_up = {True: "yes", False: "no", None: units.NONE}[layer.agrees]
    return {
        "name": layer.name,
        "read": _size(layer.read_bytes),
        "written": _size(layer.write_bytes),
        "expected": _size(sum(due)) if due else units.NONE,
        "flushes": units.NONE if layer.flushes is None else units.count(layer.flushes),
        "time": units.duration(layer.service_ns),
        "inflight": units.NONE if layer.inflight is None else units.digits(layer.inflight),
        "state": ", ".join(layer.state) or units.NONE,
        "adds_up": f"{adds_up}: {layer.why}" if layer.why else adds_up,
    }


def _size(value: float | None) -> str:
    return units.NONE if value is None else units.size(value)
