"""How jobs, clones and targets are put together, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import InputError, LoadstoneError, RefusedError

if TYPE_CHECKING:
    from tests.plan.conftest import Planner

M = 1 << 20
S = 10**9


def test_stages_groups_and_units(plan: Planner) -> None:
    text = (
        "[global]\nfilename=/t/1g\n[a]\nnumjobs=2\n[b]\n[c]\nstonewall\n"
        "[d]\nnew_group\n[e]\nstonewall\nnumjobs=2\n"
    )
    found = plan(text).plan
    assert [(unit.name, unit.group, unit.clone) for unit in found.units] == [
        ("a", 0, None), ("b", 0, None), ("c", 1, None), ("d", 2, None), ("e", 3, None)
    ]  # fmt: skip
    stages = [found.workers[stream.worker].stage for stream in found.streams]
    assert stages == [0, 0, 0, 1, 1, 2, 2]
    assert [stream.name for stream in found.streams] == ["a.0", "a.1", "b.0", "c.0", "d.0", "e.0", "e.1"]


def test_a_stonewall_at_the_first_job_is_no_stage(plan: Planner) -> None:
    found = plan("[a]\nstonewall\nfilename=/t/1g\n[b]\nstonewall\nfilename=/t/1g\n").plan
    assert [worker.stage for worker in found.workers] == [0, 1]
    assert [unit.group for unit in found.units] == [0, 1]


def test_clones_may_be_units(plan: Planner) -> None:
    found = plan("[a]\nfilename=/t/1g\nnumjobs=3\n", per_clone_units=True).plan
    assert [(unit.name, unit.clone) for unit in found.units] == [("a", 0), ("a", 1), ("a", 2)]
    assert [stream.files[0].cell for stream in found.streams] == [0, 1, 2]


def test_fio_numbers_the_last_clone_second(plan: Planner) -> None:
    text = "[a]\nfilename=/t/1g\nsize=1m\noffset_increment=2m\nnumjobs=4\n"
    strict = plan(text, strict=True, per_clone_units=True).plan
    assert [unit.clone for unit in strict.units] == [0, 3, 2, 1]
    assert [stream.files[0].offset_bytes // M for stream in strict.streams] == [0, 6, 4, 2]
    assert [stream.files[0].offset_bytes // M for stream in plan(text).plan.streams] == [0, 2, 4, 6]


def test_a_renamed_job_keeps_the_names_of_its_files(plan: Planner) -> None:
    found = plan("[a]\nname=other\nsize=1m\nrw=write\n").plan
    assert (found.units[0].name, found.targets[0].path) == ("other", "/t/a.0.0")


def test_cells_are_per_unit_and_target(plan: Planner) -> None:
    found = plan("[a]\nfilename=/dev/sda:/dev/sdb\nnumjobs=2\n[b]\nfilename=/dev/sda\n").plan
    assert [(cell.unit, cell.target) for cell in found.cells] == [(0, 0), (0, 1), (1, 0)]
    assert [[use.cell for use in stream.files] for stream in found.streams] == [[0, 1], [0, 1], [2]]


def test_many_targets_share_one_cell(plan: Planner) -> None:
    found = plan("[a]\nnumjobs=65\nsize=1m\nrw=write\n").plan
    assert len(found.targets) == 65
    assert [(cell.unit, cell.target) for cell in found.cells] == [(0, None)]
    assert len(plan("[a]\nnumjobs=64\nsize=1m\nrw=write\n").plan.cells) == 64


def test_ring_clones_share_a_few_threads_and_psync_clones_have_their_own(plan: Planner) -> None:
    ring = plan("[a]\nfilename=/t/1g\nioengine=io_uring\ndirect=1\nnumjobs=10\n").plan
    assert len(ring.workers) == 4
    assert [stream.worker for stream in ring.streams] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert len(plan("[a]\nfilename=/t/1g\nioengine=psync\nnumjobs=10\n").plan.workers) == 10
    pinned = plan("[a]\nfilename=/t/1g\nioengine=io_uring\ndirect=1\nnumjobs=10\ncpus_allowed=2-3\n").plan
    assert [worker.cpus for worker in pinned.workers] == [(2, 3), (2, 3)]
    split = plan(
        "[a]\nfilename=/t/1g\nioengine=psync\nnumjobs=3\ncpus_allowed=2-3\ncpus_allowed_policy=split\n"
    ).plan
    assert [worker.cpus for worker in split.workers] == [(2,), (3,), (2,)]


@pytest.mark.parametrize(("clones", "pace", "told"), [(256, "", 0), (257, "", 1), (257, "rate_iops=9\n", 0)])
def test_clones_that_go_in_step_are_told(plan: Planner, clones: int, pace: str, told: int) -> None:
    found = plan(f"[a]\nfilename=/t/1g\nioengine=io_uring\nnumjobs={clones}\n{pace}")
    assert len([note for note in found.notes if "wait for each other" in note.text]) == told


@pytest.mark.parametrize(
    ("lines", "keep_ioengine", "threads"),
    [
        ("filename=/t/1g\nioengine=io_uring\n", False, 3),
        ("filename=/t/1g\nioengine=libaio\niodepth=8\n", False, 3),
        ("filename=/t/1g\nioengine=libaio\niodepth=8\n", True, 3),
        ("filename=/t/tmpfs\nioengine=libaio\n", False, 3),
        ("filename=/t/1g\nioengine=io_uring\ndirect=1\n", False, 1),
        ("filename=/t/1g\nioengine=io_uring\nsqthread_poll\n", False, 1),
        ("filename=/t/1g\nioengine=libaio\ndirect=1\n", True, 1),
        ("filename=/t/1g\nioengine=io_uring\nrate_iops=50\n", False, 1),
        ("filename=/t/1g\nioengine=libaio\nrate_iops=50\n", True, 3),
        ("filename=/t/1g\nioengine=psync\nrate_iops=50\n", False, 3),
    ],
)
def test_jobs_share_no_thread_that_does_their_io_itself(
    plan: Planner, lines: str, keep_ioengine: bool, threads: int
) -> None:
    """882200-028: what the page cache has is copied by the thread, and clones that shared it went in step."""
    text = f"[global]\ncpus_allowed=1\nrw=randread\n{lines}[a]\nbs=4k\nnumjobs=2\n[b]\nbs=512k\n"
    found = plan(text, keep_ioengine=keep_ioengine).plan
    assert len({stream.worker for stream in found.streams}) == len(found.workers) == threads


@pytest.mark.in_turn
def test_many_clones_do_not_take_as_many_threads(plan: Planner) -> None:
    found = plan("[a]\nfilename=/t/1g\nioengine=io_uring\nnumjobs=600\n").plan
    assert len(found.workers) == 256
    assert [found.streams[n].worker for n in (0, 255, 256, 599)] == [0, 255, 0, 87]


def test_memory_targets_use_the_synchronous_path_and_say_so(plan: Planner) -> None:
    resolution = plan("[a]\nfilename=/t/tmpfs\nioengine=libaio\niodepth=32\nnumjobs=10\n")
    assert {worker.backend.type for worker in resolution.plan.workers} == {"psync"}
    assert len(resolution.plan.workers) == 10
    assert any("complete in the caller" in note.text for note in resolution.notes)
    kept = plan("[a]\nfilename=/t/tmpfs\nioengine=libaio\niodepth=32\n", keep_ioengine=True).plan
    assert kept.workers[0].backend.type == "libaio"
    assert kept.streams[0].iodepth == 32


def test_a_depth_without_an_engine_is_meant(plan: Planner) -> None:
    text = "[a]\nfilename=/t/1g\niodepth=32\n"
    meant, strict = plan(text), plan(text, strict=True)
    assert (meant.plan.workers[0].backend.type, meant.plan.streams[0].iodepth) == ("io_uring", 32)
    assert any("fio would use psync" in note.text for note in meant.notes)
    assert (strict.plan.workers[0].backend.type, strict.plan.streams[0].iodepth) == ("psync", 1)


def test_seeds_repeat_unless_asked_not_to(plan: Planner) -> None:
    def seeds(extra: str = "") -> list[int]:
        return [s.seed for s in plan(f"[a]\nfilename=/t/1g\nnumjobs=3\n{extra}\n").plan.streams]

    assert seeds() == seeds()
    assert len(set(seeds())) == 3
    assert seeds("randseed=7") == seeds("randseed=7") != seeds()
    assert seeds("randrepeat=0") != seeds("randrepeat=0")


def test_start_delay_range_is_drawn_inside(plan: Planner) -> None:
    found = plan("[a]\nfilename=/t/1g\nnumjobs=8\nstartdelay=1-3\n").plan
    delays = [stream.limits.start_delay_ns for stream in found.streams]
    assert all(S <= delay <= 3 * S for delay in delays)
    assert len(set(delays)) == 8


def test_one_path_opened_two_ways_is_two_targets_claimed_once(plan: Planner) -> None:
    found = plan("[global]\nfilename=/dev/sda\nrw=write\n[a]\ndirect=1\n[b]\ndirect=0\n").plan
    assert [(t.path, t.direct, t.exclusive) for t in found.targets] == [
        ("/dev/sda", True, True), ("/dev/sda", False, False)
    ]  # fmt: skip


def test_needs_of_several_jobs_on_one_file_add_up(plan: Planner) -> None:
    found = plan("[global]\nfilename=new\n[a]\nrw=write\nsize=1m\n[b]\nstonewall\nrw=read\nsize=4m\n").plan
    assert len(found.targets) == 1
    layout = found.targets[0].layout
    assert layout is not None
    assert (layout.size_bytes, layout.write) == (4 * M, True)
    assert found.targets[0].read_only is False


def test_durations_and_budgets(plan: Planner) -> None:
    text = (
        "[a]\nfilename=/t/1g\nruntime=10\nramp_time=2\n[b]\nfilename=/t/1g\nruntime=5\n"
        "[c]\nstonewall\nfilename=new\nsize=8m\nruntime=3\n"
    )
    resolution = plan(text)
    assert resolution.duration_ns == 15 * S
    assert plan("[a]\nfilename=/t/1g\n").duration_ns is None
    big = "[a]\nfilename=/t/1g\nioengine=io_uring\niodepth=128\nnumjobs=128\n"
    assert 64 * M < memory_bytes(plan(f"{big}direct=1\n").plan) < 112 * M
    assert 64 * M < memory_bytes(plan(big).plan) < 120 * M, "a thread for each clone"


def test_more_memory_than_the_host_has_is_refused_with_a_remedy(plan: Planner) -> None:
    big = plan("[a]\nfilename=/t/1g\nioengine=io_uring\niodepth=128\nnumjobs=128\n").plan
    assert big.memory_limit_bytes == 64 << 30, "the memory of the host"
    with pytest.raises(InputError, match=r"the run needs \d+ MiB of memory, the limit is 20 MiB") as refused:
        memory_bytes(big.model_copy(update={"memory_limit_bytes": 20 * M}))
    assert "lower iodepth, block size" in str(refused.value.hint)


def test_holes_are_said(plan: Planner) -> None:
    assert any("holes" in note.text for note in plan("[a]\nfilename=/t/holes\n").notes)
    assert not any("holes" in note.text for note in plan("[a]\nfilename=/t/holes\nrw=write\n").notes)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[a]\nfilename=new\n", 1, "needs a size"),
        ("[a]\nfilename=new\nsize=50%\n", 3, "50%"),
        ("[a]\nfilename=/t/1g\nbs=2g\nsize=1m\n", 4, "less than one block"),
        ("[a]\nfilename=/t/1g\nbs=1g\nsize=1m\n", 4, "less than one block"),
        ("[a]\nfilename=/dev/sda:/t/1g\nbs=4k\nsize=4k\n", 4, "2048 bytes of /dev/sda are less than"),
        ("[a]\nfilename=/dev/sda\ndirect=1\noffset=4097\n", 4, "in multiples of 512 bytes, not 4097"),
        ("[a]\nfilename=/t/1g\nbsrange=4k-64k\nsize=8k\n", 4, "less than the largest block of 65536"),
        ("[a]\nfilename=/dev/sda\noffset=200g\n", 3, "past the end"),
        ("[a]\nfilename=new\nsize=1m\noffset=50%\n", 4, "[a] begins at 50% of /t/new"),
        ("[a]\nfilename=new\nsize=1m\noffset_increment=25%\n", 4, "[a] begins at 25% of /t/new"),
        ("[a]\nfilename=/dev/4kn\ndirect=1\nbs=512\n", 4, "multiples of 4096"),
        ("[a]\nfilename=/t/1g\nrate=1m\nrate_iops=5\n", 4, "exclude each other"),
        ("[a]\nfilename=/t/1g\nrate_iops_min=5\n", 3, "minimum without"),
        ("[a]\nfilename=/t/1g\ncpus_allowed=9\n", 3, "CPU 9"),
        ("[a]\nfilename=/t/1g\nioengine=psync\nhipri\n", 4, "no effect"),
        ("[a]\nfilename=/t/1g\nioengine=io_uring\nhipri\n", 4, "direct"),
        ("[a]\nfilename=/t/1g\nioengine=mmap\ndirect=1\n", 4, "mmap"),
        ("[a]\nfilename=new\nsize=1m\nallow_file_create=0\n", 4, "no bytes"),
        ("[a]\nfilename=new\nfill_device=1\nrw=write\n", 3, "filling"),
        ("[a]\nfilename=/t/1g\nexitall\n[b]\nnew_group\nfilename=/t/1g\n", 3, "one group of several"),
        ("[a]\nnumjobs=65536\n[b]\nnumjobs=2\n", 1, "too many"),
        ("[a]\nfilename=/t/1g\nnumjobs=4097\n", 3, "threads"),
    ],
)
def test_what_cannot_run_is_said_with_its_place(
    plan: Planner, text: str, line: int | None, words: str
) -> None:
    with pytest.raises(LoadstoneError) as caught:
        plan(text)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2
    assert (caught.value.where.line if caught.value.where else None) == line


@pytest.mark.parametrize(
    ("option", "needed"), [("cpus_allowed_policy=split", "cpus_allowed"), ("exit_what=all", "exitall")]
)
def test_an_option_that_waits_for_another_is_noted_as_fio_takes_it(
    plan: Planner, option: str, needed: str
) -> None:
    found = plan(f"[a]\nfilename=/t/1g\nnumjobs=2\n{option}\n")
    name = option.partition("=")[0]
    (note,) = [note for note in found.notes if name in note.text]
    assert (note.text, note.kind) == (f"{name} has no effect without {needed}", "trap")
    assert note.where is not None
    assert note.where.line == 4
    assert not any(worker.cpus for worker in found.plan.workers)


def test_read_only_refuses_what_writes(plan: Planner) -> None:
    for rw in ("write", "randrw", "trim"):
        with pytest.raises(RefusedError, match=r"job\.fio:3: rw"):
            plan(f"[a]\nfilename=/t/1g\nrw={rw}\n", read_only=True)
    assert plan("[a]\nfilename=/t/1g\n", read_only=True).plan.targets[0].read_only


def test_time_based_without_runtime_is_noted(plan: Planner) -> None:
    resolution = plan("[a]\nfilename=/t/1g\ntime_based\n")
    assert resolution.plan.streams[0].limits.time_based is False
    assert [note.kind for note in resolution.notes] == ["trap"]
