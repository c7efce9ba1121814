"""Temperatures and thermal throttling: hwmon, thermal zones, the processors' own counts.

Format: Linux Documentation/hwmon/sysfs-interface.rst and driver-api/thermal/sysfs-api.rst;
thousandths of a degree. Read every ten seconds only: to answer, a drive has to execute a command,
and that must not show in what is measured.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SYS = Path("/sys")
PERIOD_NS = 10_000_000_000
MAX_SENSORS = 64


class Temperature:
    """`temperature.<chip>-<sensor>.millicelsius`, and `temperature.cpu.throttles` since the start."""

    def __init__(self, sys: Path = SYS, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._sensors = dict(list(_sensors(sys))[:MAX_SENSORS])
        self._throttles = sorted(
            sys.glob("devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count")
        )
        self._now_ns = now_ns
        self._due_ns: int | None = None
        self._throttles_before = self._throttled()

    def read(self) -> Counters:
        """Read when it is time; between two readings there are no keys."""
        counters = Counters()
        now_ns = self._now_ns()
        if self._due_ns is not None and now_ns < self._due_ns:
            return counters
        self._due_ns = now_ns + PERIOD_NS
        for name, path in self._sensors.items():
            value = _number(path)
            if value is not None:
                counters.levels[f"temperature.{name}.millicelsius"] = value
        throttled = self._throttled()
        if throttled is not None and self._throttles_before is not None:
            counters.levels["temperature.cpu.throttles"] = throttled - self._throttles_before
        return counters

    def _throttled(self) -> int | None:
        counts = [count for count in map(_number, self._throttles) if count is not None]
        return sum(counts) if counts else None


def _sensors(sys: Path) -> Iterator[tuple[str, Path]]:
    for chip in sorted(sys.glob("class/hwmon/hwmon*")):
        owner = (chip / "device").resolve().name if (chip / "device").exists() else chip.name
        for sensor in sorted(chip.glob("temp*_input")):
            label = _text(sensor.with_name(sensor.name.replace("_input", "_label"))) or sensor.name[:-6]
            yield _word(f"{_text(chip / 'name') or 'hwmon'}-{owner}-{label}"), sensor
    for zone in sorted(sys.glob("class/thermal/thermal_zone*")):
        yield _word(f"{zone.name}-{_text(zone / 'type') or 'zone'}"), zone / "temp"


def _word(text: str) -> str:
    """Make a column's entity of it: dots part the pieces of a column's name."""
    return re.sub(r"[\s.]+", "_", text)


def _number(path: Path) -> int | None:
    text = _text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
