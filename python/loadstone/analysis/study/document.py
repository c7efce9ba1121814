"""The shape of a study's `result.json`, which is also what `--json` prints.

Knows names, types and units; docs/result-json.md says them in words and
contract/study-result.schema.json is made from here. `null` always means 'not known' or 'too
few samples', never zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from loadstone.analysis.document import ResultHost, SpecLine
from loadstone.analysis.study import curve, repeats, sweep
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.summary import spec_line
from loadstone.bundle.study import Factor, Kind
from loadstone.frozen_model import FrozenModel
from loadstone.verdict import Kind as VerdictKind
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.run_figures import LineFigures
    from loadstone.analysis.study.run_figures import RunFigures as Numbers
    from loadstone.bundle.study import StudyRecord

FORMAT: Final = 1
SHEET_SHARE: Final = "of the data sheet's figure it came nearest to; null without one"


class StudyValue(FrozenModel):
    """A number and one standard error of it."""

    value: float
    error: float | None = Field(description="null: not known, as with under 5 intervals")


class StudyLine(FrozenModel):
    """One job and operation of a run, or all of it together."""

    job: str = Field(description="`total`: all jobs together")
    op: str = Field(description="`all`: reads, writes and trims together")
    operations: int
    errors: int
    iops: StudyValue | None
    bandwidth_bytes_per_s: StudyValue | None
    latency_mean_ns: StudyValue | None = Field(description="from when an I/O should have started to its end")
    latency_percentiles_ns: dict[str, int | None]
    latency_max_ns: int | None
    asked_iops: float | None = Field(description="of an open loop; null in a closed one")
    held: bool | None = Field(description="whether the rate asked for was reached")


class StudyRun(FrozenModel):
    """One run of the study."""

    name: str
    role: Literal["measure", "prepare", "maximum"]
    factors: dict[str, Factor]
    bundle: str | None = Field(description="directory, relative to the study's; null: it never began")
    status: str | None
    exit_code: int | None
    error: str | None
    verdict: VerdictKind | None = Field(description="of its own result.json, which says why")
    total: StudyLine | None = Field(description="null: nothing was measured, or its jobs ran in stages")
    lines: list[StudyLine]
    spec: list[SpecLine] = Field(description="share of the data sheet that was reached; empty without one")
    hosts: list[ResultHost] = Field(description="each host, where the run was on several")


class StudyRepeated(FrozenModel):
    """One quantity over repeats."""

    mean: float
    error: float | None = Field(description="one standard error, from what differs between runs")
    half_width_95: float | None = Field(description="of Student's 95 % interval; null for one run")
    low: float
    high: float
    runs: int
    within_error: float | None = Field(description="the error one run gives itself")
    chance_p: float | None = Field(
        description="how often runs of one mean lie this far apart by their own errors alone"
    )


class StudyRepeatedLine(FrozenModel):
    """One job and operation over repeats."""

    job: str
    op: str
    iops: StudyRepeated | None
    bandwidth_bytes_per_s: StudyRepeated | None
    latency_mean_ns: StudyRepeated | None
    latency_percentiles_ns: dict[str, StudyRepeated | None] = Field(
        description="null unless every run had samples enough"
    )


class StudyRepeatedRun(FrozenModel):
    """One run of a list over all passes."""

    name: str
    lines: list[StudyRepeatedLine]


class StudyLoad(FrozenModel):
    """A point of a latency curve: all runs at one rate together."""

    percent: float | None = Field(description="of the maximum; null: the closed loop's maximum itself")
    asked_iops: float | None
    iops: StudyValue
    bandwidth_bytes_per_s: StudyValue
    latency_mean_ns: StudyValue
    latency_percentiles_ns: dict[str, int | None] = Field(description="of all I/Os of all runs")
    latency_intervals_ns: dict[str, tuple[int, int] | None] = Field(description="95 %")
    runs: int
    order: int = Field(description="index of its first run among those of the curve")
    held: bool | None = Field(description="whether the rate asked for was reached")
    valid: bool = Field(description="false: no run of it is valid, and neither knee nor limit rests on it")
    keeps: bool | None = Field(description="whether the limit holds; null: undecided, or no limit")
    sheet_share: StudyValue | None = Field(description=SHEET_SHARE)


class StudyKnee(FrozenModel):
    """Where throughput over mean latency is largest."""

    iops: float
    low_iops: float = Field(description="95 % range")
    high_iops: float
    latency_mean_ns: float


class StudyLimit(FrozenModel):
    """Where a limit on latency holds."""

    slo: str
    holds: StudyLoad | None = Field(description="the highest load that surely keeps it, below `breaks`")
    breaks: StudyLoad | None = Field(description="the lowest load that surely breaks it")
    undecided: int = Field(description="loads between them where the measurement decides neither")


class StudyCurve(FrozenModel):
    """Latency against load."""

    name: str = Field(description="what tells it from the study's other curves")
    maximum: StudyLoad | None
    loads: list[StudyLoad] = Field(
        description="in the order of the rate asked for; what they achieved may turn back"
    )
    knee: StudyKnee | None = Field(description="null: the points show none")
    limit: StudyLimit | None


class StudyCell(FrozenModel):
    """One combination of a sweep, all its runs together."""

    values: dict[str, Factor]
    runs: int = Field(description="0: nothing was measured, and the rest is null")
    valid: bool | None = Field(description="false: no run of it is valid, and no advice rests on it")
    iops: StudyValue | None
    bandwidth_bytes_per_s: StudyValue | None
    latency_mean_ns: StudyValue | None
    latency_percentiles_ns: dict[str, int | None]
    latency_intervals_ns: dict[str, tuple[int, int] | None] = Field(description="95 %")
    sheet_share: StudyValue | None = Field(description=SHEET_SHARE)


class StudyAdvice(FrozenModel):
    """Where to operate, for fixed values of the other factors."""

    axis: str
    others: dict[str, Factor]
    value: Factor = Field(description="null: the last value still gains more than `gain_share`")
    share_of_best: float
    gain_beyond_per_doubling: float
    certain: bool = Field(description="by more than the 95 % error of the gain")


class StudySweep(FrozenModel):
    """Every combination, in the order run."""

    cells: list[StudyCell]
    advice: list[StudyAdvice]


class StudyDocument(FrozenModel):
    """The result of a study."""

    format: Literal[1]
    loadstone_version: str
    study: str = Field(description="path of the study's directory")
    kind: Kind
    name: str
    status: Literal["running", "complete", "interrupted", "failed"]
    started: str
    settings: dict[str, Any]
    runs: list[StudyRun]
    repeats: list[StudyRepeatedLine] | None = Field(description="of kind `repeat`")
    repeated_runs: list[StudyRepeatedRun] | None = Field(
        description="of kind `list`, done several times: the runs of all passes together"
    )
    curves: list[StudyCurve] | None = Field(description="of kind `curve`")
    sweep: StudySweep | None = Field(description="of kind `sweep`")


def document(path: Path, study: StudyRecord, runs: Sequence[Numbers]) -> dict[str, Any]:
    """Return `result.json`."""
    study_document = StudyDocument(
        format=FORMAT,
        loadstone_version=__version__,
        study=str(path.resolve()),
        kind=study.kind,
        name=study.name,
        status=study.status,
        started=study.started,
        settings=study.settings,
        runs=[_run(run) for run in runs],
        repeats=[_repeated_line(line) for line in repeats.lines(runs)] if study.kind == "repeat" else None,
        repeated_runs=_repeated_runs(runs) if study.kind == "list" else None,
        curves=[_curve(one) for one in curve.curves(runs, slo_of(study))] if study.kind == "curve" else None,
        sweep=_sweep(sweep.sweep(runs, study.settings)) if study.kind == "sweep" else None,
    )
    return study_document.model_dump(mode="json")


def schema() -> dict[str, Any]:
    """Return the JSON schema."""
    return StudyDocument.model_json_schema(mode="serialization")


def _run(run: Numbers) -> StudyRun:
    point = run.point
    return StudyRun(
        name=point.name,
        role=point.role,
        factors=point.factors,
        bundle=point.bundle,
        status=point.status,
        exit_code=point.exit_code,
        error=point.error,
        verdict=point.verdict,
        total=None if run.whole is None else _line(run.whole),
        lines=[_line(line) for line in run.lines],
        spec=[] if run.summary is None else [spec_line(row) for row in run.summary.spec],
        hosts=[] if run.summary is None else run.summary.hosts,
    )


def _line(line: LineFigures) -> StudyLine:
    return StudyLine(
        job=line.job,
        op=line.op,
        operations=line.operations,
        errors=line.errors,
        iops=value(line.iops),
        bandwidth_bytes_per_s=value(line.bandwidth),
        latency_mean_ns=value(line.mean_ns),
        latency_percentiles_ns={
            f"{percent:g}": latency_ns for percent, latency_ns in line.percentiles_ns.items()
        },
        latency_max_ns=line.max_ns,
        asked_iops=line.asked_iops,
        held=line.held,
    )


def _repeated_runs(runs: Sequence[Numbers]) -> list[StudyRepeatedRun] | None:
    lines_by_run = repeats.by_run(runs)
    repeated_runs = [
        StudyRepeatedRun(name=name, lines=[_repeated_line(line) for line in its])
        for name, its in lines_by_run.items()
    ]
    return repeated_runs or None


def _repeated_line(line: repeats.RepeatedLine) -> StudyRepeatedLine:
    return StudyRepeatedLine(
        job=line.job,
        op=line.op,
        iops=_repeated(line.iops),
        bandwidth_bytes_per_s=_repeated(line.bandwidth),
        latency_mean_ns=_repeated(line.mean_ns),
        latency_percentiles_ns={f"{p:g}": _repeated(latency) for p, latency in line.percentiles_ns.items()},
    )


def _repeated(repeated_value: repeats.RepeatedValue | None) -> StudyRepeated | None:
    if repeated_value is None:
        return None
    return StudyRepeated(
        mean=repeated_value.mean.value,
        error=repeated_value.mean.error,
        half_width_95=repeated_value.half_width,
        low=repeated_value.low,
        high=repeated_value.high,
        runs=len(repeated_value.values),
        within_error=repeated_value.within_error,
        chance_p=repeated_value.chance_p,
    )


def _curve(found: curve.Curve) -> StudyCurve:
    knee, limit = found.knee, found.limit
    return StudyCurve(
        name=found.name,
        maximum=_load(found.maximum),
        loads=[point for load in found.loads if (point := _load(load)) is not None],
        knee=None
        if knee is None
        else StudyKnee(
            iops=knee.load, low_iops=knee.low, high_iops=knee.high, latency_mean_ns=knee.latency_ns
        ),
        limit=None
        if limit is None
        else StudyLimit(
            slo=limit.slo.text,
            holds=_load(limit.holds),
            breaks=_load(limit.breaks),
            undecided=limit.undecided,
        ),
    )


def _load(load: curve.LoadPoint | None) -> StudyLoad | None:
    if load is None:
        return None
    return StudyLoad(
        percent=load.percent,
        asked_iops=load.asked_iops,
        iops=_known(load.iops),
        bandwidth_bytes_per_s=_known(load.bandwidth),
        latency_mean_ns=_known(load.mean_ns),
        latency_percentiles_ns={f"{p:g}": latency_ns for p, latency_ns in load.percentiles_ns.items()},
        latency_intervals_ns={f"{p:g}": interval_ns for p, interval_ns in load.intervals_ns.items()},
        runs=load.runs,
        order=load.order,
        held=load.held,
        valid=load.valid,
        keeps=load.keeps,
        sheet_share=value(load.sheet_share),
    )


def _sweep(found: sweep.Sweep) -> StudySweep:
    names = [axis.name for axis in found.axes]
    return StudySweep(
        cells=[
            _cell(dict(zip(names, cell.values, strict=True)), cell.found, sound=cell.sound is not None)
            for cell in found.cells
        ],
        advice=[
            StudyAdvice(
                axis=one.axis,
                others=dict(one.others),
                value=one.value,
                share_of_best=one.share_of_best,
                gain_beyond_per_doubling=one.gain_beyond,
                certain=one.certain,
            )
            for one in found.advice
        ],
    )


def _cell(values: dict[str, Factor], pooled: Pooled | None, *, sound: bool) -> StudyCell:
    return StudyCell(
        values=values,
        runs=pooled.runs if pooled else 0,
        valid=None if pooled is None else sound,
        iops=_known(pooled.iops) if pooled else None,
        bandwidth_bytes_per_s=_known(pooled.bandwidth) if pooled else None,
        latency_mean_ns=_known(pooled.mean_ns) if pooled else None,
        latency_percentiles_ns={f"{p:g}": v for p, v in pooled.percentiles_ns.items()} if pooled else {},
        latency_intervals_ns={f"{p:g}": v for p, v in pooled.intervals_ns.items()} if pooled else {},
        sheet_share=value(pooled.sheet_share) if pooled else None,
    )


def _known(estimate: Estimate) -> StudyValue:
    return StudyValue(value=estimate.value, error=estimate.error)


def value(estimate: Estimate | None) -> StudyValue | None:
    """Return an estimate for the document."""
    return None if estimate is None else _known(estimate)
