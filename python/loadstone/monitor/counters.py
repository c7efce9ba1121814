"""One reading of a collector, and the difference of two.

Knows levels from counters. Knows no /proc.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """`growing` only ever grow (and are reported as differences); `levels` are as they are."""

    growing: dict[str, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    parts: dict[str, set[str]] = field(default_factory=dict)
    """What a counter is the sum of, where that may change: with other parts nothing has grown."""

    def add(self, key: str, part: str, value: int) -> None:
        """Add a part to a counter that is the sum of several."""
        self.growing[key] = self.growing.get(key, 0) + value
        self.parts.setdefault(key, set()).add(part)


def increase(before: Counters, after: Counters) -> dict[str, int]:
    """Return what to report for the time between two readings.

    A counter without an earlier value, or one that went back (a device or thread that came
    anew under the same name), has nothing to report for this second.
    """
    row = {
        key: value - before.growing[key]
        for key, value in after.growing.items()
        if key in before.growing and value >= before.growing[key]
    }
    row.update(after.levels)
    return row
