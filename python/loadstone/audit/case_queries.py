"""Questions that several rules ask of a Case.

Knows Cases only. An answer that cannot be given is None, as in the Case.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.path.layers import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.audit.case import Case, JobRequest, Op, TargetState
    from loadstone.path.layers import Layer

HOST_BUSY_PERCENT: Final = 80.0
"""Of all CPUs of the generating host: from here on what it sees may be its own doing."""
FILES: Final = "files"
"""The backend of work in trees."""
NULL: Final = "null"
"""The engine that does no I/O."""


def does(case: Case, op: Op) -> bool:
    """Whether the case did this operation, or was to do it."""
    done = case.ops.get(op)
    if done is not None and (done.operations or done.bytes or done.iops or done.bandwidth):
        return True
    return any(job_does(job, op) for job in case.jobs) if not case.ops else False


def job_does(job: JobRequest, op: Op) -> bool:
    """Whether a job asks for this operation; False when its mix is not known."""
    if job.read_percent is None or op == "trim":
        return False
    return job.read_percent > 0 if op == "read" else job.read_percent < 100


def buffered(case: Case) -> bool | None:
    """Whether I/O went through the page cache: True when any job's did."""
    known = [job.direct for job in case.jobs]
    if False in known:
        return True
    return None if None in known or not known else False


def random(case: Case) -> bool | None:
    """Whether most I/Os of every job go to random places."""
    known = [job.random_percent for job in case.jobs]
    percents = [percent for percent in known if percent is not None]
    return None if not known or len(percents) < len(known) else min(percents) >= 50


def outstanding(case: Case) -> int | None:
    """Return how many I/Os a closed loop keeps outstanding, None for paced or unknown loads."""
    whole = 0
    for job in case.jobs:
        if job.backend in (FILES, NULL):
            return None  # What one opens and closes is outstanding, too; the other ends each I/O at once.
        if job.iodepth is None or job.paced or job.rate_iops or job.rate_bytes_per_s:
            return None
        whole += job.iodepth * (job.clones or 1)
    return whole or None


def flushing(case: Case) -> float:
    """Return the mean number of flushes outstanding, by Little's law; 0 where none is known."""
    flush = case.flush
    if flush is None or flush.iops is None or flush.latency is None or flush.latency.mean_ns is None:
        return 0.0
    return flush.iops.value * flush.latency.mean_ns / 1e9


def virtual(case: Case) -> bool:
    """Whether there is no storage at all: the load generator measures itself or a model."""
    return bool(case.targets) and all(target.kind == "virtual" for target in case.targets)


def in_memory(case: Case) -> TargetState | None:
    """Return a target in a file system in memory, also under an overlay or a program that shows it."""
    for one in case.targets:
        if one.kind not in ("file", "tree"):
            continue
        if one.file_system in IN_MEMORY:
            return one
        kind = _memory_below(case, one)
        if kind is not None:
            return replace(one, file_system=f"{one.file_system} over {kind}")
    return None


def user_space_layers(target: TargetState) -> tuple[Layer, ...]:
    """Return a program in user space (FUSE) that serves a file, and what it shows of another file system.

    Empty where the file is on no such mount.
    """
    path = target.path_layers
    on_the_way: list[Layer] = []
    layer = path.layers[0] if path is not None and path.layers else None
    while path is not None and layer is not None and layer.kind in ("file", "fuse", "file_system"):
        on_the_way.append(layer)
        layer = path.layer(layer.below[0]) if len(layer.below) == 1 else None
    numbers = [at for at, one in enumerate(on_the_way) if one.kind == "fuse"]
    return tuple(on_the_way[numbers[0] :]) if numbers else ()


def _memory_below(case: Case, target: TargetState) -> str | None:
    """Return the type of the file system in memory that stores the file's data; None: a disk stores it."""
    layers = target.path_layers.layers if target.path_layers is not None else ()
    shown = next((layer for layer in user_space_layers(target) if layer.kind == "file_system"), None)
    if shown is not None and shown.facts.get("type") in IN_MEMORY:
        return str(shown.facts["type"])
    if target.file_system != "overlay" or not any(layer.kind == "memory" for layer in layers):
        return None
    copied = any(layer.facts.get("copied_up") for layer in layers)
    if not copied and not does(case, "write"):
        return None  # What is only read stays where it was.
    kinds = (str(layer.facts.get("type")) for layer in layers)
    return next((kind for kind in kinds if kind in IN_MEMORY), None)


def paced(case: Case) -> bool:
    """Whether a job has a rate to keep, so that the rate is not the storage's."""
    return any(job.paced or job.rate_iops or job.rate_bytes_per_s for job in case.jobs)


def reducing(case: Case) -> str | None:
    """Return the layer that compresses or deduplicates, when one is known."""
    return next((target.reduces for target in case.targets if target.reduces), None)


def names(what: Iterable[str]) -> str:
    """Write names as a list in words: the first two, and how many more."""
    every = list(dict.fromkeys(what))
    more = f" and {len(every) - 2} more" if len(every) > 2 else ""
    return ", ".join(every[:2]) + more if more else " and ".join(every)


def where(case: Case) -> str:
    """Name the targets."""
    return names(target.path for target in case.targets) or "the target"


def under(case: Case) -> str:
    """Name what carries the targets."""
    return names(case.traffic.carriers) if case.traffic is not None else "the device"


def mean_bytes(sizes: dict[int, float]) -> float | None:
    """Return the mean size of an I/O, None when the sizes are not known."""
    return sum(size * share for size, share in sizes.items()) if sizes else None
