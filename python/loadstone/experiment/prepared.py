"""An experiment before its first run: which runs there are, in which order, and what cannot be set here.

Knows the file, this host's controls and how long each run takes. Asks and changes nothing.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from loadstone.bundle.experiment import (
    DesignFactor,
    DesignPattern,
    ExperimentAim,
    ExperimentBudget,
    ExperimentDocument,
    ExperimentRun,
    UnsetLevel,
)
from loadstone.errors import InputError, LoadstoneError, RefusedError, Where, as_text, each, raise_all
from loadstone.experiment import design, levels, loads
from loadstone.experiment.amounts import metric_value, size_bytes, time_s
from loadstone.experiment.file import FILE, VOLUME, studied_rules
from loadstone.experiment.host_checks import ExperimentPlaces, HostChecks
from loadstone.experiment.machine_state import new_label, order_of
from loadstone.experiment.read_file import line_given, read_file
from loadstone.experiment.run_order import ordered
from loadstone.messages import make_error, say
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.study.controller import Next

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.experiment.design import Combinations
    from loadstone.experiment.file import ExperimentFactor, ExperimentFile, ExperimentPattern
    from loadstone.experiment.read_file import ReadExperiment
    from loadstone.plan.resolve import Resolution
    from loadstone.toml_repair import Keys
    from loadstone.workload.model import Job, Note, Workload

BESIDE_S: Final = 2.0
"""What a run takes beside its load: files, calibration, sealing."""
DATA: Final = "data"


@dataclass(frozen=True, slots=True)
class ReadOptionsOfExperiment:
    """What is said of how a file is read."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    allow_exec: bool = False
    leave_out_unset: bool = False
    """Go on without the levels that cannot be set here."""
    parameters_at: Where | None = None
    """Where the parameters were given."""
    not_taken: tuple[UnsetLevel, ...] = ()
    """Levels that the kernel did not take when they were rehearsed."""


@dataclass(frozen=True, slots=True)
class LevelTwins:
    """The levels of one factor beside the first levels of the others, as runs that nobody makes."""

    factor: str
    pattern: str
    nexts: tuple[Next, ...]


@dataclass(frozen=True)
class PreparedExperiment:
    """All of it. Nothing was touched to make it."""

    path: Path
    content: bytes
    whole: ExperimentFile
    options: ReadOptionsOfExperiment
    unset: tuple[UnsetLevel, ...]
    factors: tuple[ExperimentFactor, ...]
    """Those that are varied or held: with the levels that can be set."""
    combinations: Combinations
    label: str
    document: ExperimentDocument
    nexts: tuple[Next, ...]
    twins: tuple[LevelTwins, ...] = ()
    """Of a fraction, in which no two runs need differ in one factor only: what such runs would be."""

    @cached_property
    def runs(self) -> dict[str, ExperimentRun]:
        """Every run by its name."""
        return {run.name: run for run in self.document.runs}

    @cached_property
    def sources(self) -> dict[str, bytes]:
        """Return every file that was read, the experiment's first."""
        contents = {str(self.path): self.content}
        for one in self.nexts:
            contents |= {name: data for name, data in one.workload.sources.items() if name not in contents}
        return contents

    @property
    def notes(self) -> list[Note]:
        """Return what was said about any job file, each thing once."""
        return list(dict.fromkeys(note for one in self.nexts for note in one.workload.notes))

    @property
    def inputs(self) -> dict[str, bytes]:
        """Return what a study keeps of them."""
        return self.sources

    def asked(self, run: ExperimentRun) -> levels.Asked:
        """Return what a run asks of the machine."""
        return levels.asked(self.varied, run.levels, run.pattern)

    @cached_property
    def varied(self) -> ExperimentFile:
        """Return the file with those factors and levels only that can be set here."""
        return self.whole.model_copy(update={"factors": self.factors})

    def resolve(self, wanted: Next) -> Resolution:
        """Resolve a run against this host."""
        return resolve(wanted.workload, options=ResolveOptions())

    def resolved(self, wanted: Next, by: Callable[[Next], Resolution] | None = None) -> Resolution:
        """Resolve a run; a mistake names the run, and the factor whose level made it."""
        try:
            return (by or self.resolve)(wanted)
        except (InputError, RefusedError) as error:
            raise_all(
                type(mistake)(
                    f"run {wanted.name}: {mistake.message}",
                    where=self._of_factor(mistake.where),
                    hint=mistake.hint,
                )
                for mistake in each(error)
            )
            raise

    def _of_factor(self, where: Where | None) -> Where | None:
        """Return the factor whose level set an option that cannot be planned."""
        if where is None or where.line is not None or where.file != Where(str(self.path)).file:
            return where
        own = next((one.name for one in self.varied.factors if one.option == where.option), None)
        return where if own is None else Where(where.file, option=f"factors.{own}.levels")

    def needs_layout(self, run: ExperimentRun) -> bool:
        """Return whether its targets are not there before it begins."""
        return self.asked(run).layout is not None

    @cached_property
    def known(self) -> list[Next]:
        """Return the runs that can be resolved before the first one begins."""
        return [one for one in self.nexts if not self.needs_layout(self.runs[one.name])]

    @property
    def length_s(self) -> float | None:
        """Return how long all runs take, None where a run ends by its bytes."""
        return None if self.lengths_s is None else sum(self.lengths_s)

    @property
    def loads_s(self) -> float | None:
        """Return how long the loads of all runs last, None where one ends by its bytes."""
        return None if self.lengths_s is None else sum(one - self.beside_s for one in self.lengths_s)

    @property
    def beside_s(self) -> float:
        """Return what a run takes beside its load: what is assumed, and the pause of the file."""
        return BESIDE_S + (time_s(self.whole.pause) if self.whole.pause else 0.0)

    @cached_property
    def lengths_s(self) -> list[float] | None:
        """Return how long each run takes with what is done beside it."""
        known = [one for run in self.nexts if (one := load_s(run.workload)) is not None]
        return [one + self.beside_s for one in known] if len(known) == len(self.nexts) else None


@dataclass(frozen=True)
class LookedAt:
    """A file, all that is wrong in it, and what can be said of the rest."""

    mistakes: tuple[LoadstoneError, ...]
    """Each with file, line and key."""
    prepared: PreparedExperiment | None
    """With mistakes: of what is right, as far as anything is."""
    left_out: frozenset[Keys] = frozenset()
    """What is wrong, and left out of that."""


def prepare(path: Path, options: ReadOptionsOfExperiment | None = None) -> PreparedExperiment:
    """Read a file and make its runs. Raises `InputError` and `RefusedError` with file, line and key."""
    looked = look(path, options)
    raise_all(looked.mistakes)
    assert looked.prepared is not None  # noqa: S101 - without a mistake there is one
    return looked.prepared


def look(path: Path, options: ReadOptionsOfExperiment | None = None) -> LookedAt:
    """Read a file, and make the runs of what is right in it. Raises `InputError` where it is no TOML."""
    options = options or ReadOptionsOfExperiment()
    reading = read_file(path, options.parameters, options.parameters_at)
    if reading.whole is None:
        return LookedAt(reading.mistakes, None, reading.left_out)
    return _FileLook(path, reading, reading.whole, options).look()


def in_order(mistakes: Iterable[LoadstoneError]) -> list[LoadstoneError]:
    """Return mistakes by their lines; those without one stay where they are told: at the end."""
    every = [part for one in mistakes for part in each(one)]
    return sorted(every, key=lambda one: (one.where.line if one.where else None) or sys.maxsize)


class _FileLook:
    """One look at a file, in which mistakes are gathered."""

    def __init__(
        self, path: Path, reading: ReadExperiment, whole: ExperimentFile, options: ReadOptionsOfExperiment
    ) -> None:
        self._path, self._whole, self._options = path, whole, options
        self._content = reading.content
        self._where = ExperimentPlaces(path, reading.content)
        self._mistakes: list[LoadstoneError] = list(reading.mistakes)
        self._left_out = set(reading.left_out)
        self._label = new_label()
        self._unset: tuple[UnsetLevel, ...] = ()

    def look(self) -> LookedAt:
        """Look at what is set on this host, at the loads, and at the design."""
        unset: list[UnsetLevel] = []
        checks = HostChecks(self._whole, self._where, frozenset(self._left_out))
        wrong = [*checks.wrong(unset, allow_exec=self._options.allow_exec)]
        self._unset = (*unset, *self._options.not_taken)
        self._add(wrong)
        if refusal := self._no_layout():
            self._add([(("layouts",), refusal)])
        sound = self._sound()
        maker = _Maker(sound, self._path, self._label, self._options)
        self._add(maker.wrong(self._whole))
        prepared = self._prepared(maker)
        if self._mistakes and self._unset and not self._options.leave_out_unset:
            self._mistakes.append(_unset_refusal(self._unset, self._path, self._content, self._whole))
        return LookedAt(tuple(in_order(self._mistakes)), prepared, frozenset(self._left_out))

    def _add(self, wrong: Iterable[tuple[Keys, LoadstoneError]]) -> None:
        for loc, error in wrong:
            self._left_out.add(loc)
            self._mistakes.append(
                error.elsewhere(lambda known: line_given(known, self._path, self._content, self._whole))
            )

    def _sound(self) -> ExperimentFile:
        """Return the file without levels that cannot be set, and without what is wrong."""
        whole = self._whole
        factors = [one for at, one in enumerate(whole.factors) if ("factors", at) not in self._left_out]
        patterns = [one for at, one in enumerate(whole.patterns) if ("patterns", at) not in self._left_out]
        if self._left_out and not any(factor.what == "layout" for factor in factors):
            patterns = [one for one in patterns if not _on_volumes(one, whole)]
        names = {one.name for one in patterns}
        factors = [one for one in factors if not one.patterns or names & set(one.patterns)]
        left = whole.model_copy(update={"factors": tuple(factors), "patterns": tuple(patterns)})
        return left.model_copy(update={"factors": tuple(_without(left, self._unset))})

    def _no_layout(self) -> RefusedError | None:
        """Return why a file is refused of whose layouts none can be built here."""
        varied = {factor.name for factor in self._whole.factors if factor.what == "layout"}
        if not varied or any(factor.what == "layout" for factor in _without(self._whole, self._unset)):
            return None
        why = "; ".join(f"{one.level}: {one.why}" for one in self._unset if one.factor in varied)
        return make_error(
            RefusedError, "experiment.layout.cannot", where=self._where.at("layouts"), reason=why
        )

    def _prepared(self, maker: _Maker) -> PreparedExperiment | None:
        """Return the runs of what is right; a mistake in the design is none where it follows from another."""
        sound = self._sound()
        if ("targets",) in self._left_out:
            with_own = tuple(one for one in sound.patterns if one.targets)
            sound = sound.model_copy(update={"patterns": with_own})
        if not sound.patterns:
            return None
        if sound != maker.whole:
            maker = _Maker(sound, self._path, self._label, self._options)
        try:
            combinations = _combinations(sound, maker, self._where)
        except LoadstoneError as error:
            if not any(loc[0] in LENGTHS for loc in self._left_out if loc):
                self._mistakes.append(error)
            return None
        runs, nexts = _runs(sound, combinations, maker)
        document = _document(sound, combinations).model_copy(
            update={
                "file": as_text(str(self._path)),
                "file_blake3": blake3(self._content).hexdigest(),
                "unset_levels": self._unset,
                "runs": tuple(runs),
            }
        )
        return PreparedExperiment(
            path=self._path,
            content=self._content,
            whole=self._whole,
            options=self._options,
            unset=self._unset,
            factors=sound.factors,
            combinations=combinations,
            label=self._label,
            document=document,
            nexts=tuple(nexts),
            twins=tuple(_twins(sound, maker)) if sound.design == "fraction" else (),
        )


LENGTHS: Final = ("budget", "runtime", "ramp", "pause", "repeats", "design", "patterns", "factors")
"""Keys that decide how many combinations a budget has room for."""


def _on_volumes(pattern: ExperimentPattern, whole: ExperimentFile) -> bool:
    return any(VOLUME in text or FILE in text for text in pattern.targets or whole.targets)


def why_refused(prepared: PreparedExperiment) -> RefusedError | None:
    """Return why it may not run: levels that cannot be set here, and nobody said to leave them out."""
    if not prepared.unset or prepared.options.leave_out_unset:
        return None
    return _unset_refusal(prepared.unset, prepared.path, prepared.content, prepared.whole)


def _unset_refusal(
    unset: Sequence[UnsetLevel], path: Path, content: bytes, whole: ExperimentFile
) -> RefusedError:
    words = "; ".join(unset_in_words(unset))
    several = len(unset) > 1
    varies = any(len(factor.levels) > 1 for factor in _without(whole, tuple(unset)))
    text = say("experiment.level.cannot_several", levels=len(unset), reason=words)
    where = Where(str(path), option=f"factors.{unset[0].factor}.levels")
    return RefusedError(
        text if several else say("experiment.level.cannot_one", reason=words),
        where=line_given(where, path, content, whole),
        hint=say(f"experiment.level.{'cannot_hint' if varies else 'nothing_left_hint'}"),
    )


def unset_in_words(unset: Sequence[UnsetLevel]) -> list[str]:
    """Return which levels cannot be set and why, levels of one factor with one reason together."""
    together: dict[tuple[str, str], list[str]] = {}
    for one in unset:
        together.setdefault((one.factor, one.why), []).append(one.level)
    return [f"{factor} = {' | '.join(levels)}: {why}" for (factor, why), levels in together.items()]


def _without(whole: ExperimentFile, unset: tuple[UnsetLevel, ...]) -> list[ExperimentFactor]:
    gone = {(one.factor, one.level) for one in unset}
    factors = []
    for factor in whole.factors:
        left = tuple(
            level for level, name in zip(factor.levels, factor.level_names, strict=True)
            if (factor.name, name) not in gone
        )  # fmt: skip
        if left:
            factors.append(factor.model_copy(update={"levels": left}))
    return factors


def load_s(workload: Workload) -> float | None:
    """Return how long the load of a workload lasts, jobs behind walls one after the other."""
    return _together_s(
        workload, lambda job: (job.limits.ramp_ns or 0) + (job.schedule.start_delay_ns or (0, 0))[1]
    )


def measured_s(workload: Workload) -> float | None:
    """Return how long a workload measures at most, as `load_s` without what goes before."""
    return _together_s(workload, lambda _: 0)


def _together_s(workload: Workload, before_ns: Callable[[Job], int]) -> float | None:
    stages: list[float] = []
    for job in workload.jobs:
        if not job.limits.runtime_ns:
            return None
        length = (before_ns(job) + job.limits.runtime_ns) / 1e9
        if job.schedule.stonewall or not stages:
            stages.append(length)
        else:
            stages[-1] = max(stages[-1], length)
    return sum(stages)


class _Maker:
    """Makes the workload of a combination and a pattern, each once."""

    def __init__(
        self,
        whole: ExperimentFile,
        path: Path,
        label: str,
        options: ReadOptionsOfExperiment,
    ) -> None:
        self.whole, self._path, self._label, self._options = whole, path, label, options
        self._made: dict[tuple[str, tuple[str, ...]], Workload] = {}
        self._memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def workload(self, chosen: Mapping[str, str], pattern: str) -> Workload:
        """Return the workload of a pattern at these levels."""
        key = (pattern, tuple(chosen.values()))
        if key not in self._made:
            self._made[key] = self._make(chosen, pattern)
        return self._made[key]

    def wrong(self, file: ExperimentFile) -> Iterator[tuple[Keys, LoadstoneError]]:
        """Return what is wrong with the loads, and which pattern or factor of the file is to blame.

        Each level of each factor is looked at beside the first levels of the others.
        """
        whole, told_errors, unread = self.whole, set[tuple[str, str | None]](), set[str]()
        first = {factor.name: factor.level_names[0] for factor in whole.factors}
        for pattern in whole.patterns:
            own = [factor for factor in whole.factors if levels.applies(factor, pattern.name)]
            changes = [{factor.name: level} for factor in own for level in factor.level_names[1:]]
            for change in ({}, *changes):
                try:
                    self.workload(first | change, pattern.name)
                except (InputError, RefusedError) as error:
                    unread.add(pattern.name)
                    for one in each(error):
                        if (str(one), one.hint) not in told_errors:
                            yield _blamed(one, pattern, file), one
                        told_errors.add((str(one), one.hint))
        for factor in whole.factors if unread else ():
            if any(levels.applies(factor, one.name) and one.name not in unread for one in whole.patterns):
                continue
            at = [one.name for one in file.factors].index(factor.name)
            yield from ((("factors", at), one) for one in self._wrong_option(factor, told_errors))

    def _wrong_option(
        self, factor: ExperimentFactor, told_errors: set[tuple[str, str | None]]
    ) -> Iterator[LoadstoneError]:
        """Try the levels of an option where no load that it is for can be read."""
        alone = self.whole.model_copy(update={"factors": (factor.model_copy(update={"patterns": ()}),)})
        for level in factor.level_names if factor.what == "option" else ():
            try:
                levels.changed(
                    loads.plain(), alone, self._path, levels={factor.name: level}, pattern="", memory_bytes=0
                )
            except (InputError, RefusedError) as error:
                for one in each(error):
                    if (str(one), one.hint) not in told_errors:
                        yield one
                    told_errors.add((str(one), one.hint))

    def _make(self, chosen: Mapping[str, str], pattern: str) -> Workload:
        whole = self.whole
        own = next(one for one in whole.patterns if one.name == pattern)
        layout = levels.asked(whole, chosen, pattern).layout
        places = levels.targets(whole, chosen, pattern)
        if layout:
            order = order_of(whole, layout, self._label)
            raw = order.description.on_volume == "none"
            files = [one if raw else f"{one}/{DATA}" for one in order.volumes]
            for mark, put in ((VOLUME, order.volumes), (FILE, files)):
                places = [
                    text.replace(mark, one) for text in places for one in (put if mark in text else [""])
                ]
        workload = loads.workload_of(
            own,
            whole,
            self._path,
            parameters=levels.parameters(whole, chosen, pattern),
            targets=places,
            targets_key=levels.targets_key(whole, pattern),
            allow_exec=self._options.allow_exec,
        )
        return levels.changed(
            workload, whole, self._path, levels=chosen, pattern=pattern, memory_bytes=self._memory
        )


def _blamed(error: LoadstoneError, pattern: ExperimentPattern, file: ExperimentFile) -> Keys:
    """Return the factor that a mistake names, or the pattern it was met in."""
    key = "" if error.where is None else str(error.where.option)
    for at, factor in enumerate(file.factors):
        if key.startswith(f"factors.{factor.name}."):
            return ("factors", at)
    return ("patterns", [one.name for one in file.patterns].index(pattern.name))


def _combinations(whole: ExperimentFile, maker: _Maker, where: ExperimentPlaces) -> Combinations:
    counts = [len(factor.levels) for factor in whole.factors]
    names = [factor.name for factor in whole.factors]
    try:
        if whole.design == "one_at_a_time":
            return design.one_at_a_time(counts)
        if whole.design == "full":
            return design.full(counts)
        return design.fraction(counts, _fits(whole, maker, where), names, whole.seed)
    except ValueError as error:
        hint = say("experiment.design.too_many_hint")
        raise InputError(str(error), where=where.at("design"), hint=hint) from error


def _fits(whole: ExperimentFile, maker: _Maker, where: ExperimentPlaces) -> int:
    """Return how many combinations fit into the budget of time. Raises for fewer than main effects need."""
    if whole.budget.time is None:
        raise make_error(InputError, "experiment.design.no_budget", where=where.at("design"))
    first = {factor.name: factor.level_names[0] for factor in whole.factors}
    each = 0.0
    for pattern in whole.patterns:
        length = load_s(maker.workload(first, pattern.name))
        if length is None:
            raise make_error(
                InputError, "experiment.design.no_length", where=where.at("design"), name=repr(pattern.name)
            )
        each += length + BESIDE_S + (time_s(whole.pause) if whole.pause else 0.0)
    combination_s = each * whole.repeats
    counts = [len(factor.levels) for factor in whole.factors]
    most, least = int(time_s(whole.budget.time) / combination_s), design.least_rows(counts)
    if most < least <= math.prod(counts):
        raise make_error(
            InputError,
            "experiment.design.short",
            where=where.at("design"),
            budget=whole.budget.time,
            combinations=most,
            repeats=whole.repeats,
            least=least,
            needed_s=math.ceil(least * combination_s),
        )
    return most


def _runs(
    varied: ExperimentFile, combinations: Combinations, maker: _Maker
) -> tuple[list[ExperimentRun], list[Next]]:
    """Return all runs in their order, as the document has them and as the study does."""
    rarely = [at for at, factor in enumerate(varied.factors) if factor.changes_rarely]
    planned = ordered(
        combinations.rows,
        len(varied.patterns),
        varied.repeats,
        rarely=rarely,
        seed=varied.seed if varied.order == "random" else None,
    )
    runs, nexts = [], []
    for one in planned:
        chosen = {
            factor.name: factor.level_names[level]
            for factor, level in zip(varied.factors, one.row, strict=True)
        }
        pattern = varied.patterns[one.pattern].name
        name = _run_name(pattern, chosen, one.block)
        runs.append(ExperimentRun(name=name, block=one.block, pattern=pattern, levels=chosen))
        factors: dict[str, Any] = {"pattern": pattern, **chosen, "repeat": one.block + 1}
        workload = maker.workload(chosen, pattern).model_copy(update={"name": name})
        pause_s = time_s(varied.pause) if varied.pause else 0.0
        nexts.append(Next(name, workload, factors, pause_s=pause_s))
    return runs, nexts


def _twins(varied: ExperimentFile, maker: _Maker) -> Iterator[LevelTwins]:
    first = {factor.name: factor.level_names[0] for factor in varied.factors}
    for factor in varied.factors:
        chosen = [first | {factor.name: level} for level in factor.level_names]
        for pattern in [one.name for one in varied.patterns if levels.applies(factor, one.name)]:
            workloads = [maker.workload(one, pattern) for one in chosen]
            nexts = [Next(one.name, one, {}) for one in workloads]
            if levels.asked(varied, first, pattern).layout is None:
                yield LevelTwins(factor.name, pattern, tuple(nexts))


def _run_name(pattern: str, chosen: Mapping[str, str], block: int) -> str:
    return ",".join([pattern, *(f"{name}={level}" for name, level in chosen.items())]) + f"-{block + 1}"


def _document(whole: ExperimentFile, combinations: Combinations) -> ExperimentDocument:
    return ExperimentDocument(
        title=whole.title,
        question=whole.question,
        file="",
        file_blake3="",
        factors=tuple(
            DesignFactor(
                name=factor.name, kind=factor.what, meaning=levels.meaning(factor), levels=factor.level_names
            )
            for factor in whole.factors
        ),
        patterns=tuple(DesignPattern(name=one.name, meaning=one.meaning) for one in whole.patterns),
        design=whole.design,
        combinations=len(combinations.rows),
        full_combinations=combinations.full,
        aliased=combinations.aliased,
        mixed=combinations.mixed,
        order=whole.order,
        seed=whole.seed,
        rarely=tuple(factor.name for factor in whole.factors if factor.changes_rarely),
        blocks=whole.repeats,
        metrics=whole.metrics,
        aims=tuple(
            ExperimentAim(
                metric=str(aim.most or aim.least),
                larger_is_better=aim.most is not None,
                limit_metric=aim.limit,
                limit_at_most=metric_value(aim.limit, aim.at_most)
                if aim.limit is not None and aim.at_most is not None
                else None,
            )
            for aim in whole.aims
        ),
        budget=ExperimentBudget(
            time_s=time_s(whole.budget.time) if whole.budget.time else None,
            written_bytes=size_bytes(whole.budget.written) if whole.budget.written else None,
        ),
        studied=studied_rules(whole),
        runs=(),
    )
