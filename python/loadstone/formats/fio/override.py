"""Options of fio set in a Workload that is read already, whatever language it is from.

Knows that an option of one kind takes the place of its siblings (`bs` that of `bssplit`). Reads a
value as a job file's; does not know who wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.fio.grammar import Entry
from loadstone.formats.fio.jobs import JobReader
from loadstone.formats.fio.lower import DEFAULT_BLOCK_BYTES, lowered
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages import make_error
from loadstone.workload.block_sizes import SizeRequests, fixed
from loadstone.workload.blocks import BlockWork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.workload.model import Job, Workload

_NOT_FROM_OUTSIDE: Final = frozenset({"reported_name", "logs", "stats"})
"""Fields, or parts of a job, that only its own file sets."""
_OF_SECTIONS: Final = frozenset({"name", "exec_prerun", "exec_postrun", "stonewall", "new_group", "wait_for"})


def with_options(workload: Workload, options: Mapping[str, str], where: Where) -> Workload:
    """Set options in each job. Raises `InputError` and `RefusedError` as the reader of job files does."""
    if not options:
        return workload
    reader = JobReader(strict=False, allow_exec=False)
    entries = []
    for name, value in options.items():
        at = Where(where.file, where.line, name)
        known = BY_NAME.get(name)
        if known is not None and known.name in _OF_SECTIONS:
            raise make_error(InputError, "formats_fio.override.own_section", where=at, name=name)
        entries.append(Entry(name, value, at))
    fields, set_at = reader.fields_of(entries)
    if nested := next((name for name in fields if name.partition(".")[0] in _NOT_FROM_OUTSIDE), None):
        raise make_error(InputError, "formats_fio.override.not_from_outside", where=set_at[nested])
    jobs = []
    for job in workload.jobs:
        base = _of_blocks(job, fields, set_at)
        lowering = lowered(fields, set_at, where=job.where, base=base)
        reader.keep(lowering.notes)
        jobs.append(base.changed({**lowering.fields, "set_at": {**job.set_at, **lowering.set_at}}))
    return workload.model_copy(update={"jobs": tuple(jobs), "notes": (*workload.notes, *reader.notes)})


def _of_blocks(job: Job, fields: Mapping[str, Any], set_at: Mapping[str, Where]) -> Job:
    """Return a job that has room for the fields: rw, and what is set with it, takes the place of rows."""
    beside = [name for name in fields if name.partition(".")[0] in ("mix", "sizes", "addresses")]
    if job.blocks is not None or not beside:
        return job
    if "mix.rw" not in beside:
        raise make_error(RefusedError, "formats_fio.override.rows", where=set_at[beside[0]], job=job.name)
    return job.changed({"work": BlockWork(sizes=SizeRequests(bs=fixed(DEFAULT_BLOCK_BYTES)))})
