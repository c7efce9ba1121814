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
from loadstone.audit import ask, course, evenness, watched
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.audit.case import Case, Measured, Op

OPS: Final[tuple[Literal["read", "write"], ...]] = ("read", "write")
QUANTITIES: Final[tuple[course.Quantity, ...]] = ("iops", "bytes_per_s")
AT_LIMIT: Final = 0.93
BEYOND: Final = 1.15
"""A rate above a limit by more than this is not held by it."""
WINDOWS: Final = 40
LEAST_WINDOW_S: Final = 0.1
LEAST_LEVEL_S: Final = 1.0
BUSY_PERCENT: Final = 80.0
FALL: Final = 0.75
EXPLAINS: Final = 0.85
BETTER: Final = 0.10
"""By this much two levels must explain more than a straight line does."""
LEVEL: Final = 0.03
ALONE: Final = 0.05
"""Of one outstanding I/O: a smaller dispersion (`evenness`) is a timetable's. `lab/plateaus.py`
stages limiters, which stay below, and disks, which do not come near."""
QUEUED: Final = 0.03
"""Of several: a disk that takes the nearest first keeps an even rate by uneven latencies, and comes
nearer to a limiter than with one."""
ROUND: Final = 0.007
MANTISSAS: Final = (1.0, 1.25, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0)
SURE: Final = 0.85
LESS_SURE: Final = 0.65
"""A limit that is no round number: links with their headers have such ones."""
IN_ORDER: Final = 0.6
"""A medium that streams through a cache has a timetable, too: one slow I/O, and then so many fast ones."""
ADVICE: Final = "take the limit away, or report the number as that of the limit"


def _judge(case: Case) -> Answer:
    if ask.virtual(case):
        return NotMine()
    known = tuple(_at_known_limits(case)) or tuple(_at_members_limits(case))
    if known:
        return known
    if ask.paced(case):
        return NotMine()
    fine = course.course(case, WINDOWS, least_s=LEAST_WINDOW_S)
    if fine is None or len(fine.values) < WINDOWS // 2:
        return CannotTell(f"the course of the load over at least {WINDOWS // 2 * LEAST_WINDOW_S:.0f} s")
    fell, even = _fell(case, fine), evenness.evenness(case)
    if fell is None and even is None:
        return CannotTell(
            f"latencies over time, in {evenness.STRETCHES} stretches of {evenness.LEAST_IOS} I/Os or more"
        )
    found = fell or (even and _plateau(case, even))
    return (found,) if found else Clear()


def _at_known_limits(case: Case) -> Iterator[Finding]:
    told: set[tuple[str, str, float]] = set()
    for name, op, quantity, limit in _limits(case):
        if (op, quantity, limit) in told:
            continue
        told.add((op, quantity, limit))
        done = case.ops.get(op)
        rate = _rate(done, quantity) if done is not None else None
        if rate is None or not AT_LIMIT * limit <= rate <= BEYOND * limit:
            continue
        allowed = units.bandwidth(limit) if quantity == "bytes_per_s" else f"{units.count(limit)} IOPS"
        yield Finding(
            effect="limited",
            confidence=0.97,
            text=f"{name} allows {allowed} for {op}s, and {100 * rate / limit:.0f} % of that were done.",
            evidence={f"limit_{quantity}": limit, f"{op}_{quantity}": rate, "limit": name},
            advice=ADVICE,
            layer=name,
            chart=course.chart(
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
        asked = _rate(done, quantity) if done is not None else None
        # More asked for than the members did: a cache took it, and a limit below it did not hold it up.
        if asked is None or asked > BEYOND * sum(rate or 0.0 for rate in rates.values()):
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
                text=f"{len(full)} of {len(members)} members of the array may do {allowed} of {op}s each, "
                f"and did {shares} of it.",
                evidence={
                    f"limit_{quantity}": limit,
                    f"member_{op}_{quantity}": rate,
                    "limit": ", ".join(full),
                },
                advice=ADVICE,
                layer=" + ".join(full),
            )


def _counted(case: Case, prefix: str | None, names: tuple[str, ...]) -> float | None:
    """Return the rate of counters over the time that was watched."""
    grown, length_s = (
        watched.total(case.host, *(f"{prefix}.{name}" for name in names)),
        watched.seconds(case.host),
    )
    return grown / length_s if grown is not None and length_s else None


def _limits(case: Case) -> Iterator[tuple[str, Op, course.Quantity, float]]:
    """Yield the limits that hold, from the paths and from what the monitors saw of the group."""
    layers = [layer for one in case.targets if one.path_layers for layer in one.path_layers.layers]
    for layer in (one for one in layers if one.kind == "cgroup"):
        for ceiling, op in itertools.product(layer.ceilings, OPS):
            if ceiling.kind == "limit" and ceiling.op in (op, "each"):
                yield layer.name, op, ceiling.quantity, ceiling.per_s
    devices = {name.partition(".")[2] for target in case.targets for name in target.carriers}
    for device, op, quantity in itertools.product(sorted(devices), OPS, QUANTITIES):
        seen = watched.levels(case.host, f"cgroup.{device}.{op}_limit_{quantity}")
        if seen:
            yield f"cgroup limit on {device}", op, quantity, min(seen)


def _rate(done: Measured, quantity: str) -> float | None:
    figure = done.iops if quantity == "iops" else done.bandwidth
    return figure.value if figure is not None else None


def _fell(case: Case, fine: course.Course) -> Finding | None:
    step = course.step(fine)
    if step is None or step.ratio > FALL:
        return None
    if step.explained < EXPLAINS or step.explained < step.line_explained + BETTER:
        return None
    length_s = fine.seconds * len(fine.values)
    if min(step.at_s, length_s - step.at_s) < LEAST_LEVEL_S:
        return None
    busy = (case.host_cpu_percent or 0.0) >= BUSY_PERCENT and not _level(fine, step)
    before, after = units.count(step.before), units.count(step.after)
    return Finding(
        # On a host with no processor left an uneven level may be somebody else's start.
        effect="suspect" if busy else "limited",
        confidence=0.5 if busy else 0.85,
        text=f"After {units.seconds(step.at_s)} the rate fell from {before} to {after} IOPS and stayed: "
        "an allowance for bursts, or a cache, was used up.",
        evidence={
            "step_at_s": round(step.at_s, 2),
            "before_iops": step.before,
            "after_iops": step.after,
            "variance_explained_share": round(step.explained, 3),
        },
        advice="measure after the step (a ramp that is long enough), or report both levels",
        layer="burst allowance",
        chart=course.chart(case, "IOPS over time", level=step.after, level_name="after the step"),
    )


def _level(fine: course.Course, step: course.Step) -> bool:
    """Whether the second level is so even that nothing but a limiter keeps it."""
    each = max(1, round(1.0 / fine.seconds))
    # The first second after it still has a part of the fall.
    after = fine.values[round(step.at_s / fine.seconds) + each :]
    means = after[: len(after) // each * each].reshape(-1, each).mean(axis=1)
    return len(means) >= 2 and float(means.std(ddof=1)) <= LEVEL * float(means.mean())


def _plateau(case: Case, found: evenness.Evenness) -> Finding | None:
    """Look for a timetable: something makes up for what was late, so that the rate stands still."""
    alone, random = ask.outstanding(case) == 1, bool(ask.random(case))
    total = case.total.iops
    if total is None or found.dispersion > (ALONE if alone else QUEUED):
        return None
    at = next((one for one in _rates(case) if one.round_number is not None), None)
    if at is None and not (alone and random):
        return None
    told = at or _Rate("iops", total.value, f"{units.count(total.value)} IOPS")
    return Finding(
        effect="limited" if random else "suspect",
        confidence=(SURE if at else LESS_SURE) if random else IN_ORDER,
        text=f"The rate stands still at {told.text}: stretches of {units.count(round(found.ios))} I/Os "
        f"differ by {units.digits(100 * found.deviation)} % in their mean latency, and would by "
        f"{units.digits(100 * found.independent)} % if each I/O took its own time. {_who(random, at)}",
        evidence={
            told.name: told.value,
            "stretches_deviation_share": float(f"{found.deviation:.3g}"),
            "if_independent_share": float(f"{found.independent:.3g}"),
        },
        advice=ADVICE,
        layer="a limiter",
        chart=course.chart(case, "IOPS over time", level=total.value, level_name="mean"),
    )


def _who(random: bool, at: _Rate | None) -> str:
    if not random:
        return "It is a limiter, or a cache that reads ahead, and the rate is a round number."
    if at is None:
        return "Something with a timetable makes up for what was late: most likely a limiter."
    return "A limiter makes up for what was late, and the rate is a round number."


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
    explained_by=("page_cache_read", "writeback_absorbed", "foreign_load", "io_errors"),
)
