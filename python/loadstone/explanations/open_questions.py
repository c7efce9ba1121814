"""What of a job lets its number come about without the medium, and which reading settles that.

A span that holds nothing, content that comes again, addresses off the grid: whatever is particular to a job
is an open question until a probe has measured what it changes. A number with an open question is not known to
measure the storage, whether or not somebody has thought of the lie it would be. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.readings import Probed, ProbeReading

SETTLES: Final = 0.2
"""A reading with a larger error has not measured whether a fifth of the rate depends on it."""
FASTER: Final = 0.2
"""With more than this gained on a span of 1 MiB something there answers faster than what the load meets."""
PART: Final = 0.1
"""So much more of the rate may be of that: ln 1.1, what makes a number another one. With seeds 191001 to
200292, 1 of 222 honest runs that probes would have had believed had such a doubt. So had 3 of 5 lies, and 3
of 9 whose explanation was taken out of the list."""
EMPTY: Final = "contents.zeros"


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """One particular of a job. `part`: how much of the load it concerns, 0 to 1."""

    says: str
    part: Callable[[JobFacts, Mapping[str, ProbeReading]], float]
    settled_by: str | None = None


def _empty(job: JobFacts, readings: Mapping[str, ProbeReading]) -> float:
    return readings[EMPTY].value if job.reads and EMPTY in readings else 0.0


def _repeated(job: JobFacts, _: Mapping[str, ProbeReading]) -> float:
    return float(job.writes and job.repeats_payload)


def _faster(_: JobFacts, readings: Mapping[str, ProbeReading]) -> float:
    tiny, own = readings.get("again.tiny"), readings.get("again.own")
    if tiny is None or own is None:
        return 0.0
    return float(tiny.value > FASTER and own.value + own.error > PART)


def _ordered(_: JobFacts, readings: Mapping[str, ProbeReading]) -> float:
    shuffled = readings.get("order.random")
    if shuffled is None or shuffled.value + shuffled.error > -FASTER:
        return 0.0
    return 1 - math.exp(shuffled.value)


def _off_grid(job: JobFacts, _: Mapping[str, ProbeReading]) -> float:
    return float(job.off_grid)


def _partial(job: JobFacts, _: Mapping[str, ProbeReading]) -> float:
    return float(job.partial)


QUESTIONS: Final = (
    OpenQuestion("whether the blocks of zeros that it read were ever stored", _empty, "written.read"),
    OpenQuestion("what its repeated content changes", _repeated, "payload.own"),
    OpenQuestion("what its addresses off the grid of 4 KiB change", _off_grid, "aligned.own"),
    OpenQuestion("whether its part of the target is like the rest", _partial, "position.end"),
    OpenQuestion("what part of its span is in the cache that answers 1 MiB of it", _faster),
    OpenQuestion("what of its rate is due to reading ahead of its order", _ordered),
    OpenQuestion("what its targets do one by one", lambda job, _: job.targets > 1, "together.sum"),
)


def open_questions(job: JobFacts, probed: Probed | None) -> dict[str, float]:
    """Return what no reading has settled, in words, with the part of the load that it concerns."""
    readings = {one.name: one for tried in (probed.tried if probed else ()) for one in tried.readings}

    def settled(name: str | None) -> bool:
        return name in readings and readings[name].error <= SETTLES

    open_ones = [one for one in QUESTIONS if not settled(one.settled_by)]
    parts = {one.says: float(one.part(job, readings)) for one in open_ones}
    return {says: part for says, part in parts.items() if part > 0}


def open_part(job: JobFacts, probed: Probed | None) -> float:
    """Return how much of the load the largest open question concerns."""
    return max(open_questions(job, probed).values(), default=0.0)
