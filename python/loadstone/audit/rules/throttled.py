"""Rule `throttled`: something on the way lets only so much through.

Three signs. A limit that is known (a control group's) and was reached. A step down to a lower
level that is then kept: a burst allowance or a cache was used up. A rate more even than the
latencies it is made of: a token bucket makes up for each I/O that was late, and a medium does not.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from loadstone import units
from loadstone.audit import case_queries, monitor_readings, rate_variation, timeline, watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.audit.case import Case, Op, OpMeasurement

OPS: Final[tuple[Literal["read", "write"], ...]] = ("read", "write")
QUANTITIES: Final[tuple[timeline.Quantity, ...]] = ("iops", "bytes_per_s")
AT_LIMIT: Final = 0.93
BEYOND: Final = 1.15
"""A rate above a limit by more than this is not held by it."""
WINDOWS: Final = 40
LEAST_WINDOW_S: Final = 0.1
LEAST_LEVEL_S: Final = 1.0
BUSY_PERCENT: Final = 80.0
FALL: Final = 0.75
FELL: Final = 0.85
"""How sure a step down is to a level that is kept: no probe takes back what happened in the run."""
EXPLAINS: Final = 0.85
BETTER: Final = 0.10
"""By this much two levels must explain more than a straight line does."""
LEVEL: Final = 0.03
ALONE: Final = 0.05
"""Of one outstanding I/O: a smaller dispersion (`rate_variation`) is a timetable's. `lab/plateaus.py`
stages limiters, which stay below, and disks, which do not come near."""
QUEUED: Final = 0.03
"""Of several: a disk that takes the nearest first keeps an even rate by uneven latencies, and comes
nearer to a limiter than with one."""
ROUND: Final = 0.0035
"""Of a rate: so near to a number that people set limits to. Twice as much would hold for one rate in five
by chance. Four limiters of nbdkit (seeds 8359 to 8599) were off by 0.0034 at most."""
MANTISSAS: Final = (1.0, 1.25, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0)
SURE: Final = 0.8
"""A plateau at a round number: what falls to a lower level is surer."""
LESS_SURE: Final = 0.65
"""A limit that is no round number: links with their headers have such ones."""
IN_ORDER: Final = 0.6
"""A medium that streams through a cache has a timetable, too: one slow I/O, and then so many fast ones."""


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case):
        return NotMine()
    known = tuple(_at_known_limits(case)) or tuple(_at_members_limits(case))
    if known:
        return known
    if case_queries.paced(case):
        return NotMine()
    fine = timeline.load_timeline(case, WINDOWS, least_s=LEAST_WINDOW_S, skip_ns=timeline.filling_ns(case))
    if fine is None or len(fine.values) < WINDOWS // 2:
        return cannot_tell("audit.throttled.time", least_s=WINDOWS // 2 * LEAST_WINDOW_S)
    fell, even = _fell(case, fine), rate_variation.evenness(case)
    if fell is None and even is None:
        return cannot_tell(
            "audit.throttled.latencies",
            stretches=rate_variation.STRETCHES,
            least_ios=rate_variation.LEAST_IOS,
        )
    finding = fell or (even and _plateau(case, even))
    return (finding,) if finding else Clear()


def _at_known_limits(case: Case) -> Iterator[Finding]:
    reported_limits: set[tuple[str, str, float]] = set()
    for name, op, quantity, limit in _limits(case):
        if (op, quantity, limit) in reported_limits:
            continue
        reported_limits.add((op, quantity, limit))
        done = case.ops.get(op)
        rate = _rate(done, quantity) if done is not None else None
        if rate is None or not AT_LIMIT * limit <= rate <= BEYOND * limit:
            continue
        allowed = units.bandwidth(limit) if quantity == "bytes_per_s" else f"{units.count(limit)} IOPS"
        yield Finding(
            effect="limited",
            confidence=0.97,
            text=say(
                "audit.throttled.limit.text",
                op=op.capitalize(),
                used_percent=100 * rate / limit,
                allowed=allowed,
                name=name,
            ),
            evidence={f"limit_{quantity}": limit, f"{op}_{quantity}": rate, "limit": name},
            advice=say("audit.throttled.limit.advice"),
            layer=name,
            chart=timeline.chart(
                case, f"{op}s and their limit", quantity, op=op, level=limit, level_name="limit"
            ),
        )


def _at_members_limits(case: Case) -> Iterator[Finding]:
    """Find limits of an array's members, by what the members themselves did.

    How a host's I/Os become those of members is the array's business: mirrors double writes, parity
    adds reads. So each member's own counters are held against its own limit.
    """
    layers = [layer for one in case.targets if one.path_layers for layer in one.path_layers.layers]
    members = list({layer.name: layer for layer in layers if layer.kind == "cgroup"}.values())
    for op, quantity in itertools.product(OPS, QUANTITIES) if len(members) > 1 else ():
        # A limit counts I/Os before the device's queue merges them.
        counted = (f"{op}_bytes",) if quantity == "bytes_per_s" else (f"{op}s", f"{op}_merges")
        rates = {layer.name: _counted(case, layer.counters, counted) for layer in members}
        done = case.ops.get(op)
        load_rate = _rate(done, quantity) if done is not None else None
        # More asked for than the members did: a cache took it, and a limit below it did not hold it up.
        if load_rate is None or load_rate > BEYOND * sum(rate or 0.0 for rate in rates.values()):
            continue
        full = {
            layer.name: (ceiling.per_s, rate)
            for layer in members
            for ceiling in layer.ceilings
            if (ceiling.kind, ceiling.op, ceiling.quantity) == ("limit", op, quantity)
            and (rate := rates[layer.name]) is not None
            and AT_LIMIT * ceiling.per_s <= rate <= BEYOND * ceiling.per_s
        }
        if full:
            limit, rate = next(iter(full.values()))
            allowed = units.bandwidth(limit) if quantity == "bytes_per_s" else f"{units.count(limit)} IOPS"
            shares = ", ".join(f"{100 * rate / limit:.0f} %" for limit, rate in full.values())
            yield Finding(
                effect="limited",
                confidence=0.95,
                text=say(
                    "audit.throttled.members.text",
                    limited=len(full),
                    members=len(members),
                    allowed=allowed,
                    op=op,
                    shares=shares,
                ),
                evidence={
                    f"limit_{quantity}": limit,
                    f"member_{op}_{quantity}": rate,
                    "limit": ", ".join(full),
                },
                advice=say("audit.throttled.limit.advice"),
                layer=" + ".join(full),
            )


def _counted(case: Case, prefix: str | None, names: tuple[str, ...]) -> float | None:
    """Return the rate of counters over the time that was watched."""
    grown, length_s = (
        monitor_readings.total(case.host, *(f"{prefix}.{name}" for name in names)),
        monitor_readings.seconds(case.host),
    )
    return grown / length_s if grown is not None and length_s else None


def _limits(case: Case) -> Iterator[tuple[str, Op, timeline.Quantity, float]]:
    """Yield the limits that hold, from the paths and from what the monitors saw of the group."""
    layers = [layer for one in case.targets if one.path_layers for layer in one.path_layers.layers]
    for layer in (one for one in layers if one.kind == "cgroup"):
        for ceiling, op in itertools.product(layer.ceilings, OPS):
            if ceiling.kind == "limit" and ceiling.op in (op, "each"):
                yield layer.name, op, ceiling.quantity, ceiling.per_s
    devices = {name.partition(".")[2] for target in case.targets for name in target.carriers}
    for device, op, quantity in itertools.product(sorted(devices), OPS, QUANTITIES):
        limits = monitor_readings.levels(case.host, f"cgroup.{device}.{op}_limit_{quantity}")
        if limits:
            yield f"cgroup limit on {device}", op, quantity, min(limits)


def _rate(done: OpMeasurement, quantity: str) -> float | None:
    figure = done.iops if quantity == "iops" else done.bandwidth
    return figure.value if figure is not None else None


def _fell(case: Case, fine: timeline.LoadTimeline) -> Finding | None:
    step = timeline.step(fine)
    if step is None or step.ratio > FALL:
        return None
    if step.explained < EXPLAINS or step.explained < step.line_explained + BETTER:
        return None
    length_s = fine.seconds * len(fine.values)
    if min(step.at_s, length_s - step.at_s) < LEAST_LEVEL_S:
        return None
    busy = (case.host_cpu_percent or 0.0) >= BUSY_PERCENT and not _level(fine, step)
    return Finding(
        # On a host with no CPU left an uneven level may be somebody else's start.
        effect="suspect" if busy else "limited",
        confidence=0.5 if busy else FELL,
        text=say(
            "audit.throttled.burst.text", at_s=step.at_s, before_count=step.before, after_iops=step.after
        ),
        evidence={
            "step_at_s": round(step.at_s, 2),
            "before_iops": step.before,
            "after_iops": step.after,
            "variance_explained_share": round(step.explained, 3),
        },
        advice=say("audit.throttled.burst.advice"),
        layer="burst allowance",
        chart=timeline.chart(case, "IOPS over time", level=step.after, level_name="after the step"),
    )


def _level(fine: timeline.LoadTimeline, step: timeline.LevelStep) -> bool:
    """Whether the second level is so even that nothing but a limiter keeps it."""
    each = max(1, round(1.0 / fine.seconds))
    # The first second after it still has a part of the fall.
    after = fine.values[round(step.at_s / fine.seconds) + each :]
    means = after[: len(after) // each * each].reshape(-1, each).mean(axis=1)
    return len(means) >= 2 and float(means.std(ddof=1)) <= LEVEL * float(means.mean())


def _plateau(case: Case, found: rate_variation.RateVariation) -> Finding | None:
    """Look for a timetable: something makes up for what was late, so that the rate stands still."""
    alone, random = case_queries.outstanding(case) == 1, bool(case_queries.random(case))
    total = case.total.iops
    if total is None or found.dispersion > (ALONE if alone else QUEUED):
        return None
    at = next((one for one in _rates(case) if one.round_number is not None), None)
    if at is None and not (alone and random):
        return None
    rate = at or _Rate("iops", total.value, f"{units.count(total.value)} IOPS")
    plateau = say(
        "audit.throttled.plateau.text",
        rate=rate.text,
        each_ios=round(found.ios),
        deviation_percent=100 * found.deviation,
        independent_percent=100 * found.independent,
    )
    return Finding(
        effect="limited" if random else "suspect",
        confidence=(SURE if at else LESS_SURE) if random else IN_ORDER,
        text=f"{plateau} {_who(random, at)}",
        evidence={
            rate.name: rate.value,
            "stretches_deviation_share": float(f"{found.deviation:.3g}"),
            "if_independent_share": float(f"{found.independent:.3g}"),
        },
        advice=say("audit.throttled.limit.advice"),
        layer=watched_hosts.busy_disk(case) or "a limiter",
        chart=timeline.chart(case, "IOPS over time", level=total.value, level_name="mean"),
    )


def _who(random: bool, at: _Rate | None) -> str:
    if not random:
        return say("audit.throttled.cause_sequential.text")
    if at is None:
        return say("audit.throttled.cause_timed.text")
    return say("audit.throttled.cause_round.text")


@dataclass(frozen=True, slots=True)
class _Rate:
    """The rate as evidence and in words, and the round number that it is, if it is one."""

    name: str
    value: float
    text: str
    round_number: float | None = None


def _rates(case: Case) -> Iterator[_Rate]:
    if case.total.iops is not None:
        iops = case.total.iops.value
        yield _Rate("iops", iops, f"{units.count(iops)} IOPS", _round(iops))
    if case.total.bandwidth is not None:
        rate = case.total.bandwidth.value
        for unit, text in ((1e6, units.bandwidth_decimal(rate)), (2**20, units.bandwidth(rate))):
            yield _Rate("reached_bytes_per_s", rate, text, _round(rate / unit))


def _round(value: float) -> float | None:
    """Return the round number that a rate is, None when it is none."""
    near = nearest_round(value) if value > 0 else 0.0
    return near if near and abs(value / near - 1) <= ROUND else None


def nearest_round(value: float) -> float:
    """Return the nearest of the numbers that people set limits to."""
    power = 10.0 ** math.floor(math.log10(value))
    candidates = np.array([m * p for p in (power, 10 * power) for m in MANTISSAS])
    return float(candidates[np.argmin(np.abs(candidates / value - 1))])


RULE: Final = Rule(
    name="throttled",
    asks="Does a limit hold the rate?",
    basis="limits of control groups; the best single step (Hawkins 1977); "
    "a rate more even than its latencies make it",
    judge=_judge,
)
