from __future__ import annotations

import pytest

from loadstone.errors import InputError
from loadstone.formats.fio import TextSource, read_jobfiles
from loadstone.workload.model import Workload
from loadstone.workload.placement import Amount


def read(text: str) -> Workload:
    return read_jobfiles([TextSource(text, "job.fio")])


def test_map_changes_only_what_it_names_and_remembers_what_was_written() -> None:
    found = read("[a]\nfilename=/dev/x:/dev/y\n[b]\nfilename=/dev/y\n").map_targets({"/dev/y": "/tmp/y"})
    assert [[t.path for t in job.placement.targets] for job in found.jobs] == [
        ["/dev/x", "/tmp/y"],
        ["/tmp/y"],
    ]
    assert [t.written for t in found.jobs[0].placement.targets] == ["/dev/x", "/dev/y"]
    assert found.notes[-1].kind == "changed"


def test_map_knows_a_device_that_is_only_a_section_name() -> None:
    found = read("[/dev/sdq]\nrw=read\n").map_targets({"/dev/sdq": "/tmp/q"})
    assert [t.path for t in found.jobs[0].placement.targets] == ["/tmp/q"]


def test_map_without_effect_lists_the_names() -> None:
    with pytest.raises(InputError, match="no job uses '/dev/z'") as caught:
        read("[a]\nfilename=/dev/x\n").map_targets({"/dev/z": "/tmp/z"})
    assert "/dev/x" in (caught.value.hint or "")


def test_targets_replace_names_directories_and_numbers() -> None:
    found = read("[a]\ndirectory=/mnt\nnrfiles=4\n[b]\nfilename=/dev/x\n").with_targets(["/tmp/1", "/tmp/2"])
    for job in found.jobs:
        assert [t.path for t in job.placement.targets] == ["/tmp/1", "/tmp/2"]
        assert job.placement.directories == ()
        assert job.placement.nrfiles is None


def test_targets_without_effect_are_refused() -> None:
    for paths in ([], ["/tmp/1", "/tmp/1"]):
        with pytest.raises(InputError):
            read("[a]\n").with_targets(paths)
    with pytest.raises(InputError, match="ioengine=null"):
        read("[a]\nioengine=null\nsize=1g\n").with_targets(["/tmp/1"])


def test_runtime_and_size() -> None:
    found = read("[a]\nsize=1g\nio_size=2g\n[b]\nruntime=5\n").with_runtime(7).with_size(Amount(percent=10.0))
    assert [job.limits.runtime_ns for job in found.jobs] == [7, 7]
    assert [(job.placement.size, job.limits.io_size) for job in found.jobs] == [
        (Amount(percent=10.0), None)
    ] * 2
    with pytest.raises(InputError, match="runtime is 0"):
        found.with_runtime(0)
    with pytest.raises(InputError, match="size is 0"):
        found.with_size(Amount(bytes=0))
    with pytest.raises(InputError, match=r"job\.fio:2"):
        read("[a]\nfilesize=1m\n").with_size(Amount(bytes=1))


def test_a_workload_survives_its_json() -> None:
    text = "[a]\nbssplit=4k/60:8k/\nrandom_distribution=zipf:1.2\nsize=80%\nwrite_bw_log=x\nbsrange=1k-2k\n"
    found = read(text)
    again = Workload.model_validate_json(found.model_dump_json())
    assert again.jobs == found.jobs
    assert found.sources == {"job.fio": text.encode()}


def test_amounts() -> None:
    assert Amount(bytes=5).of(100) == 5
    assert Amount(percent=33.3).of(1000) == 333
