"""A Workload and a host into a Plan: nothing left to default.

Knows stages, groups, clones, units, cells, workers and targets, and puts together what
the other files of this room resolve. Looks at paths (`host`) and opens nothing.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.messages import make_error, say
from loadstone.path.child import run_in_child
from loadstone.plan import budget, clone, clone_files, large_blocks, stop_conditions, tree_jobs, workers
from loadstone.plan import model as plan
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.clone import PlanDraft, SharedParts
from loadstone.plan.derived import reads_back
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.options import ResolveOptions
from loadstone.plan.planning_notes import Notes
from loadstone.plan.safety import obstacles
from loadstone.plan.targets import Targets
from loadstone.plan.tree_jobs import Trees
from loadstone.plan.verification import journal, unverified_writes, verify
from loadstone.workload.missing_target import refuse_missing_target
from loadstone.workload.other_hosts import refuse_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.workload.model import Job, Note, Workload

MILLISECOND_NS: Final = 1_000_000
MAX_CLONES: Final = 65_536
MAX_FILE_USES: Final = 262_144


@dataclass(frozen=True, slots=True)
class Resolution:
    """A Plan and what is known about it before it runs."""

    plan: plan.Plan
    notes: tuple[Note, ...]
    duration_ns: int | None
    """Longest time of the load; None when it ends by bytes."""


def resolve(
    workload: Workload, *, host: HostFacts | None = None, options: ResolveOptions | None = None
) -> Resolution:
    """Resolve every default of a Workload against a host.

    Touches nothing: paths are only looked at. Raises InputError for what cannot be (no
    size, no such device, a block larger than the file) and RefusedError for what would
    have no effect or is not done. Without a `host` it is this one, whose paths are looked at in
    a child: one that does not answer is an error.
    """
    options = options or ResolveOptions()
    refuse_elsewhere(workload)
    if host is not None:
        return _resolve(workload, host, options)

    def look() -> Resolution:
        resolution = _resolve(workload, HostFacts.here(), options)
        obstacles.check(resolution.plan, target_places(resolution.plan, workload))
        return resolution

    return run_in_child(
        look,
        doing=say("path.child.looking.targets_of", name=workload.name),
    )


def _resolve(workload: Workload, host: HostFacts, options: ResolveOptions) -> Resolution:
    _check_workload(workload, options)
    base = os.path.abspath(options.base_directory or ".")  # noqa: PTH100 - symbolic links stay
    notes, targets = Notes(), Targets()
    trees = Trees(host, base, targets)
    jobs = trees.to_do([large_blocks.in_parts(job, notes) for job in workload.jobs])
    build = PlanDraft(
        options=options,
        host=host,
        base=base,
        notes=notes,
        targets=targets,
        trees=trees,
        run=secrets.randbits(64),
        keeps_table=options.journal or workload.hand_over or verify.keeps_table(jobs),
    )
    workload = workload.model_copy(update={"jobs": jobs})
    group = 0
    for stage, together in _stages(jobs):
        trees.expect(together)
        for job in together:
            group += bool(build.units and (job.schedule.stonewall or job.schedule.new_group))
            _add_job(build, job, stage, group, descending=workload.clone_order == "descending_after_first")
    _check_exits(workload, build)
    unverified_writes.check(
        ((clone.job, clone.stage, clone.stream, clone.place.ranges) for clone in build.clones), notes
    )
    return _finish(workload, build)


def _stages(jobs: Sequence[Job]) -> Iterator[tuple[int, list[Job]]]:
    """Yield the jobs that run at the same time, with the number of their stage.

    What is read back after one has a stage of its own.
    """
    together: list[list[Job]] = []
    for job in jobs:
        if job.schedule.stonewall or not together:
            together.append([])
        together[-1].append(job)
    stage = 0
    for stage_jobs in together:
        yield stage, stage_jobs
        stage += 2 if any(verify.reads_back(job) for job in stage_jobs) else 1


def _check_workload(workload: Workload, options: ResolveOptions) -> None:
    clones = sum(job.schedule.numjobs or 1 for job in workload.jobs)
    uses = sum(
        (job.schedule.numjobs or 1) * max(len(job.placement.targets), job.placement.nrfiles or 1)
        for job in workload.jobs
    )
    if clones > MAX_CLONES or uses > MAX_FILE_USES:
        raise make_error(
            RefusedError,
            "plan.jobs.too_many",
            where=workload.jobs[0].where,
            clones=clones,
            files=uses,
            most_clones=MAX_CLONES,
            most_files=MAX_FILE_USES,
            depth=workload.jobs[0].option("engine.iodepth"),
        )
    for job in workload.jobs:
        if workload.needs_targets and not job.placement.targets:
            raise make_error(InputError, "plan.jobs.no_target", name=workload.name)
    if workload.missing_targets == "refused":
        refuse_missing_target(workload.jobs)
    for job in workload.jobs:
        if options.read_only and _writes(job):
            raise job.refusal(
                "plan.jobs.writes", "mix.rw", name=job.name, setting=job.setting("mix.rw", "read")
            )
    trees = [job for job in workload.jobs if job.tree is not None]
    if trees and len(trees) < len(workload.jobs):
        other = next(job for job in workload.jobs if job not in trees)
        raise make_error(RefusedError, "plan.jobs.beside_trees", where=other.where, name=other.name)
    if trees and options.journal:
        raise make_error(RefusedError, "plan.tree.journal", where=trees[0].where)


def _writes(job: Job) -> bool:
    return clone_files.writes(job) if job.tree is None else tree_jobs.changes(job)


def _add_job(build: PlanDraft, job: Job, stage: int, group: int, *, descending: bool) -> None:
    clones = job.schedule.numjobs or 1
    apart = build.options.per_clone_units
    shared = SharedParts(job, build.notes, queue=len(build.units))
    order = list(range(clones))
    if descending:
        order[1:] = order[:0:-1]
    for number in order:
        if apart or number == 0:
            build.units.append(plan.Unit(name=job.name, group=group, clone=number if apart else None))
        clone.add(build, shared, number, stage, len(build.units) - 1)


def _check_exits(workload: Workload, build: PlanDraft) -> None:
    """Refuse `exitall` and `exitall_on_error` where more or less than the stage is to end."""
    for job in workload.jobs:
        asked_by = (
            "schedule.exitall"
            if job.schedule.exitall
            else "schedule.exitall_on_error"
            if job.schedule.exitall_on_error
            else None
        )
        if asked_by is None:
            if job.schedule.exit_what is not None:
                field = "schedule.exit_what"
                text = say("plan.notes.no_effect_without", option="exit_what", needed="exitall")
                build.notes.trap(job, field, text)
            continue
        stages = {clone.stage for clone in build.clones}
        if job.schedule.exit_what == "all" and len(stages) > 1:
            raise job.refusal("plan.jobs.end_all", "schedule.exit_what")
        job_stages = {clone.stage for clone in build.clones if clone.job is job}
        groups = {build.units[clone.unit].group for clone in build.clones if clone.stage in job_stages}
        if job.schedule.exit_what in (None, "group") and len(groups) > 1:
            raise job.refusal("plan.jobs.end_group", asked_by)


def _finish(workload: Workload, build: PlanDraft) -> Resolution:
    cells, cell_of = workers.cells(build.clones)
    threads, worker_of = workers.workers(build.clones, len(build.host.cpus), build.options.rate)
    workers.tell_in_step(build.clones, worker_of, build.options.rate, build.notes)
    streams = workers.streams(build.clones, worker_of, cell_of, build.options.rate, workload.jobs)
    duration = budget.duration_ns(streams, [clone.stage for clone in build.clones])
    windows = [one for job in workload.jobs for one in job.recording.windows_msec]
    windows += [stop_conditions.sample_ns(job) // MILLISECOND_NS for job in workload.jobs if job.steady.rule]
    draft = plan.Plan(
        version=1,
        interval_ns=build.options.interval_ns or budget.interval_ns(duration, windows),
        grace_ns=build.options.grace_ns,
        memory_limit_bytes=build.host.memory_bytes,
        targets=build.targets.finish(),
        units=tuple(build.units),
        cells=tuple(cells),
        workers=tuple(threads),
        streams=tuple(streams),
        journal=None,
        recover=None,
        earlier=(),
        hand_over=workload.hand_over and any(one.verify is not None for one in streams),
        trees=build.trees.finish(),
        steady=stop_conditions.steady(
            (index, clone.job, clone.unit, build.units[clone.unit].group)
            for index, clone in enumerate(build.clones)
            if not reads_back(clone.stream)
        ),
    )
    if build.options.journal:
        draft, promise = journal.keep(draft)
        build.notes.general(say("plan.notes.journal", promise=promise))
    if any(placed.log_ios for placed in streams):
        build.notes.general(say("plan.notes.log_of_ios"))
    return Resolution(
        plan=draft,
        notes=(*workload.notes, *build.notes.all),
        duration_ns=duration,
    )
