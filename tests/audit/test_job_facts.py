"""What decides which explanations hold for a job is what its options ask for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from loadstone.audit.job_facts import job_facts
from loadstone.explanations.job_facts import JobFacts
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.resolve import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.workload.model import Job

CHOICES = {
    "rw": ("read", "write", "randread", "randwrite", "rw", "randrw"),
    "bs": ("4k", "512", "64k", "8k,16k"),
    "bsrange": (None, None, "4k-512k", "512-8k"),
    "iodepth": ("1", "16"),
    "numjobs": ("1", "3"),
    "offset": (None, "4k", "1k"),
    "blockalign": (None, None, "512", "8k"),
    "size": ("1m", "4m"),
    "rate_iops": (None, None, "100"),
    "thinktime": (None, "1ms"),
    "zero_buffers": (None, "1"),
    "refill_buffers": (None, "1"),
    "buffer_compress_percentage": (None, "50"),
}


def asked(text: str) -> tuple[Plan, tuple[Job, ...]]:
    workload = read_jobfiles([TextSource(text.encode(), name="job.fio")])
    return resolve(workload).plan, workload.jobs


def expected(options: dict[str, str | None]) -> JobFacts:
    direction = str(options["rw"])
    writes = direction not in {"read", "randread"}
    sizes = options["bsrange"] or options["bs"] or ""
    scrambled = options["zero_buffers"] is None and options["buffer_compress_percentage"] is None
    return JobFacts(
        reads=direction not in {"write", "randwrite"},
        writes=writes,
        in_order=not direction.startswith("rand"),
        paced=options["rate_iops"] is not None or options["thinktime"] is not None,
        depth=int(options["iodepth"] or 0) * int(options["numjobs"] or 0),
        targets=1,
        partial=options["size"] == "1m",
        off_grid="512" in sizes.split("-")[0]
        or options["offset"] == "1k"
        or (options["blockalign"] == "512" and direction.startswith("rand")),
        repeats_payload=writes and not scrambled,
        in_tree=False,
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(30))
def test_facts_are_what_the_options_ask_for(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "target"
    with file.open("wb") as made:
        made.truncate(4 << 20)
    chance = random.Random(seed)
    options = {name: chance.choice(values) for name, values in CHOICES.items()}
    lines = [f"{name}={value}" for name, value in options.items() if value is not None]
    text = "\n".join(["[job]", "ioengine=io_uring", f"filename={file}", *lines, ""])
    plan, jobs = asked(text)
    assert job_facts(plan, jobs, plan.streams) == expected(options), text


def test_nothing_is_said_of_jobs_that_are_not_known(tmp_path: Path) -> None:
    plan, jobs = asked(f"[job]\nrw=read\nsize=1m\nfilename={tmp_path / 'target'}\n")
    assert job_facts(plan, jobs, ()) is None
    assert job_facts(plan, (), plan.streams) is None
    assert job_facts(plan, jobs, plan.streams) is not None


def test_what_two_jobs_of_one_name_do_is_not_known(tmp_path: Path) -> None:
    target = f"size=1m\nfilename={tmp_path / 'target'}\n"
    plan, jobs = asked(f"[job]\nrw=read\n{target}[job]\nrw=write\n{target}")
    assert job_facts(plan, jobs, plan.streams) is None
