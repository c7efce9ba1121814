"""Options of fio set in a Workload that is read already, whatever language it is from.

Knows that an option of one kind takes the place of its siblings (`bs` that of `bssplit`). Reads a
value as a job file's; does not know who wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, Where
from loadstone.formats.fio.grammar import Entry
from loadstone.formats.fio.jobs import JobReader
from loadstone.formats.fio.table import BY_NAME
from loadstone.workload.model import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.workload.model import Workload

_NONE: Final = (None, None, None)
_SIBLINGS: Final[dict[str, dict[str, Any]]] = {
    "bs": {"bsrange": _NONE, "bssplit": _NONE, "bs_is_seq_rand": None, "rows": ()},
    "bsrange": {"bs": _NONE, "bssplit": _NONE, "bs_is_seq_rand": None, "rows": ()},
    "bssplit": {"bs": _NONE, "bsrange": _NONE, "bs_is_seq_rand": None, "rows": ()},
    "rw": {"rows": ()},
    "rwmix_read_percent": {"rows": ()},
}
"""What a field empties beside it."""
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
            raise InputError(
                f"{name} belongs to a job's own section", where=at, hint="set it in the job file"
            )
        entries.append(Entry(name, value, at))
    fields, set_at = reader.fields_of(entries)
    if nested := next((name for name in fields if "." in name or name not in Job.model_fields), None):
        raise InputError("is not set from outside the job file", where=set_at[nested], hint="set it there")
    beside = {key: value for name in fields for key, value in _SIBLINGS.get(name, {}).items()}
    jobs = tuple(
        job.model_copy(update={**beside, **fields, "set_at": {**job.set_at, **set_at}})
        for job in workload.jobs
    )
    return workload.model_copy(update={"jobs": jobs, "notes": (*workload.notes, *reader.notes)})
