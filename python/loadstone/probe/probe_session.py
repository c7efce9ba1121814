"""Which probes are done after a run, in which order, and when it is enough.

Knows the budget and asks `explanations` which probe tells most per second. Somebody else runs a Plan:
so the same course is tried on simulated devices.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from loadstone.errors import LoadstoneError
from loadstone.explanations.choice import LEAST_BITS, Candidate, worth
from loadstone.explanations.readings import (
    AGAINST_RUN,
    NO_TIME,
    LeftOut,
    Probed,
    ProbeReading,
    Tried,
    of_others,
    unlike,
)
from loadstone.explanations.weigh import cause_named, hypotheses_of, text
from loadstone.messages import say
from loadstone.probe.arms import plan_of
from loadstone.probe.figures import issuing_ns, of_stages, unsettled
from loadstone.probe.probe import Measured
from loadstone.probe.probes import PROBES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from loadstone.explanations.choice import Worth
    from loadstone.plan.model import Plan
    from loadstone.probe.arms import Turns
    from loadstone.probe.base import Base
    from loadstone.probe.figures import Figures
    from loadstone.probe.probe import Probe
    from loadstone.verdict import RuleName

OVERHEAD_S: Final = 1.0
"""What a probe takes beside its arms, until the first one has told."""
NOTHING_LEFT: Final = say("probe.ended.nothing_left")
THE_RUN: Final = "run"
"""What the run itself says, among what was tried."""
INTERRUPTED: Final = say("probe.ended.interrupted")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of a probe left."""

    samples: pl.DataFrame
    bundle: str
    complete: bool
    taken: float | None = None
    """What others on this host's CPUs could take of a rate meanwhile."""
    failure: str | None = None
    """What went wrong, of one that was not interrupted."""


class Runner(Protocol):
    """Runs the Plan of a probe. Raises `LoadstoneError` when it cannot be run."""

    def __call__(self, offer: Offer, number: int) -> Ran:
        """Run its Plan; `number` counts from 1."""


@dataclass(frozen=True, slots=True)
class RuleFindings:
    """What the audit of the run says without probes."""

    rules: Mapping[RuleName, float]
    checked: Iterable[RuleName]


@dataclass(frozen=True, slots=True)
class Offer:
    """A probe that may be done here."""

    probe: Probe
    turns: Turns
    plan: Plan


def offers(base: Base) -> tuple[list[Offer], list[LeftOut]]:
    """Return the probes that can be done, and why the others cannot."""
    if (why := base.why_not()) is not None:
        return [], [LeftOut(name=probe.name, why=why) for probe in PROBES]
    offered: list[Offer] = []
    left: list[LeftOut] = []
    for probe in PROBES:
        turns = probe.turns(base)
        if isinstance(turns, str):
            left.append(LeftOut(name=probe.name, why=turns))
        else:
            offered.append(Offer(probe, turns, plan_of(base, turns)))
    return offered, left


def ranked(
    base: Base,
    offered: Sequence[Offer],
    so_far: Probed | None,
    findings: RuleFindings,
    overhead_s: float,
    *,
    without: frozenset[str] = frozenset(),
) -> list[Worth]:
    """Return what each offer that is worth its time is expected to tell, the best per second first.

    Once a cause is named, an offer has to tell it from others. Until then any is worth its time: a cause
    that is in no list shows only where a probe meets it. What is particular to the job goes first, as the
    probes that every job has leave it as it is in all of their arms.
    """
    if not offered:
        return []
    known = hypotheses_of(base.facts, so_far, findings.rules, findings.checked, without=without)
    candidates = [
        Candidate(one.probe.name, one.turns.seconds + overhead_s, _readings(base, one)) for one in offered
    ]
    if not known.each.size:
        return []
    worths = worth(known, candidates)
    if cause_named(known):
        return [one for one in worths if one.bits >= LEAST_BITS]
    of_the_job = {one.probe.name for one in offered if one.probe.of_the_job}
    return sorted(worths, key=lambda one: one.candidate.name not in of_the_job)


def _readings(base: Base, offer: Offer) -> tuple[str, ...]:
    """Return what an offer would measure here: a depth of 1 has no half."""
    arms = {arm.name for arm in offer.turns.order}
    missing = {"depth.half", "size.half"} if "half" not in arms else set()
    if not any(name.startswith("depth-") for name in arms):
        missing.add("one.knee")
    if "unflushed" not in arms:
        missing.add("flush.own")
    if "fresh" not in arms:
        missing |= {"again.own", "again.second", "again.repeat"}
    missing |= of_others(base.taken)
    one_clone_of_few = {"one.evenness"} if base.main.cv < 0.15 else set()
    return tuple(name for name in offer.probe.readings if name not in missing | one_clone_of_few)


def probe(
    base: Base,
    run: Runner,
    findings: RuleFindings,
    *,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    overhead_s: float = OVERHEAD_S,
    stopped: Callable[[], bool] = lambda: False,
    without: frozenset[str] = frozenset(),
    look: Callable[[Base], Tried | None] = lambda _: None,
) -> Probed:
    """Probe until the budget is used up, nothing is left to tell, or `stopped` says that it shall end.

    `without`: explanations that are left out of the list, to try what it tells of what it does not know.
    `look`: what is looked at before the first probe, where the targets are this host's.
    """
    offered, left = offers(base)
    tried = [*_of_the_run(base), *(_looked_at(base, look, tell) if offered else ())]
    began, ended, number = clock(), NOTHING_LEFT, 0
    while offered:
        if stopped():
            ended = INTERRUPTED
            break
        known = _probed(base, tried).beside_others(base.taken)
        best = ranked(base, offered, known, findings, overhead_s, without=without)
        chosen = _best_within(base.budget_s - (clock() - began), best, offered)
        if chosen is None:
            ended = NO_TIME if best else NOTHING_LEFT
            break
        offered.remove(chosen)
        started, number = clock(), number + 1
        try:
            ran = run(chosen, number)
        except LoadstoneError as error:
            left.append(LeftOut(name=chosen.probe.name, why=str(error)))
            tell(say("probe.done.not_done", name=chosen.probe.name, reason=str(error)))
            continue
        done = _tried(base, chosen, ran, clock() - started)
        overhead_s = max(0.0, done.seconds - chosen.turns.seconds) if ran.complete else overhead_s
        tried.append(done)
        tell(say("probe.done.result", name=done.name, took_s=done.seconds, result=done.result))
        if not ran.complete:
            ended = INTERRUPTED
            if ran.failure is not None:
                ended = say("verdict.probe.failed", probe=done.name, reason=ran.failure)
                tell(ended)
            break
    left += [LeftOut(name=one.probe.name, why=ended) for one in offered]
    return _probed(base, tried, left, ended)


def _probed(base: Base, tried: Sequence[Tried], left_out: Sequence[LeftOut] = (), ended: str = "") -> Probed:
    """Return what was tried so far, and what was not."""
    return Probed(
        stage=base.stage, budget_s=base.budget_s, tried=tuple(tried), left_out=tuple(left_out), ended=ended
    )


def _looked_at(
    base: Base, look: Callable[[Base], Tried | None], tell: Callable[[str], None]
) -> Iterator[Tried]:
    """Look at what no probe measures, and tell what was read there."""
    if (reading := look(base)) is not None:
        tell(f"{reading.name}: {reading.result}")
        yield reading


def _best_within(left_s: float, best: Sequence[Worth], offered: Sequence[Offer]) -> Offer | None:
    """Return the offer that tells most of those for which the time is enough."""
    names = (one.candidate.name for one in best if one.candidate.seconds <= left_s)
    name = next(names, None)
    return next((one for one in offered if one.probe.name == name), None)


def _of_the_run(base: Base) -> list[Tried]:
    """Return what the run itself says: how often it did much less than usual."""
    share = base.main.dips
    if share is None:
        return []
    count = base.main.count
    value = float(np.log(share))
    reading = ProbeReading(name="run.dips", value=value, error=0.3, count=count)
    return [
        Tried(
            name=THE_RUN, bundle=".", seconds=0.0, written_bytes=0, result=text(reading), readings=(reading,)
        )
    ]


def _tried(base: Base, offer: Offer, ran: Ran, seconds: float) -> Tried:
    turns: dict[str, list[Figures]] = {}
    written = 0
    begins_ns = {stage: issuing_ns(offer.plan, stage) for stage in range(len(offer.turns.order))}
    measured = of_stages(ran.samples, begins_ns)
    for stage, arm in enumerate(offer.turns.order):
        if stage in measured:
            turns.setdefault(arm.name, []).append(measured[stage])
            written += measured[stage].written_bytes
    readings = [one for one in offer.probe.read(Measured(turns, base.fills), base) if _usable(one)]
    readings += _drift(turns.get("as_run", ()), fills=base.fills)
    return Tried(
        name=offer.probe.name,
        bundle=ran.bundle,
        seconds=round(seconds, 3),
        written_bytes=written,
        result=_result(readings, unlike_run=unlike(ran.taken, base.taken)),
        readings=tuple(readings),
        complete=ran.complete,
        taken=ran.taken,
    )


def _result(readings: Sequence[ProbeReading], *, unlike_run: bool) -> str:
    if not readings:
        return say("probe.not_offered.too_little")
    sentences = ". ".join(text(one) for one in readings)
    if unlike_run and any(one.name in AGAINST_RUN for one in readings):
        return f"{sentences}. {say('verdict.probe.unlike')}"
    return sentences


def _drift(turns: Sequence[Figures], *, fills: bool = False) -> list[ProbeReading]:
    """Return how the last turn of the arm as run differs from its first.

    `fills`: flushes queue up in each, and it may be as far from its rate as it changed by meanwhile.
    """
    if len(turns) < 2:
        return []
    first, last = turns[0], turns[-1]
    value = float(np.log(last.rate / first.rate))
    error = float(np.hypot(first.log_error, last.log_error))
    if fills:
        error = float(np.hypot(error, math.sqrt(2) * unsettled((first, last))))
    return [ProbeReading(name="turns.drift", value=value, error=error, count=min(first.count, last.count))]


def _usable(reading: ProbeReading) -> bool:
    return bool(np.isfinite(reading.value) and np.isfinite(reading.error))
