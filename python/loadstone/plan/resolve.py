"""A Workload and a host into a Plan: nothing left to default.

Knows stages, groups, clones, units, cells, workers and targets, and puts together what
the other files of this room resolve. Looks at paths (`host`) and opens nothing.
"""

from __future__ import annotations

import hashlib
import os
import random
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.path.child import run_in_child
from loadstone.plan import (
    backend,
    budget,
    files,
    io_priority,
    large_blocks,
    passthrough,
    pattern,
    stop_conditions,
    stream,
)
from loadstone.plan import model as plan
from loadstone.plan.derived import reads_back
from loadstone.plan.host import HostFacts
from loadstone.plan.model import HeaderLayout
from loadstone.plan.notes import Notes
from loadstone.plan.safety import obstacles
from loadstone.plan.targets import Targets, TargetUse
from loadstone.plan.tree_jobs import TreePlan
from loadstone.plan.verification import header_verification, journal, unverified_writes, verify
from loadstone.workload.missing_target import refuse_missing_target
from loadstone.workload.other_hosts import refuse_elsewhere
from loadstone.workload.placement import TargetName
from loadstone.workload.trees import TreeWork

if TYPE_CHECKING:
    from loadstone.plan.model import Pattern
    from loadstone.workload.model import Job, Note, Workload

MILLISECOND_NS: Final = 1_000_000
MAX_CLONES: Final = 65_536
MAX_FILE_USES: Final = 262_144
MAX_THREADS: Final = 4_096
MAX_CELLS_PER_UNIT: Final = 64
"""A unit with more targets keeps one histogram for all of them."""
DEFAULT_GRACE_NS: Final = 10_000_000_000
_REPEATABLE_SEED: Final = 0x4C6F_6164


@dataclass(frozen=True, slots=True)
class ResolveOptions:
    """How to resolve.

    `keep_ioengine`: libaio runs on libaio. `per_clone_units`: every clone is a
    unit of its own, not one per job. `interval_ns` None: chosen. `read_only`:
    refuse jobs that write. `aux_directory`: where states of verification are; `header_layout`: for which
    fios it writes headers. `base_directory`: what relative paths start from. `rate`:
    arrivals of all that runs at the same time. `journal`: note every verified write.
    """

    keep_ioengine: bool = False
    per_clone_units: bool = False
    interval_ns: int | None = None
    grace_ns: int = DEFAULT_GRACE_NS
    read_only: bool = False
    base_directory: str | None = None
    rate: stream.TotalRate | None = None
    journal: bool = False
    aux_directory: str | None = None
    header_layout: HeaderLayout = HeaderLayout.LATER


@dataclass(frozen=True, slots=True)
class Resolution:
    """A Plan and what is known about it before it runs."""

    plan: plan.Plan
    notes: tuple[Note, ...]
    writes: tuple[TargetUse, ...]
    """Targets that will be written, trimmed, made longer or created."""
    disk_bytes_estimate: int
    """Samples and prepared files."""
    duration_ns: int | None
    """Longest time of the load; None when it ends by bytes."""


@dataclass(slots=True)
class _Clone:
    """One clone on its way into the Plan."""

    job: Job
    number: int
    stage: int
    unit: int
    uses: tuple[tuple[int, files.FileRange], ...]
    drive: backend.Drive
    stream: plan.Stream


@dataclass(slots=True)
class _Build:
    """Everything collected so far."""

    options: ResolveOptions
    host: HostFacts
    base: str
    notes: Notes
    targets: Targets
    run: int
    """Identity of the run in the stamps of verified blocks."""
    descending: bool
    """Clones are numbered from the last one down, after the first."""
    keeps_table: bool
    """Something is written and verified: what blocks must hold is remembered."""
    units: list[plan.Unit] = field(default_factory=list)
    cells: list[plan.Cell] = field(default_factory=list)
    clones: list[_Clone] = field(default_factory=list)
    asked: int = 0
    """Clones without those that read back: a later run that reads, and writes nothing, draws the same
    addresses."""


class _Shared:
    """What the clones of a job have in common, resolved once."""

    def __init__(self, job: Job, notes: Notes, does: Job) -> None:
        self.job = job
        self.does = does
        """The job whose I/Os are drawn."""
        self.notes = notes
        self.pace = stream.pace(job, notes)
        self.flush = stream.flush(job)
        self.flow = stream.flow(job, notes)
        self.payload = stream.payload(job)
        self.search = stop_conditions.search(job, notes)
        self.errors = stream.errors(job)
        self.priorities = io_priority.shares(job)
        self._patterns: dict[tuple[int, int], Pattern] = {}

    def pattern(self, range_bytes: int, unit_bytes: int) -> Pattern:
        """Return the pattern over a range (zones depend on its length)."""
        key = (range_bytes, unit_bytes)
        if key not in self._patterns:
            self._patterns[key] = pattern.pattern(self.does, self.notes, range_bytes, unit_bytes)
        return self._patterns[key]


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
        found = _resolve(workload, HostFacts.here(), options)
        obstacles.check(found.plan)
        return found

    return run_in_child(
        look,
        doing=f"looking at the targets of {workload.name}",
    )


def _resolve(workload: Workload, host: HostFacts, options: ResolveOptions) -> Resolution:
    base = os.path.abspath(options.base_directory or ".")  # noqa: PTH100 - symbolic links stay
    if any(isinstance(job.work, TreeWork) for job in workload.jobs):
        return _in_trees(workload, host, options, base)
    notes = Notes()
    jobs = tuple(large_blocks.in_parts(job, notes) for job in workload.jobs)
    workload = workload.model_copy(update={"jobs": jobs})
    build = _Build(
        options,
        host,
        base,
        notes,
        Targets(),
        secrets.randbits(64),
        workload.clone_order == "descending_after_first",
        options.journal or workload.hand_over or verify.keeps_table(workload.jobs),
    )
    _check_workload(workload, options)
    stage, group, in_group = 0, 0, 0
    read_back = False
    for index, job in enumerate(workload.jobs):
        if job.schedule.stonewall and index:
            stage += 2 if read_back else 1
            read_back = False
        read_back = read_back or verify.reads_back(job)
        if (job.schedule.stonewall or job.schedule.new_group) and in_group:
            group, in_group = group + 1, 0
        in_group += job.schedule.numjobs or 1
        _add_job(build, job, stage, group)
    _check_exits(workload, build)
    unverified_writes.check(
        ((clone.job, clone.stage, clone.stream, [part for _, part in clone.uses]) for clone in build.clones),
        build.notes,
    )
    return _finish(workload, build)


def _in_trees(workload: Workload, host: HostFacts, options: ResolveOptions, base: str) -> Resolution:
    """Resolve a Workload whose jobs work in trees."""
    if options.journal:
        raise RefusedError("a journal has no effect on operations in trees", where=workload.jobs[0].where)
    made = TreePlan(host, base, Notes(), secrets.randbits(64))
    stages: list[list[Job]] = [[]]
    for job in made.to_do(workload.jobs):
        if job.schedule.stonewall and stages[-1]:
            stages.append([])
        stages[-1].append(job)
    for stage, jobs in enumerate(stages):
        made.add_stage(jobs, stage)
    if options.rate is not None:
        made.pace(options.rate)
    targets = made.targets()
    if options.read_only and any(not target.read_only for target in targets):
        raise RefusedError("it changes trees, and only reading is allowed", where=workload.jobs[0].where)
    duration = budget.duration_ns(made.streams, made.stages)
    draft = plan.Plan(
        interval_ns=options.interval_ns or budget.interval_ns(duration, ()),
        grace_ns=options.grace_ns,
        memory_limit_bytes=host.memory_bytes,
        targets=targets,
        units=tuple(made.units),
        cells=tuple(made.cells),
        workers=tuple(made.workers),
        streams=tuple(made.streams),
        journal=None,
        recover=None,
        earlier=(),
        hand_over=workload.hand_over and made.is_verified,
        steady=(),
        trees=made.trees(),
    )
    return Resolution(
        plan=draft,
        notes=(*workload.notes, *made.notes.all),
        writes=made.writes(),
        disk_bytes_estimate=budget.samples_bytes(draft, duration) + made.growth_bytes(),
        duration_ns=duration,
    )


def _check_workload(workload: Workload, options: ResolveOptions) -> None:
    clones = sum(job.schedule.numjobs or 1 for job in workload.jobs)
    uses = sum(
        (job.schedule.numjobs or 1) * max(len(job.placement.targets), job.placement.nrfiles or 1)
        for job in workload.jobs
    )
    if clones > MAX_CLONES or uses > MAX_FILE_USES:
        raise RefusedError(
            f"{clones} clones using {uses} files are too many",
            where=workload.jobs[0].where,
            hint=f"at most {MAX_CLONES} clones and {MAX_FILE_USES} files in all; raise iodepth instead",
        )
    for job in workload.jobs:
        if workload.needs_targets and not job.placement.targets:
            raise InputError(f"{workload.name} needs a target", hint="give --target PATH, once or more")
    if workload.missing_targets == "refused":
        refuse_missing_target(workload.jobs)
    for job in workload.jobs:
        if options.read_only and files.writes(job):
            raise RefusedError(
                f"[{job.name}] writes, and only reading is allowed",
                where=job.at("mix.rw"),
                hint="use rw=read or randread",
            )


def _add_job(build: _Build, job: Job, stage: int, group: int) -> None:
    clones = job.schedule.numjobs or 1
    apart = build.options.per_clone_units
    unit = -1
    shared = _Shared(job, build.notes, header_verification.rehearsed(job))
    order = list(range(clones))
    if build.descending:
        order[1:] = order[:0:-1]
    for clone in order:
        if apart or clone == 0:
            unit = len(build.units)
            build.units.append(plan.Unit(name=job.name, group=group, clone=clone if apart else None))
        _add_clone(build, shared, clone, (stage, unit))


def _seed(job: Job, build: _Build, *words: object) -> int:
    """Return a seed of 63 bits that depends on the job's seed and on `words`."""
    if job.seeds.randseed is not None:
        base = job.seeds.randseed
    elif job.seeds.repeatable is not False:
        base = _REPEATABLE_SEED
    else:
        base = secrets.randbits(63)
        build.notes.info(job, "seeds.repeatable", "another random sequence in each run (randrepeat=0)")
    digest = hashlib.blake2b(repr((base, *words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _add_clone(build: _Build, shared: _Shared, clone: int, place: tuple[int, int]) -> None:
    job = shared.job
    number = len(build.clones) + 1
    stage, unit = place
    build.asked += 1
    seed = _seed(job, build, build.asked)
    found = files.resolve_files(
        job, clone, base_directory=build.base, host=build.host, notes=build.notes, seed=seed
    )
    facts = [part.facts for part in found.ranges]
    blocks = [
        f(b)
        for b, used in zip(pattern.sizes(shared.does), pattern.shares(shared.does), strict=True)
        if used
        for f in (pattern.smallest, pattern.largest)
    ]
    passthrough.check(job, found.ranges, build.notes)
    backend.check_direct(job, blocks, facts)
    how = backend.drive(
        job,
        facts,
        keep_ioengine=build.options.keep_ioengine,
        host=build.host,
        notes=build.notes,
        donor=lambda job: _donor(build, job, clone, found.ranges[0]),
    )
    if job.process.cpus_policy == "split":
        how = replace(how, cpus=(how.cpus[clone % len(how.cpus)],))
    uses = tuple((build.targets.use(job, part, build.notes), part) for part in found.ranges)
    chance = random.Random(seed)  # noqa: S311 - a drawn delay is no secret
    limits = stream.limits(job, found.total_bytes, build.notes, chance)
    checks, heads = None, None
    if verify.by_headers(job):
        size_bytes = sum(part.length_bytes for part in found.ranges)
        limits = header_verification.limits(job, limits, size_bytes, found.total_bytes)
        options = build.options
        heads = header_verification.headers(
            job, limits, build.asked, options.aux_directory, build.notes, layout=options.header_layout
        )
    elif verify.is_verified(job):
        header_verification.by_stamps(job, build.notes)
        checks = verify.verification(job, found.ranges, build.run, build.notes, table=build.keeps_table)
    asked = plan.Stream(
        name=f"{job.name}.{clone}",
        worker=0,
        files=(),
        file_choice=stream.file_choice(job),
        open_files=stream.open_files(job, len(uses), build.notes),
        seed=seed,
        iodepth=how.iodepth,
        batch=stream.batch(job, how.iodepth, build.notes),
        pattern=shared.pattern(
            min(part.length_bytes for part in found.ranges),
            max(fact.logical_block_bytes for fact in facts),
        ),
        pace=stream.taking_turns(shared.pace, clone, job.schedule.numjobs or 1),
        flush=shared.flush,
        payload=shared.payload.model_copy(
            update={"dedupe_set": stream.dedupe_set(job, seed, _REPEATABLE_SEED, found.total_bytes)}
        ),
        limits=limits,
        errors=shared.errors,
        log_ios=job.recording.every_io,
        verify=checks,
        headers=heads,
        flow=shared.flow,
        wait_for=(),
        tree=None,
        # A single I/O in flight, or reads alone, cannot be in each other's way.
        search=shared.search,
        priorities=shared.priorities,
        serialize_overlap=verify.reads_beside_writes(job)
        or (heads is not None and how.iodepth > 1 and header_verification.overlaps_itself(job))
        or (bool(job.engine.serialize_overlap) and files.writes(job) and how.iodepth > 1),
    )
    if checks and job.verification.verify_only:
        asked = verify.pass_over(job, asked, found.ranges)
    build.clones.append(_Clone(job, number, stage, unit, uses, how, asked))
    if checks and verify.reads_back(job):
        back = verify.pass_over(job, asked, found.ranges)
        build.clones.append(_Clone(job, number + 1, stage + 1, unit, uses, how, back))


def _donor(build: _Build, job: Job, clone: int, part: files.FileRange) -> int:
    """Return the target that blocks come from: as long as what it gives them to."""
    by_name = job.changed(
        {
            "placement.targets": (TargetName(path=job.engine.donor or "", written=job.engine.donor or ""),),
            "engine.direct": None,
        }
    )
    [path] = files.names(by_name, clone, build.base, build.host, build.notes)
    facts = build.host.target(path, job.at("engine.donor"))
    given = files.FileRange(path, facts, part.offset_bytes, part.length_bytes)
    return build.targets.use(by_name, given, build.notes)


def _check_exits(workload: Workload, build: _Build) -> None:
    """Refuse `exitall` and `exitall_on_error` where ending the stage is not what fio would do."""
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
                raise RefusedError("has no effect without exitall", where=job.at("schedule.exit_what"))
            continue
        stages = {clone.stage for clone in build.clones}
        if job.schedule.exit_what == "all" and len(stages) > 1:
            raise RefusedError(
                "ending all stages is not supported",
                where=job.at("schedule.exit_what"),
                hint="use exit_what=stonewall",
            )
        mine = {clone.stage for clone in build.clones if clone.job is job}
        groups = {build.units[clone.unit].group for clone in build.clones if clone.stage in mine}
        if job.schedule.exit_what in (None, "group") and len(groups) > 1:
            raise RefusedError(
                "ending one group of several that run together is not supported",
                where=job.at(asked_by),
                hint="use exit_what=stonewall",
            )


def _cells(build: _Build) -> dict[tuple[int, int], int]:
    """Give every unit a cell per target, or one for all when they are many."""
    by_unit: dict[int, list[int]] = {}
    for clone in build.clones:
        by_unit.setdefault(clone.unit, []).extend(target for target, _ in clone.uses)
    index: dict[tuple[int, int], int] = {}
    for unit, targets in by_unit.items():
        distinct = sorted(set(targets))
        together = len(distinct) > MAX_CELLS_PER_UNIT
        if together:
            index.update({(unit, target): len(build.cells) for target in distinct})
            build.cells.append(plan.Cell(unit=unit, target=None))
            continue
        for target in distinct:
            index[unit, target] = len(build.cells)
            build.cells.append(plan.Cell(unit=unit, target=target))
    return index


def _workers(build: _Build) -> tuple[list[plan.Worker], dict[int, int]]:
    """Give every clone a thread: its own, or one of a few shared by its kind."""
    groups: dict[object, list[_Clone]] = {}
    for clone in build.clones:
        how = clone.drive
        alone = None if how.shared else clone.job.schedule.thread_of or clone.number
        priority = io_priority.of_job(clone.job)
        ring = (how.backend.model_dump_json(), how.force_async)
        key = (clone.stage, ring, how.cpus, how.nice, priority, alone)
        groups.setdefault(key, []).append(clone)
    workers: list[plan.Worker] = []
    worker_of: dict[int, int] = {}
    for clones in groups.values():
        how = clones[0].drive
        together = clones[0].job.schedule.thread_of is not None
        count = 1 if together else min(len(how.cpus or build.host.cpus) or 1, len(clones))
        for position, clone in enumerate(clones):
            worker_of[clone.number] = len(workers) + position % count
        workers += [
            plan.Worker(
                stage=clones[0].stage,
                backend=how.backend,
                cpus=how.cpus,
                nice=how.nice,
                io_priority=io_priority.of_job(clones[0].job),
                force_async=how.force_async,
            )
        ] * count
    if len(workers) > MAX_THREADS:
        raise RefusedError(
            f"{len(workers)} threads are too many: psync and mmap take one for each clone",
            where=build.clones[0].job.at("schedule.numjobs"),
            hint="use ioengine=io_uring with a higher iodepth",
        )
    return workers, worker_of


def _finish(workload: Workload, build: _Build) -> Resolution:
    cells = _cells(build)
    workers, worker_of = _workers(build)
    streams = [_placed(clone, worker_of[clone.number], cells) for clone in build.clones]
    stages = [clone.stage for clone in build.clones]
    if build.options.rate is not None:
        streams = _paced(streams, stages, build.options.rate)
    streams = _waiting(workload, build, streams)
    duration = budget.duration_ns(streams, stages)
    windows = [one for job in workload.jobs for one in job.recording.windows_msec]
    windows += [stop_conditions.sample_ns(job) // MILLISECOND_NS for job in workload.jobs if job.steady.rule]
    draft = plan.Plan(
        interval_ns=build.options.interval_ns or budget.interval_ns(duration, windows),
        grace_ns=build.options.grace_ns,
        memory_limit_bytes=build.host.memory_bytes,
        targets=build.targets.finish(_REPEATABLE_SEED),
        units=tuple(build.units),
        cells=tuple(build.cells),
        workers=tuple(workers),
        streams=tuple(streams),
        journal=None,
        recover=None,
        earlier=(),
        hand_over=workload.hand_over and any(one.verify is not None for one in streams),
        trees=(),
        steady=stop_conditions.steady(
            (index, clone.job, clone.unit, build.units[clone.unit].group)
            for index, clone in enumerate(build.clones)
            if not reads_back(clone.stream)
        ),
    )
    if build.options.journal:
        draft, promise = journal.keep(draft)
        build.notes.general(f"journal: {promise}")
    if any(placed.log_ios for placed in streams):
        build.notes.general("a log of every I/O is kept: about 61 bytes on disk for each")
    return Resolution(
        plan=draft,
        notes=(*workload.notes, *build.notes.all),
        writes=build.targets.writes(),
        disk_bytes_estimate=budget.samples_bytes(draft, duration) + build.targets.growth_bytes(),
        duration_ns=duration,
    )


def _waiting(workload: Workload, build: _Build, streams: list[plan.Stream]) -> list[plan.Stream]:
    """Let clones wait for those of the job they name, where these run in the same stage."""
    made = list(streams)
    for index, clone in enumerate(build.clones):
        other = stop_conditions.waited_for(clone.job, workload.jobs)
        if other is None:
            continue
        waits = tuple(
            at for at, one in enumerate(build.clones) if one.job is other and one.stage == clone.stage
        )
        made[index] = made[index].model_copy(update={"wait_for": waits})
    return made


def _paced(streams: list[plan.Stream], stages: list[int], rate: stream.TotalRate) -> list[plan.Stream]:
    """Give the streams of each stage the total rate, in the same order."""
    made = {
        wanted: iter(
            stream.paced_together([s for s, at in zip(streams, stages, strict=True) if at == wanted], rate)
        )
        for wanted in set(stages)
    }
    return [next(made[stage]) for stage in stages]


def _placed(clone: _Clone, worker: int, cells: dict[tuple[int, int], int]) -> plan.Stream:
    uses = tuple(
        plan.FileUse(
            target=target,
            cell=cells[clone.unit, target],
            offset_bytes=part.offset_bytes,
            length_bytes=part.length_bytes,
        )
        for target, part in clone.uses
    )
    return clone.stream.model_copy(update={"worker": worker, "files": uses})
