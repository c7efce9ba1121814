"""Rule `swapping`: the host swapped while it measured.

Pages that come back from swap are waited for by whoever touches them, the load generator among them,
and they may come from the very storage that is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import monitor_readings
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LIMIT_BYTES_PER_S: Final = 1 << 20
"""Below that it is what an idle host moves when it sorts its memory."""
COLUMNS: Final = ("vm.swapped_in_bytes", "vm.swapped_out_bytes")


def _judge(case: Case) -> Answer:
    if case.source != "bundle":
        return NotMine()
    swapped_bytes = monitor_readings.total(case.host, *COLUMNS)
    seconds = monitor_readings.seconds(case.host)
    if swapped_bytes is None or seconds == 0:
        return cannot_tell("audit.swapping.counters")
    rate = swapped_bytes / seconds
    if rate < LIMIT_BYTES_PER_S:
        return Clear()
    text = say(
        "audit.swapping.moved.text",
        swapped_bytes=swapped_bytes,
        rate_bytes_per_s=rate,
        limit_bytes_per_s=LIMIT_BYTES_PER_S,
    )
    return (
        Finding(
            effect="suspect",
            confidence=0.8,
            text=text,
            evidence={"swapped_bytes": round(swapped_bytes), "swapped_bytes_per_s": round(rate)},
            advice=say("audit.swapping.moved.advice"),
            layer="the load generator's memory",
        ),
    )


RULE: Final = Rule(
    name="swapping",
    asks="Did the host have memory enough?",
    basis="pswpin and pswpout of /proc/vmstat in the measured time, 1 MiB/s or more",
    judge=_judge,
)
