"""How a job's I/O is done: which backend, at which depth, on how many threads.

Knows engines by the names in use and what they become here, and when the synchronous path is the
faster one. Knows no file names and no stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.plan import connection, io_priority, passthrough, special_engines
from loadstone.plan import model as plan
from loadstone.plan.backends import of_engine
from loadstone.plan.model import TargetKind
from loadstone.plan.pattern import shares
from loadstone.plan.work_kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.host_facts import HostFacts, TargetFacts
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

_Ring = TypeVar("_Ring", plan.BackendIoUring, plan.BackendIoUringCmd)
NATIVE_ENGINE: Final = "io_uring"
PLAIN_ENGINE: Final = "psync"
_RING_ONLY: Final = ("engine.registerfiles", "engine.fixedbufs", "engine.sqthread_poll", "engine.force_async")


_Sharing = Literal["all", "paced", "none"]
"""Which clones share threads. One that does I/O itself does nothing else meanwhile: clones that shared it
would go in step, each I/O with the latency of all. So all share only what goes on without the thread; where
its I/O is short those with arrivals do, which have gaps for each other."""


@dataclass(frozen=True, slots=True)
class Drive:
    """A backend, the depth it is driven at, and which clones share its threads."""

    backend: plan.Backend
    iodepth: int
    sharing: _Sharing
    cpus: tuple[int, ...]
    nice: int
    force_async: int = 0


def drive(
    job: Job,
    facts: Sequence[TargetFacts],
    *,
    keep_ioengine: bool,
    host: HostFacts,
    notes: Notes,
    donor: Callable[[Job], int] = lambda _: 0,
) -> Drive:
    """Choose how the clones of a job do their I/O."""
    iodepth = job.engine.iodepth or 1
    engine = _engine(job, iodepth)
    cpus = _cpus(job, host, notes)
    nice = _nice(job, host)
    _check_ring_options(job, engine)
    _check_force(job, engine)
    io_priority.check_engine(job, engine)
    connection.check_engine(job, engine)
    if engine == "null":
        return Drive(plan.BackendNull(), iodepth, "all", cpus=cpus, nice=nice)
    if not of_engine(engine).native_depth:
        if iodepth > 1:
            text = say("plan.notes.one_at_a_time", engine=engine, iodepth=iodepth)
            notes.trap(job, "engine.iodepth", text)
        return Drive(_alone(job, engine, donor), 1, "none", cpus=cpus, nice=nice)
    if engine == passthrough.ENGINE:
        return Drive(_ring(job, plan.BackendIoUringCmd), iodepth, "all", cpus=cpus, nice=nice)
    if engine == "libaio" and keep_ioengine:
        # A buffered I/O is done, or waited for, in the call that hands it over.
        sharing: _Sharing = "all" if job.engine.direct else "none"
        return Drive(plan.BackendLibaio(), iodepth, sharing, cpus=cpus, nice=nice)
    if engine != NATIVE_ENGINE:
        if keep_ioengine:
            raise job.refusal("plan.engine.not_built", "engine.ioengine", engine=engine)
        notes.changed(job, "engine.ioengine", say("plan.notes.on_io_uring", engine=engine))
    why = None if keep_ioengine else _why_in_the_caller(job, facts)
    if why:
        text = say("plan.notes.plain_calls", why=say(why))
        if iodepth > 1:
            text = say("plan.notes.plain_calls_alone", why=say(why), iodepth=iodepth)
        notes.changed(job, "engine.ioengine", text)
        return Drive(plan.BackendPsync(), 1, "paced", cpus=cpus, nice=nice)
    ring = _ring(job, plan.BackendIoUring)
    # What the page cache has is copied in the call. Who opens and closes does nothing else meanwhile.
    sharing = "all" if job.engine.direct or job.engine.sqthread_poll else "paced"
    sharing = "none" if job.engine.ios_per_connection else sharing
    return Drive(ring, iodepth, sharing, cpus=cpus, nice=nice, force_async=job.engine.force_async or 0)


def _alone(job: Job, engine: str, donor: Callable[[Job], int]) -> plan.Backend:
    """Return the backend of an engine that does one I/O at a time."""
    if engine in special_engines.ENGINES:
        return special_engines.backend(job, donor)
    if engine == kind_of(job).engine:
        return plan.BackendFiles()
    return plan.BackendMmap() if engine == "mmap" else plan.BackendPsync()


def _nice(job: Job, host: HostFacts) -> int:
    """Return what a job adds to the nice value of this process."""
    nice = job.process.nice or 0
    whole = max(host.nice + nice, -20)
    if nice and whole < host.least_nice:
        raise job.error("plan.engine.nice", "process.nice", nice=nice, whole=whole, least=host.least_nice)
    return nice


def _check_force(job: Job, engine: str) -> None:
    """Refuse to force what goes another way than through the ring."""
    if not job.engine.force_async:
        return
    if engine != NATIVE_ENGINE:
        raise job.refusal("plan.engine.not_native", "engine.force_async", engine=engine, native=NATIVE_ENGINE)
    if shares(job)[2]:
        raise job.refusal("plan.engine.force_trims", "engine.force_async")


def _engine(job: Job, iodepth: int) -> str:
    """Return the engine asked for; without one plain calls, unless more than these do is asked for."""
    named = kind_of(job).engine or job.engine.ioengine
    if named:
        return named
    asks_ring = iodepth > 1 or any(job.value(name) for name in (*_RING_ONLY, "engine.hipri"))
    return NATIVE_ENGINE if asks_ring else PLAIN_ENGINE


def _ring(job: Job, kind: type[_Ring]) -> _Ring:
    direct = bool(job.engine.direct) or kind is plan.BackendIoUringCmd
    if job.engine.hipri and not direct:
        raise job.refusal("plan.engine.polling", "engine.hipri")
    return kind(
        # A registered file stays open.
        registered_files=job.engine.registerfiles is not False and not job.engine.ios_per_connection,
        fixed_buffers=job.engine.fixedbufs is not False,
        iopoll=bool(job.engine.hipri),
        sqpoll=bool(job.engine.sqthread_poll),
    )


def _check_ring_options(job: Job, engine: str) -> None:
    """Refuse options of the ring with engines that have none."""
    for field in (*_RING_ONLY, "engine.hipri"):
        if job.value(field) and not of_engine(engine).polls:
            raise job.refusal("plan.engine.not_uring", field, engine=engine)


def _why_in_the_caller(job: Job, facts: Sequence[TargetFacts]) -> str | None:
    """Return the key of why plain system calls are the better way to these targets; none when a ring is."""
    if not facts or job.engine.hipri or job.engine.sqthread_poll or job.priorities.of_some:
        return None
    if all(f.punts and f.kind is not TargetKind.VIRTUAL for f in facts):
        return "plan.notes.why_in_memory"
    # Whoever asks for parts of a ring wants to see the ring, which does work here.
    if all(f.at_once for f in facts) and not any(job.value(name) for name in _RING_ONLY):
        return "plan.notes.why_at_once"
    return None


def _cpus(job: Job, host: HostFacts, notes: Notes) -> tuple[int, ...]:
    _check_memory_policy(job, host)
    wanted = job.process.cpus_allowed or _of_nodes(job, host)
    missing = [cpu for cpu in wanted if cpu not in host.cpus]
    if missing:
        usable = ", ".join(map(str, host.cpus[:32]))
        raise job.error("plan.engine.no_cpu", "process.cpus_allowed", cpu=missing[0], usable=usable)
    if job.process.cpus_policy and not wanted:
        text = say("plan.notes.no_effect_without", option="cpus_allowed_policy", needed="cpus_allowed")
        notes.trap(job, "process.cpus_policy", text)
    return wanted


def _of_nodes(job: Job, host: HostFacts) -> tuple[int, ...]:
    """CPUs of the NUMA nodes a job may use; none when it asks for no node, or all."""
    if job.process.numa_nodes is None or job.process.numa_nodes == "all":
        return ()
    for node in job.process.numa_nodes:
        if node not in host.nodes:
            known = ", ".join(map(str, host.nodes)) or "none"
            where = job.at("process.numa_nodes")
            raise make_error(InputError, "plan.engine.no_node", where=where, node=node, known=known)
    cpus = {cpu for node in job.process.numa_nodes for cpu in host.nodes[node]}
    return tuple(sorted(cpus & set(host.cpus)))


def _check_memory_policy(job: Job, host: HostFacts) -> None:
    """Refuse a policy that could matter: with one node memory can only come from there."""
    policy = job.process.numa_memory
    if policy is None or policy.mode in ("default", "local"):
        return
    if len(host.nodes) > 1 or policy.nodes not in ((0,), "all"):
        nodes = policy.nodes if policy.nodes == "all" else ", ".join(map(str, policy.nodes)) or "none"
        raise job.refusal("plan.engine.memory_policy", "process.numa_memory", mode=policy.mode, nodes=nodes)


def check_direct(job: Job, sizes: Sequence[int], ranges: Sequence[FileRange]) -> None:
    """Refuse direct I/O in sizes or at addresses the target cannot do."""
    engine = job.engine.ioengine or PLAIN_ENGINE
    own = of_engine(engine)
    commands = own.direct == "always"
    if not (job.engine.direct or commands) or own.keeps_data == "nothing":
        return
    if own.direct == "never":
        raise job.refusal("plan.engine.not_direct", "engine.direct", engine=engine)
    facts = [part.facts for part in ranges if part.facts.kind is not TargetKind.CHAR]
    unit = max((fact.logical_block_bytes for fact in facts), default=1)
    numbers = [(size, "sizes.bs") for size in sizes]
    numbers += [(part.offset_bytes, "placement.offset") for part in ranges]
    for number, field in numbers:
        if number % unit:
            hint = say("plan.engine.multiple", unit=unit)
            if not commands:
                hint = say("plan.engine.multiple_or", unit=unit, setting=job.setting("engine.direct", 0))
            raise job.error("plan.engine.no_multiple", field, hint=hint, unit=unit, found=number)
