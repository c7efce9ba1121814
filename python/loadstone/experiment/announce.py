"""What an experiment will do, before it does it: runs, time, bytes, changes of the machine.

Knows what can be told from Plans without touching a target. Knows no screen.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import asdict, dataclass, field
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.audit.rules import too_few_samples
from loadstone.control import own_group
from loadstone.control.layout.steps import building, taking_down
from loadstone.effects.foreseen import least_seen
from loadstone.effects.observations import Factor, Observation, Observations
from loadstone.errors import InputError, LoadstoneError, RefusedError, Where, each, raise_all
from loadstone.experiment import allocation, layout_devices
from loadstone.experiment.elsewhere import elsewhere
from loadstone.experiment.file import level_name
from loadstone.experiment.levels import applies
from loadstone.experiment.machine_state import Machine, fill_bytes, order_of
from loadstone.experiment.prepared import in_order, look, measured_s
from loadstone.experiment.read_file import line_given, with_lines
from loadstone.experiment.rehearsal import Rehearsal, RehearsalSize
from loadstone.experiment.run import refuse_state
from loadstone.experiment.writes import laid_out_bytes, most_written, written_refusal
from loadstone.messages import make_error, say
from loadstone.path.child import run_in_child
from loadstone.plan.safety import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from loadstone.experiment.file import ExperimentFactor, ExperimentFile
    from loadstone.experiment.prepared import PreparedExperiment, ReadOptionsOfExperiment
    from loadstone.experiment.recorded_times import RecordedTimes
    from loadstone.plan.model import Plan

SCATTERS: Final = (0.02, 0.10)
"""Of repeats, as a share: a quiet device, and a busy one."""
LAYOUT_S: Final = 2.0
"""Building a layout and taking it down, on devices that need no sync; large ones take longer."""
LEVEL_S: Final = 0.1
"""Setting a level once and putting it back."""
OF_ALL_RUNS: Final = {"runtime": "runtime", "ramp": "ramp", "ramp_time": "ramp", "size": "size"}
"""Options and parameters that a key of the file sets for all runs."""
RUN_S: Final = 60.0
"""Of runs that end by bytes."""
FORMAT = 1
"""Of the document of `loadstone experiment plan --json`."""


@dataclass(slots=True)
class Announcement:
    """All that is told."""

    prepared: PreparedExperiment
    laid_out_bytes: int = 0
    """What is written into files that are not there yet, or too short."""
    prepared_bytes: int = 0
    """What is written to bring targets into a state before their runs, as far as it is known now."""
    filled_bytes: int = 0
    """What is allocated to fill file systems, all times together."""
    rehearsal: RehearsalSize = field(default_factory=RehearsalSize)
    """What is set once before the first run."""
    begun: bool = False
    """It goes on: what is refused was found when it began, and nothing is set once for that."""
    built: int = 0
    """How often the runs have a layout built."""
    most_written_bytes: int | None = 0
    """What the runs may write; None: nobody knows, some end by their time."""
    writes: list[str] = field(default_factory=list)
    """Targets that are written."""
    changes: list[dict[str, str]] = field(default_factory=list)
    """What is set on the machine."""
    layouts: list[dict[str, Any]] = field(default_factory=list)
    consent: list[dict[str, str]] = field(default_factory=list)
    """Devices of layouts, and other targets, that hold something, and what."""
    elsewhere: list[str] = field(default_factory=list)
    """Settings of devices and file systems that no target is on."""
    too_short: str | None = None
    """What is said of runs that measure for so short that their verdict will be *not valid*."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Of each run that can be planned before the first one begins."""
    over_budget: str | None = None
    recorded: RecordedTimes | None = None
    """What earlier sessions took; None: the experiment has not begun, and what is beside loads is assumed."""
    seen: dict[float, float | None] = field(default_factory=dict)
    """Of a scatter of repeats, the least difference of two levels that will be found; None: hardly any."""

    @property
    def rehearsal_s(self) -> float:
        """How long the rehearsal takes, commands left out."""
        return _rehearsal_s(self.rehearsal)

    @property
    def length_s(self) -> float | None:
        """How long all of it takes, with the rehearsal and layouts; None where a run ends by its bytes."""
        loads_s, beside_s = self.prepared.loads_s, self.assumed_s
        return None if loads_s is None else loads_s + beside_s

    @property
    def assumed_s(self) -> float:
        """How long is assumed for what is beside the loads."""
        return _assumed_s(self.prepared, self.rehearsal, self.built)

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        prepared = self.prepared
        document = prepared.document
        return {
            "format": FORMAT,
            "title": document.title,
            "question": document.question,
            "design": document.design,
            "combinations": document.combinations,
            "full_combinations": document.full_combinations,
            "aliased": [list(pair) for pair in document.aliased],
            "mixed": [list(one) for one in document.mixed],
            "blocks": document.blocks,
            "order": document.order,
            "seed": document.seed,
            "rarely": list(document.rarely),
            "factors": [one.model_dump(mode="json") for one in document.factors],
            "patterns": [one.model_dump(mode="json") for one in document.patterns],
            "metrics": list(document.metrics),
            "aims": [one.model_dump(mode="json") for one in document.aims],
            "runs": [
                {"name": run.name, "block": run.block, "pattern": run.pattern, "levels": run.levels}
                for run in document.runs
            ],
            "time_s": self.length_s,
            "assumed_s": self.assumed_s,
            "recorded": None if self.recorded is None else asdict(self.recorded),
            "rehearsal": {
                "time_s": self.rehearsal_s,
                "levels": self.rehearsal.levels,
                "layouts": self.rehearsal.layouts,
                "commands": self.rehearsal.commands,
            },
            "laid_out_bytes": self.laid_out_bytes,
            "prepared_bytes": self.prepared_bytes,
            "filled_bytes": self.filled_bytes,
            "most_written_bytes": self.most_written_bytes,
            "written_targets": self.writes,
            "machine": self.changes,
            "elsewhere": self.elsewhere,
            "too_short": self.too_short,
            "layouts": self.layouts,
            "needs_consent": self.consent,
            "cannot_be_set": [one.model_dump(mode="json") for one in document.unset_levels],
            "over_budget": self.over_budget,
            "smallest_seen": [
                {"scatter": scatter, "difference": difference} for scatter, difference in self.seen.items()
            ],
        }


def _rehearsal_s(rehearsal: RehearsalSize) -> float:
    return rehearsal.layouts * LAYOUT_S + rehearsal.levels * LEVEL_S


def _assumed_s(prepared: PreparedExperiment, rehearsal: RehearsalSize, built: int) -> float:
    return prepared.beside_s * len(prepared.nexts) + _rehearsal_s(rehearsal) + built * LAYOUT_S


def planned_s(prepared: PreparedExperiment) -> float | None:
    """Return how long all of it takes, with rehearsal and layouts; None where a run ends by its bytes."""
    loads_s = prepared.loads_s
    return None if loads_s is None else loads_s + _assumed_s(prepared, _rehearsal(prepared), _built(prepared))


def announce(prepared: PreparedExperiment) -> Announcement:
    """Resolve what can be resolved, and tell. Raises what a run would, and for factors without effect."""
    with with_lines(prepared.path, prepared.content, prepared.whole):
        return _announced(prepared)


def _announced(prepared: PreparedExperiment) -> Announcement:
    announcement = Announcement(prepared)
    announcement.plans, mistakes = _looked_at(prepared)
    raise_all(mistakes)
    announcement.rehearsal = _rehearsal(prepared)
    announcement.built = _built(prepared)
    _writes(announcement, announcement.plans)
    announcement.changes = list(_changes(prepared))
    announcement.layouts = list(_layouts(prepared))
    paths = [target.path for plan in announcement.plans.values() for target in plan.targets]
    announcement.elsewhere = list(elsewhere(prepared.varied, dict.fromkeys(paths)))
    announcement.too_short = _too_short(prepared)
    announcement.consent = list(_consent(prepared))
    raise_all(_no_run(prepared, announcement.plans))
    announcement.over_budget = _over_budget(announcement)
    if any(len(one.levels) > 1 for one in prepared.document.factors):
        announcement.seen = least_seen(_planned(prepared), SCATTERS)
    return announcement


def prepared_or_all_mistakes(path: Path, options: ReadOptionsOfExperiment) -> PreparedExperiment:
    """Read a file and make its runs. Raises all that is wrong in it, also what only its Plans show."""
    looked = look(path, options)
    prepared = looked.prepared
    if not looked.mistakes and prepared is not None:
        return prepared
    mistakes = list(looked.mistakes)
    if prepared is not None:
        whole, content = prepared.whole, prepared.content
        left_out = {loc[:2] for loc in looked.left_out}
        patterns = {one.name for at, one in enumerate(whole.patterns) if ("patterns", at) in left_out}
        _, further = _looked_at(prepared, without=patterns)
        mistakes += [one.elsewhere(lambda known: line_given(known, path, content, whole)) for one in further]
    raise_all(in_order(mistakes))
    raise AssertionError  # pragma: no cover - without a mistake there are runs


def _looked_at(
    prepared: PreparedExperiment, without: Collection[str] = ()
) -> tuple[dict[str, Plan], list[LoadstoneError]]:
    """Plan what can be planned; return the Plans by run, and what is wrong with runs and factors.

    `without`: patterns that are left out, on which a factor may well have an effect. In one child for all
    runs: one for each takes longer than what it does.
    """
    return run_in_child(lambda: _planned_runs(prepared, without), doing=say("path.child.looking.targets"))


def _planned_runs(
    prepared: PreparedExperiment, without: Collection[str]
) -> tuple[dict[str, Plan], list[LoadstoneError]]:
    plans: dict[str, Plan] = {}
    of_runs: dict[tuple[str, str | None, str], LoadstoneError] = {}
    unplanned: set[str] = set(without)
    changed = dict[str, None]()

    def add(name: str, error: LoadstoneError) -> None:
        for one in each(error):
            # What is wrong in each repeat is told of the first.
            of_runs.setdefault((str(one.where), one.hint, one.message.removeprefix(f"run {name}: ")), one)

    for wanted in prepared.known:
        run = prepared.runs[wanted.name]
        try:
            resolved = prepared.resolved(wanted)
        except (InputError, RefusedError) as error:
            unplanned.add(run.pattern)
            add(wanted.name, error)
            continue
        plans[wanted.name] = resolved.plan
        changed |= {note.text: None for note in resolved.notes if note.kind in ("changed", "trap")}
        try:
            if not run.block:
                refuse_state(prepared, run, resolved.plan)
        except (InputError, RefusedError) as error:
            add(wanted.name, error)
    return plans, [*of_runs.values(), *_without_effect(prepared, plans, list(changed), unplanned)]


def _rehearsal(prepared: PreparedExperiment) -> RehearsalSize:
    """Return what is set once before the first run."""
    first = [run for run in prepared.document.runs if run.block == 0]
    machine = Machine(prepared.varied, prepared.label)
    return Rehearsal(machine, first, lambda _: Where(str(prepared.path))).size()


def _built(prepared: PreparedExperiment) -> int:
    """Return how often a layout is built: one stands while the runs that want it follow each other."""
    layouts = (prepared.asked(run).layout for run in prepared.document.runs)
    return sum(name is not None for name, _ in groupby(layouts))


def _planned(prepared: PreparedExperiment) -> Observations:
    """Return the runs as the analysis will have them, without figures."""
    document = prepared.document
    starts = accumulate(prepared.lengths_s or [RUN_S] * len(document.runs), initial=0.0)
    return Observations(
        tuple(Factor(one.name, one.levels) for one in document.factors),
        tuple(
            Observation(run.name, at, start_s, run.block, run.levels, run.pattern, {})
            for at, (run, start_s) in enumerate(zip(document.runs, starts, strict=False))
        ),
        metrics=document.metrics,
        rarely=document.rarely,
    )


def _no_run(prepared: PreparedExperiment, plans: dict[str, Plan]) -> Iterator[InputError]:
    """Refuse a budget that is too small for the first run."""
    budget, first = prepared.document.budget, prepared.document.runs[0]
    length_s = prepared.lengths_s[0] if prepared.lengths_s else 0.0
    if budget.time_s is not None and length_s > budget.time_s:
        where = Where(str(prepared.path), option="budget.time")
        yield make_error(
            InputError,
            "experiment.budget.no_run_time",
            where=where,
            length=units.whole_seconds(length_s),
            budget=units.whole_seconds(budget.time_s),
        )
    if first.name in plans and (error := written_refusal(prepared, first, plans[first.name])) is not None:
        yield error


def _over_budget(announcement: Announcement) -> str | None:
    budget, length_s = announcement.prepared.document.budget, announcement.length_s
    if budget.time_s is not None and length_s is not None and length_s > budget.time_s:
        return say(
            "experiment.budget.over_time",
            length=f"{length_s:.0f}",
            budget=f"{budget.time_s:.0f}",
            fit=_that_fit(announcement.prepared, budget.time_s - announcement.rehearsal_s),
        )
    beside = announcement.laid_out_bytes + announcement.prepared_bytes + announcement.filled_bytes
    least = beside + (announcement.most_written_bytes or 0)
    if budget.written_bytes is not None and least > budget.written_bytes:
        return say("experiment.budget.over_written", least_bytes=least, budget_bytes=budget.written_bytes)
    return None


def over_budget_of_rest(prepared: PreparedExperiment, recorded: RecordedTimes) -> str | None:
    """Say how many of the runs that are missing fit into what earlier sessions left of the budget."""
    budget_s, rest_s = prepared.document.budget.time_s, recorded.rest_s
    if budget_s is None or not rest_s or recorded.took_s + rest_s <= budget_s:
        return None
    left_s, each_s = max(0.0, budget_s - recorded.took_s), rest_s / recorded.missing
    budget, left = units.whole_seconds(budget_s), units.whole_seconds(left_s)
    if left_s < each_s:
        each = units.whole_seconds(each_s)
        return say("experiment.budget.no_rest_fits", budget=budget, left=left, each=each)
    return say(
        "experiment.budget.rest_fits",
        budget=budget,
        left=left,
        count=int(left_s / each_s),
        missing=recorded.missing,
    )


def _that_fit(prepared: PreparedExperiment, budget_s: float) -> str:
    """Say how many runs fit, and whether that is one of each combination."""
    ends = accumulate(prepared.lengths_s or ())
    count, block = sum(end <= budget_s for end in ends), len(prepared.nexts) // prepared.document.blocks
    key = "experiment.budget.fit" if count >= block else "experiment.budget.fit_no_block"
    return say(key, count=count, runs=len(prepared.nexts), **({} if count >= block else {"block": block}))


def _without_effect(
    prepared: PreparedExperiment, plans: dict[str, Plan], changed: Sequence[str], unplanned: set[str]
) -> Iterator[InputError]:
    """Refuse each factor of jobs whose levels make the same Plan in every run that can be compared.

    `changed`: what is done another way than written, which may be why. `unplanned`: patterns without Plans.
    """
    for factor in prepared.varied.factors:
        if factor.what not in ("option", "parameter", "cache_share", "target") or len(factor.levels) < 2:
            continue
        if any(applies(factor, pattern) for pattern in unplanned):
            continue
        twins = [*_twins(prepared, plans, factor)] or [*_twins_beside(prepared, factor)]
        if twins and all(one == other for one, other in twins):
            names = ", ".join(map(level_name, factor.levels))
            yield make_error(
                InputError,
                "experiment.factor.no_difference",
                where=Where(str(prepared.path), option=f"factors.{factor.name}.levels"),
                hint=_why_none(prepared.varied, factor, changed),
                what=factor.option or factor.parameter or factor.what,
                levels=names,
            )


def _why_none(whole: ExperimentFile, factor: ExperimentFactor, changed: Sequence[str]) -> str | None:
    """Say what takes the effect away: a key of the file for all runs, or what is done another way."""
    name = str(factor.option or factor.parameter)
    key = OF_ALL_RUNS.get(name)
    if key is not None and getattr(whole, key) is not None:
        return say("experiment.factor.of_all_runs", name=name, key=key)
    return None if not changed else say("experiment.factor.why_none", reasons="; ".join(changed))


def _twins(
    prepared: PreparedExperiment, plans: dict[str, Plan], factor: ExperimentFactor
) -> Iterator[tuple[str, str]]:
    """Return pairs of Plans of runs that differ in one factor only."""
    first: dict[tuple[Any, ...], str] = {}
    for run in prepared.document.runs:
        if run.block or run.name not in plans or not applies(factor, run.pattern):
            continue
        others = tuple(level for name, level in run.levels.items() if name != factor.name)
        key = (run.pattern, others)
        # Names tell the runs apart, and seeds are drawn for each.
        text = _without_names(plans[run.name], run.name)
        if key in first:
            yield first[key], text
        else:
            first[key] = text


def _twins_beside(prepared: PreparedExperiment, factor: ExperimentFactor) -> Iterator[tuple[str, str]]:
    """Return pairs of Plans of runs that a fraction would have if two differed in this factor only."""
    for twins in prepared.twins:
        if twins.factor != factor.name:
            continue
        first, *others = twins.nexts
        with contextlib.suppress(InputError, RefusedError):
            text = _without_names(prepared.resolve(first).plan, first.name)
            yield from ((text, _without_names(prepared.resolve(one).plan, one.name)) for one in others)


def _without_names(plan: Plan, name: str) -> str:
    text = plan.model_dump_json().replace(name, "")
    return re.sub(r'"seed":\d+', '"seed":0', text)


def _writes(announcement: Announcement, plans: dict[str, Plan]) -> None:
    laid_out: dict[str, int] = {}
    for name, plan in plans.items():
        state = announcement.prepared.asked(announcement.prepared.runs[name]).allocation
        for path, count in laid_out_bytes(plan).items() if state is None else ():
            laid_out[path] = max(laid_out.get(path, 0), count)
        announcement.prepared_bytes += 0 if state is None else allocation.written_bytes(plan, state)
        announcement.writes += [plan.targets[index].path for index in sorted(guard.written(plan))]
        own = most_written(plan)
        known = announcement.most_written_bytes
        announcement.most_written_bytes = None if own is None or known is None else known + own
    fills = (
        fill_bytes(one)
        for run in announcement.prepared.document.runs
        for one in announcement.prepared.asked(run).settings
    )
    announcement.filled_bytes = announcement.rehearsal.filled_bytes + sum(fills)
    announcement.writes = list(dict.fromkeys(announcement.writes))
    announcement.laid_out_bytes = sum(laid_out.values())
    if len(plans) < len(announcement.prepared.nexts):
        announcement.most_written_bytes = None


def _changes(prepared: PreparedExperiment) -> Iterator[dict[str, str]]:
    """Return every setting that some run makes, once."""
    earlier_changes: set[tuple[str, ...]] = set()
    for one in prepared.whole.settings:
        yield {
            "control": one.control,
            "subject": one.subject,
            "value": level_name(one.value),
            "for": "all runs",
        }
    for run in prepared.document.runs:
        conditions = prepared.asked(run)
        changes = [(one.control, one.subject, one.value) for one in conditions.settings]
        changes += [
            ("command", pair.name, f"{pair.do}; afterwards: {pair.undo}") for pair in conditions.commands
        ]
        changes += [("page_cache", drop.host or "", str(drop)) for drop in conditions.drops]
        changes += [("allocation", "its targets", conditions.allocation)] if conditions.allocation else []
        changes += (
            [("cgroup", "the engine", own_group.in_words(conditions.group))] if conditions.group else []
        )
        for control, subject, value in changes:
            if (control, subject, value) not in earlier_changes:
                earlier_changes.add((control, subject, value))
                yield {"control": control, "subject": subject, "value": value, "for": "some runs"}


def _layouts(prepared: PreparedExperiment) -> Iterator[dict[str, Any]]:
    used = {prepared.asked(run).layout for run in prepared.document.runs} - {None}
    for name in sorted(map(str, used)):
        order = order_of(prepared.whole, name, prepared.label)
        yield {
            "name": name,
            "devices": list(order.used),
            "volumes": order.volumes,
            "build": [" ".join(step.command) for step in building(order)],
            "take_down": [" ".join(step.command) for step in taking_down(order)],
        }


def _consent(prepared: PreparedExperiment) -> Iterator[dict[str, str]]:
    for device in layout_devices.used_devices(prepared):
        try:
            finding = layout_devices.evidence(device, guard.NONE)
        except LoadstoneError as error:
            yield {"device": device, "found": error.message, "consent": "refused"}
            continue
        if finding.refused or finding.needs_consent:
            yield {
                "device": device,
                "found": "; ".join(finding.refused or finding.needs_consent),
                "consent": "refused" if finding.refused else "needed",
            }


def check_levels(prepared: PreparedExperiment, say_to: Callable[[str], None] = lambda _: None) -> None:
    """Refuse what `plan` would refuse, before a run begins, and tell what has no effect or no figure."""
    with contextlib.suppress(OSError):
        announcement = announce(prepared)
        for line in announcement.elsewhere:
            say_to(line)
        if announcement.too_short is not None:
            say_to(announcement.too_short)


def _too_short(prepared: PreparedExperiment) -> str | None:
    """Say which runs no effect can rest on, because they measure for so short."""
    if too_few_samples.RULE.name in prepared.document.studied:
        return None
    lengths = [measured_s(one.workload) for one in prepared.nexts]
    short = [one for one in lengths if one is not None and one < too_few_samples.TOO_SHORT_S]
    if not short:
        return None
    return say(
        "experiment.announced.too_short",
        short=len(short),
        runs=len(lengths),
        longest_s=max(short),
        limit_s=too_few_samples.TOO_SHORT_S,
    )
