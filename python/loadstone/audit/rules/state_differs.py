"""Rule `state_differs`: the same drives do the same work at very different rates.

Each layout turns a host's write into a known number of writes to drives: one when striped or
alone, two when mirrored. Layouts of the same drives that ask the same of them must come out alike;
where they do not, the drives were not in the same state, and a comparison of the two compares that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case

APART: Final = 1.5


def _judge(case: Case) -> Answer:
    same = [other for other in case.siblings if _same_load(case, other) and _drive_rate(other) is not None]
    others = [other for other in same if _same_work(case, other)]
    if _drive_rate(case) is None or not others:
        return NotMine()
    findings = [finding for other in others if (finding := _compare(case, other, same)) is not None]
    return tuple(findings[:1]) or Clear()


def _drive_rate(case: Case) -> float | None:
    """Return writes to drives a second, None when it cannot be worked out."""
    penalty = case.setup.drive_writes_per_write
    known = case.setup.drives is not None and set(case.ops) == {"write"}
    if not known or not penalty or case.total.iops is None:
        return None
    return case.total.iops.value * float(penalty)


def _same_load(case: Case, other: Case) -> bool:
    """Whether two cases put the same load on the same drives over the same links."""
    own_jobs, its = case.jobs[:1], other.jobs[:1]
    if not own_jobs or not its or other.setup.baseline or case.setup.baseline:
        return False
    return (
        other.setup.drives == case.setup.drives
        and set(other.ops) == set(case.ops)
        and own_jobs[0].block_bytes == its[0].block_bytes
        and own_jobs[0].random_percent == its[0].random_percent
        and own_jobs[0].direct == its[0].direct
        and _links(other) == _links(case)
    )


def _same_work(case: Case, other: Case) -> bool:
    """Whether each write is as many writes to drives in both, and something else sets them apart."""
    laid_out = other.setup.system != case.setup.system
    new = other.setup.new_file != case.setup.new_file
    one_for_one = other.setup.drive_writes_per_write == case.setup.drive_writes_per_write
    return one_for_one and ((laid_out and _sizes(case) == _sizes(other)) or new)


def _links(case: Case) -> tuple[str, ...]:
    return case.declared.links if case.declared else ()


def _sizes(case: Case) -> tuple[int | None, ...]:
    return tuple(job.size_bytes for job in case.jobs)


def _compare(case: Case, other: Case, same: Sequence[Case]) -> Finding | None:
    rates = (_drive_rate(case) or 0.0, _drive_rate(other) or 0.0)
    ratio = max(rates) / min(rates) if min(rates) else 0.0
    if ratio < APART:
        return None
    penalty = case.setup.drive_writes_per_write or 1.0
    known = _known_difference(case, other)
    why = known or say("audit.state_differs.unexplained.reason")
    text = say(
        "audit.state_differs.unexplained.text",
        this=_written(case),
        other=_written(other),
        name=other.name,
        factor=f"{ratio:.1f}",
        writes=f"{penalty:g}",
    )
    text += f" {why}"
    # Mirrors and parity double the writes of small random blocks; in order they fill whole stripes.
    layouts = [one for one in (case, *same) if _random(case)]
    layout_rates = {str(one.setup.system): units.count(_drive_rate(one)) for one in layouts}
    evidence: dict[str, float | int | str] = {
        "this": _written(case),
        "other": _written(other),
        "other_is": other.name,
        "apart_factor": ratio,
        "drive_writes_per_write": penalty,
    }
    if known is None and len(layout_rates) > 2:
        every = ", ".join(f"{name} {rate}" for name, rate in layout_rates.items())
        text += " " + say("audit.state_differs.layouts.text", layouts=every)
        evidence["drive_writes_per_s_by_layout"] = every
    return Finding(
        effect="suspect" if known is None else "note",
        confidence=0.85 if known is None else 0.8,
        text=text,
        evidence=evidence,
        advice=say("audit.state_differs.unexplained.advice"),
    )


def _known_difference(case: Case, other: Case) -> str | None:
    """Return what is written down that makes the two unlike each other."""
    news = [one.setup.new_file for one in (case, other)]
    if news[0] == news[1]:
        return None
    cpu = (case if news[0] else other).generator_cpu_percent
    busy = f" at {cpu:.0f} % of a CPU" if cpu is not None else ""
    key = "audit.state_differs.new_file.reason" if news[0] else "audit.state_differs.other_new_file.reason"
    return say(key, busy=busy)


def _random(case: Case) -> bool:
    return all((job.random_percent or 0.0) >= 50 for job in case.jobs)


def _written(case: Case) -> str:
    """Return the rate in the unit it was printed in."""
    printed = case.printed
    if printed.bandwidth and not printed.iops and case.total.bandwidth is not None:
        return units.bandwidth_decimal(case.total.bandwidth.value)
    return f"{units.count(case.total.iops.value if case.total.iops else None)} IOPS"


RULE: Final = Rule(
    name="state_differs",
    asks="Do layouts of the same drives that ask the same of them agree?",
    basis="writes to drives for each write of the host: 1 striped, 2 mirrored, 4 or 6 with parity",
    judge=_judge,
)
