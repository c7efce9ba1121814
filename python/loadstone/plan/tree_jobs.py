"""Jobs that work in trees into a Plan: anchors, trees, and a stream for each clone.

Knows what must be there before such a job makes sense, and what is in its way. Looks at anchors
(`host`) and changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone import units
from loadstone.errors import InputError, RefusedError
from loadstone.plan import anchors, pattern, stream
from loadstone.plan import model as plan
from loadstone.plan.host import SECTOR_BYTES
from loadstone.plan.model import Pace
from loadstone.plan.safety import tree_mark
from loadstone.plan.targets import TargetUse
from loadstone.plan.verification import verify
from loadstone.workload.trees import NEEDS_FILES, TreeWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.host import AnchorFacts, HostFacts
    from loadstone.plan.notes import Notes
    from loadstone.workload.model import Job
    from loadstone.workload.trees import FileSelection, TreeShape

MAX_THREADS: Final = 4_096
"""Each clone has a thread of its own: its operations block."""
_SEED: Final = 0x7472_6565
_WITHOUT_EFFECT: Final = {
    "engine.iodepth": "iodepth",
    "placement.size": "size",
    "limits.number_ios": "number_ios",
    "steady.rule": "steady",
}
_OPENS: Final = ("transfer", "create", "open", "close", "copy")
"""What opens files, and closes them."""
_SIMPLE: Final[dict[str, Callable[[], plan.FileOperation]]] = {
    "mkdir": plan.FileOperationMkdir,
    "rmdir": plan.FileOperationRmdir,
    "delete": plan.FileOperationDelete,
    "open": plan.FileOperationOpen,
    "close": plan.FileOperationClose,
    "getattr": plan.FileOperationGetattr,
    "setattr": plan.FileOperationSetattr,
    "access": plan.FileOperationAccess,
}


class _Opening(NamedTuple):
    """How files are opened."""

    direct: bool
    sync: plan.OpenSync
    invalidate: bool


@dataclass(slots=True)
class _Anchor:
    """A tree while jobs still add to it."""

    path: str
    job: Job
    """The first that works there."""
    shape: TreeShape
    facts: AnchorFacts
    opening: _Opening
    clear: bool = False
    removed_by_jobs: bool = False
    """Jobs do that, measured: what is there is the tree they work in, and nothing else."""
    written: bool = False
    made_files: bool = False
    """A job up to now makes files, or directories."""
    made_directories: bool = False

    @property
    def has_files(self) -> bool:
        """Whether there are files, or will be."""
        return self.made_files or (self.facts.found.has_files and not self.clear)

    @property
    def has_directories(self) -> bool:
        """Whether there are directories, or will be."""
        return self.made_directories or (self.facts.found.has_directories and not self.clear)


@dataclass(slots=True)
class TreePlan:
    """The parts of a Plan whose jobs work in trees, collected job by job."""

    host: HostFacts
    base: str
    notes: Notes
    run: int
    """Identity of the run in the stamps of verified blocks."""
    units: list[plan.Unit] = field(default_factory=list)
    cells: list[plan.Cell] = field(default_factory=list)
    workers: list[plan.Worker] = field(default_factory=list)
    streams: list[plan.Stream] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    _anchors: list[_Anchor] = field(default_factory=list)

    def to_do(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs without those that would remove what is not there, or goes before the run."""
        found: list[Job] = []
        walled = False
        for job in jobs:
            walled |= bool(job.schedule.stonewall)
            if work_of(job).removes and not self._of(job)[0].removed_by_jobs:
                continue
            found.append(
                job.changed({"schedule.stonewall": True}) if walled and not job.schedule.stonewall else job
            )
            walled = False
        return found

    def add_stage(self, jobs: list[Job], stage: int) -> None:
        """Add the jobs of one stage, which run at the same time.

        Raises InputError for what cannot work there and RefusedError for what is not done.
        """
        for job in jobs:
            _check(job)
            _check_transfers(job)
            for place, anchor in enumerate(self._of(job)):
                _will_be_there(anchor, job, is_goal=place > 0)
        for job in jobs:
            _check_there(job, self._of(job))
            self._add(job, stage)

    def _of(self, job: Job) -> list[_Anchor]:
        """Return the trees a job works in: its own, and the one that files go to."""
        found = []
        for target in job.placement.targets:
            path = os.path.normpath(os.path.join(self.base, target.path))  # noqa: PTH118 - symbolic links stay
            known = next((one for one in self._anchors if one.path == path), None)
            if known is None:
                known = self._new(path, job)
            if known.shape != work_of(job).shape or known.opening != _opening(job):
                raise RefusedError(
                    f"{known.job.name} works in {path} with another structure or other open flags",
                    where=job.at("placement.targets"),
                    hint="let both have the same, or run one after the other",
                )
            found.append(known)
        return found

    def _new(self, path: str, job: Job) -> _Anchor:
        where = job.at("placement.targets")
        reason = anchors.forbidden(path)
        if reason is not None:
            raise RefusedError(
                f"no tree is made in {path}: {reason}",
                where=where,
                hint="choose a directory of your own; --map OLD=NEW redirects an anchor",
            )
        facts = self.host.anchor(path, where)
        made = _Anchor(path, job, work_of(job).shape, facts, _opening(job), clear=work_of(job).clear)
        made.removed_by_jobs = work_of(job).removes and _is_whole(made)
        if not made.clear:
            _check_structure(made)
        self._anchors.append(made)
        return made

    def _add(self, job: Job, stage: int) -> None:
        work = work_of(job)
        mine = self._of(job)
        index = self._anchors.index(mine[0])
        clones = job.schedule.numjobs or 1
        if len(self.streams) + clones > MAX_THREADS:
            raise RefusedError(
                f"more than {MAX_THREADS} threads are too many",
                where=job.at("schedule.numjobs"),
                hint="use fewer threads, or fewer workloads at a time",
            )
        cell = len(self.cells)
        self.cells.append(plan.Cell(unit=len(self.units), target=index))
        self.units.append(plan.Unit(name=job.name, group=0, clone=None))
        other = self._anchors.index(mine[1]) if len(mine) > 1 else None
        asked_pattern = pattern.pattern(job, self.notes, max(int(work.shape.mean_bytes), 1))
        part_bytes = _part_bytes(job, clones)
        checks = verify.in_tree(job, [size for size, _ in work.shape.sizes], self.run, self.notes)
        for clone in range(clones):
            base = _SEED if job.seeds.randseed is None else job.seeds.randseed
            digest = hashlib.blake2b(repr((base, len(self.streams))).encode(), digest_size=8).digest()
            seed = int.from_bytes(digest, "little") >> 1
            use = plan.TreeUse(
                tree=index,
                cell=cell,
                operation=_operation(work, other),
                select=_select(work.select),
                working_set_bytes=work.working_set_bytes,
                shared=work.shared,
                rate=_rate(job, work, clone, clones),
                queue=cell if work.rate_ops is not None and clones > 1 else None,
            )
            self.streams.append(
                plan.Stream(
                    name=f"{job.name}.{clone}",
                    worker=len(self.workers),
                    files=(),
                    file_choice=plan.FileChoiceRoundRobin(every=1),
                    seed=seed,
                    iodepth=1,
                    batch=None,
                    pattern=asked_pattern,
                    pace=Pace(read=None, write=None, trim=None, think=None),
                    flush=plan.Flush(
                        fsync_every=0,
                        fdatasync_every=0,
                        at_end=False,
                        on_close=bool(job.durability.fsync_on_close) and work.operation in _OPENS,
                    ),
                    payload=stream.payload(job),
                    limits=stream.limits(job, part_bytes, self.notes, random.Random(seed)),  # noqa: S311 - no secret
                    errors=stream.errors(job),
                    log_ios=False,
                    verify=checks,
                    headers=None,
                    flow=stream.flow(job, self.notes),
                    serialize_overlap=False,
                    wait_for=(),
                    search=None,
                    open_files=None,
                    priorities=(),
                    tree=use,
                )
            )
            self.workers.append(
                plan.Worker(
                    stage=stage,
                    backend=plan.BackendFiles(),
                    cpus=job.process.cpus_allowed or (),
                    nice=job.process.nice or 0,
                    io_priority=0,
                    force_async=0,
                )
            )
            self.stages.append(stage)

    def pace(self, total: stream.TotalRate) -> None:
        """Give the streams of each stage their parts of a total rate: equal, or by weight within a flow.

        Raises RefusedError for a stream that has a rate of its own.
        """
        paced: list[plan.Stream] = []
        for at, one in enumerate(self.streams):
            use = one.tree
            assert use is not None  # noqa: S101 - all of them work in trees
            if use.rate is not None:
                raise RefusedError(
                    f"{one.name} has a rate of its own",
                    where=total.where,
                    hint="leave the total rate out, or let the runs go as fast as they can (fwdrate=max)",
                )
            beside = [index for index, stage in enumerate(self.stages) if stage == self.stages[at]]
            turn = beside.index(at)
            share = stream.parts([self.streams[index] for index in beside])[turn]
            rate = _taking_turns(stream.part(total, total.iops * share), turn, len(beside))
            paced.append(
                one.model_copy(
                    update={"tree": use.model_copy(update={"rate": rate, "queue": None}), "flow": None}
                )
            )
        self.streams = paced

    @property
    def is_verified(self) -> bool:
        """Whether what files hold is verified."""
        return any(one.verify is not None for one in self.streams)

    def targets(self) -> tuple[plan.Target, ...]:
        """Return the anchors as targets of the Plan."""
        return tuple(
            plan.Target(
                path=one.path,
                kind=plan.TargetKind.TREE,
                size_bytes=one.shape.expected_bytes,
                direct=one.opening.direct,
                read_only=not one.written,
                create=not one.facts.found.exists,
                sync=one.opening.sync,
                exclusive=False,
                identity=one.facts.identity,
                layout=None,
                invalidate=one.opening.invalidate,
                advice=None,
                unlink=False,
                namesake=None,
                named=None,
            )
            for one in self._anchors
        )

    def trees(self) -> tuple[plan.Tree, ...]:
        """Return the trees of the Plan, one for each anchor."""
        return tuple(_tree(index, one) for index, one in enumerate(self._anchors))

    def writes(self) -> tuple[TargetUse, ...]:
        """Return the trees that are changed."""
        return tuple(
            TargetUse(
                path=one.path,
                kind=plan.TargetKind.TREE,
                exists=one.facts.found.exists,
                identity=one.facts.identity,
                writes=True,
                trims=False,
                lays_out_bytes=0,
                unlinks=one.clear,
                jobs=((one.job.name, one.job.where),),
            )
            for one in self._anchors
            if one.written
        )

    def growth_bytes(self) -> int:
        """Return what files that are made come to."""
        return sum(one.shape.expected_bytes for one in self._anchors if one.made_files)


def _check(job: Job) -> None:
    if not isinstance(job.work, TreeWork):
        raise RefusedError(
            f"[{job.name}] does I/O to its targets beside jobs that work in trees",
            where=job.where,
            hint="run them apart",
        )
    for field_name, name in _WITHOUT_EFFECT.items():
        given = job.value(field_name)
        if given is not None:
            raise RefusedError(
                f"{name} has no effect on [{job.name}], which works in a tree",
                where=job.at(field_name),
                hint="each clone does one operation at a time: numjobs is how many at once",
            )
    if job.limits.io_size is not None and work_of(job).operation != "transfer":
        raise RefusedError(
            f"io_size has no effect on [{job.name}]: only transfers count bytes",
            where=job.at("limits.io_size"),
            hint="leave it out",
        )


def work_of(job: Job) -> TreeWork:
    """Return what a job does in its tree."""
    if not isinstance(job.work, TreeWork):
        raise TypeError(f"[{job.name}] works in no tree")
    return job.work


def _opening(job: Job) -> _Opening:
    return _Opening(
        bool(job.engine.direct), plan.OpenSync(job.durability.sync or "none"), bool(job.files.invalidate)
    )


def _will_be_there(anchor: _Anchor, job: Job, *, is_goal: bool) -> None:
    """Take note of what a job makes: others of its stage may wait for it."""
    work = work_of(job)
    if is_goal:
        anchor.written = anchor.made_files = True
        return
    writes = work.operation == "transfer" and pattern.shares(job)[1] > 0
    reads_only = work.operation in ("open", "getattr", "access", "copy")
    anchor.clear |= work.clear
    anchor.written |= writes or work.clear or not (reads_only or work.operation == "transfer")
    anchor.made_directories |= work.operation == "mkdir"
    anchor.made_files |= work.operation == "create" or (writes and not work.random)
    if work.operation == "create" and work.fill:
        _check_room(anchor, job)


def _is_whole(anchor: _Anchor) -> bool:
    """Whether nothing but the tree that is asked for is there, as Loadstone left it."""
    found = anchor.facts.found
    if found.maker != "Loadstone" or found.structure is None or found.is_empty:
        return False
    if found.first_file != anchors.NEW_FIRST_FILE:
        return False
    if found.structure.differences(anchors.Structure.of_shape(anchor.shape)):
        return False
    try:
        return tree_mark.look(Path(anchor.path)).changed is None
    except OSError:
        return False


def _check_structure(anchor: _Anchor) -> None:
    """Refuse a tree that was made with another structure than is asked for."""
    found = anchor.facts.found
    if found.structure is None or found.is_empty:
        return
    differences = found.structure.differences(anchors.Structure.of_shape(anchor.shape))
    if differences:
        raise InputError(
            f"{found.maker} made the tree in {anchor.path} with another structure: {', '.join(differences)}",
            where=anchor.job.at("placement.targets"),
            hint="ask for the structure it has, have it made anew (format=yes), or use another anchor",
        )


def _check_transfers(job: Job) -> None:
    """Refuse what a job cannot transfer."""
    work = work_of(job)
    reads, writes, _ = pattern.shares(job)
    if work.operation == "transfer" and reads and writes and not work.random:
        raise RefusedError(
            f"[{job.name}] mixes reads and writes, which in a tree needs random addresses",
            where=job.at("mix.rw"),
            hint="use fileio=random, or reads or writes alone",
        )
    sizes = [size for size, _ in work.shape.sizes]
    if work.operation == "transfer" and not any(sizes):
        raise InputError(
            f"[{job.name}] reads or writes, and the tree has only empty files",
            where=job.at("placement.targets"),
        )
    uneven = [size for size in sizes if size % SECTOR_BYTES] if job.engine.direct else []
    if uneven and not work.shape.around:
        raise InputError(
            f"direct I/O needs files of whole sectors: {uneven[0]} bytes is no multiple of {SECTOR_BYTES}",
            where=job.at("engine.direct"),
            hint="change the sizes of the files, or leave direct I/O out",
        )


def _check_there(job: Job, mine: list[_Anchor]) -> None:
    """Refuse a job that would find nothing to do its operation on."""
    work = work_of(job)
    anchor = mine[0]
    makes = work.operation == "transfer" and pattern.shares(job)[0] == 0 and not work.random
    needs_files = work.operation in NEEDS_FILES and not makes
    needed = "files" if needs_files else None if work.operation == "mkdir" else "directories"
    if work.clear and work.operation in ("delete", "rmdir"):
        needed = None  # What is there goes, by these jobs or before the run.
    missing = None
    there = {"files": anchor.has_files, "directories": anchor.has_directories, None: True}
    if not there[needed]:
        missing = anchor
    elif len(mine) > 1 and not mine[1].has_directories:
        needed, missing = "directories", mine[1]
    if missing is not None:
        raise InputError(
            f"there are no {needed} of a tree in {missing.path}, and nothing in this run makes any",
            where=job.at("placement.targets"),
            hint="have the tree made first (format=yes)",
        )


def _check_room(anchor: _Anchor, job: Job) -> None:
    """Refuse to make a tree that does not fit; what is cleared before gives its room back."""
    found, shape = anchor.facts.found, anchor.shape
    if not found.is_empty and not anchor.clear:
        return  # Nobody knows what of it is there.
    freed_bytes = found.structure.expected_bytes if found.structure and not found.is_empty else 0
    if not found.is_empty and found.structure is None:
        return
    free_bytes, free_files = anchor.facts.free_bytes, anchor.facts.free_files
    if free_bytes is not None and shape.expected_bytes > free_bytes + freed_bytes:
        raise InputError(
            f"the tree in {anchor.path} comes to {units.size(shape.expected_bytes)}, "
            f"{units.size(free_bytes + freed_bytes)} are free",
            where=job.at("placement.targets"),
            hint="use fewer or smaller files, or totalsize=",
        )
    entries = shape.total_files + shape.directories
    if free_files is not None and found.is_empty and entries > free_files:
        raise InputError(
            f"the tree in {anchor.path} has {entries} files and directories, "
            f"its file system has room for {free_files} more",
            where=job.at("placement.targets"),
            hint="use fewer files, or a file system with more inodes",
        )


def _operation(work: TreeWork, other: int | None) -> plan.FileOperation:
    if work.operation in _SIMPLE:
        return _SIMPLE[work.operation]()
    if work.operation == "create":
        return plan.FileOperationCreate(fill=work.fill)
    if work.operation in ("copy", "move"):
        assert other is not None  # noqa: S101 - a reader gives such a job two targets
        kind = plan.FileOperationCopy if work.operation == "copy" else plan.FileOperationMove
        return kind(to=other)
    stop: plan.FileStop = plan.FileStopWhole()
    if work.stop_transfers is not None:
        stop = plan.FileStopTransfers(count=work.stop_transfers)
    elif work.stop_percent is not None:
        stop = plan.FileStopPercent(percent=work.stop_percent)
    return plan.FileOperationTransfer(random=work.random, stop=stop, delete_before=work.delete_before)


def _select(asked: FileSelection) -> plan.FileSelect:
    if asked.kind == "random":
        return plan.FileSelectRandom()
    if asked.kind == "skewed":
        assert asked.midpoint_percent is not None  # noqa: S101 - given with its kind
        return plan.FileSelectSkewed(midpoint_percent=asked.midpoint_percent)
    return plan.FileSelectSequential(random_start=asked.random_start, once=asked.once)


def _part_bytes(job: Job, clones: int) -> int:
    """Return the bytes after which each clone ends; 0: it does not end by them."""
    if job.limits.io_size is None or job.limits.io_size.bytes is None:
        return 0
    part = job.limits.io_size.bytes // clones
    least = pattern.smallest_block(job)
    if part < least:
        raise InputError(
            f"{units.size(job.limits.io_size.bytes)} are {units.size(part)} for each of {clones} clones of "
            f"[{job.name}], less than one transfer of {units.size(least)}",
            where=job.at("limits.io_size"),
            hint="ask for more, or use fewer clones",
        )
    return part


def _rate(job: Job, work: TreeWork, clone: int, clones: int) -> plan.Rate | None:
    """Return the part of one clone of the job's rate."""
    if work.rate_ops is None:
        return None
    total = stream.TotalRate(
        work.rate_ops, plan.RateProcess(job.pacing.rate_process or "linear"), job.pacing.rate_profile
    )
    return _taking_turns(stream.part(total, work.rate_ops / clones), clone, clones)


def _taking_turns(rate: plan.Rate, place: int, of: int) -> plan.Rate:
    """Return the rate of one of several: evenly spaced arrivals of all are evenly spaced."""
    linear = rate.process is plan.RateProcess.LINEAR
    return rate.model_copy(update={"phase": place / of}) if linear else rate


def _tree(index: int, anchor: _Anchor) -> plan.Tree:
    shape, found = anchor.shape, anchor.facts.found
    sizes: plan.FileSizes
    if shape.around:
        sizes = plan.FileSizesAround(mean_bytes=shape.sizes[0][0])
    else:
        sizes = plan.FileSizesTable(
            table=tuple(plan.FileSize(bytes=size, weight=float(part)) for size, part in shape.sizes)
        )
    clear = anchor.clear and not anchor.removed_by_jobs
    kept = None if clear else found.first_file
    return plan.Tree(
        target=index,
        depth=shape.depth,
        width=shape.width,
        files=shape.files,
        first_file=anchors.NEW_FIRST_FILE if kept is None else kept,
        everywhere=shape.everywhere,
        sizes=sizes,
        seed=_SEED,
        total_bytes=shape.total_bytes,
        clear=clear,
    )
