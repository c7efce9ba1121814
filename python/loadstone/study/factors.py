"""The factors of a sweep: how their values are written, and what they change about a Workload.

Knows `1,2,4`, `1..256` (doubling), `1..256:x4` and `0..100:+25`. Knows no run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.workload.block_sizes import fixed

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.errors import Where
    from loadstone.plan.model import Plan
    from loadstone.workload.blocks import BlockWork
    from loadstone.workload.model import Job, Workload

Name = Literal["iodepth", "bs", "read", "numjobs"]
MAX_VALUES: Final = 64
_SIZE_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SYNCHRONOUS: Final = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")


@dataclass(frozen=True, slots=True)
class _Kind:
    low: int
    high: int
    step: str
    """Of a range that names none."""
    example: str
    change: Callable[[Job, int], Job]


def values(name: Name, text: str, where: Where) -> tuple[int, ...]:
    """Read the values of a factor, in the order written; the end of a range is always among them."""
    numbers: list[int] = []
    for word in text.split(","):
        numbers += _range(name, word.strip(), where) if ".." in word else [_number(name, word.strip(), where)]
    for value in numbers:
        if numbers.count(value) > 1:
            raise make_error(InputError, "study.values.twice", where=where, value=value)
    if len(numbers) > MAX_VALUES:
        raise make_error(InputError, "study.values.many", where=where, found=len(numbers), limit=MAX_VALUES)
    return tuple(numbers)


def apply(workload: Workload, name: Name, value: int) -> Workload:
    """Return the Workload with a factor set; raises `RefusedError` where it would have no effect."""
    change = KINDS[name].change
    return workload.model_copy(update={"jobs": tuple(change(job, value) for job in workload.jobs)})


def check(plan: Plan, workload: Workload, iodepth: int | None) -> None:
    """Refuse a depth that the Plan does not have: the target does one I/O at a time."""
    if iodepth is None:
        return
    for stream in plan.streams:
        if stream.iodepth != iodepth:
            job = next(
                (job for job in workload.jobs if stream.name.startswith(f"{job.name}.")), workload.jobs[0]
            )
            raise job.refusal(
                "study.factor.depth", "engine.iodepth", job=job.name, reached=stream.iodepth, asked=iodepth
            )


def _range(name: Name, word: str, where: Where) -> list[int]:
    match = re.fullmatch(r"([^.:]+)\.\.([^.:]+)(?::([x+])(\w+))?", word)
    if match is None:
        raise make_error(
            InputError, "study.values.kind", where=where, word=repr(word), example=KINDS[name].example
        )
    low, high = (_number(name, end.strip(), where) for end in (match[1], match[2]))
    kind, step = (match[3], match[4]) if match[3] else (KINDS[name].step[0], KINDS[name].step[1:])
    by = _size(step) if name == "bs" and kind == "+" else int(step) if step.isdigit() else None
    if by is None or by < (2 if kind == "x" else 1):
        raise make_error(InputError, "study.values.step", where=where, step=f"{kind}{step}")
    if low >= high:
        raise make_error(InputError, "study.values.descending", where=where, word=repr(word))
    if low == 0 and kind == "x":
        raise make_error(InputError, "study.values.zero", where=where, word=repr(word))
    numbers = [low]
    while (following := numbers[-1] * by if kind == "x" else numbers[-1] + by) < high and len(
        numbers
    ) <= MAX_VALUES:
        numbers.append(following)
    return [*numbers, high]


def _number(name: Name, word: str, where: Where) -> int:
    kind = KINDS[name]
    value = (
        _size(word) if name == "bs" else int(word.rstrip("%")) if re.fullmatch(r"\d{1,9}%?", word) else None
    )
    if value is None or (word.endswith("%") and name != "read"):
        raise make_error(InputError, "study.values.kind", where=where, word=repr(word), example=kind.example)
    if not kind.low <= value <= kind.high:
        raise make_error(
            InputError, "study.values.bounds", where=where, word=repr(word), low=kind.low, high=kind.high
        )
    return value


def _size(word: str) -> int | None:
    match = re.fullmatch(r"(\d{1,9})([kmg]?)i?b?", word.lower())
    return int(match[1]) * _SIZE_UNITS[match[2]] if match else None


def _iodepth(job: Job, value: int) -> Job:
    engine = job.engine.ioengine
    if engine in _SYNCHRONOUS:
        raise job.refusal(
            "study.factor.synchronous",
            "engine.ioengine",
            job=job.name,
            engine=engine,
            native=job.setting("engine.ioengine", "io_uring"),
        )
    # Without an engine depth 1 would run on another one than the depths it is compared with.
    return job.changed({"engine.iodepth": value, "engine.ioengine": engine or "io_uring"})


def _bs(job: Job, value: int) -> Job:
    _blocks(job, "sizes.bs", "one block size")
    return job.changed({"sizes.bs": fixed(value)})


def _read(job: Job, value: int) -> Job:
    requested_rw = _blocks(job, "mix.rw", "one read share").mix.rw
    if "trim" in requested_rw:
        raise job.refusal(
            "study.factor.trims",
            "mix.rw",
            job=job.name,
            random=job.setting("mix.rw", "randrw"),
            sequential=job.setting("mix.rw", "rw"),
        )
    pure = {100: ("read", "randread"), 0: ("write", "randwrite")}.get(value)
    rw = (pure or ("rw", "randrw"))[requested_rw.startswith("rand")]
    return job.changed({"mix.rw": rw, "mix.read_percent": value})


def _blocks(job: Job, field: str, what: str) -> BlockWork:
    """Return the blocks of a job; refuse one whose rows say them."""
    if job.blocks is None:
        raise job.refusal("study.factor.rows", field, factor=what, job=job.name)
    return job.blocks


def _numjobs(job: Job, value: int) -> Job:
    return job.changed({"schedule.numjobs": value})


KINDS: Final[dict[Name, _Kind]] = {
    "iodepth": _Kind(1, 65_536, "x2", "depths such as 1..256 or 1,8,32", _iodepth),
    "bs": _Kind(512, 1 << 30, "x2", "sizes such as 4k..1m or 4k,64k", _bs),
    "read": _Kind(0, 100, "+25", "percents such as 0,50,70,100 or 0..100:+10", _read),
    "numjobs": _Kind(1, 4096, "x2", "numbers such as 1..16 or 1,2,4", _numjobs),
}
