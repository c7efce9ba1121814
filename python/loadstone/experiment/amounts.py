"""Times and sizes as an experiment's file has them: `30s`, `5m`, `4k`, `10g`.

Knows the units that job files have, too. Knows no key.
"""

from __future__ import annotations

import re
from typing import Final

from loadstone.messages import make_error
from loadstone.path import quantity

_TIME_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = {unit: 1 << (10 * power) for power, unit in enumerate(("", "k", "m", "g", "t"))}


def time_s(text: str) -> float:
    """Read a time. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text)
    if match is None or match[2] not in _TIME_S or float(match[1]) <= 0:
        raise make_error(ValueError, "experiment.amount.time", found=repr(text[:40]))
    return float(match[1]) * _TIME_S[match[2]]


def size_bytes(text: str) -> int:
    """Read a size; `k` is 1024. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    if match is None or not float(match[1]):
        raise make_error(ValueError, "experiment.amount.size", found=repr(text[:40]))
    return int(float(match[1]) * _SIZE[match[2]])


def metric_value(metric: str, limit: str | float) -> float:
    """Read a limit in the unit that the metric's name ends with. Raises ValueError."""
    in_time = metric.endswith("_ns") or metric == "cpu_ns_per_io"
    if isinstance(limit, (int, float)):
        if in_time:
            raise make_error(ValueError, "experiment.amount.unit", found=repr(limit))
        return float(limit)
    if in_time:
        return quantity.time_ns(limit)
    if metric.endswith("bytes_per_s"):
        return quantity.bandwidth_bytes_per_s(limit)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(k|m|)\s*", limit.lower())
    if match is None:
        raise make_error(ValueError, "experiment.amount.number", found=repr(limit[:40]))
    return float(match[1]) * {"": 1, "k": 1e3, "m": 1e6}[match[2]]
