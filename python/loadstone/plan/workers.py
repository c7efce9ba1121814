"""Threads and cells for clones, and what streams have to do with each other.

Knows which clones may share a thread, where samples are counted, who waits for whom and how a
total rate is divided. Knows no file and no block.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error, say
from loadstone.plan import io_priority, stop_conditions, stream
from loadstone.plan import model as plan
from loadstone.plan.derived import reads_back

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.plan.clone import Clone
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

MAX_THREADS: Final = 4_096
APART: Final = 256
"""Clones of one kind that have a thread each though they could share; of more, some share after all."""
MAX_CELLS_PER_UNIT: Final = 64
"""A unit with more targets keeps one histogram for all of them."""


def cells(clones: Sequence[Clone]) -> tuple[list[plan.Cell], dict[tuple[int, int], int]]:
    """Give every unit a cell per target, or one for all when they are many.

    Returns the cells and the number of each by unit and target.
    """
    by_unit: dict[int, set[int]] = {}
    for clone in clones:
        by_unit.setdefault(clone.unit, set()).update(clone.place.targets)
    all_cells: list[plan.Cell] = []
    index: dict[tuple[int, int], int] = {}
    for unit, targets in by_unit.items():
        if len(targets) > MAX_CELLS_PER_UNIT:
            index.update({(unit, target): len(all_cells) for target in targets})
            all_cells.append(plan.Cell(unit=unit, target=None))
            continue
        for target in sorted(targets):
            index[unit, target] = len(all_cells)
            all_cells.append(plan.Cell(unit=unit, target=target))
    return all_cells, index


def workers(
    clones: Sequence[Clone], cpus: int, rate: stream.TotalRate | None = None
) -> tuple[list[plan.Worker], dict[int, int]]:
    """Give every clone a thread: its own, or one of a few shared by its kind.

    Returns the threads and the number of each clone's; `cpus` is how many there are, `rate` what all share.
    """
    groups: dict[object, list[Clone]] = {}
    for clone in clones:
        how = clone.drive
        alone = clone.job.schedule.thread_of or clone.number if how.sharing == "none" else None
        ring = (how.backend.model_dump_json(), how.force_async)
        who = (how.sharing, _is_apart(clone, rate), alone)
        key = (clone.stage, ring, how.cpus, how.nice, io_priority.of_job(clone.job), who)
        groups.setdefault(key, []).append(clone)
    threads: list[plan.Worker] = []
    worker_of: dict[int, int] = {}
    for members in groups.values():
        first, how = members[0], members[0].drive
        together = first.job.schedule.thread_of is not None
        most = APART if _is_apart(first, rate) else len(how.cpus) or cpus or 1
        count = 1 if together else min(most, len(members))
        for position, clone in enumerate(members):
            worker_of[clone.number] = len(threads) + position % count
        threads += [
            plan.Worker(
                stage=first.stage,
                backend=how.backend,
                cpus=how.cpus,
                nice=how.nice,
                io_priority=io_priority.of_job(first.job),
                force_async=how.force_async,
            )
        ] * count
    if len(threads) > MAX_THREADS:
        of = clones[0].job
        raise make_error(
            RefusedError,
            "plan.jobs.threads",
            where=of.at("schedule.numjobs"),
            threads=len(threads),
            setting=of.setting("engine.ioengine", "io_uring"),
            depth=of.option("engine.iodepth"),
        )
    return threads, worker_of


def tell_in_step(
    clones: Sequence[Clone], worker_of: Mapping[int, int], rate: stream.TotalRate | None, notes: Notes
) -> None:
    """Say which clones share a thread that does their I/O: each has the rate and the latency of all."""
    sharing = Counter(worker_of.values())
    for clone in clones:
        on_purpose = clone.job.schedule.thread_of is not None or not _is_apart(clone, rate)
        if not on_purpose and sharing[worker_of[clone.number]] > 1:
            notes.info(
                clone.job,
                "schedule.numjobs",
                say("plan.notes.share_thread", apart=APART),
            )
            return


def _is_apart(clone: Clone, rate: stream.TotalRate | None) -> bool:
    """Whether it would go in step with those it shares a thread with: it has no arrivals."""
    pace = clone.stream.pace
    return clone.drive.sharing == "paced" and rate is None and not any((pace.read, pace.write, pace.trim))


def streams(
    clones: Sequence[Clone],
    worker_of: dict[int, int],
    cell_of: dict[tuple[int, int], int],
    rate: stream.TotalRate | None,
    jobs: Sequence[Job],
) -> list[plan.Stream]:
    """Return the streams of the Plan: each with its thread and cells, its pace, and whom it waits for."""
    placed = [_placed(clone, worker_of[clone.number], cell_of) for clone in clones]
    if rate is not None:
        placed = _paced(placed, [clone.stage for clone in clones], rate)
    for index, clone in enumerate(clones):
        other = stop_conditions.waited_for(clone.job, jobs)
        if other is not None:
            waits = tuple(
                at for at, one in enumerate(clones) if one.job is other and one.stage == clone.stage
            )
            placed[index] = placed[index].model_copy(update={"wait_for": waits})
    return placed


def _placed(clone: Clone, worker: int, cell_of: dict[tuple[int, int], int]) -> plan.Stream:
    own = [cell_of[clone.unit, target] for target in clone.place.targets]
    update: dict[str, object] = {"worker": worker}
    if clone.place.tree is None:
        update["files"] = tuple(
            plan.FileUse(
                target=target, cell=cell, offset_bytes=part.offset_bytes, length_bytes=part.length_bytes
            )
            for target, cell, part in zip(clone.place.targets, own, clone.place.ranges, strict=True)
        )
    else:
        update["tree"] = clone.place.tree.model_copy(update={"cell": own[0]})
    return clone.stream.model_copy(update=update)


def _paced(unpaced: list[plan.Stream], stages: list[int], rate: stream.TotalRate) -> list[plan.Stream]:
    """Give the streams of each stage the total rate, in the same order, but none to what only reads back."""
    all_streams = list(unpaced)
    doing = [index for index, one in enumerate(unpaced) if not reads_back(one)]
    for wanted in {stages[index] for index in doing}:
        together = [index for index in doing if stages[index] == wanted]
        paced = stream.paced_together([unpaced[index] for index in together], rate)
        for index, one in zip(together, paced, strict=True):
            all_streams[index] = one
    return all_streams
