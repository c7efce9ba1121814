"""Everything a parameter file runs, in order.

Knows which workloads and SDs a run definition means, `sd=single|range|setsofN`, loops, and the
points of a curve. Does not know how a run is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.vdbench import hosts, joined
from loadstone.formats.vdbench.entity_values import Seek, Sizes, skew_shares
from loadstone.formats.vdbench.file_work import FileWork, file_works, format_workload, meant
from loadstone.formats.vdbench.loops import Turn, turns
from loadstone.formats.vdbench.rundef import RATE, IoRate, RunDefinition
from loadstone.formats.vdbench.workload import WorkloadDefinition
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.formats.vdbench.storage import Storage

FORMAT: Final = "SD_format"
"""The run that writes SDs before all others."""
FILE_FORMAT: Final = "format_for_"
"""Begins the name of a run that makes the trees of another."""
_FORMAT_S: Final = 100 * 3600
"""It ends when everything is written, or after so many seconds."""
_SETS: Final = re.compile(r"(?:single|setsof(\d{1,4}))\Z")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: `warmup` comes before `elapsed`; without it the first interval does not count."""

    elapsed: int
    interval: int
    warmup: int
    pause: int

    @property
    def ramp(self) -> int:
        """What does not count for the averages."""
        return self.warmup or self.interval

    @property
    def measured(self) -> int:
        """What counts."""
        return self.elapsed if self.warmup else self.elapsed - self.interval

    @property
    def average(self) -> str:
        """What vdbench calls the line of averages: `avg_2-30`."""
        return f"avg_{self.ramp // self.interval + 1}-{(self.ramp + self.measured) // self.interval}"


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line changes: `-e`, `-i` and `-w` of vdbench."""

    elapsed: int | None = None
    interval: int | None = None
    warmup: int | None = None
    where: Where | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One workload on one SD. `share`: percent of the run's I/Os that was asked for; None: not."""

    workload: WorkloadDefinition
    storage: Storage
    share: float | None


@dataclass(frozen=True, slots=True)
class ParameterFileRun:
    """One run. `point`: percent of the curve's maximum, None for every other run."""

    name: str
    definition: RunDefinition
    turn: Turn
    rate: IoRate
    times: Times
    works: tuple[Work, ...] = ()
    file_works: tuple[FileWork, ...] = ()
    point: float | None = None
    formats: tuple[str, ...] | None = None
    """It makes the trees of the run after it: what `format=` says; None: it does not."""
    made_for: tuple[str, ...] = ()
    """The FWDs of the run after it."""
    operations_after: tuple[str, ...] = ()
    """What these do: vdbench's pages have its columns from the format on."""

    @property
    def loops(self) -> str:
        """The values of the loops as vdbench shows them, empty when there are none."""
        return self.turn.text(rate_name="fwdrate" if self.file_works else RATE)

    @property
    def title(self) -> str:
        """Name that no other run has."""
        return f"{self.name} {self.loops}".rstrip()

    @property
    def is_format(self) -> bool:
        """Whether it makes what the runs after it work on."""
        return self.formats is not None or self.definition.name == FORMAT

    @property
    def is_controlled(self) -> bool:
        """Whether the shares of the workloads are held: a share or a priority was asked for."""
        return any(
            work.workload.skew or work.workload.iorate or work.workload.priority for work in self.works
        )


def expand(file: ParameterFile, overrides: Overrides | None = None) -> list[ParameterFileRun]:
    """Return every run of a parameter file in the order vdbench does them, curves unfolded."""
    overrides = overrides or Overrides()
    runs: list[ParameterFileRun] = []
    for definition in _each_set(file):
        runs += _with_commands(_turns(file, definition, overrides))
    titles: set[str] = set()
    for run in runs:
        if run.title in titles:
            raise make_error(
                InputError,
                "formats_vdbench.expand.same_title",
                where=run.definition.where,
                title=f"{run.title!r}",
            )
        titles.add(run.title)
    return _with_general_commands(file, [*_formatting(file, runs), *runs])


def _turns(file: ParameterFile, definition: RunDefinition, overrides: Overrides) -> list[ParameterFileRun]:
    times = _times(definition, overrides)
    runs: list[ParameterFileRun] = []
    for turn in turns(definition):
        run = _run(file, definition, turn, times)
        if run.file_works and definition.format != ("no",):
            if not runs or "once" not in definition.format:
                runs.append(_file_format(file, run))
            if {"only", "clean"} & set(definition.format):
                continue
        runs.append(run)
        if run.rate.kind == "curve":
            runs += [
                replace(run, name=f"{run.name}_({point:.0f}%)", rate=IoRate("percent", point), point=point)
                for point in definition.curve
            ]
    return runs


def _with_commands(runs: list[ParameterFileRun]) -> list[ParameterFileRun]:
    """Leave the first run of a definition its `startcmd=`, and the last one its `endcmd=`."""
    last = len(runs) - 1
    return [
        replace(
            run,
            definition=replace(
                run.definition,
                startcmd=run.definition.startcmd if index == 0 else None,
                endcmd=run.definition.endcmd if index == last else None,
            ),
        )
        for index, run in enumerate(runs)
    ]


def _with_general_commands(file: ParameterFile, runs: list[ParameterFileRun]) -> list[ParameterFileRun]:
    """Put the commands of the general section before the first run and after the last."""
    for word, index in (("startcmd", 0), ("endcmd", -1)):
        command = getattr(file.general, word)
        if command is None:
            continue
        definition = runs[index].definition
        where = file.general.at[word]
        if getattr(definition, word) is not None:
            raise make_error(
                RefusedError,
                "formats_vdbench.expand.two_commands",
                where=where,
                word=word,
                definition=definition.name,
            )
        at = {**definition.at, word: where}
        runs[index] = replace(runs[index], definition=replace(definition, at=at, **{word: command}))
    return runs


def _formatting(file: ParameterFile, runs: Sequence[ParameterFileRun]) -> list[ParameterFileRun]:
    """Return the run that `formatsds=yes` puts first: every SD in use is written once, in order."""
    if not file.general.formatsds or file.on_files:
        return []
    where = file.general.at["formatsds"]
    general = file.general
    workload = WorkloadDefinition(
        FORMAT,
        where,
        {},
        rdpct=0,
        xfersize=Sizes(((general.formatxfersize, 100.0),)),
        seekpct=Seek(0.0, ends=True),
    )
    definition = RunDefinition(FORMAT, where, {}, iorate=(IoRate("max"),))
    storages = {work.storage.name: work.storage for run in runs for work in run.works}
    works = tuple(Work(workload, storage, None) for storage in storages.values())
    return [ParameterFileRun(FORMAT, definition, Turn({}), IoRate("max"), Times(_FORMAT_S, 1, 0, 0), works)]


def _run(file: ParameterFile, definition: RunDefinition, turn: Turn, times: Times) -> ParameterFileRun:
    rates = definition.fwdrate if file.on_files else definition.iorate
    looped = turn.values.get(RATE)
    if not rates:
        word = "fwdrate" if file.on_files else RATE
        raise make_error(
            InputError,
            "formats_vdbench.expand.no_rate",
            where=definition.where,
            definition=definition.name,
            word=word,
        )
    rate = looped if isinstance(looped, IoRate) else rates[0]
    if rate.kind == "number" and rate.value == 0 and not definition.arrivals.variable:
        raise make_error(
            InputError,
            "formats_vdbench.expand.rate_zero",
            where=definition.at["fwdrate" if file.on_files else RATE],
        )
    if file.on_files:
        return ParameterFileRun(
            definition.name, definition, turn, rate, times, file_works=file_works(file, definition, turn)
        )
    return ParameterFileRun(
        definition.name, definition, turn, rate, times, works=_works(file, definition, turn)
    )


def _times(definition: RunDefinition, overrides: Overrides) -> Times:
    """Return the times of a run; raises InputError where they do not fit each other."""
    warmup = definition.warmup if overrides.warmup is None else overrides.warmup
    elapsed = definition.elapsed if overrides.elapsed is None else overrides.elapsed
    interval = definition.interval if overrides.interval is None else overrides.interval
    if overrides.interval is None and overrides.elapsed is not None and interval * 2 > elapsed:
        interval = max(1, elapsed // 2)
    interval = interval or min(elapsed // 2, 60)
    where = definition.at.get("elapsed", definition.where)
    if interval < 1 or elapsed // interval < 2:
        raise make_error(
            InputError,
            "formats_vdbench.expand.elapsed_short",
            where=where,
            elapsed=elapsed,
            interval=interval,
        )
    for word, value in (("elapsed", elapsed), ("warmup", warmup)):
        if value % interval:
            raise make_error(
                InputError,
                "formats_vdbench.expand.not_whole_intervals",
                where=definition.at.get(word, where),
                word=word,
                value=value,
                interval=interval,
                nearest=value - value % interval + interval,
            )
    return Times(elapsed, interval, warmup, definition.pause)


def _each_set(file: ParameterFile) -> Iterator[RunDefinition]:
    """Repeat run definitions with `sd=single`, `sd=range` and `sd=setsofN` over the SDs."""
    names = [storage.name for storage in file.storages]
    for run in file.runs:
        word = run.sds[0] if run.sds and len(run.sds) == 1 else ""
        match = _SETS.match(word)
        if match and int(match[1] or 1) == 0:
            raise make_error(InputError, "formats_vdbench.expand.sets_of_none", where=run.at["sds"])
        if match:
            size = int(match[1] or 1)
            order = names if size == 1 else _mixed(names)
            for begin in range(0, len(order), size):
                part = tuple(order[begin : begin + size])
                yield replace(run, name="_".join((run.name, *part)), sds=part)
        elif word == "range":
            for end in range(1, len(names) + 1):
                yield replace(run, name=f"{run.name}_{names[0]}-{names[end - 1]}", sds=tuple(names[:end]))
        else:
            yield run


def _mixed(names: Sequence[str]) -> list[str]:
    """Return names in the order vdbench mixes them in: swaps drawn from Java's generator, seed 0."""
    order = list(names)
    draw = java_random(0)
    for _ in range(len(order) * 8):
        first, second = draw(len(order)), draw(len(order))
        order[first], order[second] = order[second], order[first]
    return order


def java_random(seed: int) -> Callable[[int], int]:
    """Return a source of numbers below a bound: the 48-bit generator of java.util.Random."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def bits() -> int:
        nonlocal state
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return state >> 17

    def below(bound: int) -> int:
        if bound & -bound == bound:
            return (bound * bits()) >> 31
        while True:
            drawn = bits()
            value = drawn % bound
            if drawn - value + bound - 1 < 1 << 31:
                return value

    return below


def _works(file: ParameterFile, definition: RunDefinition, turn: Turn) -> tuple[Work, ...]:
    if definition.sds is not None and not definition.wds:
        workloads = [replace(file.default_workload, name=f"rd={definition.name}")]
    elif not definition.wds:
        raise make_error(
            InputError, "formats_vdbench.expand.no_wd", where=definition.where, definition=definition.name
        )
    else:
        known = {workload.name: workload for workload in file.workloads}
        workloads = [
            workload for word in definition.wds for workload in meant(word, known, "wd", definition.at["wds"])
        ]
    if not workloads:
        raise make_error(
            InputError, "formats_vdbench.expand.nothing", where=definition.where, definition=definition.name
        )
    _check_priorities(workloads)
    shares = _shares(workloads, definition)
    works: list[Work] = []
    for workload, share in zip(workloads, shares, strict=True):
        storages = hosts.meeting(file, workload, _storages(file, definition, workload))
        if file.general.concatenatesds:
            storages = [joined.join(workload, storages, turn, _number(file, definition, workload))]
        elif workload.threads:
            raise make_error(
                InputError,
                "formats_vdbench.expand.threads_of_workload",
                where=workload.at["threads"],
                workload=workload.name,
            )
        works += [
            Work(workload, storage, None if share is None else share / len(storages)) for storage in storages
        ]
    return tuple(works)


def _number(file: ParameterFile, definition: RunDefinition, workload: WorkloadDefinition) -> int:
    """Return vdbench's number of joined SDs: those of workloads first, then those of run definitions."""
    if definition.sds is None:
        return 1 + next(at for at, one in enumerate(file.workloads) if one.name == workload.name)
    own = [run.where for run in file.runs if run.sds is not None]
    return len(file.workloads) + 1 + own.index(definition.where)


def _storages(file: ParameterFile, definition: RunDefinition, workload: WorkloadDefinition) -> list[Storage]:
    override = definition.sds is not None
    words = definition.sds if definition.sds is not None else workload.sds
    where = definition.at.get("sds", definition.where) if override else workload.at.get("sds", workload.where)
    if not words:
        raise make_error(
            InputError, "formats_vdbench.expand.no_sd", where=workload.where, workload=workload.name
        )
    known = {storage.name: storage for storage in file.storages}
    storages: list[Storage] = []
    for word in words:
        for storage in meant(word, known, "sd", where):
            if storage in storages:
                raise make_error(
                    InputError,
                    "formats_vdbench.expand.sd_twice",
                    where=where,
                    storage=storage.name,
                    workload=workload.name,
                )
            storages.append(storage)
    return storages


def _shares(workloads: Sequence[WorkloadDefinition], definition: RunDefinition) -> list[float | None]:
    """Return every workload's percent of the rate: what `skew=` says, the others share the rest.

    None for all of them when no `skew=` is given.
    """
    skews = [workload.skew for workload in workloads]
    if not any(skews):
        return [None] * len(workloads)
    return [*skew_shares(skews, 0.5, definition.name, definition.where)]


def _check_priorities(workloads: Sequence[WorkloadDefinition]) -> None:
    for workload in workloads:
        if workload.iorate is not None and workload.skew is not None:
            raise make_error(
                InputError,
                "formats_vdbench.expand.iorate_and_skew",
                where=workload.where,
                workload=workload.name,
            )
        if workload.iorate is not None and workload.priority is None:
            raise make_error(
                InputError,
                "formats_vdbench.expand.no_priority",
                where=workload.at["iorate"],
                workload=workload.name,
            )
    priorities = [workload.priority for workload in workloads if workload.priority is not None]
    if priorities and sorted(priorities) != list(range(1, len(workloads) + 1)):
        raise make_error(
            InputError,
            "formats_vdbench.expand.priorities",
            where=next(one.at["priority"] for one in workloads if one.priority is not None),
            workloads=len(workloads),
            given=str(priorities),
        )


def _file_format(file: ParameterFile, run: ParameterFileRun) -> ParameterFileRun:
    """Return the run that makes the trees of another one first."""
    definition, flags = run.definition, run.definition.format
    where = definition.at.get("format", definition.where)
    if "once" in flags and not run.turn.values:
        raise make_error(InputError, "formats_vdbench.expand.once_without_loops", where=where)
    if "complete" in flags:
        raise make_error(InputError, "formats_vdbench.expand.format_complete", where=where)
    workload = format_workload(file)
    systems = {work.system.name: work.system for work in run.file_works}
    works = tuple(
        FileWork(workload, system, "create", workload.threads, workload.threads)
        for system in systems.values()
    )
    elapsed = run.times.elapsed if "limited" in flags else _FORMAT_S
    return replace(
        run,
        name=f"{FILE_FORMAT}{run.name}",
        rate=IoRate("max"),
        times=Times(elapsed, run.times.interval, 0, 0),
        file_works=works,
        formats=flags,
        made_for=tuple(dict.fromkeys(work.workload.name for work in run.file_works)),
        operations_after=tuple(dict.fromkeys(work.operation for work in run.file_works)),
    )
