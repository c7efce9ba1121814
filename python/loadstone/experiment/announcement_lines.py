"""What an experiment would do, as lines for people.

Knows the order in which it is told. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.effects.aliases import mixed_in_words
from loadstone.experiment.announce import LAYOUT_S
from loadstone.experiment.prepared import unset_in_words
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.bundle.experiment import ExperimentRun
    from loadstone.experiment.announce import Announcement
    from loadstone.experiment.recorded_times import RecordedTimes

MOST_RUNS: Final = 40
LARGE: Final = 0.5
"""Differences that few settings of a machine make."""
DESIGNS: Final = {
    "full": "all combinations",
    "one_at_a_time": "one factor at a time",
    "fraction": "a fraction of the combinations",
}


def lines(announcement: Announcement) -> Iterator[str]:
    """Return a plan, line by line."""
    document = announcement.prepared.document
    yield document.title
    if document.question:
        yield document.question
    yield ""
    yield from _design(announcement)
    yield ""
    yield from _cost(announcement)
    yield ""
    yield from _machine(announcement)
    yield ""
    yield say("experiment.announced.runs")
    for number, run in enumerate(document.runs[:MOST_RUNS], start=1):
        alone = document.design == "one_at_a_time"
        yield f"  {number}. {_changed_alone(announcement, run) if alone else run.name}"
    if len(document.runs) > MOST_RUNS:
        yield say("experiment.announced.more", more=len(document.runs) - MOST_RUNS)


def _design(announcement: Announcement) -> Iterator[str]:
    document = announcement.prepared.document
    if document.order == "random":
        order = say("experiment.announced.random", seed=document.seed)
    else:
        order = say("experiment.announced.in_order")
    yield say(
        "experiment.announced.design",
        runs=len(document.runs),
        patterns=len(document.patterns),
        combinations=_combinations(announcement),
        blocks=document.blocks,
        order=order,
    )
    for factor in document.factors:
        yield f"  {factor.name} ({factor.meaning}): {', '.join(factor.levels)}"
    for name in document.rarely:
        yield say("experiment.announced.rarely", name=name)
    for one, two in document.aliased:
        yield say("experiment.announced.aliased", name=one, other=two)
    yield from (f"  {sentence}" for sentence in mixed_in_words(document.mixed))
    for scatter, difference in announcement.seen.items():
        yield "  " + seen(scatter, difference, document.blocks)


def seen(scatter: float, difference: float | None, repeats: int) -> str:
    """Say what will be significant where repeats scatter by so much."""
    key = "seen_hardly" if difference is None else "seen" if difference <= LARGE else "seen_large"
    values: dict[str, float] = {} if difference is None else {"difference_share": difference}
    if key != "seen":
        values["repeats"] = repeats
    return say(f"experiment.announced.{key}", scatter_share=scatter, **values)


def _changed_alone(announcement: Announcement, run: ExperimentRun) -> str:
    """Name a run by the one level that is not the first: others are as written first."""
    first = {factor.name: factor.levels[0] for factor in announcement.prepared.document.factors}
    changed = [f"{name}={level}" for name, level in run.levels.items() if level != first[name]]
    levels = ", ".join(changed) or say("experiment.announced.first_levels")
    return say("experiment.announced.alone", pattern=run.pattern, levels=levels, block=run.block + 1)


def _combinations(announcement: Announcement) -> str:
    document = announcement.prepared.document
    count, full = document.combinations, document.full_combinations
    if count == full:
        return say("experiment.announced.combinations", combinations=count)
    return say(
        "experiment.announced.fraction", combinations=count, full=full, design=DESIGNS[document.design]
    )


def _cost(announcement: Announcement) -> Iterator[str]:
    yield from _time(announcement)
    yield from _rehearsal(announcement)
    if announcement.over_budget:
        yield f"  {announcement.over_budget}"
    if (
        not announcement.writes
        and announcement.most_written_bytes == 0
        and not (announcement.laid_out_bytes or announcement.prepared_bytes or announcement.filled_bytes)
    ):
        yield say("experiment.announced.nothing_written")
        return
    most = announcement.most_written_bytes
    if most:
        yield say("experiment.announced.written", most_bytes=most)
    else:
        yield say("experiment.announced." + ("written_none" if most == 0 else "written_unknown"))
    if announcement.laid_out_bytes:
        yield say("experiment.announced.laid_out", written_bytes=announcement.laid_out_bytes)
    if announcement.prepared_bytes:
        yield say("experiment.announced.prepared", written_bytes=announcement.prepared_bytes)
    if announcement.filled_bytes:
        yield say("experiment.announced.filled", filled_bytes=announcement.filled_bytes)
    if announcement.writes:
        yield say("experiment.announced.written_targets", targets=", ".join(announcement.writes))
    budget = announcement.prepared.document.budget.written_bytes
    if budget is not None:
        yield say("experiment.announced.budget", budget_bytes=budget)


def _time(announcement: Announcement) -> Iterator[str]:
    length, recorded = announcement.length_s, announcement.recorded
    if recorded is not None:
        yield from _recorded(recorded)
        return
    if not length:
        yield say("experiment.announced.unknown_time")
        return
    yield say("experiment.announced.time", length=units.whole_seconds(length))
    each, built = announcement.prepared.beside_s, announcement.built
    building = say("experiment.announced.building", each=f"{LAYOUT_S:g}", layouts=built) if built else ""
    assumed = units.whole_seconds(announcement.assumed_s)
    yield say("experiment.announced.assumed", assumed=assumed, each=f"{each:g}", layouts=building)


def _recorded(recorded: RecordedTimes) -> Iterator[str]:
    took_s = units.whole_seconds(recorded.took_s)
    took = say("experiment.announced.took", runs=recorded.runs, took=took_s)
    if not recorded.missing:
        yield say("experiment.announced.nothing_missing", runs=took)
        return
    every = recorded.runs + recorded.missing
    if recorded.rest_s is None:
        yield say("experiment.announced.rest_unknown", missing=recorded.missing, every=every)
    else:
        rest = units.whole_seconds(recorded.rest_s)
        yield say("experiment.announced.rest", rest=rest, missing=recorded.missing, every=every)
    beside = (
        ""
        if recorded.beside_s is None
        else say("experiment.announced.beside", each=f"{recorded.beside_s:.1f}")
    )
    yield say("experiment.announced.recorded", runs=took, beside=beside)


def _rehearsal(announcement: Announcement) -> Iterator[str]:
    size = announcement.rehearsal
    parts = [say("experiment.announced.build_layouts", layouts=size.layouts)] if size.layouts else []
    parts += [say("experiment.announced.set_levels", levels=size.levels)] if size.levels else []
    if parts:
        length = units.whole_seconds(max(1.0, announcement.rehearsal_s))
        yield say("experiment.announced.rehearsal", length=length, steps=" and ".join(parts))
    if size.commands:
        yield say("experiment.announced.commands")


def _machine(announcement: Announcement) -> Iterator[str]:
    changed = bool(announcement.changes or announcement.layouts)
    yield say("experiment.announced.changed") if changed else say("experiment.announced.unchanged")
    together: dict[tuple[str, str, str], list[str]] = {}
    for one in announcement.changes:
        together.setdefault((one["control"], one["subject"], one["for"]), []).append(one["value"])
    for (control, subject, runs), values in together.items():
        of = f" of {subject}" if subject else ""
        yield f"  {control}{of}: {' | '.join(values)} ({runs})"
    for layout in announcement.layouts:
        yield say("experiment.announced.layout", name=layout["name"], targets=", ".join(layout["volumes"]))
        yield from (f"    {command}" for command in layout["build"])
    if changed and not announcement.begun:
        yield say("experiment.announced.set_once")
    for setting in announcement.elsewhere:
        yield say("experiment.announced.elsewhere", setting=setting)
    if announcement.too_short is not None:
        yield announcement.too_short
    for unset in unset_in_words(announcement.prepared.unset):
        yield say("experiment.announced.unset", level=unset)
    for device in announcement.consent:
        yield say(
            "experiment.announced.consent",
            device=device["device"],
            content=device["found"],
            consent=device["consent"],
        )
