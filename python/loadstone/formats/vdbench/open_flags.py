"""How SDs and files are opened. Knows vdbench's flags, and whose go before whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadstone.errors import Where
    from loadstone.formats.vdbench.filesystem import FileSystem, FileWorkload
    from loadstone.formats.vdbench.rundef import RunDefinition
    from loadstone.formats.vdbench.storage import Storage
    from loadstone.formats.vdbench.workload import WorkloadDefinition


def that_hold(
    run: RunDefinition, workload: WorkloadDefinition | FileWorkload, storage: Storage | FileSystem
) -> tuple[set[str], Where]:
    """Return the flags and where they were written: the run's before the workload's before the storage's."""
    for entity in (run, workload):
        if entity.openflags is not None:
            return set(entity.openflags), entity.at["openflags"]
    return set(storage.openflags), storage.at.get("openflags", storage.where)


def fields(flags: set[str]) -> dict[str, Any]:
    """Return the fields of a job that say how its targets are opened."""
    job_fields: dict[str, Any] = {"engine.direct": bool(flags & {"o_direct", "directio"})}
    if flags & {"o_sync", "o_rsync"}:
        job_fields["durability.sync"] = "sync"
    elif "o_dsync" in flags:
        job_fields["durability.sync"] = "dsync"
    if flags & {"clear_cache", "clearcache"}:
        job_fields["files.invalidate"] = True
    return job_fields
