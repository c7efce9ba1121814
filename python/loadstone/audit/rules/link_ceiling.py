"""Rule `link_ceiling`: the bandwidth is that of a link.

What a link carries is known to the percent from its coding and frames, so a rate close below it
is the link's and not that of what lies behind it. Two results with blocks or addresses of another
kind and the same bandwidth say the same: only a link does not care what it carries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.ceilings import TRANSPORTS, CeilingUse, uses
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.path.ceilings import ethernet, fibre_channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case
    from loadstone.messages import Value
    from loadstone.path.layers import Ceiling

NEAR: Final = 0.93
"""Share of the payload from which on a rate is the link's; practice ends at 95 to 98 %."""
CLOSE: Final = 0.80
"""From here on it is, when another result confirms it: protocols above the frames take their part."""
OVER: Final = 1.06
"""Beyond it the link cannot have carried it; 5 % is what larger frames may give."""
SAME: Final = 0.05
"""Bandwidths this close are the same."""
STEADY: Final = 0.01
GUESSED: Final[dict[str, tuple[Ceiling, ...]]] = {
    "Ethernet": tuple(ethernet(1000.0 * gbit) for gbit in (1, 10, 25, 40, 50, 100)),
    "Fibre Channel": tuple(fibre_channel(float(rate)) for rate in (4, 8, 16, 32, 64)),
}


def _judge(case: Case) -> Answer:
    if case.total.bandwidth is None:
        return cannot_tell("audit.link_ceiling.bandwidth")
    known = [use for use in uses(case, {"link"}) if use.ceiling.quantity == "bytes_per_s"]
    if known:
        return _known(case, known[0])
    links = case.declared.links if case.declared else ()
    families = [TRANSPORTS[link] for link in links if link in TRANSPORTS]
    if families:
        return _guessed(case, families[0], next(link for link in links if link in TRANSPORTS))
    paths = [target.path_layers for target in case.targets]
    if paths and all(path is not None for path in paths):
        return NotMine()
    return cannot_tell("audit.link_ceiling.links")


def _known(case: Case, use: CeilingUse) -> Answer:
    witness = _witness(case, use)
    if use.share > OVER:
        return (_over(use, case),)
    if use.share >= NEAR or (use.share >= CLOSE and witness is not None):
        return (_at(case, use, witness),)
    return Clear()


def _over(use: CeilingUse, case: Case) -> Finding:
    # On this host other rules count what passed a cache, and a link's rate may be a hypervisor's word.
    on_this_host = case.source == "bundle"
    return Finding(
        effect="suspect" if on_this_host else "not_valid",
        confidence=0.5 if on_this_host else 0.9,
        text=(
            say(
                "audit.link_ceiling.over.text",
                reached_si_bytes_per_s=use.reached_per_s,
                limit_si_bytes_per_s=use.per_s,
                link=use.layer,
            )
        ),
        evidence=_evidence(use),
        advice=say("audit.link_ceiling.over.advice"),
        layer=use.layer,
    )


def _at(case: Case, use: CeilingUse, witness: Case | None) -> Finding:
    many = use.ceiling.multiple
    values: dict[str, Value] = {
        "reached_si_bytes_per_s": use.reached_per_s,
        "used_percent": 100 * use.share,
        "limit_si_bytes_per_s": use.per_s,
        "link": use.layer,
    }
    text = (
        say("audit.link_ceiling.at_many.text", links=many, each_si_bytes_per_s=use.per_s / many, **values)
        if many > 1
        else say("audit.link_ceiling.at.text", **values)
    )
    evidence = _evidence(use)
    if witness is not None and witness.total.bandwidth is not None:
        text += " " + say(
            "audit.link_ceiling.witness.text",
            other=witness.name,
            other_si_bytes_per_s=witness.total.bandwidth.value,
            difference=_difference(case, witness),
        )
        evidence |= {"same_bandwidth_in": witness.name, "its_bytes_per_s": witness.total.bandwidth.value}
    return Finding(
        effect="limited",
        confidence=0.92 if witness is not None else 0.9,
        text=text,
        evidence=evidence,
        advice=say("audit.link_ceiling.at.advice"),
        layer=use.layer,
    )


def _evidence(use: CeilingUse) -> dict[str, float | int | str]:
    return {
        "reached_bytes_per_s": use.reached_per_s,
        "link_bytes_per_s": use.per_s,
        "of_the_link_percent": 100 * use.share,
        "link": use.ceiling.source,
    }


def _guessed(case: Case, family: str, transport: str) -> Answer:
    """Compare with the payloads of common rates, since nobody said which rate the link has."""
    reached = case.total.bandwidth.value if case.total.bandwidth else 0.0
    ceiling = next((one for one in GUESSED[family] if NEAR <= reached / one.per_s <= 1.0), None)
    if ceiling is None:
        return cannot_tell("audit.link_ceiling.link_rate", transport=transport)
    values = [one.value for one in case.repeats]
    again = len(values) > 2 and (max(values) - min(values)) / max(values) <= STEADY
    text = say(
        "audit.link_ceiling.guessed.text",
        reached_si_bytes_per_s=reached,
        used_percent=100 * reached / ceiling.per_s,
        source=ceiling.source.removesuffix(" with TCP time stamps"),
        limit_si_bytes_per_s=ceiling.per_s,
        transport=transport,
    )
    evidence: dict[str, float | int | str] = {
        "reached_bytes_per_s": reached,
        "link_bytes_per_s": ceiling.per_s,
        "of_the_link_percent": 100 * reached / ceiling.per_s,
        "link": ceiling.source,
    }
    if again:
        spread = 100 * (max(values) - min(values)) / max(values)
        text += " " + (
            say("audit.link_ceiling.repeated.text", runs=len(values), spread_percent=spread)
            if spread
            else say("audit.link_ceiling.identical.text", runs=len(values))
        )
        evidence |= {"runs": len(values), "spread_percent": spread}
    others = _elsewhere(case)
    if others:
        text += " " + say("audit.link_ceiling.elsewhere.text", results=len(others), other=others[0])
        evidence["same_bandwidth_in"] = ", ".join(others)
    return (
        Finding(
            effect="limited",
            confidence=0.9 if again or others else 0.75,
            text=text,
            evidence=evidence,
            advice=say("audit.link_ceiling.guessed.advice", transport=transport),
            layer=f"the {transport} link",
        ),
    )


def _elsewhere(case: Case) -> list[str]:
    """Return other results of the same system with the same bandwidth."""
    return [other.name for other in _same_system(case) if _same_bandwidth(case, other)]


def _same_system(case: Case) -> Sequence[Case]:
    return [
        other
        for other in case.siblings
        if other.setup.system == case.setup.system
        and not other.setup.baseline
        and set(other.ops) == set(case.ops)
    ]


def _same_bandwidth(case: Case, other: Case) -> bool:
    own_bandwidth, its = case.total.bandwidth, other.total.bandwidth
    return (
        own_bandwidth is not None
        and its is not None
        and own_bandwidth.value > 0
        and abs(its.value - own_bandwidth.value) <= SAME * own_bandwidth.value
    )


def _witness(case: Case, use: CeilingUse) -> Case | None:
    """Return another result with the same bandwidth whose I/Os were of another kind."""
    if case.setup.baseline or use.share < CLOSE:
        return None
    every = [other for other in _same_system(case) if _same_bandwidth(case, other)]
    return next((other for other in every if _difference(case, other)), None)


def _difference(case: Case, other: Case) -> str:
    """Return how the I/Os of two cases differ, empty when they do not."""
    own_jobs, its = case.jobs[:1], other.jobs[:1]
    if not own_jobs or not its:
        return ""
    sizes = [max(job.block_bytes, default=0) for job in (*own_jobs, *its)]
    if all(sizes) and max(sizes) >= 2 * min(sizes):
        factor = max(sizes) / min(sizes)
        return f"blocks {factor:.0f} times as {'large' if sizes[1] > sizes[0] else 'small'}"
    shares = [job.random_percent for job in (*own_jobs, *its)]
    if None not in shares and abs((shares[0] or 0.0) - (shares[1] or 0.0)) >= 50:
        return "random addresses" if (shares[1] or 0.0) > (shares[0] or 0.0) else "addresses in order"
    return ""


RULE: Final = Rule(
    name="link_ceiling",
    asks="Is the bandwidth that of a link?",
    basis="payload of the link from its coding and frames (path/ceilings.py); 93 % and more is the link",
    judge=_judge,
)
