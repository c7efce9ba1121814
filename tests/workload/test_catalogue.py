from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError
from loadstone.formats.fio import FileSource, read_jobfiles
from loadstone.plan.pattern import blocks_of
from loadstone.plan.resolve import resolve
from loadstone.workload import catalogue
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from loadstone.workload.model import Job

SEED = Path(__file__).parents[1] / "data" / "seed"
S = 10**9


def test_every_entry_is_listed_under_a_group_and_every_group_has_one() -> None:
    found = {catalogue.load(name).group for name in catalogue.names()}
    assert found == set(catalogue.GROUPS)


@pytest.mark.parametrize(
    "part",
    [
        "storagereview-four-corners",
        *(f"storagereview-{kind}" for kind in ("sql", "sql-90-10", "sql-80-20", "oracle", "oracle-90-10")),
        *(
            f"storagereview-vdi-{clone}-{phase}"
            for clone in ("full-clone", "linked-clone")
            for phase in ("boot", "initial-login", "monday-login")
        ),
        *(
            f"snia-pts-{test}"
            for test in (
                "iops",
                "latency",
                "throughput-128k",
                "write-saturation",
                "cross-stimulus-recovery",
                "host-idle-recovery",
            )
        ),
        "spc-1",
        "jesd219",
        "iozone-matrix",
    ],
)
def test_what_approximates_says_so(part: str) -> None:
    entry = catalogue.load(f"{part}-like")
    assert "-like" in entry.source


@pytest.mark.parametrize("name", catalogue.names())
def test_every_entry_says_what_it_is_and_reads_its_own_defaults(name: str) -> None:
    entry = catalogue.load(name)
    assert entry.meaning
    assert entry.source
    assert all(parameter.meaning for parameter in entry.parameters)
    assert entry.workload().jobs
    json.dumps(entry.document())


def test_four_corners_are_four_stages_that_write_first(tmp_path: Path) -> None:
    workload = catalogue.load("four-corners").workload(
        {"runtime": "10", "random_depth": "64", "random_clones": "2"}
    )
    path = str(tmp_path / "data")
    plan = resolve(workload.with_targets([path]).with_size(Amount(bytes=64 << 20))).plan
    stages = [(plan.workers[s.worker].stage, s.name) for s in plan.streams]
    assert stages == [
        (0, "write-128k-seq.0"),
        (1, "read-128k-seq.0"),
        (2, "read-4k-random.0"),
        (2, "read-4k-random.1"),
        (3, "write-4k-random.0"),
        (3, "write-4k-random.1"),
    ]
    assert all(
        (s.limits.runtime_ns, s.limits.ramp_ns, s.limits.time_based) == (10 * S, 2 * S, True)
        for s in plan.streams
    )
    assert [target.path for target in plan.targets] == [path]
    assert plan.targets[0].direct
    assert len(plan.cells) == 4


@pytest.mark.parametrize(
    "name",
    ["4k-seq-read", "4k-seq-write", "4k-rand-read", "4k-rand-write", "128k-seq-read", "128k-seq-write"],
)
def test_scenarios_are_the_published_jobs(name: str) -> None:
    published = read_jobfiles([FileSource(SEED / f"{name}.fio")]).jobs[0]
    mine = catalogue.load(f"vostok-{name}").workload().jobs[0]

    def load(job: Job) -> tuple[object, ...]:
        return (
            blocks_of(job).mix.rw,
            blocks_of(job).sizes.bs,
            job.engine.iodepth,
            job.schedule.numjobs,
            job.engine.direct,
            job.engine.ioengine,
            job.placement.size,
            job.limits.runtime_ns,
            job.limits.time_based,
            job.schedule.group_reporting,
        )

    assert load(mine) == load(published)


def test_one_job_per_target(tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number)) for number in range(3)]
    workload = catalogue.load("vostok-4k-rand-read").workload({"size": "1m"}).with_targets(paths)
    assert [(job.name, job.placement.targets[0].path) for job in workload.jobs] == [
        ("lun-1", paths[0]),
        ("lun-2", paths[1]),
        ("lun-3", paths[2]),
    ]
    plan = resolve(workload).plan
    assert len(plan.units) == 3
    assert len(plan.streams) == 6


def test_a_named_workload_needs_a_target() -> None:
    with pytest.raises(InputError, match="four-corners needs a target") as caught:
        resolve(catalogue.load("four-corners").workload())
    assert "--target" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"depth": "0"}, "expected 32"),
        ({"depth": "many"}, "expected 32"),
        ({"size": "101%"}, "expected 1g or 80%"),
        ({"runtime": "-1"}, "expected 30"),
        ({"deepness": "4"}, "no parameter 'deepness'"),
    ],
)
def test_wrong_parameters(given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        catalogue.load("vostok-4k-rand-read").workload(given)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="no workload 'five-corners'"):
        catalogue.load("five-corners")
