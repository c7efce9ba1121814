"""What a case says was asked for comes from the Workload, and is what the Plan does.

Draw more with `SEEDS=2000`.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit.planned import jobs_of_units, planned
from loadstone.audit.requested import DueRates, request
from loadstone.plan.derived import cells_of
from loadstone.workload.model import Workload
from loadstone.workload.rows import RowWork
from tests.audit import drawn_jobs, request_by_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.audit.case import JobRequest
    from loadstone.plan.model import Plan, Stream
    from loadstone.workload.model import Job

SEEDS = int(os.environ.get("SEEDS", "60"))
EXACT_PERCENT, ROUNDED_PERCENT = 1e-6, 1.0
"""A Plan has whole percents of rows."""


def lines(workload: Workload, plan: Plan) -> Iterator[tuple[Job, list[Stream]]]:
    """Yield every job of a drawn file that has a name of its own, and its streams."""
    kept = Workload.model_validate_json(workload.model_dump_json())
    number_of = jobs_of_units(plan, kept.jobs)
    assert len(number_of) == len(plan.units)
    for number, job in enumerate(kept.jobs):
        cells = {at for at, cell in enumerate(plan.cells) if number_of[cell.unit] == number}
        streams = [stream for stream in plan.streams if cells_of(stream) & cells]
        if streams:
            yield job, streams


def agree(said: Any, does: Any, within_percent: float) -> bool:
    if isinstance(said, dict) and isinstance(does, dict):
        within = within_percent / 100
        return said.keys() == does.keys() and all(abs(said[key] - does[key]) <= within for key in said)
    if isinstance(said, float) and isinstance(does, float | int):
        return abs(said - does) <= within_percent
    return bool(said == does)


def known_to_both(asked: JobRequest, does: dict[str, Any], job: Job) -> dict[str, Any]:
    """Leave out the size that a pass over stamps makes of several: the Workload does not have it."""
    if job.verification.verify_only and not asked.block_bytes:
        return {
            name: value for name, value in does.items() if name not in ("block_bytes", "read_block_bytes")
        }
    return does


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", drawn_jobs.KINDS)
def test_request_is_what_the_plan_does(kind: str) -> None:
    looked_at = 0
    for seed in range(SEEDS):
        for workload, plan in drawn_jobs.planned(kind, random.Random(f"{kind} {seed}")):
            for job, streams in lines(workload, plan):
                asked = request(job.name, [job], planned(plan, streams), DueRates({}, {}))
                does = known_to_both(asked, request_by_plan.request(plan, streams), job)
                within = ROUNDED_PERCENT if isinstance(job.work, RowWork) else EXACT_PERCENT
                both = {name: (getattr(asked, name), value) for name, value in does.items()}
                assert {n: pair for n, pair in both.items() if not agree(*pair, within)} == {}, (seed, job)
                looked_at += 1
    assert looked_at > SEEDS / 4
