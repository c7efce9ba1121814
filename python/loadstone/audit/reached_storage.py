"""What of a load reached the storage: the comparison that several rules rest on.

Knows a Case's traffic. Does not say why something did not arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone.audit import case_queries
from loadstone.audit.planned import union_bytes
from loadstone.audit.rule import Finding
from loadstone.messages import say
from loadstone.verdict import BYTES_PER_S, Chart

if TYPE_CHECKING:
    from loadstone.audit.case import Case, Op, TargetState

ENOUGH: Final = 0.95
"""A device that moved this part of what was asked for did all of it, for any practical purpose."""
EDGES_S: Final = 0.05
"""By how much the two clocks of the comparison may be apart, at both ends together."""
MOST_BURSTS: Final = 3.0
"""Of the usual rate in that time: what comes in larger bursts is looked at as if it came in such ones."""
UNWRITTEN: Final = 0.05
"""Up to this part of a target may be unwritten without a visible effect."""
MOST_REDUCED: Final = 1 / 40
"""Compression leaves at least a page of 4 KiB for each extent of 128 KiB, less what two clocks are apart."""


def enough(case: Case) -> float:
    """Return the share from which on everything arrived, given how long was watched.

    A limiter of a control group lets a tenth of a second's I/Os go at once: the edges may have all of them.
    """
    watched_s = case.traffic.seconds if case.traffic is not None else 0.0
    if not watched_s:
        return ENOUGH
    bursts = min(MOST_BURSTS, case.fine.peak_over_mean(EDGES_S)) if case.fine is not None else 1.0
    return ENOUGH - bursts * EDGES_S / watched_s


def reduction_explains(case: Case, share: float) -> bool:
    """Whether a layer that reduces data may be why only this share of the bytes reached the storage.

    Compression of blocks of 128 KiB leaves at least a page of each: less than that stayed in a cache, also
    where direct I/O was asked for (btrfs reads compressed files through the page cache). Deduplication
    has no such bound.
    """
    layer = case_queries.reducing(case)
    return layer is not None and (share >= MOST_REDUCED or "deduplication" in layer)


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What was never written of the part of a target that the jobs use: between two bounds.

    It is known how much of a whole target was never written, not where that lies.
    """

    used_bytes: int
    least_bytes: int
    most_bytes: int

    @property
    def may_matter(self) -> bool:
        """Whether so much of it may be unwritten that it can be seen."""
        return self.most_bytes > UNWRITTEN * self.used_bytes

    @property
    def matters(self) -> bool:
        """Whether that is so wherever the unwritten parts lie."""
        return self.least_bytes > UNWRITTEN * self.used_bytes


def unwritten(case: Case) -> bool:
    """Whether a part of a target that may matter was never written before the run."""
    unwritten_parts = (unwritten_part(case, target) for target in case.targets)
    return any(one.may_matter for one in unwritten_parts if one is not None)


def unwritten_part(case: Case, target: TargetState) -> Unwritten | None:
    """Return what was unwritten of a target when the run began, of the part that jobs use; None: unknown."""
    size, unwritten_bytes = target.size_bytes, target.unwritten_bytes_before
    if not size or unwritten_bytes is None:
        return None
    own = [one for job in case.jobs for clone in job.ranges for one in clone if one.target == target.path]
    used = min(size, union_bytes(own)) or size
    return Unwritten(
        used, least_bytes=max(0, unwritten_bytes - (size - used)), most_bytes=min(unwritten_bytes, used)
    )


def memory(target: TargetState) -> Finding:
    """Return what is to be said of a target in a file system in memory."""
    return Finding(
        effect="not_valid",
        confidence=0.98,
        text=say("audit.in_memory.found.text", target=target.path, file_system=target.file_system),
        evidence={"file_system": str(target.file_system)},
        advice=say("audit.in_memory.found.advice"),
        layer="page cache",
    )


def evidence(case: Case, op: Op) -> dict[str, float | int | str]:
    """Return the numbers of the comparison; empty when nothing was watched."""
    traffic = case.traffic
    if traffic is None:
        return {}
    requested, moved = traffic.asked[op], traffic.moved[op]
    return {
        "asked_bytes": round(requested.bytes),
        "device_bytes": round(moved.bytes),
        "asked_ios": round(requested.ios),
        "device_ios": round(moved.ios),
        "device": ", ".join(traffic.carriers),
        "watched_s": round(traffic.seconds, 2),
    }


def chart(case: Case, op: Op) -> Chart | None:
    """Return the device's bandwidth over time, held against what was asked for."""
    traffic, host = case.traffic, case.host
    if traffic is None or host is None or not traffic.seconds:
        return None
    prefixes = dict.fromkeys(carrier for target in case.targets for carrier in target.carriers)
    columns = [f"{prefix}.{op}_bytes" for prefix in prefixes]
    if not set(columns) <= set(host.columns) or host.height < 3:
        return None
    first_ns = int(host["t_ns"][0]) - int(host["dt_ns"][0])
    rows = host.filter(pl.col("dt_ns") > 0).select(
        ((pl.col("t_ns") - pl.col("dt_ns") // 2 - first_ns) / 1e9).round(3),
        pl.sum_horizontal(columns) / pl.col("dt_ns") * 1e9,
    )
    return Chart(
        title=f"{op}s that reached {', '.join(traffic.carriers)}",
        x="s since the measured time began",
        y=BYTES_PER_S,
        points=tuple((float(t), float(rate)) for t, rate in rows.iter_rows()),
        level=traffic.asked[op].bytes / traffic.seconds,
        level_name=f"{op} by the job",
    )
