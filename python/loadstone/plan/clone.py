"""One clone of a job on its way into the Plan: what it works on, how, and what it does.

Knows the order in which the parts of this room are asked. Its thread, its cells and whom it waits
for are not known before all clones are: `workers` has them.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan import (
    backend,
    clone_files,
    connection,
    io_priority,
    passthrough,
    pattern,
    stop_conditions,
    stream,
    tree_jobs,
)
from loadstone.plan import model as plan
from loadstone.plan.verification import header_verification, verify
from loadstone.plan.work_kinds import kind_of
from loadstone.workload.placement import TargetName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.host_facts import HostFacts, TargetFacts
    from loadstone.plan.options import ResolveOptions
    from loadstone.plan.planning_notes import Notes
    from loadstone.plan.targets import Targets
    from loadstone.plan.tree_jobs import Trees
    from loadstone.workload.model import Job

REPEATABLE_SEED: Final = 0x4C6F_6164


@dataclass(frozen=True, slots=True)
class Place:
    """What a clone works on: ranges of targets, or a tree."""

    targets: tuple[int, ...]
    ranges: tuple[clone_files.FileRange, ...]
    tree: plan.TreeUse | None
    once_bytes: int
    """What it moves in one loop; 0: no bound."""
    asked_bytes: int
    """The same before it was made whole blocks."""
    content_bytes: int
    """What there is to write."""
    shortest_bytes: int
    """What addresses are drawn over."""
    unit_bytes: int
    """What all of it can do."""

    @property
    def facts(self) -> tuple[TargetFacts, ...]:
        """What stands at its targets."""
        return tuple(part.facts for part in self.ranges)


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone and its stream, which has no thread yet."""

    job: Job
    number: int
    stage: int
    unit: int
    place: Place
    drive: backend.Drive
    stream: plan.Stream


@dataclass(slots=True)
class PlanDraft:
    """A Plan on its way: everything collected so far."""

    options: ResolveOptions
    host: HostFacts
    base: str
    notes: Notes
    targets: Targets
    trees: Trees
    run: int
    """Identity of the run in the stamps of verified blocks."""
    keeps_table: bool
    """Something is written and verified: what blocks must hold is remembered."""
    units: list[plan.Unit] = field(default_factory=list)
    clones: list[Clone] = field(default_factory=list)
    asked: int = 0
    """Clones without those that read back: a later run that reads, and writes nothing, draws the same
    addresses."""


class SharedParts:
    """What the clones of a job have in common, resolved once."""

    def __init__(self, job: Job, notes: Notes, queue: int) -> None:
        self.job = job
        self.queue = queue
        """The number of the queue that clones in a tree take from what is due."""
        self.does = header_verification.rehearsed(job)
        """The job whose I/Os are drawn."""
        self.notes = notes
        self.pace = stream.pace(job, notes)
        self.flush = stream.flush(job)
        self.flow = stream.flow(job, notes)
        self.payload = stream.payload(job)
        self.search = stop_conditions.search(job, notes)
        self.errors = stream.errors(job)
        self.priorities = io_priority.shares(job)
        self._patterns: dict[tuple[int, int], plan.Pattern] = {}

    def pattern(self, place: Place) -> plan.Pattern:
        """Return the pattern over a place (zones depend on its length)."""
        key = (place.shortest_bytes, place.unit_bytes)
        if key not in self._patterns:
            self._patterns[key] = pattern.pattern(self.does, self.notes, *key)
        return self._patterns[key]


def _payload(job: Job, shared: SharedParts, seed: int, place: Place) -> plan.Payload:
    """Return what a clone writes: what all of its job do, from its own set of repeated blocks."""
    repeated = stream.dedupe_set(job, seed, REPEATABLE_SEED, place.content_bytes)
    return shared.payload.model_copy(update={"dedupe_set": repeated})


def add(build: PlanDraft, shared: SharedParts, clone: int, stage: int, unit: int) -> None:
    """Add a clone, and the one that reads back what it wrote."""
    job = shared.job
    number = len(build.clones) + 1
    build.asked += 1
    seed = _seed(build, job)
    place = _place(build, shared, clone, seed)
    how = _drive(build, job, clone, place)
    chance = random.Random(seed)  # noqa: S311 - a drawn delay is no secret
    region_bytes = sum(part.length_bytes for part in place.ranges)
    once = stream.Once(place.once_bytes, place.asked_bytes, region_bytes)
    limits = stream.limits(job, once, build.notes, chance)
    checks, heads = None, None
    if verify.by_headers(job):
        limits, heads = _headers(build, job, place, limits)
    elif verify.is_verified(job):
        checks = verify.verification(job, place.ranges, build.run, build.notes, table=build.keeps_table)
    clone_stream = plan.Stream(
        name=f"{job.name}.{clone}",
        worker=0,
        files=(),
        file_choice=stream.file_choice(job),
        open_files=stream.open_files(job, len(place.ranges)),
        seed=seed,
        iodepth=how.iodepth,
        batch=stream.batch(job, how.iodepth, shared.pattern(place), build.notes),
        pattern=shared.pattern(place),
        pace=stream.taking_turns(shared.pace, clone, job.schedule.numjobs or 1),
        flush=shared.flush,
        payload=_payload(job, shared, seed, place),
        limits=limits,
        errors=shared.errors,
        log_ios=job.recording.every_io,
        verify=checks,
        headers=heads,
        flow=shared.flow,
        wait_for=(),
        tree=place.tree,
        search=shared.search,
        priorities=shared.priorities,
        serialize_overlap=_may_overlap(job, how.iodepth, heads),
        connection=None,
    )
    clone_stream = connection.connected(job, clone_stream, len(place.ranges), build.notes)
    if verify.is_pass(job):
        clone_stream = verify.pass_over(job, clone_stream, place.ranges)
    build.clones.append(Clone(job, number, stage, unit, place, how, clone_stream))
    if checks and verify.reads_back(job):
        back = verify.pass_over(job, clone_stream, place.ranges)
        build.clones.append(Clone(job, number + 1, stage + 1, unit, place, how, back))


def _drive(build: PlanDraft, job: Job, clone: int, place: Place) -> backend.Drive:
    """Return how a clone does its I/O."""
    how = backend.drive(
        job,
        place.facts,
        keep_ioengine=build.options.keep_ioengine,
        host=build.host,
        notes=build.notes,
        donor=lambda job: _donor(build, job, clone, place.ranges[0]),
    )
    if job.process.cpus_policy == "split" and how.cpus:
        return replace(how, cpus=(how.cpus[clone % len(how.cpus)],))
    return how


def _headers(
    build: PlanDraft, job: Job, place: Place, limits: plan.Limits
) -> tuple[plan.Limits, plan.Headers | None]:
    """Return the limits of a clone that is verified by headers, and these."""
    size_bytes = sum(part.length_bytes for part in place.ranges)
    limits = header_verification.limits(job, limits, size_bytes, place.once_bytes)
    options = build.options
    heads = header_verification.headers(
        job, limits, build.asked, options.aux_directory, build.notes, layout=options.header_layout
    )
    return limits, heads


def _place(build: PlanDraft, shared: SharedParts, clone: int, seed: int) -> Place:
    if shared.job.tree is not None:
        return _in_tree(build, shared, clone)
    return _on_targets(build, shared, clone, seed)


def _in_tree(build: PlanDraft, shared: SharedParts, clone: int) -> Place:
    job = shared.job
    target, use = build.trees.of_clone(job, clone, shared.queue)
    shape = tree_jobs.work_of(job).shape
    return Place(
        targets=(target,),
        ranges=(),
        tree=use,
        once_bytes=tree_jobs.once_bytes(job),
        asked_bytes=tree_jobs.once_bytes(job),
        content_bytes=shape.expected_bytes,
        shortest_bytes=max(int(shape.mean_bytes), 1),
        unit_bytes=1,
    )


def _on_targets(build: PlanDraft, shared: SharedParts, clone: int, seed: int) -> Place:
    job = shared.job
    resolved = clone_files.resolve_files(
        job, clone, base_directory=build.base, host=build.host, notes=build.notes, seed=seed
    )
    facts = [part.facts for part in resolved.ranges]
    passthrough.check(job, resolved.ranges, build.notes)
    backend.check_direct(job, _bounds(shared.does), resolved.ranges)
    return Place(
        targets=tuple(build.targets.use(job, part, build.notes) for part in resolved.ranges),
        ranges=resolved.ranges,
        tree=None,
        once_bytes=resolved.total_bytes,
        asked_bytes=resolved.asked_bytes,
        content_bytes=resolved.total_bytes,
        shortest_bytes=min(part.length_bytes for part in resolved.ranges),
        unit_bytes=max(fact.logical_block_bytes for fact in facts),
    )


def _bounds(job: Job) -> Sequence[int]:
    """Return the smallest and the largest block of each direction in use."""
    return [
        bound(block)
        for block, share in zip(pattern.sizes(job), pattern.shares(job), strict=True)
        if share
        for bound in (pattern.smallest, pattern.largest)
    ]


def _may_overlap(job: Job, iodepth: int, heads: plan.Headers | None) -> bool:
    """Whether I/Os in flight are kept off each other's place.

    A single one, or reads alone, cannot be in each other's way; a tree locks its files. A write that
    overtakes the trim of its place would be undone by it.
    """
    if verify.reads_beside_writes(job):
        return not kind_of(job).locks
    follows = pattern.trims_then_writes(job)
    alike = follows or (heads is not None and header_verification.overlaps_itself(job))
    return iodepth > 1 and (alike or (bool(job.engine.serialize_overlap) and clone_files.writes(job)))


def _seed(build: PlanDraft, job: Job) -> int:
    """Return a seed of 63 bits that depends on the job's seed and on the number of the clone."""
    if job.seeds.randseed is not None:
        base = job.seeds.randseed
    elif job.seeds.repeatable is not False:
        base = REPEATABLE_SEED
    else:
        base = secrets.randbits(63)
        build.notes.info(job, "seeds.repeatable", say("plan.notes.another_sequence"))
    digest = hashlib.blake2b(repr((base, build.asked)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _donor(build: PlanDraft, job: Job, clone: int, part: clone_files.FileRange) -> int:
    """Return the target that blocks come from: as long as what it gives them to."""
    by_name = job.changed(
        {
            "placement.targets": (TargetName(path=job.engine.donor or "", written=job.engine.donor or ""),),
            "engine.direct": None,
        }
    )
    [path] = clone_files.names(by_name, clone, build.base, build.host, build.notes)
    facts = build.host.target(path, job.at("engine.donor"))
    donor_range = clone_files.FileRange(path, facts, part.offset_bytes, part.length_bytes)
    return build.targets.use(by_name, donor_range, build.notes)
