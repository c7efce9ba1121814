"""What a run has measured so far, in words: for a moment when nothing better can be made of it.

Pure: adds up the rows of the engine's ticks. No percentiles: those of intervals do not add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Sum:
    """Of one operation, ramps left out."""

    ops: int = 0
    bytes: int = 0
    errors: int = 0
    max_ns: int = 0
    first_ns: int | None = None
    last_ns: int = 0


@dataclass
class PartialResult:
    """Adds up ticks."""

    sums: dict[str, Sum] = field(default_factory=dict)
    _before_ns: int = 0

    def heard(self, event: Mapping[str, Any]) -> None:
        """Take note of a `tick`; anything else is passed over."""
        if event.get("type") != "tick":
            return
        now_ns = int(event.get("t_ns") or 0)
        for row in event.get("rows") or []:
            if row.get("ramp"):
                continue
            one = self.sums.setdefault(str(row.get("op")), Sum())
            one.ops += int(row.get("ops") or 0)
            one.bytes += int(row.get("bytes") or 0)
            one.errors += int(row.get("errors") or 0)
            one.max_ns = max(one.max_ns, int(row.get("max_ns") or 0))
            one.first_ns = self._before_ns if one.first_ns is None else one.first_ns
            one.last_ns = max(one.last_ns, now_ns)
        self._before_ns = max(self._before_ns, now_ns)

    def lines(self) -> list[str]:
        """Return a line for each operation; none when nothing was measured."""
        return [_line(op, one) for op, one in self.sums.items() if one.ops or one.errors]


def _line(op: str, one: Sum) -> str:
    seconds = (one.last_ns - (one.first_ns or 0)) / 1e9
    text = f"{op}: {one.ops} I/Os, {units.size(one.bytes)} in {seconds:.1f} s"
    if seconds > 0:
        text += f", {one.ops / seconds:.0f} IOPS, {one.bytes / seconds / 1e6:.1f} MB/s"
    text += f", slowest {one.max_ns / 1e6:.3f} ms"
    return text + (f", {one.errors} failed" if one.errors else "")
