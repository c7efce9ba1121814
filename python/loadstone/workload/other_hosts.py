"""Jobs that a file gives to several hosts: refused where one host does all, divided where there are several.

Knows what a host's part of a job is: of its depth, its rate, its bytes and its operations. Reaches no host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import InputError, RefusedError, Where
from loadstone.messages import make_error
from loadstone.workload.placement import Amount
from loadstone.workload.trees import HostFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.workload.model import Job, Workload
    from loadstone.workload.placement import HostPlace


def refuse_elsewhere(workload: Workload) -> None:
    """Refuse a Workload of which other hosts do a part."""
    place = next((place for job in workload.jobs for place in job.hosts if place.away), None)
    if place is not None:
        raise elsewhere(place)


def elsewhere(place: HostPlace) -> RefusedError:
    """Return why what a host does is not done here."""
    return make_error(
        RefusedError, "hosts.file.elsewhere", where=place.where, name=place.names[0], address=place.names[-1]
    )


def spread(workload: Workload, hosts: Mapping[str, Sequence[str]], where: Where) -> dict[str, Workload]:
    """Return what each host does, by its name.

    `hosts`: what each is called, its address among it. Raises InputError for a host that the file names
    and `where` does not, or the other way round, and RefusedError for a host without a part. A host
    that is idle in all jobs is left out.
    """
    host_jobs: dict[str, list[Job]] = {name: [] for name in hosts}
    idle: set[str] = set()
    for job in workload.jobs:
        if not job.hosts:
            for jobs in host_jobs.values():
                jobs.append(job)
            continue
        names = [_meant(place, hosts, where) for place in job.hosts]
        working = [at for at, place in enumerate(job.hosts) if not place.idle]
        idle.update(name for name, place in zip(names, job.hosts, strict=True) if place.idle)
        for at, host in enumerate(working):
            files = HostFiles(index=host, count=len(names))
            part = _part(job, job.hosts[host], at, len(working), files)
            if part is not None:
                host_jobs[names[host]].append(part)
    named = {name for job in workload.jobs for place in job.hosts for name in place.names}
    for name, jobs in host_jobs.items():
        if jobs or name in idle:
            continue
        if not named.intersection(hosts[name]):
            raise make_error(InputError, "hosts.file.not_named", where=where, name=name)
        raise make_error(
            RefusedError, "hosts.file.no_part", where=workload.jobs[0].at("engine.iodepth"), name=name
        )
    return {
        name: workload.model_copy(update={"jobs": tuple(jobs)}) for name, jobs in host_jobs.items() if jobs
    }


def _meant(place: HostPlace, hosts: Mapping[str, Sequence[str]], where: Where) -> str:
    """Return which of the hosts is meant: by its first name before the others."""
    for called in place.names:
        for name, words in hosts.items():
            if called in words:
                return name
    raise make_error(
        InputError,
        "hosts.file.unknown",
        where=place.where,
        name=place.names[0],
        names=", ".join(hosts),
        file=str(where),
    )


def _part(job: Job, place: HostPlace, at: int, count: int, files: HostFiles) -> Job | None:
    """Return the part of a job that host number `at` of `count` does; None: there is not enough for it.

    `files`: those that are the host's, where the job is in a tree; what clears one clears all of it.
    """
    update: dict[str, Any] = {"hosts": ()}
    if place.targets:
        update["placement.targets"] = place.targets
    tree = job.tree
    if tree is not None and not tree.clear:
        update["work.part"] = files
    if count > 1:
        field = "engine.iodepth" if tree is None else "schedule.numjobs"
        whole = job.value(field) or 1
        host_share = whole // count + (at < whole % count)
        if not host_share:
            return None
        doing = min(count, whole)
        share = host_share / whole if tree is None else 1 / doing
        update[field] = host_share
        update["pacing.rate_iops"] = tuple(rate and rate * share for rate in job.pacing.rate_iops)
        update["pacing.rate_bytes"] = tuple(
            rate and max(1, round(rate * share)) for rate in job.pacing.rate_bytes
        )
        if job.limits.io_size is not None and job.limits.io_size.bytes:
            update["limits.io_size"] = Amount(bytes=max(1, round(job.limits.io_size.bytes * share)))
        if tree is not None and tree.rate_ops is not None:
            update["work.rate_ops"] = tree.rate_ops * share
    return job.changed(update)
