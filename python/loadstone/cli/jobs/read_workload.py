"""From the command line's words to a Workload: a job file by path, or a named workload.

Knows how a word is told to be one or the other, and what is near when it is neither.
"""

from __future__ import annotations

import difflib
import functools
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cli.options.arguments import COMMAND_LINE, LoadOptions, given_as
from loadstone.errors import InputError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, amount, size, time_ns
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language, recognise
from loadstone.formats.suggest import nearest
from loadstone.plan.model import RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve
from loadstone.plan.stream import TotalRate
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.workload.model import Workload

STANDARD_INPUT = "-"


def workload(word: str, load: LoadOptions) -> Workload:
    """Read what is to run and change it as the options say.

    Raises `InputError` for what cannot be read, and for an option that would have no effect.
    """
    if language_of(word, load) is Language.VDBENCH:
        from loadstone.cli.jobs import vdbench

        # Its hosts and luns are mapped before anything is made of them.
        return changed(vdbench.single(word, load), replace(load, map=[]))
    return changed(_read(word, load), load)


def changed(found: Workload, load: LoadOptions, *, runtime: bool = True) -> Workload:
    """Change a Workload as the options say; without `runtime` not how long it takes."""
    mapping = load.mapping()
    if mapping:
        with given_as("--map"):
            found = found.map_targets(mapping)
    if load.target:
        with given_as("--target") as where:
            found = found.with_targets(load.target)
            jobs = [job.changed({"set_at": {**job.set_at, "placement.targets": where}}) for job in found.jobs]
            found = found.model_copy(update={"jobs": tuple(jobs)})
    found = sized(found, load)
    if runtime and load.runtime is not None:
        with given_as("--runtime") as where:
            found = found.with_runtime(time_ns(load.runtime, Reading(where), SECOND_NS))
    return found


def sized(found: Workload, load: LoadOptions) -> Workload:
    """Let every job use as much of its targets as `--size` says."""
    if load.size is None:
        return found
    with given_as("--size") as where:
        return found.with_size(amount(load.size, Reading(where)))


def resolution(found: Workload, load: LoadOptions) -> Resolution:
    """Resolve every default against this host. Touches nothing."""
    return resolution_at(found, load, total_rate(load))


def resolution_at(found: Workload, load: LoadOptions, rate: TotalRate | None) -> Resolution:
    """Resolve with a total rate that does not come from the options, None for a closed loop."""
    options = ResolveOptions(keep_ioengine=load.keep_ioengine, rate=rate, journal=load.journal)
    resolved = resolve(found, options=options)
    if load.ramp_until_steady and len({worker.stage for worker in resolved.plan.workers}) > 1:
        raise InputError(
            "jobs that run one after the other have no load that could settle",
            where=Where(COMMAND_LINE, option="--ramp-until-steady"),
            hint="run the jobs apart: --section, or `loadstone sweep`, which takes them apart",
        )
    return resolved


def total_rate(load: LoadOptions) -> TotalRate | None:
    """Read `--rate` and what belongs to it; `None` without it."""
    if load.rate is None:
        for option, given in (("--rate-process", load.rate_process), ("--rate-profile", load.rate_profile)):
            if given is not None:
                raise InputError("has no effect without --rate", where=Where(COMMAND_LINE, option=option))
        return None
    with given_as("--rate") as where:
        per_second = size(load.rate, Reading(where, kb_base=1000))
        if not per_second:
            raise InputError("the rate is 0: expected I/Os per second such as 20000 or 20k", where=where)
    return TotalRate(
        iops=float(per_second),
        process=RateProcess(load.rate_process or "linear"),
        profile=_profile(load.rate_profile) if load.rate_profile is not None else (),
        where=where,
    )


def _profile(text: str) -> tuple[tuple[int, float], ...]:
    """Read `TIME:SHARE%,...`, times ascending; nanoseconds and shares of 1."""
    where = Where(COMMAND_LINE, option="--rate-profile")
    points: list[tuple[int, float]] = []
    for word in text.split(","):
        time, colon, share = word.partition(":")
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)%\s*", share)
        if not colon or match is None:
            raise InputError(f"found {word!r}, expected TIME:SHARE% such as 30s:100%", where=where)
        points.append((time_ns(time, Reading(where), SECOND_NS), float(match[1]) / 100))
    if points != sorted(points, key=lambda point: point[0]):
        raise InputError("the times do not ascend", where=where)
    if not any(share for _, share in points):
        raise InputError("the share is 0% all the time: nothing would ever start", where=where)
    return tuple(points)


def language_of(word: str, load: LoadOptions) -> Language | None:
    """Return the language of a job file, None for a named workload."""
    if _is_named(word):
        if load.language is not None:
            raise InputError(
                "has no effect on a named workload",
                where=Where(COMMAND_LINE, option="--language"),
                hint="it is for job files; leave it out",
            )
        return None
    if load.language is not None:
        return Language(load.language)
    found = source(word)
    if isinstance(found, tuple):
        return recognise(*found)
    try:
        return recognise(found.read_bytes(), found.name)
    except OSError:
        return Language.FIO  # Its reader says why it cannot be read.


def source(word: str) -> Path | tuple[bytes, str]:
    """Return a job file's path, or the bytes and name of what stands on standard input, read once."""
    if word == STANDARD_INPUT:
        return _standard_input(), "standard input"
    if not Path(word).exists():
        raise _neither(word)
    return Path(word)


@functools.cache
def _standard_input() -> bytes:
    return sys.stdin.buffer.read()


def _is_named(word: str) -> bool:
    return word in catalogue.names() and not Path(word).is_file()


def seconds(text: str | None, option: str) -> int | None:
    """Read an option that is whole seconds; None without it."""
    if text is None:
        return None
    with given_as(option) as where:
        found = time_ns(text, Reading(where), SECOND_NS)
        if found % SECOND_NS:
            raise InputError(f"{text} is not a whole number of seconds", where=where)
        return found // SECOND_NS


def _read(word: str, load: LoadOptions) -> Workload:
    options = ReadOptions(allow_exec=load.allow_exec)
    language = language_of(word, load)
    if language not in (None, Language.FIO):
        raise InputError(
            f"{word} is a job file of {language}, which is a list of runs",
            where=Where(COMMAND_LINE),
            hint=f"use `loadstone run {word}`, or `loadstone plan {word}` to list its runs",
        )
    if _is_named(word):
        _refuse_for_names(load)
        with given_as("--set"):
            return _sections(catalogue.load(word).workload(load.parameters()), load.section)
    if load.set:
        raise InputError(
            f"{word} is a job file and has no parameters",
            where=Where(COMMAND_LINE, option="--set"),
            hint="--set is for named workloads; in a job file use ${VARIABLE} and the environment",
        )
    found = source(word)
    given = TextSource(found[0], name=found[1]) if isinstance(found, tuple) else FileSource(found)
    return read_jobfiles([given], sections=load.section, options=options)


def _sections(found: Workload, names: Sequence[str]) -> Workload:
    """Keep the jobs of these names; all without any."""
    where = Where(COMMAND_LINE, option="--section")
    known = [job.name for job in found.jobs]
    for name in names:
        if name not in known:
            raise InputError(f"{found.name} has no job {name!r}", where=where, hint=nearest(name, known))
    jobs = tuple(job for job in found.jobs if not names or job.name in names)
    if names and len(jobs) == len(known):
        raise InputError("keeps every job of the workload", where=where, hint="leave it out")
    return found.model_copy(update={"jobs": jobs})


def _refuse_for_names(load: LoadOptions) -> None:
    if load.allow_exec:
        raise InputError(
            "has no effect on a named workload",
            where=Where(COMMAND_LINE, option="--allow-exec"),
            hint="it is for job files; leave it out",
        )


def _neither(word: str) -> InputError:
    """Say that nothing has this name, and what is nearest: a workload, or a file beside it."""
    folder = Path(word).parent
    files = [str(folder / entry.name) if str(folder) != "." else entry.name for entry in _entries(folder)]
    near = difflib.get_close_matches(word, [*catalogue.names(), *files], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`loadstone workloads` lists the named workloads"
    return InputError(
        f"{word!r} is neither a job file nor a named workload", where=Where(COMMAND_LINE), hint=hint
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []
