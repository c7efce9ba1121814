"""What decides which explanations hold is the same from what was asked for and from the Plan of it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadstone.audit.case import TargetState
from loadstone.audit.job_facts import job_facts
from loadstone.audit.planned import planned
from loadstone.audit.requested import DueRates, request
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.resolve import resolve
from loadstone.probe import planned_facts

if TYPE_CHECKING:
    from pathlib import Path

CHOICES = {
    "rw": ("read", "write", "randread", "randwrite", "rw", "randrw"),
    "bs": ("4k", "512", "64k", "8k,16k"),
    "bsrange": (None, None, "4k-512k", "512-8k"),
    "iodepth": ("1", "16"),
    "numjobs": ("1", "3"),
    "offset": (None, "4k", "1k"),
    "size": ("1m", "4m"),
    "rate_iops": (None, None, "100"),
    "thinktime": (None, "1ms"),
    "zero_buffers": (None, "1"),
    "refill_buffers": (None, "1"),
    "buffer_compress_percentage": (None, "50"),
}


@pytest.mark.parametrize("seed", range(30))
def test_a_request_tells_what_its_plan_tells(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "target"
    with file.open("wb") as made:
        made.truncate(4 << 20)
    chance = random.Random(seed)
    options = {name: chance.choice(values) for name, values in CHOICES.items()}
    lines = [f"{name}={value}" for name, value in options.items() if value is not None]
    text = "\n".join(["[job]", "ioengine=io_uring", f"filename={file}", *lines, ""])
    workload = read_jobfiles([TextSource(text.encode(), name="job.fio")])
    plan = resolve(workload).plan
    asked = request("job", workload.jobs, planned(plan, plan.streams), DueRates({}, {}))
    targets = [TargetState(target.path, size_bytes=target.size_bytes, kind="file") for target in plan.targets]
    told, of_plan = job_facts([asked], targets), planned_facts.job_facts(plan, 0)
    assert told is not None
    if not of_plan.writes:
        # Nobody asks what a load that only reads would write.
        assert not told.repeats_payload
        of_plan = replace(of_plan, repeats_payload=False)
    assert told == of_plan, text


def test_nothing_is_told_of_jobs_that_nobody_knows() -> None:
    assert job_facts([], []) is None
