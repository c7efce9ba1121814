"""What traffic control lets an interface send: the rate of its root queueing discipline.

Knows the disciplines that hold a rate: tc-tbf(8), tc-htb(8), tc-netem(8) and tc-cake(8), as `tc` of
iproute2 prints them. What comes in is shaped where it is sent, which cannot be seen from here.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Final

PATIENCE_S: Final = 2.0
_CEIL: Final = re.compile(r"\bceil (\d+(?:\.\d+)?)([KMGT]?)bit\b")
_TIMES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True)
class Shaper:
    """A queueing discipline and the bytes per second that it lets through, headers of frames included."""

    kind: str
    bytes_per_s: float


def shaper(interface: str) -> Shaper | None:
    """Return what shapes all that an interface sends; None where nothing does, or `tc` does not tell."""
    printed = _printed("-j", "qdisc", "show", "dev", interface)
    try:
        disciplines: list[dict[str, Any]] = json.loads(printed) if printed else []
        root = next((one for one in disciplines if one.get("root")), None)
        if root is None:
            return None
        if root["kind"] == "htb":
            rate = highest_ceil(_printed("class", "show", "dev", interface) or "")
        else:
            rate = rate_of(root["kind"], root.get("options", {}))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Shaper(root["kind"], rate) if rate else None


def rate_of(kind: str, options: dict[str, Any]) -> float | None:
    """Return the bytes per second in a discipline's options (`tc -j qdisc show`); None: it holds no rate."""
    rate = {
        "tbf": options.get("rate"),
        "netem": (options.get("rate") or {}).get("rate") if kind == "netem" else None,
        "cake": options.get("bandwidth"),
    }.get(kind)
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None


def highest_ceil(classes: str) -> float | None:
    """Return the bytes per second of the widest class of htb: no other carries more (`tc class show`)."""
    ceils = [float(number) * _TIMES[times] / 8 for number, times in _CEIL.findall(classes)]
    return max(ceils, default=0.0) or None


def _printed(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ["tc", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
