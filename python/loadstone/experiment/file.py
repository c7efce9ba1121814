"""An experiment's file as it was written: workloads, factors, repeats, order, budget, aims.

Knows names, shapes and what excludes what. Knows no host: whether a level can be set here, and what
a job file asks for, is found later. `contract/experiment.schema.json` is made from this.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from loadstone.control.layout.description import LayoutDescription
from loadstone.effects.observations import MetricName
from loadstone.experiment.amounts import metric_value, size_bytes, time_s
from loadstone.frozen_model import FrozenModel, readable
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.toml_repair import RuleMistake, located
from loadstone.verdict import RULE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_IS: Final = "as is"
"""The level of a control that leaves it as it is."""
VOLUME: Final = "{volume}"
"""Stands for each volume of the layout."""
FILE: Final = "{file}"
"""A file on each volume, or the volume itself where it has no file system."""
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9 ._+%-]{0,63}$"

Scalar = bool | int | float | str
FactorKind = Literal[
    "option",
    "parameter",
    "control",
    "layout",
    "target",
    "allocation",
    "page_cache",
    "cache_share",
    "fill_level",
    "cgroup",
    "command",
]
AllocationState = Literal["new", "first pass", "later pass", "preallocated", "holes", "trimmed"]


def _name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise make_error(ValueError, "experiment.file.name", found=repr(text[:80]))
    return text


Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME})]


Time = Annotated[str, readable(time_s)]
"""As `30s`, `5m`."""
Size = Annotated[str, readable(size_bytes)]
"""As `4k`, `10g`."""


def _rule(name: str) -> str:
    if name not in RULE_NAMES:
        hint = nearest(name, RULE_NAMES, limit=0) or say("experiment.factor.rules")
        raise make_error(ValueError, "experiment.factor.rule", name=repr(name), nearest=hint)
    return name


Rule = Annotated[str, AfterValidator(_rule)]
"""Named one by one nowhere but in `verdict`: a new rule changes no schema."""


class ExperimentLevel(FrozenModel):
    """A level with a name of its own."""

    name: Name
    value: Scalar | None = None
    do: str | None = None
    """Of a `command`: what sets it."""
    undo: str | None = None
    """Of a `command`: what puts it back."""
    limits: dict[str, str] = Field(default_factory=dict)
    """Of a `cgroup`: file of the group and value, as `memory.max = "256M"`."""
    every: Time | None = None
    """Of `page_cache`: dropped so often during the run."""
    host: str | None = None
    """Of `page_cache`: `user@server`, whose page cache is dropped through ssh(1), in place of ours."""

    @property
    def text(self) -> str:
        """The value as it is set; empty: it has none."""
        return "" if self.value is None else level_name(self.value)


class ExperimentFactor(FrozenModel):
    """What is varied on purpose."""

    name: Name
    levels: Annotated[tuple[Scalar | ExperimentLevel, ...], Field(min_length=2)]
    """The first is the one that the others are held against."""
    kind: FactorKind | None = None
    """Told by `option`, `parameter` or `control` where one of those is given."""
    option: str | None = None
    """Any option of fio's job files, set in each job."""
    parameter: str | None = None
    """A parameter of named workloads, or what stands for `$name` in vdbench files."""
    control: str | None = None
    """A setting of the machine (`loadstone controls`)."""
    subject: str = ""
    """Of what the control is set: `sda`, `policy0`, a mount point; empty: all there are."""
    of: str | None = None
    """Of `cache_share`: the memory a share is of, as `1g`; without it this host's. Of `fill_level`: a
    directory on the file system that is filled."""
    patterns: tuple[Name, ...] = ()
    """Only these patterns are changed by it; empty: all."""
    rarely: bool | None = None
    """Changes rarely: within a block all runs of a level follow each other [layouts: true, others: false]."""

    @property
    def what(self) -> FactorKind:
        """What kind it is, however that is told."""
        if self.kind is not None:
            return self.kind
        return "option" if self.option is not None else "control" if self.control is not None else "parameter"

    @property
    def told_by(self) -> str:
        """Return the key that tells its kind."""
        return self.what if getattr(self, self.what, None) is not None else "kind"

    @property
    def changes_rarely(self) -> bool:
        """Whether runs of one level follow each other."""
        return self.what == "layout" if self.rarely is None else self.rarely

    @property
    def level_names(self) -> tuple[str, ...]:
        """How its levels are called, in the order of the file."""
        return tuple(level_name(one) for one in self.levels)

    def level(self, name: str) -> ExperimentLevel:
        """Return a level by its name."""
        level = next(one for one in self.levels if level_name(one) == name)
        if isinstance(level, ExperimentLevel):
            return level
        # A path or a list of CPUs is called as it is, however a name of one's own has to look.
        return ExperimentLevel.model_construct(name=name, value=level)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        kinds = [one for one in ("option", "parameter", "control") if getattr(self, one) is not None]
        if len(kinds) > 1:
            raise make_error(ValueError, "experiment.factor.several", found=" and ".join(kinds))
        if not kinds and self.kind is None:
            raise make_error(ValueError, "experiment.factor.nothing")
        if self.kind is not None and kinds and kinds != [self.kind]:
            raise make_error(
                ValueError, "experiment.factor.kind_and_other", what=repr(self.kind), other=kinds[0]
            )
        if self.kind in ("option", "parameter", "control") and not kinds:
            raise make_error(ValueError, "experiment.factor.unnamed", found=repr(self.kind), what=self.kind)
        return self

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        located(self._misfits())
        return self

    def _misfits(self) -> Iterator[RuleMistake]:
        kind = self.what
        if self.subject and kind != "control":
            yield RuleMistake(say("experiment.factor.subject"), ("subject",))
        if self.of is not None and kind not in ("cache_share", "fill_level"):
            yield RuleMistake(say("experiment.factor.of"), ("of",))
        if kind == "fill_level" and self.of is None:
            yield RuleMistake(say("experiment.factor.nothing_filled"), ())
        names = self.level_names
        for twice in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield RuleMistake(say("experiment.level.twice", level=repr(twice)), ("levels",))
        for one in self.levels:
            check = _why_no_table if isinstance(one, ExperimentLevel) else _why_no_word
            if text := check(kind, one):  # type: ignore[arg-type] # each is for one of the two
                yield RuleMistake(text, ("levels",))


def _why_no_word(what: str, level: Scalar) -> str | None:
    """Say what is wrong with a plain level where only some words mean anything."""
    words = _WORDS.get(what)
    if what == "command" and level != AS_IS:
        return say("experiment.level.no_commands", level=_shown(level))
    if what == "cgroup" and level != AS_IS:
        return say("experiment.level.no_limits_table", level=_shown(level))
    if words is None or level in words:
        return None
    close = str(nearest(str(level), words, limit=len(words)))
    return say("experiment.level.word", level=_shown(level), nearest=close)


def _shown(level: Scalar) -> str:
    """Return a level as the file has it."""
    return str(level).lower() if isinstance(level, bool) else repr(level)


def level_name(level: Scalar | ExperimentLevel) -> str:
    """Return how a level is called."""
    if isinstance(level, ExperimentLevel):
        return level.name
    if isinstance(level, bool):
        return "1" if level else "0"
    return f"{level:.12g}" if isinstance(level, float) else str(level)


_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "page_cache": ("kept", "dropped"),
    "allocation": get_args(AllocationState),
}
_OF_LEVEL: Final = {"do": "command", "undo": "command", "limits": "cgroup", "every": "page_cache"} | {
    "host": "page_cache"
}


def _why_no_table(what: str, level: ExperimentLevel) -> str | None:
    """Say what is wrong with a level that is a table."""
    name = repr(level.name)
    foreign = next((key for key, kind in _OF_LEVEL.items() if getattr(level, key) and what != kind), None)
    if foreign is not None:
        return say("experiment.level.foreign_key", level=name, option=foreign, what=_OF_LEVEL[foreign])
    if what == "command" and (level.do is None or level.undo is None):
        return say("experiment.level.do_and_undo", level=name)
    if what == "cgroup" and not level.limits:
        return say("experiment.level.no_limits", level=name)
    if what not in ("command", "cgroup", "page_cache") and level.value is None:
        return say("experiment.level.no_value", level=name)
    return None


class ExperimentPattern(FrozenModel):
    """A workload: a row of the matrix. A job file, a named workload, or options of a job of its own."""

    name: Name
    meaning: str = ""
    job: str | None = None
    """A job file of fio, vdbench or Iometer, beside the experiment's file; one run of it."""
    section: tuple[str, ...] = ()
    """Only these sections, run definitions or access specifications of the job file."""
    workload: str | None = None
    """A name of `loadstone workloads`."""
    set: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of the named workload, or what stands for `$name` in a vdbench file."""
    options: dict[str, Scalar] = Field(default_factory=dict)
    """Options of fio's job files: set in each job, or alone the job itself."""
    targets: tuple[str, ...] = ()
    """In place of the targets of the experiment."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        located(self._misfits())
        return self

    def _misfits(self) -> Iterator[RuleMistake]:
        if self.job is not None and self.workload is not None:
            yield RuleMistake(say("experiment.pattern.two_loads"), ())
        if self.job is None and self.workload is None and not self.options:
            yield RuleMistake(say("experiment.pattern.no_load"), ())
        if self.set and self.workload is None and self.job is None:
            yield RuleMistake(say("experiment.pattern.set"), ("set",))
        if self.section and self.job is None:
            yield RuleMistake(say("experiment.pattern.section"), ("section",))


class ExperimentSetting(FrozenModel):
    """A setting of the machine for all runs."""

    control: str
    subject: str = ""
    value: Scalar


class ExperimentAims(FrozenModel):
    """What is wanted: the most or the least of a metric, perhaps under a limit of another."""

    most: MetricName | None = None
    least: MetricName | None = None
    limit: MetricName | None = None
    at_most: str | float | None = None
    """With its unit for times and rates, as `2ms`."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        located(self._misfits())
        return self

    def _misfits(self) -> Iterator[RuleMistake]:
        if (self.most is None) == (self.least is None):
            yield RuleMistake(say("experiment.aims.one"), ())
        if (self.limit is None) != (self.at_most is None):
            yield RuleMistake(say("experiment.aims.limit"), ())
        if self.limit is not None and self.at_most is not None:
            try:
                metric_value(self.limit, self.at_most)
            except ValueError as error:
                yield RuleMistake(str(error), ("at_most",))


class ExperimentLimits(FrozenModel):
    """What the whole may take."""

    time: Time | None = None
    written: Size | None = None


class ExperimentFile(FrozenModel):
    """All of it."""

    title: str
    question: str = ""
    parameters: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Values that `$name` stands for elsewhere in the file, with their defaults; `--set NAME=VALUE`."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 4
    """Blocks: passes over all combinations."""
    order: Literal["random", "given"] = "random"
    seed: Annotated[int, Field(ge=0)] = 1
    design: Literal["full", "one_at_a_time", "fraction"] = "full"
    budget: ExperimentLimits = Field(default_factory=ExperimentLimits)
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] = (
        "iops",
        "bandwidth_bytes_per_s",
        "lat_mean_ns",
        "lat_p50_ns",
        "lat_p99_ns",
        "cpu_ns_per_io",
    )
    """The first is what the answer is about."""
    studied: tuple[Rule, ...] = ()
    """Rules of the verdict (docs/rules.md) that find what is studied on purpose, and so exclude no run.
    Factors of the page cache and of allocation bring their own."""
    aims: tuple[ExperimentAims, ...] = ()
    targets: tuple[str, ...] = ()
    """Files or devices for every pattern. `{volume}` stands for each volume of the layout, `{file}` for a
    file on each, or the volume itself where it has no file system."""
    runtime: Time | None = None
    """Of every job, in place of its own."""
    ramp: Time | None = None
    size: Size | None = None
    pause: Time | None = None
    """Before each run, with its settings made."""
    wait_for_sync: bool = True
    """Wait until an array has synchronised; false: measure while it does, and say so."""
    devices: tuple[str, ...] = ()
    """For layouts; everything on them is lost."""
    layouts: dict[Name, LayoutDescription] = Field(default_factory=dict)
    settings: tuple[ExperimentSetting, ...] = ()
    """Set for all runs, and put back at the end."""
    patterns: Annotated[tuple[ExperimentPattern, ...], Field(min_length=1)]
    factors: tuple[ExperimentFactor, ...] = ()

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        located(
            [
                *self._names_twice(),
                *self._unknown_patterns(),
                *self._varied_twice(),
                *self._misused_layouts(),
                *self._misplaced(),
            ]
        )
        return self

    def _names_twice(self) -> Iterator[RuleMistake]:
        for kind, names in (
            ("pattern", [one.name for one in self.patterns]),
            ("factor", [one.name for one in self.factors]),
        ):
            for at, name in enumerate(names):
                if name in names[:at]:
                    text = say(f"experiment.{kind}.called_twice", name=repr(name))
                    yield RuleMistake(text, (f"{kind}s", at, "name"))
        for at, name in enumerate(self.metrics):
            if name in self.metrics[:at]:
                yield RuleMistake(say("experiment.metrics.twice", name=repr(name)), ("metrics", at))

    def _unknown_patterns(self) -> Iterator[RuleMistake]:
        known = [one.name for one in self.patterns]
        for at, factor in enumerate(self.factors):
            for unknown in (one for one in factor.patterns if one not in known):
                hint = str(nearest(unknown, known, limit=len(known)))
                text = say("experiment.factor.no_pattern", name=repr(unknown), nearest=hint)
                yield RuleMistake(text, ("factors", at, "patterns"), ("patterns",))

    def _varied_twice(self) -> Iterator[RuleMistake]:
        for at, factor in enumerate(self.factors):
            for other in self.factors[:at]:
                apart = factor.patterns and other.patterns and not set(factor.patterns) & set(other.patterns)
                if not apart and _same_thing(factor, other):
                    text = say("experiment.factor.varied_twice", name=repr(other.name))
                    yield RuleMistake(text, ("factors", at, factor.told_by))
                    break
            for one in self.settings:
                if factor.control == one.control and _overlap(factor.subject, one.subject):
                    text = say("experiment.factor.set_for_all", control=one.control)
                    yield RuleMistake(text, ("factors", at, "control"))
                    break
        for at, one in enumerate(self.settings):
            before = self.settings[:at]
            if any(two.control == one.control and _overlap(two.subject, one.subject) for two in before):
                text = say("experiment.setting.again", control=one.control)
                yield RuleMistake(text, ("settings", at, "control"))

    def _misused_layouts(self) -> Iterator[RuleMistake]:
        varied = [at for at, factor in enumerate(self.factors) if factor.what == "layout"]
        for at in varied[1:]:
            yield RuleMistake(say("experiment.layout.second_factor"), ("factors", at, "kind"))
        named = {layout_of(level): at for at in varied for level in self.factors[at].levels}
        for name in sorted(set(named) - set(self.layouts)):
            hint = nearest(name, self.layouts, limit=len(self.layouts)) or say("experiment.layout.none")
            text = say("experiment.layout.unknown", name=name, nearest=hint)
            yield RuleMistake(text, ("factors", named[name], "levels"))
        for name in sorted(set(self.layouts) - set(named)):
            # A level that is misspelt leaves its layout without one.
            if not any(nearest(name, [level], limit=0) for level in set(named) - set(self.layouts)):
                yield RuleMistake(say("experiment.layout.unused"), ("layouts", name), ("factors",))

    def _misplaced(self) -> Iterator[RuleMistake]:
        if self.devices and not self.layouts:
            yield RuleMistake(say("experiment.layout.devices_alone"), ("devices",), ("layouts",))
        if twice := next((one for one in self.devices if self.devices.count(one) > 1), None):
            yield RuleMistake(say("experiment.layout.device_twice", device=twice), ("devices",))
        uses = [*self.targets, *(text for one in self.patterns for text in one.targets)]
        placed = any(VOLUME in text or FILE in text for text in uses)
        if not self.layouts and (loc := ("targets",) if placed else self._set_on_volumes()):
            yield RuleMistake(say("experiment.layout.no_layouts"), loc, ("layouts",))
        if self.layouts and not placed:
            text = say("experiment.layout.no_target")
            yield RuleMistake(text, ("layouts", min(self.layouts)), ("targets", "patterns"))

    def _set_on_volumes(self) -> tuple[str | int, ...]:
        """Return where something is set on the volumes of a layout; empty: nowhere."""
        for at, one in enumerate(self.settings):
            if VOLUME in one.subject:
                return ("settings", at, "subject")
        for at, factor in enumerate(self.factors):
            if VOLUME in factor.subject or VOLUME in (factor.of or ""):
                return ("factors", at, "subject" if factor.subject else "of")
        return ()


def _overlap(one: str, other: str) -> bool:
    """Return whether two subjects may be the same; an empty one is all there are."""
    return not one or not other or one == other


def _same_thing(one: ExperimentFactor, other: ExperimentFactor) -> bool:
    """Return whether two factors set the same thing, so that the levels of the first have no effect."""
    match one.what:
        case "control":
            same = one.control == other.control and _overlap(one.subject, other.subject)
        case "option" | "parameter":
            same = (one.option, one.parameter) == (other.option, other.parameter)
        case "fill_level":
            same = one.of == other.of
        case "page_cache":
            same = bool(_dropped_hosts(one) & _dropped_hosts(other))
        case _:
            same = one.what not in ("command", "layout")
    return same and one.what == other.what


def _dropped_hosts(factor: ExperimentFactor) -> set[str | None]:
    levels = [factor.level(name) for name in factor.level_names]
    return {one.host for one in levels if one.value != "kept"}


_STUDIED: Final[dict[str, tuple[str, ...]]] = {
    "page_cache": ("page_cache_read", "writeback_absorbed"),
    "cache_share": ("page_cache_read", "writeback_absorbed"),
    "allocation": ("unwritten_region", "first_pass_allocation"),
}
"""What a kind of factor varies on purpose."""
_STUDIED_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("direct", "buffered", "invalidate", "pre_read"), _STUDIED["page_cache"]),
    **dict.fromkeys(
        ("sync", "fsync", "fdatasync", "end_fsync", "fsync_on_close", "sync_file_range"),
        ("writeback_absorbed",),
    ),
}
"""What an option of fio varies on purpose: whether the page cache answers, and whether writes wait."""


def studied_rules(whole: ExperimentFile) -> tuple[str, ...]:
    """Return the rules whose findings exclude no run."""
    own = [
        rule
        for factor in whole.factors
        for rule in (*_STUDIED.get(factor.what, ()), *_STUDIED_OPTIONS.get(factor.option or "", ()))
    ]
    return tuple(dict.fromkeys([*whole.studied, *own]))


def layout_of(level: Scalar | ExperimentLevel) -> str:
    """Return which layout a level means."""
    return str(level.value) if isinstance(level, ExperimentLevel) else str(level)
