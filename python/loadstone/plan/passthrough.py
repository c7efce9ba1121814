"""NVMe commands past the block layer (`ioengine=io_uring_cmd`): which jobs may, and which must.

Knows what such a job cannot ask for, and that a namespace's character device takes nothing else.
It is never chosen for anybody: what goes past the block layer goes past its counters and
limits, too. Knows no ring and no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

ENGINE: Final = "io_uring_cmd"
_NO_EFFECT: Final = {
    "durability.sync": "a command has no open(2) to say it at: use fsync=1, which sends a flush after each",
    "durability.fsync_on_close": "use end_fsync=1, which sends a flush",
    "priorities.job_class": "NVMe commands carry no I/O priority",
    "priorities.job_level": "NVMe commands carry no I/O priority",
    "priorities.job_hint": "NVMe commands carry no I/O priority",
}
"""Fields that would have no effect, with the reason or the remedy."""
_FLUSHES: Final = ("durability.fsync_every", "durability.fdatasync_every", "durability.end_fsync")


def check(job: Job, ranges: Sequence[FileRange], notes: Notes) -> None:
    """Refuse a job whose engine and targets do not belong together, or whose options do not."""
    if job.engine.command_type and job.engine.ioengine != ENGINE:
        raise job.refusal("plan.nvme.no_effect", "engine.command_type", engine=ENGINE)
    if job.engine.ioengine == "null":
        return
    generic = [part for part in ranges if part.facts.kind is TargetKind.NVME]
    if job.engine.ioengine != ENGINE:
        if generic:
            raise job.error(
                "plan.nvme.commands_only",
                "engine.ioengine" if "engine.ioengine" in job.set_at else "placement.targets",
                path=generic[0].path,
                found=job.engine.ioengine or "psync",
                engine=ENGINE,
                block=_block(generic[0]),
            )
        return
    others = [part for part in ranges if part.facts.kind is not TargetKind.NVME]
    if others:
        raise job.error("plan.nvme.no_namespace", "placement.targets", engine=ENGINE, path=others[0].path)
    if job.engine.direct is False:
        raise job.refusal("plan.nvme.no_cache", "engine.direct", engine=ENGINE)
    for field, why in _NO_EFFECT.items():
        if _is_set(job, field):
            raise job.refusal("plan.nvme.not_with", field, hint=why, engine=ENGINE)
    flushes = next((name for name in _FLUSHES if job.value(name)), None)
    if job.engine.hipri and flushes:
        raise job.refusal("plan.nvme.polled_flush", flushes)
    notes.info(job, "engine.ioengine", say("plan.notes.past_block_layer", engine=ENGINE))


def _is_set(job: Job, field: str) -> bool:
    value = job.value(field)
    return bool(value) and value != "none"


def _block(part: FileRange) -> str:
    return f" {part.facts.namesake.path}" if part.facts.namesake else ""
