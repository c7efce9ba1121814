"""Options of a job that no other fact of a case tells, in words by the field they are in.

Knows which fields of a Workload's job make other work for the storage, and which say how it is begun or
where. One that was left open, or has the value it would have then, is not set. Judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.workload.engine_choice import BatchSizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.workload.model import Job

OF_LOAD: Final = (
    "addresses.random_distribution",
    "addresses.stride_bytes",
    "addresses.run_length",
    "addresses.blockalign_bytes",
    "pacing.thinktime_ns",
    "pacing.thinktime_blocks",
    "pacing.rate_process",
    "pacing.flow",
    "search.latency_target_ns",
    "verification.verify",
    "durability.fsync_every",
    "durability.fdatasync_every",
    "durability.fsync_on_close",
    "placement.nrfiles",
    "placement.offset",
    "placement.offset_increment",
    "placement.zone_mode",
    "placement.zone_size_bytes",
    "placement.zone_skip_bytes",
    "engine.batch",
    "priorities.job_class",
    "priorities.job_level",
    "priorities.percent",
    "priorities.by_size",
    "files.invalidate",
)
"""Fields with another value of which it is another load."""
OTHERS: Final = (
    "addresses.norandommap",
    "addresses.random_generator",
    "engine.hipri",
    "engine.sqthread_poll",
    "engine.registerfiles",
    "engine.fixedbufs",
    "engine.force_async",
    "engine.serialize_overlap",
    "files.fallocate",
    "files.fadvise",
    "files.overwrite",
    "limits.io_size",
    "limits.loops",
    "limits.number_ios",
    "process.cpus_allowed",
    "process.nice",
)
"""Fields that may explain a difference."""
FLAGS: Final = frozenset(
    (
        *("norandommap", "hipri", "sqthread_poll", "registerfiles", "fixedbufs", "force_async"),
        *("serialize_overlap", "overwrite"),
    )
)
BATCH: Final = {
    "submit": "engine.iodepth_batch",
    "complete_min": "engine.iodepth_batch_complete_min",
    "complete_max": "engine.iodepth_batch_complete_max",
    "low": "engine.iodepth_low",
}
"""Of fio's options what the sizes of batches are made of."""
NOT_SET: Final = "not set"
AS_LEFT_OPEN: Final[Mapping[str, frozenset[str]]] = {
    "addresses.random_distribution": frozenset({"random"}),
    "addresses.run_length": frozenset({"1"}),
    "addresses.random_generator": frozenset({"tausworthe"}),
    "pacing.thinktime_blocks": frozenset({"1"}),
    "pacing.rate_process": frozenset({"linear"}),
    "placement.nrfiles": frozenset({"1"}),
    "files.invalidate": frozenset({"yes"}),
    "files.fallocate": frozenset({"native"}),
    "files.fadvise": frozenset({"pattern"}),
    "limits.loops": frozenset({"1"}),
}
"""Texts of values that fields have when nobody sets them, beside nothing, no and 0."""


def name(field: str) -> str:
    """Return what a field is called: as fio's option, without its unit."""
    return field.rpartition(".")[2].removesuffix("_ns").removesuffix("_bytes")


NAMES_OF_LOAD: Final = tuple(map(name, OF_LOAD))
NAMES_OF_OTHERS: Final = tuple(map(name, OTHERS))
FIELDS: Final = tuple((name(field), field) for field in (*OF_LOAD, *OTHERS))


def of_job(job: Job) -> dict[str, str]:
    """Return the options of a job of our own; of work in trees and of rows what is not of blocks."""

    def value(field: str) -> Any:
        try:
            return job.value(field)
        except AttributeError:
            return None

    return _texts(value)


def of_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a job of fio, by the fields that its options set."""
    # `rw=randread:8` are runs of eight, `rw=read:8k` leaves holes of 8 KiB.
    is_random = str(fields.get("mix.rw", "")).startswith("rand")
    number = "addresses.run_length" if is_random else "addresses.stride_bytes"
    batch = {part: fields[field] for part, field in BATCH.items() if field in fields}
    lowered = {
        number: fields.get("addresses.rw_number"),
        "engine.batch": BatchSizes(**{"submit": 1, "complete_min": 1, "complete_max": 0, **batch})
        if batch
        else None,
    }
    texts = _texts({**fields, **lowered}.get)
    # fio leaves a flag that is written without a value out of what it records.
    return {key: text for key, text in texts.items() if key not in FLAGS or text != NOT_SET}


def _texts(value: Callable[[str], Any]) -> dict[str, str]:
    return {key: _text(field, value(field)) for key, field in FIELDS}


def _text(field: str, value: Any) -> str:
    if value is None:
        return NOT_SET
    if field == "files.invalidate" and value is False:
        return "no"
    text = "/".join(dict.fromkeys(_words(field, value)))
    return NOT_SET if not text or text in AS_LEFT_OPEN.get(field, ()) else text


def _words(field: str, value: Any) -> Iterator[str]:
    """Yield what a value says: of each direction, and each part of it, what is not left open."""
    if value in (None, False, 0, "none"):
        return
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_defaults=True)
    if isinstance(value, dict):
        text = " ".join(word for key, part in value.items() for word in _words(f"_{key}", part))
        yield from [text] if text else []
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _words(field, one)
    else:
        yield _word(field, value)


def _word(field: str, value: Any) -> str:
    if value is True:
        return "yes"
    if field.endswith("_ns"):
        return units.duration(float(value))
    if field.endswith("_bytes") and value > 0:
        return units.size(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
