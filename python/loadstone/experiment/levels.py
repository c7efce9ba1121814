"""What a level changes about a workload, and what it asks of the machine.

Knows each kind of factor by what it does: to jobs before the run is planned, or to the machine around
it. Sets nothing; how the machine is set and put back is `machine`'s.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, LoadstoneError, Where, raise_all
from loadstone.experiment.amounts import size_bytes, time_s
from loadstone.experiment.file import AS_IS, layout_of
from loadstone.experiment.loads import says_io_size
from loadstone.formats.fio.override import with_options
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages import make_error, say
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.experiment.file import ExperimentFactor, ExperimentFile
    from loadstone.workload.model import Workload


UNALLOCATED: Final = ("new", "first pass")
"""States of a file in which the load itself allocates."""


@dataclass(frozen=True, slots=True)
class WantedSetting:
    """One control of the machine, set around a run."""

    control: str
    subject: str
    value: str


@dataclass(frozen=True, slots=True)
class CommandsOfLevel:
    """A pair of commands around a run."""

    name: str
    do: str
    undo: str


@dataclass(frozen=True, slots=True)
class CacheDrop:
    """The page cache is dropped before a run, and perhaps again and again during it."""

    every_s: float | None = None
    host: str | None = None

    def __str__(self) -> str:
        if self.every_s is None:
            return say("experiment.page_cache.dropped")
        return say("experiment.page_cache.again", every=f"{self.every_s:g}")


@dataclass(frozen=True, slots=True)
class Asked:
    """All that the levels of one run ask of the machine."""

    layout: str | None = None
    settings: tuple[WantedSetting, ...] = ()
    commands: tuple[CommandsOfLevel, ...] = ()
    drops: tuple[CacheDrop, ...] = ()
    allocation: str | None = None
    group: str | None = None
    """Limits of a control group, as its control takes them."""


def applies(factor: ExperimentFactor, pattern: str) -> bool:
    """Return whether a factor is for a pattern."""
    return not factor.patterns or pattern in factor.patterns


def parameters(whole: ExperimentFile, levels: Mapping[str, str], pattern: str) -> dict[str, str]:
    """Return the parameters of a named workload that the levels set."""
    return {
        str(factor.parameter): factor.level(levels[factor.name]).text
        for factor in whole.factors
        if factor.what == "parameter" and applies(factor, pattern)
    }


def targets(whole: ExperimentFile, levels: Mapping[str, str], pattern: str) -> list[str]:
    """Return the targets of a pattern, with `{volume}` as it is written; none: its own."""
    for factor in whole.factors:
        if factor.what == "target" and applies(factor, pattern):
            return [str(factor.level(levels[factor.name]).value)]
    own = next(one for one in whole.patterns if one.name == pattern)
    return list(own.targets or whole.targets)


def targets_key(whole: ExperimentFile, pattern: str) -> str:
    """Return the key of the file that names the targets of a pattern."""
    for factor in whole.factors:
        if factor.what == "target" and applies(factor, pattern):
            return f"factors.{factor.name}.levels"
    own = next(one for one in whole.patterns if one.name == pattern)
    return f"patterns.{pattern}.targets" if own.targets else "targets"


def changed(
    workload: Workload,
    whole: ExperimentFile,
    file: Path,
    *,
    levels: Mapping[str, str],
    pattern: str,
    memory_bytes: int,
) -> Workload:
    """Return a workload as the levels have it. Raises what is wrong with any of them, together."""
    wrong: list[LoadstoneError] = []
    for factor in whole.factors:
        if not applies(factor, pattern):
            continue
        level = factor.level(levels[factor.name])
        where = Where(str(file), option=f"factors.{factor.name}.levels")
        try:
            if factor.what == "option":
                workload = _with_option(workload, factor, level.text, file)
            elif factor.what == "cache_share":
                of = size_bytes(factor.of) if factor.of else memory_bytes
                share = _share(str(level.value), where)
                # Whole blocks of 1 MiB: any block size divides it.
                size = max(1 << 20, int(of * share) >> 20 << 20)
                own = next(one for one in whole.patterns if one.name == pattern)
                sized = workload.with_size(Amount(bytes=size), io_size_stays=says_io_size(own, whole))
                workload = sized.model_copy(update={"notes": workload.notes})
            elif factor.what == "allocation" and level.value in UNALLOCATED:
                workload = _unallocated(workload, str(level.value), where)
        except LoadstoneError as error:
            wrong.append(error.elsewhere(_unless_known(where)))
    raise_all(wrong)
    return workload


def _unallocated(workload: Workload, state: str, where: Where) -> Workload:
    """Have no room allocated before the load: a file whose room is there is a preallocated one."""
    for job in workload.jobs:
        if job.files.fallocate not in (None, "none", "truncate"):
            raise make_error(
                InputError, "experiment.allocation.fallocate", where=where, state=repr(state),
                fallocate=job.files.fallocate,
            )  # fmt: skip
    jobs = (
        job if job.files.fallocate is not None else job.changed({"files.fallocate": "none"})
        for job in workload.jobs
    )  # fmt: skip
    return workload.model_copy(update={"jobs": tuple(jobs)})


def _unless_known(where: Where) -> Callable[[Where | None], Where]:
    """Return what places an error that names no place itself."""
    return lambda known: known or where


def _with_option(workload: Workload, factor: ExperimentFactor, value: str, file: Path) -> Workload:
    """Set an option of fio. An error says what is wrong in the experiment's file: the option or the level."""
    option = str(factor.option)
    try:
        return with_options(workload, {option: value}, Where(str(file), option=option))
    except LoadstoneError as error:
        key = "levels" if option in BY_NAME else "option"
        where = Where(str(file), option=f"factors.{factor.name}.{key}")
        raise error.elsewhere(lambda _: where) from error


def asked(whole: ExperimentFile, levels: Mapping[str, str], pattern: str) -> Asked:
    """Return what the levels of a run ask of the machine."""
    settings: list[WantedSetting] = []
    commands: list[CommandsOfLevel] = []
    drops: list[CacheDrop] = []
    layout = allocation = group = None
    for factor in whole.factors:
        level = factor.level(levels[factor.name])
        if factor.what == "layout":
            layout = layout_of(level)
        if not applies(factor, pattern) or level.value == AS_IS:
            continue
        match factor.what:
            case "control":
                settings.append(WantedSetting(str(factor.control), factor.subject, level.text))
            case "fill_level":
                settings.append(WantedSetting("fill_level", str(factor.of), str(level.value)))
            case "command":
                commands.append(
                    CommandsOfLevel(f"{factor.name}={level.name}", str(level.do), str(level.undo))
                )
            case "page_cache" if level.value != "kept":
                every = None if level.every is None else time_s(level.every)
                drops.append(CacheDrop(every, level.host))
            case "allocation":
                allocation = str(level.value)
            case "cgroup":
                group = json.dumps(level.limits)
            case _:
                pass
    return Asked(layout, tuple(settings), tuple(commands), tuple(drops), allocation, group)


def meaning(factor: ExperimentFactor) -> str:
    """Return in words what a factor varies."""
    words = {
        "option": f"{factor.option} of the jobs",
        "parameter": f"parameter {factor.parameter} of the workload",
        "control": f"{factor.control} of {factor.subject or 'this host'}",
        "layout": "array and file system",
        "target": "target",
        "allocation": "what was written to the target before",
        "page_cache": "page cache before and during the run",
        "cache_share": f"size as a share of {factor.of or 'memory'}",
        "fill_level": f"how full the file system of {factor.of} is",
        "cgroup": "limits of a control group",
        "command": "commands",
    }
    return words[factor.what]


def _share(text: str, where: Where) -> float:
    try:
        share = float(text.removesuffix("%").strip()) / 100
    except ValueError:
        share = 0.0
    if not text.endswith("%") or share <= 0:
        raise make_error(InputError, "experiment.amount.share", where=where, found=repr(text))
    return share
