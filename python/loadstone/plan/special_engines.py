"""Engines that do something else than reads and writes: `filecreate`, `falloc`, `splice` and the like.

Knows which operation each is, what stands for its targets before the run, and what a job for it
cannot ask for. Knows no system call and no clone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.plan import model as plan
from loadstone.plan.backends import of_engine
from loadstone.plan.model import Named, NameOperation, TargetKind
from loadstone.plan.pattern import min_block, shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

BY_NAME: Final[dict[str, tuple[NameOperation, Named]]] = {
    "filecreate": (NameOperation.CREATE, Named.AS_FOUND),
    "filestat": (NameOperation.STAT, Named.FILE),
    "filedelete": (NameOperation.DELETE, Named.FILE),
    "dircreate": (NameOperation.MKDIR, Named.AS_FOUND),
    "dirstat": (NameOperation.STAT, Named.DIRECTORY),
    "dirdelete": (NameOperation.RMDIR, Named.DIRECTORY),
}
"""Engines whose I/Os are operations on the names of their files, and what stands there before."""
DIRECTORIES: Final = frozenset(("dircreate", "dirstat", "dirdelete"))
REMOVING: Final = frozenset((NameOperation.DELETE, NameOperation.RMDIR))
DEFRAGMENTING: Final = "e4defrag"
ENGINES: Final = frozenset((*BY_NAME, "falloc", "splice", DEFRAGMENTING))
_STAT: Final = {
    None: NameOperation.STAT,
    "stat": NameOperation.STAT,
    "lstat": NameOperation.LSTAT,
    "statx": NameOperation.STATX,
}


@dataclass(frozen=True, slots=True)
class Name:
    """How a file is used whose name counts: what stands there before, and how long it is then."""

    named: Named
    size_bytes: int
    removed: bool


def check(job: Job, ranges: Sequence[FileRange]) -> None:
    """Refuse a job whose engine and options do not belong together."""
    engine = job.engine.ioengine or ""
    owners = {
        "engine.stat_type": ("filestat", "dirstat"),
        "engine.donor": (DEFRAGMENTING,),
        "engine.donor_in_place": (DEFRAGMENTING,),
    }
    for field, engines in owners.items():
        if job.value(field) is not None and engine not in engines:
            raise job.refusal("plan.special.no_effect", field, engine=engine or "psync", option=engines[0])
    if engine not in ENGINES:
        return
    if of_engine(engine).keeps_data == "nothing" and (
        job.verification.verify or job.verification.verify_pattern
    ):
        raise job.refusal("plan.special.no_content", "verification.verify", engine=engine)
    reads, writes, trims = shares(job)
    if engine in BY_NAME and trims:
        raise job.refusal("plan.special.no_trims", "mix.rw", engine=engine)
    if engine == DEFRAGMENTING and (reads or trims or not writes):
        raise job.refusal("plan.special.only_writes", "mix.rw")
    if engine == DEFRAGMENTING and not job.engine.donor:
        raise make_error(InputError, "plan.special.no_donor", where=job.where)
    others = [part for part in ranges if part.facts.kind is not TargetKind.FILE]
    if others and engine in (*BY_NAME, DEFRAGMENTING):
        raise job.error("plan.special.files_only", "placement.targets", engine=engine, path=others[0].path)


def backend(job: Job, donor: Callable[[Job], int]) -> plan.Backend:
    """Return the backend of an engine of this kind; `donor` gives the target blocks come from."""
    engine = job.engine.ioengine or ""
    if engine in BY_NAME:
        operation = BY_NAME[engine][0]
        stat = operation is NameOperation.STAT
        return plan.BackendNames(operation=_STAT[job.engine.stat_type] if stat else operation)
    if engine == "falloc":
        return plan.BackendFalloc()
    if engine == "splice":
        return plan.BackendSplice()
    return plan.BackendMoveExtents(donor=donor(job), in_place=bool(job.engine.donor_in_place))


def one_io_each(job: Job, part: FileRange, notes: Notes) -> tuple[int, Name]:
    """Return the bytes an operation on a file stands for, and how its name is used."""
    operation, named = BY_NAME[job.engine.ioengine or ""]
    block = min_block(job)
    if part.length_bytes > block and named is not Named.DIRECTORY:
        notes.info(job, "placement.size", say("plan.notes.one_io_per_file", block=block))
    size = part.end_bytes if named is Named.FILE else 0
    return block, Name(named, size, operation in REMOVING)
