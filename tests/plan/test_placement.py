"""Options about files that are only created, repeated content and NUMA nodes, as Plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, RefusedError
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.resolve import resolve
from loadstone.plan.safety import guard
from loadstone.plan.safety.run_targets import hold

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan
    from tests.plan.conftest import Planner

JOB = "[a]\nfilename=/t/1g\nrw=randread\nsize=64m\n"


def real(tmp_path: Path, text: str, nodes: dict[int, tuple[int, ...]] | None = None) -> Plan:
    host = HostFacts((0, 1, 2), 8 << 30, nodes=nodes or {0: (0, 1, 2)})
    workload = read_jobfiles([TextSource(text, "job.fio", tmp_path)], options=ReadOptions())
    return resolve(workload, host=host).plan


def test_what_is_created_on_open_is_not_laid_out(tmp_path: Path) -> None:
    text = f"[a]\nfilename={tmp_path}/new\nsize=1m\nrw=randrw\n"
    assert real(tmp_path, text).targets[0].layout is not None
    found = real(tmp_path, text + "create_on_open=1\n").targets[0]
    assert (found.create, found.layout, found.size_bytes) == (True, None, 1 << 20)


def test_missing_directories_are_made_for_nobody_else(tmp_path: Path) -> None:
    made = hold(
        real(tmp_path, f"[a]\nfilename={tmp_path}/one/two/new\nsize=4k\nrw=write\n"), guard.Consent()
    ).plan
    assert made.targets[0].identity is not None
    assert (tmp_path / "one/two/new").is_file()
    modes = [(tmp_path / place).stat().st_mode & 0o777 for place in ("one", "one/two")]
    assert modes == [0o700, 0o700]
    with pytest.raises(InputError, match="there is no directory"):
        real(tmp_path, f"[a]\ndirectory={tmp_path}/none\nsize=4k\nrw=write\n")
    with pytest.raises(InputError, match=r"there is no directory .*/none$"):
        real(tmp_path, f"[a]\ndirectory={tmp_path}/none\nfilename=in/it\nsize=4k\nrw=write\n")


def test_directories_that_a_format_of_names_leads_to_are_made(tmp_path: Path) -> None:
    """A published profile of gcsfuse was refused: `$jobname.$jobnum/$filenum` below a `directory`."""
    text = f"[a]\ndirectory={tmp_path}\nfilename_format=$jobname.$jobnum/in/$filenum\nnrfiles=2\nnumjobs=2\n"
    hold(real(tmp_path, text + "size=8k\nrw=read\n"), guard.Consent())
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["a.0/in/0", "a.0/in/1", "a.1/in/0", "a.1/in/1"]


def test_repeated_content_comes_from_a_set_of_its_own_or_of_all(plan: Planner) -> None:
    text = (
        "[a]\nfilename=/t/1g\nrw=write\nbs=4k\nsize=4m\nnumjobs=2\n"
        "dedupe_percentage=50\ndedupe_mode=working_set\n"
    )
    sets = [stream.payload.dedupe_set for stream in plan(text).plan.streams]
    assert [one.contents for one in sets if one] == [51, 51]
    assert len({one.seed for one in sets if one}) == 2
    shared = plan(text + "dedupe_working_set_percentage=25\ndedupe_global=1\n").plan.streams
    found = {one.payload.dedupe_set for one in shared}
    assert len(found) == 1
    assert next(one.contents for one in found if one) == 256
    plain = plan(text.replace("working_set", "repeat")).plan.streams
    assert {stream.payload.dedupe_set for stream in plain} == {None}


@pytest.mark.parametrize(
    "options",
    ["dedupe_mode=working_set", "dedupe_global=1\ndedupe_percentage=5", "dedupe_working_set_percentage=9"],
)
def test_a_set_without_effect_is_refused(plan: Planner, options: str) -> None:
    with pytest.raises(RefusedError, match="no effect without"):
        plan(f"{JOB}{options}\n")


def test_nodes_give_their_processors(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(65536))
    job = f"[a]\nfilename={tmp_path}/data\nthreads=1\n"
    two = {0: (0,), 1: (1, 2, 3)}
    assert real(tmp_path, f"{job}numa_cpu_nodes=1\n", two).workers[0].cpus == (1, 2)
    assert real(tmp_path, f"{job}numa_cpu_nodes=all\n", two).workers[0].cpus == ()
    assert real(tmp_path, f"{job}numa_mem_policy=bind:0\n").workers[0].cpus == ()
    assert real(tmp_path, f"{job}numa_mem_policy=local\n", two).workers[0].cpus == ()
    with pytest.raises(InputError, match="no NUMA node 7"):
        real(tmp_path, f"{job}numa_cpu_nodes=7\n", two)
    with pytest.raises(RefusedError, match="interleave with nodes 0, 1"):
        real(tmp_path, f"{job}numa_mem_policy=interleave:0-1\n", two)
    with pytest.raises(InputError, match="found 'bnd'"):
        real(tmp_path, f"{job}numa_mem_policy=bnd:0\n")
