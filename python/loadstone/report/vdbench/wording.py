"""The words vdbench puts around its numbers: how a run begins, what an average is called.

Knows text only. `facts` are those the front end leaves in a Workload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "format_for_"
"""Begins the name of a run that makes trees."""


def run_line(facts: Mapping[str, str], verb: str = "Starting") -> str:
    """Return `Starting RD=rd1; I/O rate: ...; elapsed=30; For loops: ...`."""
    warmup = f" warmup={facts['warmup']}" if facts["warmup"] != "0" else ""
    loops = facts["loops"] or "None"
    if "fwdrate" in facts:
        if facts["rd"].startswith(FORMAT):
            return f"{verb} RD={facts['rd']}"
        # A share of a maximum that is not known yet: vdbench says what it is of.
        rate = "curve" if facts["fwdrate"].endswith("%") else facts["fwdrate"]
        ends = "." if rate in ("max", "curve") else ";"
        times = f"; elapsed={facts['elapsed']}{warmup}; "
        return f"{verb} RD={facts['rd']}{times}fwdrate={rate}{ends} For loops: {loops}"
    rate = rate_words(facts)
    return (
        f"{verb} RD={facts['rd']}; I/O rate: {rate}; elapsed={facts['elapsed']}{warmup}; For loops: {loops}"
    )


def rate_words(facts: Mapping[str, str]) -> str:
    """Return how vdbench calls a rate: a number, or `Uncontrolled MAX` and its like."""
    control = "Controlled" if facts.get("controlled") == "yes" else "Uncontrolled"
    rate = facts["iorate"]
    return {"max": f"{control} MAX", "curve": f"{control} curve", "variable": "Variable"}.get(rate, rate)
