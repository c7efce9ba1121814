"""An experiment's directory as the table that its effects are computed from.

Knows which figure of a run is which metric. Computes no effect.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.analysis.summary import summarise
from loadstone.bundle import experiment as on_disk
from loadstone.bundle import layout, members
from loadstone.bundle import study as study_on_disk
from loadstone.effects.observations import Aim, Factor, Observation, Observations
from loadstone.errors import BundleError
from loadstone.experiment.attempts import OUTSIDE, Disturbance, counts, not_held
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.bundle.experiment import ExperimentDocument
    from loadstone.bundle.read import Bundle


def observations(path: Path, *, unverified: bool = False) -> Observations:
    """Read an experiment. Raises `BundleError` where a run cannot be opened."""
    return table(on_disk.read(path), complete_runs(path, unverified=unverified))


def complete_runs(path: Path, *, unverified: bool = False) -> list[RunFigures]:
    """Read the runs of an experiment that completed. Raises `BundleError` where one cannot be opened.

    What was cut off by a power loss is not looked at: nothing rests on an attempt that was done again.
    """
    study = study_on_disk.read(path, unverified=unverified)
    complete = [one for one in study.points if counts(one)]
    return [
        figures_of(point, summarise(bundle))
        for point in complete
        if (bundle := study_on_disk.bundle_of(path, point, unverified=unverified)) is not None
    ]


def table(
    document: ExperimentDocument, figures: Sequence[RunFigures], *, wanted_metrics: tuple[str, ...] = ()
) -> Observations:
    """Return the table of runs; `wanted_metrics`: only these metrics, none for those of the file."""
    runs = {run.name: (at, run) for at, run in enumerate(document.runs)}
    wanted = wanted_metrics or document.metrics
    limits = [aim.limit_metric for aim in document.aims if aim.limit_metric]
    metric_names = dict.fromkeys([*wanted, *(aim.metric for aim in document.aims), *limits])
    complete = [one for one in figures if one.point.name in runs and one.point.status == "complete"]
    starts = {one.point.name: _time_s(runs[one.point.name][1].started) for one in complete}
    first = min((start for start in starts.values() if start is not None), default=0.0)
    rows = []
    for order, one in enumerate(sorted(complete, key=lambda one: starts[one.point.name] or 0.0)):
        _, run = runs[one.point.name]
        values = metrics(one)
        rows.append(
            Observation(
                run=run.name,
                order=order,
                started_s=(starts[run.name] or first) - first,
                block=run.block,
                levels=run.levels,
                pattern=run.pattern,
                metrics={name: values[name] for name in metric_names if name in values},
                asked=_requested_rate(one),
                invalid=not_held(run) or _invalid(one, document.studied),
            )
        )
    varied = [one for one in document.factors if len(one.levels) > 1]
    return Observations(
        factors=tuple(Factor(one.name, one.levels) for one in varied),
        rows=tuple(rows),
        aims=tuple(
            Aim(one.metric, one.larger_is_better, one.limit_metric, one.limit_at_most)
            for one in document.aims
        ),
        aliased=document.aliased,
        unset_levels={f"{one.factor}={one.level}": one.why for one in document.unset_levels},
        metrics=tuple(wanted),
        patterns=tuple(one.name for one in document.patterns),
        rarely=tuple(name for name in document.rarely if any(name == one.name for one in varied)),
    )


def _requested_rate(figures: RunFigures) -> tuple[float, float]:
    """Return what the Plan limits its rate to, operations and bytes per second; 0: nothing does."""
    by_unit = {"ops": 0.0, "bytes": 0.0}
    streams = () if figures.summary is None else figures.summary.measurement.plan.streams
    for stream in streams:
        tree_rate = stream.tree.rate if stream.tree is not None else None
        for rate in (stream.pace.read, stream.pace.write, stream.pace.trim, tree_rate):
            if rate is not None:
                by_unit[rate.amount.unit] += rate.amount.per_second
    return by_unit["ops"], by_unit["bytes"]


def _invalid(figures: RunFigures, studied: Sequence[str]) -> str | None:
    """Return why a run's number is not valid; None where nothing but what is studied on purpose speaks so."""
    if figures.valid:
        return None
    why = figures.point.why or say("experiment.run.not_valid")
    if figures.summary is None:
        return why
    causes = _causes(figures.summary.bundle)
    others = [cause for cause in causes if cause.get("rule") not in studied]
    if causes and not others:
        return None
    return _with_advice(others[0], why) if others else why


def spoilt(bundle: Bundle, studied: Sequence[str]) -> Disturbance | None:
    """Return what made a run not valid where all of it lies outside the load; None: not all does."""
    others = [cause for cause in _causes(bundle) if cause.get("rule") not in studied]
    if not others or any(cause.get("rule") not in OUTSIDE for cause in others):
        return None
    return Disturbance(str(others[0].get("text", "")), str(others[0].get("rule")))


def _causes(bundle: Bundle) -> list[dict[str, Any]]:
    """Return what makes a run not valid; nothing where a damaged result does not tell."""
    try:
        verdict = members.table(bundle.path, layout.RESULT).get("verdict") or {}
        return [cause for cause in verdict.get("causes", []) if cause.get("effect") == "not_valid"]
    except (BundleError, AttributeError, TypeError):
        return []


def _with_advice(cause: dict[str, Any], why: str) -> str:
    """Return what a cause says, and what to do about it."""
    advice = str(cause.get("advice") or "")
    text = str(cause.get("text", why))
    return f"{text} {advice[0].upper()}{advice[1:].rstrip('.')}." if advice else text


def metrics(figures: RunFigures) -> dict[str, float]:
    """Return what a run measured; what it did not is absent."""
    whole = figures.whole
    if whole is None:
        return {}
    percentiles = {name: whole.percentiles_ns.get(percent) for name, percent in _PERCENTILES.items()}
    values: dict[str, float | None] = {
        "iops": None if whole.iops is None else whole.iops.value,
        "bandwidth_bytes_per_s": None if whole.bandwidth is None else whole.bandwidth.value,
        "lat_mean_ns": None if whole.mean_ns is None else whole.mean_ns.value,
        **percentiles,
        "cpu_ns_per_io": _cpu_ns_per_io(figures),
    }
    return {name: float(value) for name, value in values.items() if value is not None}


_PERCENTILES = {"lat_p50_ns": 50.0, "lat_p99_ns": 99.0, "lat_p999_ns": 99.9}


def _cpu_ns_per_io(figures: RunFigures) -> float | None:
    if figures.summary is None:
        return None
    used = figures.summary.cpu_of(figures.summary.total)
    if used is None or not used[0].ios:
        return None
    return (used[0].user_ns + used[0].system_ns) / used[0].ios


def _time_s(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
