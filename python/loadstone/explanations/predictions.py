"""What each probe should measure under each explanation: one table.

A prediction is a mixture of normal distributions of a reading, most of them logarithms of ratios of rates.
The figures follow from how each part works (`basis`); they are reasoned, not fitted. How much a reading
weighs is fitted (`weights.json`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

Part = tuple[float, float, float]
"""Weight, mean and deviation."""
Prediction = tuple[Part, ...]

LEAST_ERROR: Final = 0.03
"""No rate is known better than to 3 % on a device that others share."""


PLENTY: Final = 3.0
"""A generator that does twenty times as much without a device (e to this power) is no limit. How far
it goes beyond that says nothing: a rotating disk and a fast one differ by a thousand times."""


@dataclass(frozen=True, slots=True)
class ReadingPredictions:
    """One reading. `others`: of explanations without an entry; `anything`: of the unknown."""

    asks: str
    basis: str
    others: Prediction
    under: dict[str, Prediction]
    anything: tuple[float, float] = (0.0, 1.2)


def _n(mean: float, deviation: float) -> Prediction:
    return ((1.0, mean, deviation),)


def _or(*parts: Part) -> Prediction:
    return parts


LN2: Final = math.log(2)
_NOTHING: Final = _n(0.0, 0.03)
"""What does not matter changes nothing: honest situations of seeds 100002 to 101084 are no further off than
their own errors and `LEAST_ERROR` make them."""
_NEARLY: Final = _n(0.0, 0.05)
"""The same between a probe and the run, or between two ends of a probe: some time lies between."""
_DIPS: Final = _or((0.95, -4.6, 0.8), (0.05, -3.2, 0.6))
_DIPS_UNDER: Final = {
    "background": _or((0.75, -1.5, 0.6), (0.25, -3.8, 1.0)),
    "burst_credits": _or((0.85, -4.6, 0.7), (0.15, -1.5, 0.8)),
    "write_cache": _or((0.85, -4.6, 0.7), (0.15, -1.5, 0.8)),
}
_CAPS: Final = ("iops_limit", "bandwidth_limit", "shared_limit")


def _caps(prediction: Prediction) -> dict[str, Prediction]:
    return dict.fromkeys(_CAPS, prediction)


_OWN: Final[dict[str, Prediction]] = {
    "depth.half": _n(0.0, 0.05),
    "depth.twice": _n(0.0, 0.05),
    "one.scaling": _n(0.3, 0.25),
    "one.knee": _or((0.9, 0.32, 0.12), (0.1, 0.1, 0.1)),
    "one.evenness": _or((0.6, -0.35, 0.5), (0.3, 0.05, 0.25), (0.1, -2.0, 0.9)),
}
"""What a medium does at a rate of its own: no part of it is idle, and its queue has one server or few."""
REGIMES: Final[dict[str, dict[str, Prediction]]] = {
    "scales": {
        "depth.half": _n(-0.66, 0.06),
        "depth.twice": _n(0.62, 0.1),
        "one.scaling": _n(0.97, 0.06),
        "one.knee": _n(-0.02, 0.05),
    },
    "gains": {"depth.half": _n(-0.25, 0.2), "depth.twice": _n(0.2, 0.18), "one.scaling": _n(0.7, 0.2)},
    "flat": {"depth.half": _n(0.0, 0.05), "depth.twice": _n(0.0, 0.05), "one.scaling": _n(0.4, 0.35)},
    "knee": {"depth.half": _n(-0.3, 0.2), "depth.twice": _n(0.0, 0.04), "one.scaling": _n(0.7, 0.2)},
    "given": {"depth.half": _n(0.0, 0.03), "depth.twice": _n(0.0, 0.03), "one.scaling": _n(0.0, 0.1)},
    "channel": {
        **_OWN,
        "size.half": _or((0.75, LN2, 0.04), (0.25, 0.5, 0.1)),
        "size.twice": _or((0.65, -LN2, 0.04), (0.35, -0.56, 0.07)),
    },
    "controller": {
        **_OWN,
        "size.half": _or((0.8, 0.0, 0.03), (0.2, 0.06, 0.05)),
        "size.twice": _or((0.8, 0.0, 0.03), (0.2, -0.06, 0.05)),
    },
}
"""What depth does: nothing is idle (flat), all of it waits for each I/O (scales), something between, or
the limit begins between half the depth and the depth as run (knee). A medium may be at the bandwidth of its
own channel or the rate of its own controller: a limit of the same number looks the same. An explanation
holds in one or several of these, and all readings of a situation are in the same one: that is how they
depend on each other."""
AT_A_LIMIT: Final = frozenset({"channel", "controller"})
"""Regimes in which no part is idle: what does the most it can looks like what may do no more."""
ANY_DEPTH: Final = ((0.35, "scales"), (0.4, "gains"), (0.25, "flat"))
"""Of whatever says nothing about depth: a cache is as fast at depth 1 as its latency lets it be."""
IN_REGIMES: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "medium": ((0.42, "gains"), (0.22, "flat"), (0.06, "knee"), (0.15, "channel"), (0.15, "controller")),
    "job_depth": ((1.0, "scales"),),
    "job_rate": ((0.6, "given"), (0.4, "scales")),
    "generator": ((0.8, "flat"), (0.2, "gains")),
    "iops_limit": ((0.8, "flat"), (0.2, "knee")),
    "bandwidth_limit": ((0.8, "flat"), (0.2, "knee")),
    "shared_limit": ((0.8, "flat"), (0.2, "knee")),
    "concurrency_limit": ((0.7, "flat"), (0.3, "knee")),
}

READINGS: Final[dict[str, ReadingPredictions]] = {
    "depth.half": ReadingPredictions(
        "rate at half the depth, against the rate as run",
        "a limit that holds at both depths leaves the rate as it is; latency alone halves it",
        _n(0.0, 1.2),
        {},
    ),
    "depth.twice": ReadingPredictions(
        "rate at twice the depth, against the rate as run",
        "a limit keeps it; a medium with idle parts gains up to twice",
        _n(0.0, 1.2),
        {},
    ),
    "one.scaling": ReadingPredictions(
        "logarithm of the rate's gain from depth 1, over that of the depth's",
        "1: latency does not depend on depth; 0: depth gains nothing",
        _n(0.0, 1.2),
        {},
        (0.5, 0.8),
    ),
    "one.evenness": ReadingPredictions(
        "how even the rate is, against what its latencies at depth 1 would make it",
        "a limiter spaces I/Os evenly, a medium does as its latencies come (a renewal process)",
        _or((0.65, 0.0, 0.5), (0.35, 1.2, 0.8)),
        {
            **_caps(_or((0.45, -2.0, 0.9), (0.4, -0.4, 0.45), (0.15, 0.0, 0.6))),
            "burst_credits": _or((0.6, -2.0, 0.9), (0.4, 0.0, 0.6)),
            "generator": _n(0.0, 1.2),
            "job_rate": _n(-2.0, 1.2),
            "background": _n(0.5, 0.8),
            "write_cache": _or((0.5, -1.5, 1.2), (0.5, 0.0, 0.8)),
        },
        (-0.5, 2.0),
    ),
    "one.knee": ReadingPredictions(
        "rate at a depth between 1 and the run's, against parts that are hit by chance",
        "n parts do k n / (k + n - 1) at once of k; a limit leaves the curve below it steeper than that",
        _or((0.65, 0.05, 0.09), (0.35, 0.3, 0.2)),
        {
            "medium": _or((0.88, 0.06, 0.07), (0.12, 0.2, 0.15)),
            **_caps(_or((0.9, 0.35, 0.16), (0.1, 0.1, 0.1))),
            "concurrency_limit": _or((0.85, 0.45, 0.2), (0.15, 0.05, 0.1)),
        },
        (0.1, 0.4),
    ),
    "size.half": ReadingPredictions(
        "I/Os per second at half the block size, against those as run",
        "a limit on I/Os keeps them, a limit on bytes doubles them",
        _or((0.4, 0.0, 0.04), (0.35, 0.12, 0.1), (0.25, 0.4, 0.2)),
        {
            "iops_limit": _n(0.0, 0.03),
            "bandwidth_limit": _or((0.75, LN2, 0.05), (0.25, 0.4, 0.2)),
            "shared_limit": _or((0.5, 0.0, 0.03), (0.5, LN2, 0.05)),
            "write_cache": _or((0.4, 0.1, 0.15), (0.6, LN2, 0.15)),
            "unwritten": _or((0.7, 0.0, 0.03), (0.3, 0.15, 0.15)),
            "burst_credits": _or((0.6, 0.0, 0.03), (0.4, 0.2, 0.3)),
            "job_rate": _n(0.0, 0.03),
        },
    ),
    "size.twice": ReadingPredictions(
        "I/Os per second at twice the block size, against those as run",
        "a limit on I/Os keeps them, a limit on bytes halves them",
        _or((0.4, 0.0, 0.04), (0.35, -0.12, 0.1), (0.25, -0.4, 0.2)),
        {
            "iops_limit": _or((0.8, 0.0, 0.03), (0.2, -0.3, 0.2)),
            "bandwidth_limit": _n(-LN2, 0.04),
            "shared_limit": _or((0.5, 0.0, 0.03), (0.5, -LN2, 0.04)),
            "write_cache": _or((0.4, -0.1, 0.15), (0.6, -LN2, 0.15)),
            "unwritten": _or((0.7, 0.0, 0.03), (0.3, -0.15, 0.15)),
            "burst_credits": _or((0.6, 0.0, 0.03), (0.4, -0.3, 0.3)),
            "job_rate": _n(0.0, 0.03),
        },
    ),
    "again.own": ReadingPredictions(
        "rate on the run's own addresses, against addresses it did not use",
        "what a cache holds, or was touched before, is fast; other addresses are not",
        _NOTHING,
        {"cache": _n(1.5, 0.9), "first_touch": _n(1.0, 0.8), "position": _n(0.2, 0.3)},
    ),
    "again.second": ReadingPredictions(
        "rate of a second pass over addresses the run did not use, against the first pass",
        "the second pass finds what the first one brought in or allocated",
        _or((0.85, 0.0, 0.03), (0.15, 1.0, 0.9)),
        {"cache": _or((0.65, 1.3, 0.9), (0.35, 0.0, 0.07)), "first_touch": _n(1.2, 0.8)},
    ),
    "again.tiny": ReadingPredictions(
        "rate on a span of 1 MiB, against the rate as run",
        "a number that comes from a cache already gains nothing",
        # A span so small fits into any cache: it may be as much faster as that is than the medium.
        _or((0.7, 0.0, 0.12), (0.1, -0.45, 0.25), (0.2, 1.6, 1.2)),
        {
            "cache": _or((0.7, 0.0, 0.2), (0.3, 0.7, 0.7)),
            **_caps(_n(0.0, 0.05)),
            "job_rate": _NOTHING,
            # A span so small was written as a whole, or not at all.
            "unwritten": _or((0.5, 0.0, 0.15), (0.5, -1.5, 0.8)),
        },
    ),
    "again.now": ReadingPredictions(
        "rate as run once more, against the run's own",
        "credits, allocation and warm caches change from one run to the next",
        _NEARLY,
        {
            "burst_credits": _or((0.3, -1.0, 0.8), (0.7, 0.0, 0.1)),
            "first_touch": _n(0.8, 0.7),
            "cache": _or((0.6, 0.0, 0.15), (0.4, 0.9, 0.8)),
            "write_cache": _or((0.5, 0.0, 0.2), (0.5, 0.0, 1.0)),
            "background": _n(0.0, 0.35),
        },
    ),
    "written.read": ReadingPredictions(
        "read rate on blocks written a moment ago, against as many that were not",
        "never-written blocks are answered from a table",
        _n(0.0, 0.08),
        {
            "unwritten": _n(-1.8, 1.0),
            "cache": _or((0.7, 0.0, 0.3), (0.3, -1.0, 0.8)),
            "first_touch": _or((0.7, 1.2, 0.6), (0.3, 0.0, 0.12)),
        },
    ),
    "first.second": ReadingPredictions(
        "write rate of a second pass over the same addresses, against the first",
        "allocation and copies are paid in the first pass only",
        _NOTHING,
        {"first_touch": _or((0.6, 1.0, 0.8), (0.4, 0.0, 0.07)), "write_cache": _n(0.0, 0.4)},
    ),
    "payload.own": ReadingPredictions(
        "write rate with the job's own content, against content that is new every time",
        "what can be made smaller is written faster",
        _NOTHING,
        {"reduction": _n(0.9, 0.6)},
    ),
    "flush.cost": ReadingPredictions(
        "write rate without flushes, against one with a flush after each write",
        "a flush empties a volatile cache; where there is none it costs a command",
        _or((0.5, 0.3, 0.3), (0.5, 1.0, 0.9)),
        {"write_cache": _or((0.4, 0.3, 0.4), (0.6, 2.0, 1.2))},
        (1.0, 1.5),
    ),
    "flush.own": ReadingPredictions(
        "rate of the load without its flushes, against the rate as run",
        "where flushes are the work, the load is faster without them; a limit is as it was",
        _or((0.5, 0.05, 0.12), (0.5, 0.8, 0.7)),
        {
            "medium": _or((0.5, 0.08, 0.12), (0.5, 1.1, 0.9)),
            # Where flushes are the work, no limit of the rate as run can be.
            **_caps(_or((0.96, 0.03, 0.06), (0.04, 0.5, 0.5))),
            "concurrency_limit": _or((0.8, 0.05, 0.12), (0.2, 0.8, 0.7)),
            "generator": _n(0.0, 0.08),
            "job_rate": _n(0.0, 0.05),
        },
        (0.4, 0.9),
    ),
    "position.end": ReadingPredictions(
        "read rate at the end of the target, against its beginning",
        "outer tracks of a disk are up to twice as fast as inner ones",
        _NOTHING,
        {"position": _or((0.8, -0.5, 0.3), (0.2, 0.4, 0.3))},
    ),
    "position.middle": ReadingPredictions(
        "read rate in the middle of the target, against its beginning",
        "outer tracks of a disk are up to twice as fast as inner ones",
        _NOTHING,
        {"position": _or((0.8, -0.25, 0.2), (0.2, 0.2, 0.2))},
    ),
    "longer.drop": ReadingPredictions(
        "rate in the last quarter of a longer run, against its first",
        "caches fill and credits end",
        _NOTHING,
        {
            "burst_credits": _or((0.4, -1.0, 0.7), (0.6, 0.0, 0.06)),
            "write_cache": _or((0.4, -1.2, 0.8), (0.6, 0.0, 0.08)),
            "background": _n(0.0, 0.2),
            "cache": _or((0.7, 0.0, 0.07), (0.3, 0.4, 0.4)),
        },
    ),
    "longer.main": ReadingPredictions(
        "rate in the last quarter of a longer run, against the run's own",
        "caches fill and credits end",
        _NEARLY,
        {
            "burst_credits": _or((0.75, -1.2, 0.9), (0.25, 0.0, 0.08)),
            "write_cache": _or((0.75, -1.8, 1.2), (0.25, 0.0, 0.1)),
            "first_touch": _n(0.6, 0.7),
            "background": _n(0.0, 0.3),
            "cache": _or((0.7, 0.0, 0.15), (0.3, 0.7, 0.7)),
        },
        (-0.5, 1.8),
    ),
    "together.sum": ReadingPredictions(
        "rate of the targets together, against the sum of each alone",
        "what is shared is divided, what is not adds up",
        _n(-0.02, 0.06),
        {"shared_limit": _n(-LN2, 0.08), "generator": _n(-0.5, 0.25)},
    ),
    "aligned.own": ReadingPredictions(
        "rate with addresses on the grid of 4 KiB, against the rate as run",
        "a write off the grid reads before it writes; a read off it touches two blocks",
        _NOTHING,
        {"misaligned": _n(0.7, 0.45)},
    ),
    "order.random": ReadingPredictions(
        "read rate at random, against the same blocks in the run's order",
        "a limit knows no order; heads, and whatever reads ahead of the load, live on it",
        _or((0.8, 0.0, 0.05), (0.1, -0.7, 0.5), (0.1, -2.5, 1.5)),
        {
            **_caps(_NEARLY),
            "concurrency_limit": _NEARLY,
            "generator": _NEARLY,
            "job_rate": _NEARLY,
            "cache": _or((0.7, 0.0, 0.05), (0.3, -1.2, 0.9)),
        },
    ),
    "generator.null": ReadingPredictions(
        "rate of the generator without a device, against the rate as run, 20 times at most",
        "what is not faster without a device is limited by the generator",
        _or((0.8, PLENTY, 0.1), (0.2, 1.6, 0.7)),
        {"generator": _n(0.1, 0.15), "job_rate": _or((0.8, PLENTY, 0.1), (0.2, 0.0, 0.1))},
        (1.8, 1.0),
    ),
    "longer.dips": ReadingPredictions(
        "logarithm of the share of moments of a longer run with less than half of its usual rate",
        "what stands still or is busy with others does so now and then",
        _DIPS,
        _DIPS_UNDER,
        (-3.0, 1.5),
    ),
    "turns.drift": ReadingPredictions(
        "rate as run at a probe's end, against that at its beginning",
        "credits end and caches fill while a probe runs; what was touched is fast the second time",
        _NEARLY,
        {
            "burst_credits": _or((0.2, -1.2, 0.9), (0.8, 0.0, 0.08)),
            "write_cache": _or((0.2, -1.5, 1.0), (0.8, 0.0, 0.1)),
            "first_touch": _or((0.3, 0.6, 0.6), (0.7, 0.0, 0.1)),
            "cache": _or((0.2, 0.6, 0.7), (0.8, 0.0, 0.1)),
            "background": _n(0.0, 0.4),
        },
    ),
    "again.repeat": ReadingPredictions(
        "rate on the run's own addresses now, against the run's own",
        "space is touched for the first time once; a cache that was warm is as fast again",
        _NEARLY,
        {
            "first_touch": _n(1.2, 0.8),
            "cache": _or((0.8, 0.0, 0.1), (0.2, 0.8, 0.7)),
            "burst_credits": _or((0.3, -1.2, 0.9), (0.7, 0.0, 0.1)),
            "background": _n(0.0, 0.35),
        },
    ),
    "contents.zeros": ReadingPredictions(
        "share of the blocks that hold nothing but zeros, of some that the run read",
        "what was never written is answered with zeros; few media are filled with them",
        _or((0.92, 0.0, 0.03), (0.08, 1.0, 0.03)),
        {"unwritten": _or((0.7, 1.0, 0.03), (0.25, 0.6, 0.25), (0.05, 0.0, 0.03))},
        (0.5, 0.4),
    ),
    "run.dips": ReadingPredictions(
        "logarithm of the share of moments in which the run did less than half of its usual rate",
        "what stands still or is busy with others does so now and then",
        _DIPS,
        _DIPS_UNDER,
        (-3.0, 1.5),
    ),
    "heartbeat.worst": ReadingPredictions(
        "slowest of ten reads per second on an idle device, against their median",
        "what stops an idle device is not this load",
        _n(0.7, 0.5),
        {"background": _or((0.7, 3.0, 1.2), (0.3, 1.0, 0.6))},
        (1.5, 1.5),
    ),
}
