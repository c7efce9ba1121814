"""The six published job files, unchanged, redirected to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import InputError, RefusedError
from loadstone.formats.fio import FileSource, ReadOptions, read_jobfiles
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import SizesFixed
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.workload.placement import Amount
from tests.plan.conftest import device

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

SEED = Path(__file__).parents[1] / "data" / "seed"
EXAMPLES = Path(__file__).parents[2] / "examples" / "vostok"
S = 10**9
GIB = 1 << 30

# name, direction, random, block, depth, clones, averaged logs
FILES = [
    ("4k-seq-read", "read", False, 4096, 128, 16, True),
    ("4k-seq-write", "write", False, 4096, 128, 16, False),
    ("4k-rand-read", "read", True, 4096, 64, 2, True),
    ("4k-rand-write", "write", True, 4096, 16, 2, True),
    ("128k-seq-read", "read", False, 131072, 128, 16, True),
    ("128k-seq-write", "write", False, 131072, 16, 2, True),
]
DEVICES = [f"/dev/sd{letter}" for letter in "cdefghij"]


def load(name: str, *, strict: bool = False) -> Workload:
    return read_jobfiles([FileSource(SEED / f"{name}.fio")], options=ReadOptions(strict_fio_reading=strict))


@pytest.mark.parametrize("name", [row[0] for row in FILES])
def test_examples_are_the_published_files(name: str) -> None:
    assert (EXAMPLES / f"{name}.fio").read_bytes() == (SEED / f"{name}.fio").read_bytes()


@pytest.mark.parametrize(("name", "direction", "random", "block", "depth", "clones", "averaged"), FILES[:5])
@pytest.mark.in_turn
def test_plans_of_the_published_files(
    name: str,
    direction: str,
    random: bool,
    block: int,
    depth: int,
    clones: int,
    averaged: bool,
    tmp_path: Path,
) -> None:
    mapping = {path: str(tmp_path / Path(path).name) for path in DEVICES}
    workload = load(name).map_targets(mapping).with_size(Amount(bytes=64 << 20)).with_runtime(30 * S)
    resolution = resolve(workload)
    plan = resolution.plan
    assert sorted(target.path for target in plan.targets) == sorted(mapping.values())
    assert len(plan.units) == len(plan.cells) == 8
    assert [unit.name for unit in plan.units] == [f"job-{number}" for number in range(1, 9)]
    assert len(plan.streams) == 8 * clones
    for stream in plan.streams:
        op = getattr(stream.pattern, direction)
        assert getattr(stream.pattern, f"{direction}_percent") == 100
        assert op.random_percent == (100 if random else 0)
        assert op.sizes == SizesFixed(bytes=block)
        assert (stream.limits.runtime_ns, stream.limits.time_based) == (30 * S, True)
        assert [(use.offset_bytes, use.length_bytes) for use in stream.files] == [(0, 64 << 20)]
        assert stream.log_ios is not averaged
        assert (stream.batch is None) is random
    assert all(target.direct for target in plan.targets)
    assert all(target.read_only is (direction == "read") for target in plan.targets)
    assert resolution.duration_ns == 30 * S
    assert all(worker.backend.type in ("io_uring", "psync") for worker in plan.workers)
    for job in workload.jobs:
        assert job.outputs.logs.lat == job.outputs.logs.bw == job.outputs.logs.iops
        assert job.outputs.logs.avg_msec == (30000 if averaged else None)


def host() -> HostFacts:
    return HostFacts((0, 1), 64 * GIB, {path: device(500 * GIB) for path in DEVICES})


@pytest.mark.parametrize(("name", "depth", "clones"), [(row[0], row[4], row[5]) for row in FILES[:5]])
def test_on_the_eight_devices_they_name(name: str, depth: int, clones: int) -> None:
    plan = resolve(load(name), host=host(), options=ResolveOptions(base_directory="/t")).plan
    assert sum(stream.iodepth for stream in plan.streams) == 8 * clones * depth
    assert {use.length_bytes for stream in plan.streams for use in stream.files} == {400 * GIB}
    assert len(plan.workers) == 2
    assert all(worker.backend.type == "io_uring" for worker in plan.workers)
    assert all(target.exclusive is (not target.read_only) for target in plan.targets)


def test_the_first_has_16384_outstanding_under_120_mib() -> None:
    resolution = resolve(load("4k-seq-read"), host=host())
    assert sum(stream.iodepth for stream in resolution.plan.streams) == 16_384
    assert memory_bytes(resolution.plan) < 120 << 20


@pytest.mark.parametrize("mapped", [False, True])
def test_the_sixth_is_refused_for_its_last_section(mapped: bool, tmp_path: Path) -> None:
    workload = load("128k-seq-write")
    if mapped:
        workload = workload.map_targets(
            {path: str(tmp_path / Path(path).name) for path in DEVICES if path[-1] != "i"}
        )
        workload = workload.with_size(Amount(bytes=1 << 20))
    with pytest.raises(RefusedError) as caught:
        resolve(workload, host=None if mapped else host())
    text = str(caught.value)
    assert text.startswith(f"{SEED}/128k-seq-write.fio:32: the section [job-8] has no filename")
    assert "job-8.0.0" in text
    assert "filename" in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def test_the_sixth_runs_with_targets_for_all_or_when_read_as_fio_does(tmp_path: Path) -> None:
    plan = resolve(
        load("128k-seq-write").with_targets([str(tmp_path / "x")]).with_size(Amount(bytes=1 << 20))
    ).plan
    assert len(plan.streams) == 16
    strict = load("128k-seq-write", strict=True).with_size(Amount(bytes=1 << 20))
    found = resolve(strict, host=host(), options=ResolveOptions(base_directory=str(tmp_path))).plan
    names = [Path(target.path).name for target in found.targets]
    assert names[-2:] == ["job-8.0.0", "job-8.1.0"]


def test_a_name_that_occurs_nowhere_is_an_error() -> None:
    with pytest.raises(InputError, match="no job uses '/dev/sdx'") as caught:
        load("4k-rand-read").map_targets({"/dev/sdx": "/tmp/x"})
    assert "/dev/sdc" in (caught.value.hint or "")


def test_a_map_for_the_disk_that_the_sixth_file_forgot_is_told_what_is_missing() -> None:
    """Regression: the unused name in --map was named instead of the empty section."""
    with pytest.raises(RefusedError, match=r"\[job-8\] has no filename"):
        load("128k-seq-write").map_targets({f"/dev/sd{letter}": f"/tmp/{letter}" for letter in "cdefghij"})
