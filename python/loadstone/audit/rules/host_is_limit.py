"""Rule `host_is_limit`: one of the hosts was the limit, not the storage behind all of them.

Rests on each host's own verdict: its CPU, its link, the depth it held. A limit that all hosts share
further down (the storage's port, the medium) is not named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

OF_ITS_OWN: Final = 0.95
"""How sure its own verdict must be taken here."""


def _judge(case: Case) -> Answer:
    if not case.hosts:
        return NotMine()
    limited = [host for host in case.hosts if host.limited_by is not None]
    if not limited:
        return Clear()
    whole = sum(host.operations for host in case.hosts)
    part = sum(host.operations for host in limited)
    share = part / whole if whole else 0.0
    reasons = ", ".join(dict.fromkeys(str(host.limited_by) for host in limited))
    surest = max(limited, key=lambda host: host.confidence)
    return (
        Finding(
            effect="limited",
            confidence=round(OF_ITS_OWN * surest.confidence, 2),
            text=say(
                "audit.host_is_limit.own.text",
                limited=len(limited),
                hosts=len(case.hosts),
                reason=reasons,
                operations_share=share,
            ),
            evidence={
                "hosts": ", ".join(host.name for host in limited),
                "limited_by": reasons,
                "operations_share": round(share, 3),
            },
            advice=say("audit.host_is_limit.own.advice"),
            layer=f"host {surest.name}",
        ),
    )


RULE: Final = Rule(
    name="host_is_limit",
    asks="Was a host itself the limit?",
    basis="each host's own verdict on its CPU, its link and the depth it held",
    judge=_judge,
    scope="all hosts",
)
