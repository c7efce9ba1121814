"""An experiment before its first run: which runs there are, in which order, and what cannot be set here.

Knows the file, this host's controls and how long each run takes. Asks and changes nothing.
"""

from __future__ import annotations

import os
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
from loadstone.control import remote
from loadstone.control.all_controls import Controls
from loadstone.control.fill import FillLevel
from loadstone.control.layout import build
from loadstone.control.own_group import OwnGroup
from loadstone.control.page_cache import FILE as DROP_FILE
from loadstone.errors import InputError, LoadstoneError, RefusedError, Where, as_text, each, raise_all
from loadstone.experiment import design, levels, loads
from loadstone.experiment.amounts import metric_value, size_bytes, time_s
from loadstone.experiment.file import AS_IS, FILE, VOLUME, layout_of, level_name, studied_rules
from loadstone.experiment.machine_state import new_label, order_of
from loadstone.experiment.read_file import line_given, line_of, read_file, with_lines
from loadstone.experiment.run_order import ordered
from loadstone.messages import make_error, say
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.study.controller import Next

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.control.control_kind import Control, Setting
    from loadstone.experiment.design import Combinations
    from loadstone.experiment.file import ExperimentFactor, ExperimentFile
    from loadstone.plan.resolve import Resolution
    from loadstone.workload.model import Note, Workload

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

    @cached_property
    def length_s(self) -> float | None:
        """Return how long all of it takes, None where a run ends by its bytes."""
        return None if self.lengths_s is None else sum(self.lengths_s)

    @cached_property
    def lengths_s(self) -> list[float] | None:
        """Return how long each run takes with what is done beside it."""
        beside_s = BESIDE_S + (time_s(self.whole.pause) if self.whole.pause else 0.0)
        known = [one for run in self.nexts if (one := load_s(run.workload)) is not None]
        return [one + beside_s for one in known] if len(known) == len(self.nexts) else None


def prepare(path: Path, options: ReadOptionsOfExperiment | None = None) -> PreparedExperiment:
    """Read a file and make its runs. Raises `InputError` and `RefusedError` with file, line and key."""
    options = options or ReadOptionsOfExperiment()
    whole, content = read_file(path, options.parameters, options.parameters_at)
    with with_lines(path, content, whole):
        return _prepared(path, content, whole, options)


def _prepared(
    path: Path, content: bytes, whole: ExperimentFile, options: ReadOptionsOfExperiment
) -> PreparedExperiment:
    where = _Located(path, content)
    _refuse_commands(whole, where, options)
    _refuse_settings(whole, where)
    _refuse_two_names(whole, where)
    unset = (*_unset(whole, where), *options.not_taken)
    factors = tuple(_without(whole, unset))
    if whole.layouts and not any(factor.what == "layout" for factor in factors):
        varied = {factor.name for factor in whole.factors if factor.what == "layout"}
        why = "; ".join(f"{one.level}: {one.why}" for one in unset if one.factor in varied)
        raise make_error(RefusedError, "experiment.layout.cannot", where=where.at("layouts"), reason=why)
    label = new_label()
    settable_file = whole.model_copy(update={"factors": factors})
    maker = _Maker(settable_file, path, label, options, where)
    combinations = _combinations(settable_file, maker, where)
    runs, nexts = _runs(settable_file, combinations, maker)
    document = _document(settable_file, combinations).model_copy(
        update={
            "file": as_text(str(path)),
            "file_blake3": blake3(content).hexdigest(),
            "unset_levels": unset,
            "runs": tuple(runs),
        }
    )
    return PreparedExperiment(
        path=path,
        content=content,
        whole=whole,
        options=options,
        unset=unset,
        factors=factors,
        combinations=combinations,
        label=label,
        document=document,
        nexts=tuple(nexts),
    )


def why_refused(prepared: PreparedExperiment) -> RefusedError | None:
    """Return why it may not run: levels that cannot be set here, and nobody said to leave them out."""
    if not prepared.unset or prepared.options.leave_out_unset:
        return None
    first = prepared.unset[0]
    words = "; ".join(unset_in_words(prepared.unset))
    several = len(prepared.unset) > 1
    text = say("experiment.level.cannot_several", levels=len(prepared.unset), reason=words)
    return RefusedError(
        text if several else say("experiment.level.cannot_one", reason=words),
        where=line_given(
            Where(str(prepared.path), option=f"factors.{first.factor}.levels"),
            prepared.path,
            prepared.content,
            prepared.whole,
        ),
        hint=say("experiment.level.cannot_hint"),
    )


def unset_in_words(unset: Sequence[UnsetLevel]) -> list[str]:
    """Return which levels cannot be set and why, levels of one factor with one reason together."""
    together: dict[tuple[str, str], list[str]] = {}
    for one in unset:
        together.setdefault((one.factor, one.why), []).append(one.level)
    return [f"{factor} = {' | '.join(levels)}: {why}" for (factor, why), levels in together.items()]


class _Located:
    """Errors with the line of a key."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._text = path, content.decode()

    def at(self, *loc: str | int) -> Where:
        key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in loc)
        return Where(str(self._path), line_of(self._text, loc), key.lstrip(".") or None)


def _refuse_commands(whole: ExperimentFile, where: _Located, options: ReadOptionsOfExperiment) -> None:
    for at, factor in enumerate(whole.factors):
        if factor.what == "command" and not options.allow_exec:
            raise make_error(
                RefusedError,
                "experiment.factor.would_run",
                where=where.at("factors", at, "levels"),
                command=repr(factor.level(factor.level_names[-1]).do),
            )


def _refuse_settings(whole: ExperimentFile, where: _Located) -> None:
    """Refuse what is for all runs and cannot be set on this host."""
    for at, one in enumerate(whole.settings):
        kind = _control(one.control, where.at("settings", at, "control"))
        if why := _why_not_control(kind, one.subject, level_name(one.value)):
            raise make_error(
                RefusedError, "experiment.setting.cannot", where=where.at("settings", at, "value"), reason=why
            )


def _refuse_two_names(whole: ExperimentFile, where: _Located) -> None:
    """Refuse a second factor or setting of one thing under another name, as sdb and /dev/sdb."""
    controls = Controls()
    refusals = {
        item: say("experiment.factor.set_for_all", control=one.control)
        for one in whole.settings
        for item in controls.meant(one.control, one.subject)
    }
    varied: list[tuple[ExperimentFactor, set[Setting]]] = []
    for at, factor in enumerate(whole.factors):
        if factor.control is None or factor.control not in controls:
            continue
        settings = set(controls.meant(factor.control, factor.subject))
        text = next((refusals[item] for item in settings if item in refusals), None)
        for other, other_settings in varied:
            apart = factor.patterns and other.patterns and not set(factor.patterns) & set(other.patterns)
            if settings & other_settings and not apart:
                text = say("experiment.factor.varied_twice", name=repr(other.name))
        if text is not None:
            raise InputError(text, where=where.at("factors", at, "subject"))
        varied.append((factor, settings))


def _control(name: str, where: Where) -> Control:
    """Return a control. Raises InputError: a name that is none is a mistake of the file, not of this host."""
    try:
        return Controls().named(name)
    except InputError as error:
        raise InputError(error.message, where=where, hint=error.hint) from None


def _unset(whole: ExperimentFile, where: _Located) -> list[UnsetLevel]:
    """Return every level that cannot be set on this host, and why."""
    unset = []
    for at, factor in enumerate(whole.factors):
        named = where.at("factors", at, "control")
        control = None if factor.control is None else _control(factor.control, named)
        for name in factor.level_names:
            why = _why_not(whole, factor, name, control)
            if why is not None:
                unset.append(UnsetLevel(factor=factor.name, level=name, why=why))
    return unset


def _why_not(
    whole: ExperimentFile, factor: ExperimentFactor, name: str, control: Control | None
) -> str | None:
    level, why = factor.level(name), None
    match "" if level.value == AS_IS else factor.what:
        case "control" if control is not None:
            why = _why_not_control(control, factor.subject, level.text)
        case "layout":
            why = build.why_not(order_of(whole, layout_of(level), "ls00000000"))
        case "cgroup":
            why = OwnGroup().why_not(level.limits)
        case "page_cache" if level.value != "kept":
            why = _why_no_drop(level.host)
        case "fill_level":
            why = _why_not_control(FillLevel(), str(factor.of), str(level.value))
        case _:
            pass
    return why


def _why_no_drop(host: str | None) -> str | None:
    if host is not None:
        why = remote.why_no_drop(host)
        return None if why is None else say("control.page_cache.cannot_of", host=host, reason=why)
    return None if os.access(DROP_FILE, os.W_OK) else say("control.page_cache.cannot", file=DROP_FILE)


def _why_not_control(kind: Control, subject: str, value: str) -> str | None:
    if VOLUME in subject:
        return None  # It is not there before the layout stands.
    try:
        subjects = kind.resolve(subject)
    except LoadstoneError as error:
        return error.message if error.hint is None else f"{error.message} ({error.hint})"
    for one in subjects:
        if refusal := kind.refuses(one, value):
            return f"{kind.name} of {one or 'this host'} {refusal}, found {value!r}"
    return None


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
    stages: list[float] = []
    for job in workload.jobs:
        if not job.limits.runtime_ns:
            return None
        length = (
            (job.limits.ramp_ns or 0) + job.limits.runtime_ns + (job.schedule.start_delay_ns or (0, 0))[1]
        ) / 1e9
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
        where: _Located,
    ) -> None:
        self._whole, self._path, self._label, self._options = whole, path, label, options
        self._where = where
        self._made: dict[tuple[str, tuple[str, ...]], Workload] = {}
        self._memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def workload(self, chosen: Mapping[str, str], pattern: str) -> Workload:
        """Return the workload of a pattern at these levels."""
        key = (pattern, tuple(chosen.values()))
        if key not in self._made:
            self._made[key] = self._make(chosen, pattern)
        return self._made[key]

    def _make(self, chosen: Mapping[str, str], pattern: str) -> Workload:
        whole = self._whole
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


def _combinations(whole: ExperimentFile, maker: _Maker, where: _Located) -> Combinations:
    counts = [len(factor.levels) for factor in whole.factors]
    names = [factor.name for factor in whole.factors]
    try:
        if whole.design == "one_at_a_time":
            return design.one_at_a_time(counts)
        if whole.design == "full":
            return design.full(counts)
        most = _fits(whole, maker, where)
        return design.fraction(counts, most, names, whole.seed)
    except ValueError as error:
        hint = "allow a larger budget, fewer repeats or shorter runs" if whole.design == "fraction" else (
            "use design = \"fraction\" with a budget"
        )  # fmt: skip
        raise InputError(str(error), where=where.at("design"), hint=hint) from error


def _fits(whole: ExperimentFile, maker: _Maker, where: _Located) -> int:
    """Return how many combinations fit into the budget of time."""
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
    return int(time_s(whole.budget.time) / (each * whole.repeats))


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
