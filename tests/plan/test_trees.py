"""Jobs in trees: what their Plans say, and what must be there first."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.vdbench import Given, ParameterText, expand, lower, read
from loadstone.path.mounts import Mount
from loadstone.plan import host_facts
from loadstone.plan import model as plan
from loadstone.plan.anchors import Found, Structure
from loadstone.plan.derived import asked_operations, targets_of
from loadstone.plan.host_facts import AnchorFacts, HostFacts
from loadstone.plan.model import RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve
from loadstone.plan.stream import TotalRate

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

GIB = 1 << 30
EMPTY = Found(exists=True)
FULL = Found(exists=True, has_directories=True, has_files=True, first_file=1)
ROOM = AnchorFacts(EMPTY, free_bytes=100 * GIB, free_files=10**6)
FSD = "fsd=f,anchor=/t/a,depth=2,width=3,files=10,size=8k\n"


def planned(
    text: str, found: Found = FULL, number: int = -1, *, facts: AnchorFacts | None = None, **options: Any
) -> Resolution:
    """Plan a run of a parameter file, the last one unless told."""
    return planned_run(text, found, number, facts=facts, **options)[1]


def planned_run(
    text: str, found: Found = FULL, number: int = -1, *, facts: AnchorFacts | None = None, **options: Any
) -> tuple[Workload, Resolution]:
    """Plan a run, and return what was asked for, too."""
    file = read([ParameterText(text.encode(), "t.parm", Path())])
    host = HostFacts(
        cpus=(0, 1),
        memory_bytes=64 * GIB,
        known_anchors={system.anchor: facts or replace(ROOM, found=found) for system in file.file_systems},
    )
    workload = lower(file, expand(file)[number], Given(rate_iops=100.0))
    return workload, resolve(workload, host=host, options=ResolveOptions(**options))


def changed(text: str, values: dict[str, Any]) -> plan.Plan:
    """Plan the last run of a parameter file with other values in its jobs."""
    file = read([ParameterText(text.encode(), "t.parm", Path())])
    workload = lower(file, expand(file)[-1])
    jobs = tuple(job.changed(values) for job in workload.jobs)
    host = HostFacts(cpus=(0, 1), memory_bytes=GIB, known_anchors={"/t/a": replace(ROOM, found=FULL)})
    return resolve(workload.model_copy(update={"jobs": jobs}), host=host).plan


def run(fwd: str, rd: str = "", fsd: str = FSD) -> str:
    return f"{fsd}fwd=w,fsd=f*,{fwd}\nrd=r,fwd=w,elapsed=4,fwdrate=max,{rd}\n".replace(",\n", "\n")


def stream(text: str, **given: Any) -> plan.Stream:
    return planned(text, **given).plan.streams[0]


def use(text: str, **given: Any) -> plan.TreeUse:
    found = stream(text, **given).tree
    assert found is not None
    return found


def test_a_format_makes_directories_then_files() -> None:
    made = planned(run("operation=read", "format=yes"), EMPTY, 0).plan
    assert [made.workers[one.worker].stage for one in made.streams] == [0] * 8 + [1] * 8
    assert {worker.backend.type for worker in made.workers} == {"files"}
    first, last = made.streams[0].tree, made.streams[-1].tree
    assert first is not None
    assert last is not None
    assert first.operation == plan.FileOperationMkdir()
    assert last.operation == plan.FileOperationCreate(fill=True)
    assert made.trees[0].clear
    assert made.trees[0].first_file == 0
    limits = made.streams[-1].limits
    assert (limits.runtime_ns, limits.bytes, limits.ops, limits.time_based) == (0, 0, 0, False)
    write = made.streams[-1].pattern
    assert (write.write_percent, write.write.sizes) == (100, plan.SizesFixed(bytes=128 << 10))


def test_the_target_is_the_anchor() -> None:
    made = planned(run("operation=read", "openflags=(o_direct,o_sync)")).plan
    (target,) = made.targets
    assert (target.path, target.kind) == ("/t/a", plan.TargetKind.TREE)
    assert (target.direct, target.sync, target.read_only) == (True, plan.OpenSync.SYNC, True)
    assert target.size_bytes == 9 * 10 * 8192
    assert made.trees[0] == plan.Tree(
        target=0,
        depth=2,
        width=3,
        files=10,
        first_file=1,
        everywhere=False,
        sizes=plan.FileSizesTable(table=(plan.FileSize(bytes=8192, weight=100.0),)),
        seed=made.trees[0].seed,
        total_bytes=0,
        clear=False,
        part=plan.FilePart(index=0, count=1),
        vouched_ns=None,
    )


def test_the_sizes_of_files_are_the_same_in_every_run() -> None:
    first = planned(run("operation=read", "format=yes"), EMPTY, 0).plan.trees[0]
    assert planned(run("operation=read")).plan.trees[0].seed == first.seed


def test_a_seed_of_its_own_changes_the_choice_and_not_the_sizes() -> None:
    file = read([ParameterText(run("operation=read,fileselect=random").encode(), "t.parm", Path())])
    workload = lower(file, expand(file)[0])
    host = HostFacts((0,), GIB, known_anchors={"/t/a": replace(ROOM, found=FULL)})
    seeded = [job.changed({"seeds.randseed": 5}) for job in workload.jobs]
    first, second = (
        resolve(one, host=host).plan
        for one in (workload, workload.model_copy(update={"jobs": tuple(seeded)}))
    )
    assert first.streams[0].seed != second.streams[0].seed
    assert first.trees == second.trees


def test_every_thread_is_a_stream_of_its_own() -> None:
    made = planned(run("threads=5")).plan
    assert [one.iodepth for one in made.streams] == [1] * 5
    assert [one.worker for one in made.streams] == list(range(5))
    assert len({one.seed for one in made.streams}) == 5
    assert {one.tree.cell for one in made.streams if one.tree} == {0}


@pytest.mark.parametrize(
    ("word", "operation"),
    [
        ("mkdir", plan.FileOperationMkdir()),
        ("rmdir", plan.FileOperationRmdir()),
        ("create", plan.FileOperationCreate(fill=False)),
        ("open", plan.FileOperationOpen()),
        ("delete", plan.FileOperationDelete()),
        ("getattr", plan.FileOperationGetattr()),
        ("setattr", plan.FileOperationSetattr()),
        ("access", plan.FileOperationAccess()),
    ],
)
def test_an_operation_is_the_plans(word: str, operation: plan.FileOperation) -> None:
    one = stream(run(f"operation={word}"))
    assert one.tree is not None
    assert one.tree.operation == operation
    assert asked_operations(one) == {word}
    changes = word not in ("open", "getattr", "access")
    assert planned(run(f"operation={word}")).plan.targets[0].read_only is not changes


@pytest.mark.parametrize(
    ("words", "asked", "expected"),
    [
        ("operation=read", {"read"}, (False, plan.FileStopWhole(), False)),
        ("operation=write", {"write"}, (False, plan.FileStopWhole(), False)),
        ("rdpct=30,fileio=random", {"read", "write"}, (True, plan.FileStopWhole(), False)),
        ("rdpct=100,fileio=random", {"read"}, (True, plan.FileStopWhole(), False)),
        ("operation=write,fileio=(seq,delete)", {"write"}, (False, plan.FileStopWhole(), True)),
        ("fileio=random,stopafter=7", {"read"}, (True, plan.FileStopTransfers(count=7), False)),
        ("fileio=random,stopafter=25%", {"read"}, (True, plan.FileStopPercent(percent=25), False)),
    ],
)
def test_a_transfer_says_how(words: str, asked: set[str], expected: tuple[bool, Any, bool]) -> None:
    one = stream(run(words))
    assert asked_operations(one) == asked
    assert one.tree is not None
    operation = one.tree.operation
    assert isinstance(operation, plan.FileOperationTransfer)
    assert (operation.random, operation.stop, operation.delete_before) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sequential", plan.FileSelectSequential(random_start=False, once=False)),
        ("(sequential,once)", plan.FileSelectSequential(random_start=False, once=True)),
        ("seqnz", plan.FileSelectSequential(random_start=True, once=False)),
        ("random", plan.FileSelectRandom()),
        ("(poisson,10)", plan.FileSelectSkewed(midpoint_percent=100 * math.log(2) / 10)),
        ("skewed", plan.FileSelectSkewed(midpoint_percent=100 * math.log(2) / 3)),
    ],
)
def test_files_are_selected_as_asked(words: str, expected: plan.FileSelect) -> None:
    assert use(run(f"fileselect={words}")).select == expected


def test_a_table_of_transfer_sizes_is_kept() -> None:
    sizes = stream(run("xfersize=(4k,75,64k,25)")).pattern.read.sizes
    assert isinstance(sizes, plan.SizesSplit)
    assert [(one.bytes, one.weight) for one in sizes.table] == [(4096, 75.0), (65536, 25.0)]


def test_a_rate_is_divided_over_workloads_trees_and_threads() -> None:
    text = (
        "fsd=f,anchor=/t/a,count=(1,2)\nfwd=a,fsd=f*,operation=getattr,skew=80,threads=4\n"
        "fwd=b,fsd=f*,operation=read\nrd=r,fwd=*,fwdrate=1000,elapsed=4\n"
    )
    made = planned(text).plan
    rates = [one.tree.rate for one in made.streams if one.tree and one.tree.rate]
    assert [round(one.amount.per_second) for one in rates] == [200, 200, 200, 200, 100, 100]
    assert {one.process for one in rates} == {RateProcess.POISSON}


@pytest.mark.parametrize(("word", "process"), [("exp", "poisson"), ("uni", "uniform"), ("det", "linear")])
def test_arrivals_are_as_asked(word: str, process: str) -> None:
    text = run("operation=read", f"distribution={word}").replace("fwdrate=max", "fwdrate=100")
    rate = use(text).rate
    assert rate is not None
    assert rate.process == process


def test_even_arrivals_take_turns() -> None:
    made = planned(run("threads=4", "distribution=deterministic").replace("fwdrate=max", "fwdrate=100")).plan
    rates = [one.tree.rate for one in made.streams if one.tree]
    assert [one.phase for one in rates if one] == [0.0, 0.25, 0.5, 0.75]


def test_total_size_and_working_set_bound_the_files() -> None:
    text = run("operation=read", fsd="fsd=f,anchor=/t/a,files=100,size=1m,totalsize=10m,wss=3m\n")
    made = planned(text).plan
    assert made.trees[0].total_bytes == 10 << 20
    assert made.targets[0].size_bytes == 10 << 20
    assert use(text).working_set_bytes == 3 << 20


def test_sizes_that_cannot_be_transferred_are_errors() -> None:
    with pytest.raises(InputError, match="only empty files"):
        planned(run("operation=read", fsd="fsd=f,anchor=/t/a,size=0\n"))
    planned(run("operation=getattr", fsd="fsd=f,anchor=/t/a,size=0\n"))
    odd = "fsd=f,anchor=/t/a,size=1000\n"
    with pytest.raises(InputError, match="1000 bytes is not a multiple of 512"):
        planned(run("operation=read,openflags=o_direct", fsd=odd))
    planned(run("operation=read", fsd=odd))


def test_copies_name_the_other_tree() -> None:
    text = (
        "fsd=default,depth=1,width=2\nfsd=f,anchor=/t/a\nfsd=g,anchor=/t/b\n"
        "fwd=w,fsd=f,operation=move,target=g\nrd=r,fwd=w,fwdrate=max,elapsed=4\n"
    )
    made = planned(text).plan
    assert use(text).operation == plan.FileOperationMove(to=1)
    assert [target.path for target in made.targets] == ["/t/a", "/t/b"]
    assert targets_of(made, made.streams[0]) == (0, 1)
    assert not any(target.read_only for target in made.targets)


@pytest.mark.parametrize(
    ("words", "found", "missing"),
    [
        ("operation=read", EMPTY, "no files"),
        ("operation=read", Found(), "no files"),
        ("operation=delete", Found(exists=True, has_directories=True), "no files"),
        ("rdpct=50,fileio=random", Found(exists=True, has_directories=True), "no files"),
        ("operation=write", EMPTY, "no directories"),
        ("operation=create", EMPTY, "no directories"),
        ("operation=rmdir", EMPTY, "no directories"),
    ],
)
def test_what_a_job_needs_must_be_there(words: str, found: Found, missing: str) -> None:
    with pytest.raises(InputError, match=f"there are {missing} of a tree in /t/a") as caught:
        planned(run(words), found)
    assert caught.value.where is not None
    assert caught.value.where.line == 1


@pytest.mark.parametrize("words", ["operation=mkdir", "operation=write", "operation=create"])
def test_what_makes_things_needs_less(words: str) -> None:
    planned(run(words), Found(exists=True, has_directories=True))


def test_what_other_jobs_of_the_stage_make_will_be_there() -> None:
    text = (
        FSD + "fwd=w,fsd=f,operation=mkdir\nfwd=x,fsd=f,operation=create\nfwd=y,fsd=f,operation=delete\n"
        "rd=r,fwd=(w,x,y),fwdrate=max,elapsed=4\n"
    )
    assert len(planned(text, EMPTY).plan.trees) == 1


def test_another_structure_is_an_error_unless_made_anew() -> None:
    structure = Structure(2, 4, 10, everywhere=False, sizes=((8192, 100.0),), around=False)
    found = replace(FULL, maker="vdbench", structure=structure)
    with pytest.raises(InputError, match=r"vdbench made the tree in /t/a .* width was 4, is 3"):
        planned(run("operation=read"), found)
    planned(run("operation=read", "format=yes"), found, 0)
    with pytest.raises(InputError, match="width was 4"):
        planned(run("operation=read", "format=restart"), found, 0)


def test_a_tree_that_does_not_fit_is_refused_before() -> None:
    small = AnchorFacts(EMPTY, free_bytes=100 << 10, free_files=10**6)
    with pytest.raises(InputError, match=r"comes to 720.KiB, 100.KiB are free"):
        planned(run("operation=read", "format=yes"), number=0, facts=small)
    few = AnchorFacts(EMPTY, free_bytes=GIB, free_files=100)
    with pytest.raises(InputError, match="102 files and directories, its file system has room for 100"):
        planned(run("operation=read", "format=yes"), number=0, facts=few)


@pytest.mark.parametrize(
    ("kind", "files", "left", "free"),
    [
        ("fuse.rclone", 10**9, 0, None),
        ("fuse.rclone", 10**9, 5, 5),
        ("fuse", 0, 0, None),
        ("ext4", 10**6, 0, 0),
        ("btrfs", 0, 0, None),
    ],
)
def test_a_file_system_in_user_space_with_no_file_left_may_count_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, files: int, left: int, free: int | None
) -> None:
    """rclone tells of 10^9 files and 0 free: every tree on it was refused."""
    told = os.statvfs_result((4096, 4096, 10**6, 10**6, 10**6, files, left, left, 0, 255))
    mount = Mount(os.makedev(0, 39), "/", str(tmp_path), kind, "none", "rw", "rw")
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    monkeypatch.setattr(host_facts, "mount_of", lambda _: mount)
    assert HostFacts(cpus=(0,), memory_bytes=GIB).anchor(str(tmp_path / "tree"), None).free_files == free


@pytest.mark.parametrize(("blocks", "free"), [(0, None), (10**6, 0)])
def test_a_file_system_that_counts_no_blocks_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, free: int | None
) -> None:
    """ramfs counts none: every tree on it was refused, as it came to more than 0 B."""
    numbers = os.statvfs_result((4096, 4096, blocks, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: numbers)
    host = HostFacts(cpus=(0,), memory_bytes=GIB)
    assert host.anchor(str(tmp_path / "tree"), None).free_bytes == free
    assert host.target(str(tmp_path / "new"), None).free_bytes == free


def test_a_tree_that_goes_gives_its_room_back() -> None:
    structure = Structure(2, 3, 10, everywhere=False, sizes=((8192, 100.0),), around=False)
    found = replace(FULL, maker="Loadstone", structure=structure)
    planned(
        run("operation=read", "format=yes"), number=0, facts=AnchorFacts(found, free_bytes=0, free_files=0)
    )


def test_no_tree_is_made_in_the_systems_places() -> None:
    with pytest.raises(RefusedError, match="the root directory"):
        planned(run("operation=read", fsd="fsd=f,anchor=/\n"))


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(RefusedError, match="a journal has no effect on operations in trees"):
        planned(run("operation=read"), journal=True)
    with pytest.raises(RefusedError, match="only reading is allowed"):
        planned(run("operation=setattr"), read_only=True)
    planned(run("operation=read"), read_only=True)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("engine.ioengine", "libaio", "ioengine"),
        ("pacing.thinktime_ns", 1, "thinktime"),
        ("durability.fsync_every", 2, "fsync_every"),
        ("search.latency_target_ns", 1, "latency_target"),
        ("verification.verify_only", True, "verify_only"),
    ],
)
def test_what_an_operation_by_name_cannot_have_is_refused(field: str, value: object, name: str) -> None:
    with pytest.raises(RefusedError, match=f"{name} has no effect on .* works in a tree"):
        changed(run("operation=write"), {field: value})
    with pytest.raises(RefusedError, match="one rate, not one for each direction"):
        changed(run("operation=write"), {"pacing.rate_iops": (None, 5.0, None)})


def test_what_has_no_effect_is_named_as_it_was_written() -> None:
    pause = {"pacing.thinktime_ns": 1, "set_at": {"pacing.thinktime_ns": Where("t.parm", 3, "pause")}}
    with pytest.raises(RefusedError, match=r"t\.parm:3: pause: pause has no effect on \[w\.f\]"):
        changed(run("operation=write"), pause)


def test_threads_in_a_tree_are_those_of_any_job() -> None:
    asked = {"process.nice": 3, "process.cpus_allowed": (0, 1), "process.cpus_policy": "split"}
    made = changed(run("operation=read,threads=2"), {**asked, "priorities.job_level": 5})
    assert [(one.nice, one.cpus, one.io_priority & 7) for one in made.workers] == [(3, (0,), 5), (3, (1,), 5)]


def test_clones_counted_apart_take_from_one_queue() -> None:
    text = run("operation=getattr,threads=3").replace("fwdrate=max", "fwdrate=60")
    made = planned(text, per_clone_units=True).plan
    uses = [one.tree for one in made.streams if one.tree]
    assert [one.cell for one in uses] == [0, 1, 2]
    assert {one.queue for one in uses} == {0}


def test_a_total_rate_is_divided_over_all_streams() -> None:
    total = TotalRate(100.0, RateProcess.LINEAR)
    made = planned(run("operation=read,threads=4"), rate=total).plan
    found = [one.tree.rate for one in made.streams if one.tree]
    assert [(one.amount.per_second, one.phase) for one in found if one] == [
        (25.0, 0.0),
        (25.0, 0.25),
        (25.0, 0.5),
        (25.0, 0.75),
    ]
    own = run("operation=read").replace("fwdrate=max", "fwdrate=50")
    with pytest.raises(RefusedError, match="has a rate of its own"):
        planned(own, rate=total)


def test_the_memory_of_a_tree_is_counted() -> None:
    large = run("operation=getattr", fsd="fsd=f,anchor=/t/a,depth=1,width=100,files=100000\n")
    small = run("operation=getattr")
    # 8 bytes for each file, of which the small tree has 90.
    assert memory_bytes(planned(large).plan) - memory_bytes(planned(small).plan) >= (10**7 - 90) * 8


def test_a_mix_comes_before_an_operation_as_in_vdbench() -> None:
    made = planned(run("operation=getattr,rdpct=40,fileio=random"))
    assert asked_operations(made.plan.streams[0]) == {"read", "write"}
    assert any("operation=getattr is not done" in note.text for note in made.notes if note.kind == "trap")


def test_flushes_and_dropped_caches_are_those_of_what_opens_files() -> None:
    flags = "openflags=(fsync,clear_cache)"
    made = planned(run(f"operation=write,{flags}")).plan
    assert made.targets[0].invalidate
    assert made.streams[0].flush == plan.Flush(fsync_every=0, fdatasync_every=0, at_end=False, on_close=True)
    assert not planned(run("operation=write")).plan.targets[0].invalidate
    for word, closes in (("create", True), ("open", True), ("read", True), ("getattr", False)):
        assert stream(run(f"operation={word},{flags}")).flush.on_close is closes, word


def test_clones_end_by_their_parts_of_the_data() -> None:
    made = planned(run("operation=write,threads=4,xfersize=8k", "maxdata=64k")).plan
    limits = [(one.limits.bytes, one.limits.time_based, one.limits.runtime_ns) for one in made.streams]
    assert limits == [(16 << 10, False, 3 * 10**9)] * 4
    with pytest.raises(InputError, match="less than one transfer") as caught:
        planned(run("operation=write,threads=16,xfersize=8k", "maxdata=64k"))
    assert str(caught.value.where).startswith("t.parm:3")
