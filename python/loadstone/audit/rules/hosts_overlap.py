"""Rule `hosts_overlap`: several hosts worked on the same data.

What one host read or wrote, the storage's cache may answer for the next; hosts that write the same
ranges wait for each other's locks. Divided ranges do not overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case


def _judge(case: Case) -> Answer:
    if len(case.hosts) < 2:
        return NotMine()
    if case.shared is None:
        return cannot_tell("audit.hosts_overlap.identities")
    common = [one for one in case.shared if not one.divided]
    if not common:
        return Clear()
    again = [one for one in common if one.same_addresses]
    first = (again or common)[0]
    written = any(one.written for one in common)
    key = "audit.hosts_overlap.same.text" if again else "audit.hosts_overlap.shared.text"
    return (
        Finding(
            effect="suspect",
            confidence=0.8 if again else 0.65 if written else 0.5,
            text=say(key, path=first.path, hosts=", ".join(first.hosts)),
            evidence={
                "shared_targets": len(common),
                "hosts": ", ".join(first.hosts),
                "written": "yes" if written else "no",
                "same_addresses": "yes" if again else "no",
            },
            # Ranges are divided for those who write.
            advice=say(f"audit.hosts_overlap.{'shared' if written else 'read'}.advice"),
            layer="the storage's cache",
        ),
    )


RULE: Final = Rule(
    name="hosts_overlap",
    asks="Did each host work on data of its own?",
    basis="WWN, NGUID, serial number or network file of every target, held against the other hosts'",
    judge=_judge,
    scope="all hosts",
)
