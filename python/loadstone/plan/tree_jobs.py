"""Jobs that work in trees: which anchors they have, and what each of their clones does there.

Knows what must be there before such a job makes sense, and what is in its way. Looks at anchors
(`host`) and changes nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.errors import RefusedError
from loadstone.messages import make_error
from loadstone.plan import anchors, pattern, stream
from loadstone.plan import model as plan
from loadstone.plan.host_facts import SECTOR_BYTES
from loadstone.plan.tree_anchor import Anchor, Opening
from loadstone.workload.trees import NEEDS_FILES, READS_ONLY, TreeWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.host_facts import HostFacts
    from loadstone.plan.targets import Targets
    from loadstone.workload.model import Job, Workload
    from loadstone.workload.trees import FileSelection

_WITHOUT_EFFECT: Final = (
    "engine.ioengine",
    "engine.iodepth",
    "placement.size",
    "limits.number_ios",
    "steady.rule",
    "search.latency_target_ns",
    "pacing.thinktime_ns",
    "durability.fsync_every",
    "durability.fdatasync_every",
    "durability.end_fsync",
    "verification.verify_only",
)
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


@dataclass(slots=True)
class Trees:
    """The anchors of a Plan, collected job by job; their numbers are those of `Plan.trees`."""

    host: HostFacts
    base: str
    targets: Targets
    _anchors: list[Anchor] = field(default_factory=list)
    _target_of: list[int] = field(default_factory=list)
    """The target of each anchor."""

    def to_do(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """Return the jobs without those that would remove what is not there, or goes before the run."""
        remaining_jobs: list[Job] = []
        walled = False
        for job in jobs:
            walled |= bool(job.schedule.stonewall)
            if job.tree is not None and job.tree.removes and not self._of(job)[0].removed_by_jobs:
                continue
            remaining_jobs.append(
                job.changed({"schedule.stonewall": True}) if walled and not job.schedule.stonewall else job
            )
            walled = False
        return tuple(remaining_jobs)

    def expect(self, jobs: Sequence[Job]) -> None:
        """Take note of what the jobs of a stage make: they run at the same time, and wait for each other.

        Raises InputError for what cannot work there and RefusedError for what is not done.
        """
        jobs = [job for job in jobs if job.tree is not None]
        for job in jobs:
            _check(job)
            _check_transfers(job)
            for place, anchor in enumerate(self._of(job)):
                _will_be_there(anchor, job, is_goal=place > 0)
        for job in jobs:
            _check_there(job, self._of(job))

    def of_clone(self, job: Job, clone: int, queue: int) -> tuple[int, plan.TreeUse]:
        """Return the target of a job and what a clone does there; its cell is not known yet."""
        work = work_of(job)
        numbers = [self._anchors.index(anchor) for anchor in self._of(job)]
        clones = job.schedule.numjobs or 1
        use = plan.TreeUse(
            tree=numbers[0],
            cell=0,
            operation=_operation(work, numbers[-1]),
            select=_select(work.select),
            working_set_bytes=work.working_set_bytes,
            shared=work.shared,
            rate=_rate(job, work, clone, clones),
            queue=None if work.rate_ops is None or clones == 1 else queue,
        )
        return self._target_of[numbers[0]], use

    def finish(self) -> tuple[plan.Tree, ...]:
        """Return the trees of the Plan, one for each anchor."""
        return tuple(
            anchor.tree(target) for anchor, target in zip(self._anchors, self._target_of, strict=True)
        )

    def _of(self, job: Job) -> list[Anchor]:
        """Return the trees a job works in: its own, and the one that files go to."""
        trees = []
        for target in job.placement.targets:
            path = os.path.normpath(os.path.join(self.base, target.path))  # noqa: PTH118 - symbolic links stay
            known = next((one for one in self._anchors if one.path == path), None)
            if known is None:
                known = self._new(path, job)
            work = work_of(job)
            if (known.shape, known.part, known.opening) != (work.shape, work.part, Opening.of(job)):
                raise job.refusal("plan.tree.other_job", "placement.targets", name=known.job.name, path=path)
            trees.append(known)
        return trees

    def _new(self, path: str, job: Job) -> Anchor:
        where, work = job.at("placement.targets"), work_of(job)
        reason = anchors.forbidden(path)
        if reason is not None:
            raise make_error(RefusedError, "plan.tree.cannot", where=where, path=path, reason=reason)
        anchor = Anchor(
            path, job, work.shape, self.host.anchor(path, where), Opening.of(job), work.clear, work.part
        )
        anchor.removed_by_jobs = work.removes and anchor.is_whole()
        if not anchor.clear:
            anchor.check_structure()
        self._anchors.append(anchor)
        self._target_of.append(self.targets.add_anchor(anchor))
        return anchor


def work_of(job: Job) -> TreeWork:
    """Return what a job does in its tree."""
    if job.tree is None:
        raise TypeError(f"[{job.name}] works in no tree")
    return job.tree


def changes(job: Job) -> bool:
    """Whether a job changes files or directories."""
    return work_of(job).operation == "copy" or _changes_its_own(job)


def _changes_its_own(job: Job) -> bool:
    """Whether it changes those of the tree it works in; a copy changes the other."""
    work = work_of(job)
    moves = work.operation == "transfer"
    return work.clear or (pattern.shares(job)[1] > 0 if moves else work.operation not in READS_ONLY)


def only_making_directories(work: Workload) -> Workload | None:
    """Return a Workload that makes directories in the trees that this one changes; None: it changes none.

    It needs nothing that would have to be there, so these trees can be looked at before that is.
    """
    jobs = [
        job.changed({"work.operation": "mkdir", "limits.io_size": None, "placement.targets": (target,)})
        for job in work.jobs
        if job.tree is not None and changes(job)
        for target in job.placement.targets[-1 if job.tree.operation == "copy" else 0 :]
    ]
    return work.model_copy(update={"jobs": tuple(jobs)}) if jobs else None


def once_bytes(job: Job) -> int:
    """Return the bytes after which each clone ends; 0: it does not end by them."""
    clones = job.schedule.numjobs or 1
    if job.limits.io_size is None or job.limits.io_size.bytes is None:
        return 0
    part = job.limits.io_size.bytes // clones
    least = pattern.smallest_block(job)
    if part < least:
        raise job.error(
            "plan.tree.part",
            "limits.io_size",
            asked=units.size(job.limits.io_size.bytes),
            part=units.size(part),
            clones=clones,
            name=job.name,
            least=units.size(least),
        )
    return part


def _check(job: Job) -> None:
    for name in _WITHOUT_EFFECT:
        if job.value(name) is not None:
            raise job.refusal(
                "plan.tree.no_effect",
                name,
                option=job.option(name),
                name=job.name,
                clones=job.option("schedule.numjobs"),
            )
    if any(job.pacing.rate_iops) or any(job.pacing.rate_bytes):
        raise job.refusal("plan.tree.one_rate", "pacing.rate_iops", name=job.name)
    if job.limits.io_size is not None and work_of(job).operation != "transfer":
        raise job.refusal(
            "plan.tree.counts_no_bytes", "limits.io_size", option=job.option("limits.io_size"), name=job.name
        )


def _will_be_there(anchor: Anchor, job: Job, *, is_goal: bool) -> None:
    """Take note of what a job makes: others of its stage may wait for it."""
    work = work_of(job)
    if is_goal:
        anchor.written = anchor.made_files = True
        return
    fills = work.operation == "transfer" and pattern.shares(job)[1] > 0 and not work.random
    anchor.clear |= work.clear
    anchor.written |= _changes_its_own(job)
    anchor.made_directories |= work.operation == "mkdir"
    anchor.made_files |= work.operation == "create" or fills
    if work.operation == "create" and work.fill:
        anchor.check_room(job)


def _check_transfers(job: Job) -> None:
    """Refuse what a job cannot transfer."""
    work = work_of(job)
    reads, writes, _ = pattern.shares(job)
    if work.operation == "transfer" and reads and writes and not work.random:
        raise job.refusal("plan.tree.mix", "mix.rw", name=job.name)
    sizes = [size for size, _ in work.shape.sizes]
    if work.operation == "transfer" and not any(sizes):
        raise job.error("plan.tree.empty_files", "placement.targets", name=job.name)
    uneven = [size for size in sizes if size % SECTOR_BYTES] if job.engine.direct else []
    if uneven and not work.shape.around:
        raise job.error("plan.tree.sectors", "engine.direct", found=uneven[0], sector=SECTOR_BYTES)


def _check_there(job: Job, mine: list[Anchor]) -> None:
    """Refuse a job that would find nothing to do its operation on."""
    work = work_of(job)
    anchor = mine[0]
    makes = work.operation == "transfer" and pattern.shares(job)[0] == 0 and not work.random
    needs_files = work.operation in NEEDS_FILES and not makes
    needed = "files" if needs_files else None if work.operation == "mkdir" else "directories"
    if work.clear and work.operation in ("delete", "rmdir"):
        needed = None  # What is there goes, by these jobs or before the run.
    if len(mine) > 1 and anchor.first_file != mine[1].first_file:
        raise job.error(
            "plan.tree.other_names",
            "placement.targets",
            goal=mine[1].path,
            found=mine[1].first_file,
            path=anchor.path,
            expected=anchor.first_file,
            clear=job.setting("work.clear", "yes"),
        )
    contents = {"files": anchor.has_files, "directories": anchor.has_directories, None: True}
    if not contents[needed]:
        raise job.error(
            "plan.tree.nothing_there",
            "placement.targets",
            needed=needed,
            path=anchor.path,
            clear=job.setting("work.clear", "yes"),
        )
    if len(mine) > 1 and not mine[1].has_directories:
        raise job.error("plan.tree.no_goal", "placement.targets", path=mine[1].path, operation=work.operation)


def _operation(work: TreeWork, goal: int) -> plan.FileOperation:
    """Return the operation; `goal` is the tree that files go to."""
    if work.operation in _SIMPLE:
        return _SIMPLE[work.operation]()
    if work.operation == "create":
        return plan.FileOperationCreate(fill=work.fill)
    if work.operation == "copy":
        return plan.FileOperationCopy(to=goal)
    if work.operation == "move":
        return plan.FileOperationMove(to=goal)
    stop: plan.FileStop = plan.FileStopWhole()
    if work.stop_transfers is not None:
        stop = plan.FileStopTransfers(count=work.stop_transfers)
    elif work.stop_percent is not None:
        stop = plan.FileStopPercent(percent=work.stop_percent)
    return plan.FileOperationTransfer(random=work.random, stop=stop, delete_before=work.delete_before)


def _select(file_selection: FileSelection) -> plan.FileSelect:
    if file_selection.kind == "random":
        return plan.FileSelectRandom()
    if file_selection.kind == "skewed":
        assert file_selection.midpoint_percent is not None  # noqa: S101 - given with its kind
        return plan.FileSelectSkewed(midpoint_percent=file_selection.midpoint_percent)
    return plan.FileSelectSequential(random_start=file_selection.random_start, once=file_selection.once)


def _rate(job: Job, work: TreeWork, clone: int, clones: int) -> plan.Rate | None:
    """Return the part of one clone of the job's rate."""
    if work.rate_ops is None:
        return None
    total = stream.TotalRate(
        work.rate_ops, plan.RateProcess(job.pacing.rate_process or "linear"), job.pacing.rate_profile
    )
    return stream.in_turn(stream.part(total, work.rate_ops / clones), clone, clones)
