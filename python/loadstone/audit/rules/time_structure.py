"""Rule `time_structure`: what the load did over time is no noise, and has a name.

Stalls (rare, or at regular times), a comb of a limiter that works in slices, changes of level, a
decay or a warm-up, several kinds of I/O. Each is a test against the load's own noise
(`analysis/time_structure.py`); together they speak falsely of at most one steady load in a hundred.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis import time_structure
from loadstone.audit import beside_others, case_queries, timeline
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.verdict import Chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.time_structure import FineRates, Levels, Mode, Stalls
    from loadstone.audit.case import Case, Op

POINTS: Final = 120
LAYER: Final = "the storage over time"
MUCH: Final = 0.05
"""Stalls of this part of the time make a rate another one."""
SETTLED: Final = 0.7
LITTLE: Final = 0.05
"""A mean that differs from the level of most of the time by less is that level."""
SAMPLES: Final = 4.0
EVEN: Final = 0.3
IN_WAVES: Final = 0.3
"""Of a sample: shorter I/Os, by Little's law, end too often in one for their waves to be a third of it."""
STILL: Final = 0.2
AS_LONG: Final = 1.25
FAR_APART: Final = 5.0
NEARLY_ALL: Final = 0.85
"""Chosen, like those above, on simulated devices of seeds 100001 to 101101. Queues alone make modes that
are nearer to each other, or one that has nearly all I/Os."""
COMB: Final = 0.75
"""Of 14 situations with a comb (the same seeds) 3 were honest: even latencies make one, too."""
IN_ORDER: Final = ("falling", "rising")
MANY_LEVELS: Final = 5
"""Levels that others on the CPUs make come in any order: of five, 1 in 60 times in this or the other."""
FAR_NS: Final = 1e6
"""Modes nearer to each other than this may be the host's own (a sleeping CPU)."""


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case) or case.source != "bundle":
        return NotMine()
    if case.fine is None and not any("clat" in one.latencies for one in case.ops.values()):
        return cannot_tell("audit.time_structure.samples")
    findings = [*_over_time(case), *_kinds(case)]
    return tuple(findings) or Clear()


def _over_time(case: Case) -> list[Finding]:
    rates, latency = case.fine, case.total.latency
    if rates is None or latency is None or latency.mean_ns is None or case_queries.paced(case):
        return []
    stalls = timeline.stalls(case)
    if stalls is not None:
        return [_stalled(case, rates, stalls)]
    comb = time_structure.comb(rates)
    if comb is not None and not _own_rhythm(case, comb.period_ns):
        finding = _finding(
            case,
            COMB,
            say("audit.time_structure.comb.text", period_ns=comb.period_ns),
            {"period_ns": round(comb.period_ns), "chance_p": float(f"{comb.p:.1e}")},
            say("audit.time_structure.comb.advice"),
            "comb",
        )
        can = beside_others.can_stop(case, comb.period_ns, 0.0)
        return [beside_others.told(case, finding) if can else finding]
    begin_ns = float(rates.ends_ns[0] - rates.lengths_ns[0]) + timeline.filling_ns(case)
    levels = time_structure.levels(rates.within(begin_ns, math.inf))
    return [] if levels is None else [_levels(case, rates, levels)]


def _stalled(case: Case, rates: FineRates, stalls: Stalls) -> Finding:
    many = len(stalls.every)
    first_s = (stalls.every[0].begin_ns - float(rates.ends_ns[0] - rates.lengths_ns[0])) / 1e9
    kind = "periodic" if stalls.period_ns is not None else "once" if many == 1 else "rare"
    text = say(
        f"audit.time_structure.{kind}.text",
        stalls=many,
        longest_ns=stalls.longest_ns,
        median_ns=stalls.median_ns,
        period_ns=stalls.period_ns,
        first_s=first_s,
        stalled_share=stalls.share,
    )
    evidence: dict[str, float | int | str] = {
        "stalls": many,
        "longest_ns": round(stalls.longest_ns),
        "median_ns": round(stalls.median_ns),
        "stalled_share": round(stalls.share, 4),
        "first_at_s": round(first_s, 2),
    }
    if stalls.period_ns is not None:
        evidence["period_ns"] = round(stalls.period_ns)
    advice = say("audit.time_structure.stalls.advice")
    confidence = 0.95 if stalls.share > MUCH else 0.85
    finding = _finding(case, confidence, text, evidence, advice, "stalls")
    # Others come and go; they do not come at regular times.
    can = stalls.period_ns is None and beside_others.can_stop(case, stalls.longest_ns, stalls.share)
    return beside_others.told(case, finding) if can else finding


def _levels(case: Case, rates: FineRates, levels: Levels) -> Finding:
    origin = float(rates.ends_ns[0] - rates.lengths_ns[0])
    first, last = levels.every[0], levels.every[-1]
    at_s = (first.end_ns - origin) / 1e9
    low = min(one.per_s for one in levels.every)
    high = max(one.per_s for one in levels.every)
    text = say(
        f"audit.time_structure.{levels.shape.replace('-', '_').replace(' ', '_')}.text",
        levels=len(levels.every),
        at_s=at_s,
        first_count=first.per_s,
        last_count=last.per_s,
        lowest_count=low,
        highest_count=high,
    )
    finding = _finding(
        case,
        0.9 if low < 0.7 * high else 0.75,
        text,
        {
            "levels": len(levels.every),
            "first_iops": round(first.per_s, 1),
            "last_iops": round(last.per_s, 1),
            "first_change_at_s": round(at_s, 2),
        },
        say("audit.time_structure.levels.advice"),
        levels.shape,
    )
    shortest_ns = min(one.end_ns - one.begin_ns for one in levels.every)
    ordered = levels.shape in IN_ORDER and len(levels.every) >= MANY_LEVELS
    if not ordered and beside_others.can_change(case, low, high, shortest_ns):
        return beside_others.told(case, finding)
    return replace(finding, effect="note") if _settles(levels) else finding


def _settles(levels: Levels) -> bool:
    """Whether nearly all of the time is one level, and the rest changes the mean by little."""
    lengths = [one.end_ns - one.begin_ns for one in levels.every]
    longest = max(levels.every, key=lambda one: one.end_ns - one.begin_ns)
    mean = sum(one.per_s * length for one, length in zip(levels.every, lengths, strict=True)) / sum(lengths)
    return max(lengths) >= SETTLED * sum(lengths) and abs(mean / longest.per_s - 1) < LITTLE


def _own_rhythm(case: Case, period_ns: float) -> bool:
    """Whether a period is the load's own: I/Os of even latency that begin together end together."""
    latency, rates = case.total.latency, case.fine
    if latency is None or not latency.mean_ns or latency.stddev_ns is None or rates is None:
        return False
    sample_ns = float(np.median(rates.lengths_ns))
    # A rhythm faster than the samples appears in them as a slower one.
    too_fast = latency.mean_ns < SAMPLES * sample_ns and latency.stddev_ns < EVEN * latency.mean_ns
    if too_fast or 1 / AS_LONG < period_ns / latency.mean_ns < AS_LONG:
        return True
    # I/Os that take about as long as a sample end in waves, and waves faster than the samples have any
    # period in them. In two samples on end there is a wave: what is still for both is stopped.
    waves = latency.mean_ns > IN_WAVES * sample_ns
    return waves and not _stands_still(rates, period_ns)


def _stands_still(rates: FineRates, period_ns: float) -> bool:
    """Whether hardly anything ended in two samples on end, in most of the periods."""
    still = rates.ops <= STILL * float(np.median(rates.ops[rates.ops > 0]))
    # The last of two, at the beginning of each such time.
    begins = still[2:] & still[1:-1] & ~still[:-2]
    return int(begins.sum()) > float(rates.lengths_ns.sum()) / period_ns / 2


def _kinds(case: Case) -> list[Finding]:
    findings = []
    after = ((op, one.latencies["clat"]) for op, one in case.ops.items() if "clat" in one.latencies)
    for op, latency in after:
        modes = time_structure.modes(latency.histogram)
        if len(modes) > 1 and modes[-1].latency_ns - modes[0].latency_ns > FAR_NS and not _own(case):
            finding = _of_modes(op, modes)
            apart_ns = modes[-1].latency_ns - modes[0].latency_ns
            if _by_waiting(case, op, modes):
                finding = replace(finding, effect="note")
            elif beside_others.can_stop(case, apart_ns, 0.0):
                finding = beside_others.told(case, finding)
            findings.append(finding)
    return findings


def _by_waiting(case: Case, op: Op, told: Sequence[Mode]) -> bool:
    """Whether one kind of I/O can have these modes: behind flushes, or behind each other in a queue."""
    if op == "write" and case.flush is not None:
        return True
    outstanding = case_queries.outstanding(case)
    if outstanding == 1:
        return False
    ratio = told[-1].latency_ns / told[0].latency_ns
    # An I/O waits behind at most all others: one busy part of a medium (a die, a disk of an array) has a
    # mode of its own up to there. At the start of a deep load hardly any waits: a small fast mode.
    behind = outstanding is not None and ratio <= outstanding
    return behind or len(told) > 2 or ratio < FAR_APART or told[-1].share > NEARLY_ALL


def _own(case: Case) -> bool:
    """Whether the job itself does several kinds of I/O of one operation."""
    sizes = {size for job in case.jobs for size in job.block_bytes}
    return len(case.jobs) > 1 or len(case.targets) > 1 or len(sizes) > 1


def _of_modes(op: str, told: tuple[Mode, ...]) -> Finding:
    parts = " and ".join(
        say("audit.time_structure.mode.value", mode_share=one.share, latency_ns=one.latency_ns)
        for one in told
    )
    return Finding(
        effect="suspect",
        confidence=0.8,
        text=say("audit.time_structure.modes.text", op=op, modes=len(told), parts=parts),
        evidence={
            "modes": len(told),
            "fast_ns": round(told[0].latency_ns),
            "slow_ns": round(told[-1].latency_ns),
            "slow_share": round(told[-1].share, 3),
        },
        advice=say("audit.time_structure.modes.advice"),
        layer=LAYER,
    )


def _finding(  # noqa: PLR0917 - the parts of a finding
    case: Case,
    confidence: float,
    text: str,
    evidence: dict[str, float | int | str],
    advice: str,
    shape: str,
) -> Finding:
    return Finding(
        effect="suspect",
        confidence=confidence,
        text=text,
        evidence={"pattern": shape, **evidence},
        advice=advice,
        layer=LAYER,
        chart=_chart(case),
    )


def _chart(case: Case) -> Chart | None:
    rates = case.fine
    if rates is None:
        return None
    each = max(1, len(rates.ops) // POINTS)
    count = len(rates.ops) // each
    ops, lengths = (
        one[: count * each].reshape(count, each).sum(axis=1) for one in (rates.ops, rates.lengths_ns)
    )
    ends = rates.ends_ns[: count * each].reshape(count, each)[:, -1]
    origin = float(rates.ends_ns[0] - rates.lengths_ns[0])
    points = tuple(
        (round(float(end - origin) / 1e9, 3), float(op / length * 1e9))
        for end, op, length in zip(ends, ops, lengths, strict=True)
    )
    return Chart(
        title="operations that ended",
        x="s since the measured time began",
        y="operations per s",
        points=points,
        level=float(rates.ops.sum() / rates.lengths_ns.sum() * 1e9),
        level_name="mean",
    )


RULE: Final = Rule(
    name="time_structure",
    asks="Is the course of the load no more than its own noise?",
    basis="gaps against exp(-rate L); Fisher 1929; cumulative sums against a Brownian bridge; 10 ms samples",
    judge=_judge,
)
