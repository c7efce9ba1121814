"""The document of `compare --json`.

Knows its shape. Changes only by adding fields; what is removed or changes its meaning raises `FORMAT`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from loadstone.errors import as_text
from loadstone.frozen_model import FrozenModel
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.analysis.study.sweep import OperatingPoint
    from loadstone.comparison.compare import ComparisonTable, JobCell, JobRow
    from loadstone.comparison.gate import Gate, Power
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.comparison.operating_points import OperatingRow
    from loadstone.comparison.watched import WatchedRow

FORMAT: Final = 1


class ComparisonValue(FrozenModel):
    """A side's value; for everything but the first side also how it differs from the first."""

    value: float | None
    error: float | None = Field(description="one standard error; null: not known")
    runs: int
    change: float | None = Field(description="share by which it is above the first side's; null: not known")
    low: float | None = Field(description="lower end of the change's 95 % interval")
    high: float | None
    p: float | None = Field(description="after Holm's correction")
    judgement: Literal["better", "worse", "same", "unrepeated", "unknown"] | None


class JsonRow(FrozenModel):
    """One metric of one operation of one job."""

    thing: str = Field(description="the pattern, where there are several; else empty")
    job: str
    op: str
    metric: str
    quantity: Literal["count", "bytes_per_s", "ns", "errors"]
    more_is_better: bool
    values: list[ComparisonValue]


class JsonSide(FrozenModel):
    """One side and what its numbers are worth."""

    name: str
    path: str
    verified: bool | None = Field(
        description="every file is the one that was sealed; null: not sealed, false: read with --unverified"
    )
    verdict: str = Field(description="the worst of its phases")
    confidence: float
    counts: dict[str, int] = Field(description="how many phases have each verdict, those of `beyond` apart")
    beyond: int = Field(
        description="loads at the end of a curve that asked for more than the storage does: in no figure"
    )


class JsonCell(FrozenModel):
    """One quantity of one pattern: a side held against the first one."""

    pattern: str
    metric: str
    side: str = Field(description="the side that is held against the first one")
    quantity: Literal["count", "bytes_per_s", "ns", "errors"]
    values: list[float | None] = Field(description="of the first side and of this one; null: not valid")
    errors: list[float | None] = Field(description="one standard error of each")
    runs: list[int] = Field(description="valid runs that each is of")
    each: list[list[float]] = Field(
        description="the value of every valid run, of the first side and of this one"
    )
    valid: list[bool]
    change: float | None = Field(description="share by which it is above the first side's")
    interval: list[float] | None = Field(description="95 % interval of the change")
    p: float | None = Field(description="corrected for the number of tests")
    told_apart: bool
    better: bool | None = Field(description="null: not significant")
    unrepeated: bool = Field(description="it differs between two single runs: repeats are needed")


class JsonWatched(FrozenModel):
    """One quantity of a watched host: every side's mean over its load."""

    host: str = Field(description="its name with --watch")
    key: str = Field(description="as in `watched` of the result")
    name: str
    unit: str
    values: list[float | None] = Field(description="null: the side does not have it")
    errors: list[float | None] = Field(description="one standard error of each")
    changes: list[float | None] = Field(description="against the first side; null for that one")
    ps: list[float | None] = Field(description="corrected for the number of tests")
    judgements: list[Literal["better", "worse", "differs", "same", "unrepeated", "unknown"]]


class JsonExcluded(FrozenModel):
    """A phase that nothing rests on."""

    side: str
    run: str
    phase: str
    why: str


class JsonPassedOver(FrozenModel):
    """Something below a side's path that was not read."""

    side: str
    path: str
    why: str
    broken: bool = Field(description="it is a result, or may be one; false: left out by rule, or no result")


class JsonPower(FrozenModel):
    """The chance that a regression of the stated size is found."""

    pattern: str
    metric: str
    side: str
    power: float
    smallest: float | None = Field(description="smallest regression found in 80 of 100 cases; null: none")


class JsonDifference(FrozenModel):
    """A fact that is not the same on all sides."""

    where: Literal["environment", "plan"]
    key: str = Field(description="in the field's words")
    values: list[str]


class JsonOperatingPoint(FrozenModel):
    """Where one side's sweep would be operated."""

    value: str | int | float | None = Field(description="null: beyond the largest that was tried")
    rate: float = Field(description="IOPS there, of large blocks bytes per second")
    mean_ns: float
    certain: bool = Field(
        description="whether more is gained or not beyond it is decided by more than the 95 % error"
    )


class JsonOperating(FrozenModel):
    """One thing that two sides swept."""

    axis: str
    of: dict[str, str | int | float | None] = Field(description="the values of the other factors")
    points: list[JsonOperatingPoint | None] = Field(description="of each side; null: it has none")


class ComparisonDocument(FrozenModel):
    """`compare --json`."""

    format: Literal[1]
    loadstone_version: str
    sides: list[JsonSide]
    matrix: list[JsonCell]
    excluded: list[JsonExcluded]
    passed_over: list[JsonPassedOver]
    rows: list[JsonRow]
    parts: list[JsonRow] = Field(
        description="of loads with several jobs or operations what each did, judged beside the totals"
    )
    watched: list[JsonWatched] = Field(description="hosts of the same name that were watched on both sides")
    operating: list[JsonOperating] = Field(description="sweeps: where each side would be operated")
    differences: list[JsonDifference]
    warnings: list[str]
    alpha: float
    detect: float = Field(description="the regression that is looked for, as a share")
    power: float | None = Field(description="the least of `powers`; null: nothing could be tested")
    powers: list[JsonPower]
    gate: Literal["passed", "regression", "no_data", "not_valid", "not_detectable"] | None = Field(
        description="null: not asked for"
    )
    gate_why: list[str]


def document(
    comparison: ComparisonTable, known: Sequence[Power], detect: float, gate: Gate | None
) -> dict[str, Any]:
    """Return the JSON document."""
    names = [one.name for one in comparison.sides]
    sides = [
        JsonSide(
            name=one.name,
            path=str(one.path.resolve()),
            verified=one.verified,
            verdict=one.verdict,
            confidence=one.worst.verdict.confidence,
            counts={str(kind): count for kind, count in one.counts.items()},
            beyond=len(one.beyond),
        )
        for one in comparison.sides
    ]
    comparison_document = ComparisonDocument(
        format=FORMAT,
        loadstone_version=__version__,
        sides=sides,
        matrix=[_cell(one, names[one.side]) for one in comparison.effects],
        excluded=[
            JsonExcluded(side=one.side, run=one.run, phase=one.phase, why=one.why)
            for one in comparison.excluded
        ],
        passed_over=list(_passed_over(comparison)),
        rows=[_row(row) for row in comparison.rows],
        parts=[_row(row) for row in comparison.parts],
        watched=[_watched(row) for row in comparison.watched],
        operating=[_operating(row) for row in comparison.operating],
        differences=[
            JsonDifference(where=one.where, key=one.key, values=list(one.values))
            for one in comparison.differences
        ],
        warnings=list(comparison.warnings),
        alpha=comparison.alpha,
        detect=detect,
        power=min((one.power for one in known), default=None),
        powers=[
            JsonPower(
                pattern=one.pattern, metric=one.metric, side=one.side, power=one.power, smallest=one.smallest
            )
            for one in known
        ],
        gate=gate.outcome if gate is not None else None,
        gate_why=list(gate.why) if gate is not None else [],
    )
    return comparison_document.model_dump(mode="json")


def _passed_over(comparison: ComparisonTable) -> Iterator[JsonPassedOver]:
    for side in comparison.sides:
        for one in side.passed:
            yield JsonPassedOver(side=side.name, path=as_text(str(one.path)), why=one.why, broken=one.broken)


def _operating(row: OperatingRow) -> JsonOperating:
    def point(one: OperatingPoint) -> JsonOperatingPoint:
        return JsonOperatingPoint(
            value=one.value, rate=one.at.rate.value, mean_ns=one.at.mean_ns.value, certain=one.certain
        )

    points = [None if one is None else point(one) for one in row.each]
    return JsonOperating(axis=row.axis, of=dict(row.others), points=points)


def _cell(one: Effect, side: str) -> JsonCell:
    contrast = one.contrast
    known = contrast is not None and contrast.low is not None and contrast.high is not None
    return JsonCell(
        pattern=one.pattern,
        metric=one.metric.name,
        side=side,
        quantity=one.metric.quantity,
        values=[_value(one.before), _value(one.after)],
        errors=[entry.sample.error if entry.sample else None for entry in (one.before, one.after)],
        runs=[one.before.runs, one.after.runs],
        each=[list(one.before.each), list(one.after.each)],
        valid=[one.before.valid, one.after.valid],
        change=contrast.change if contrast is not None and math.isfinite(contrast.change) else None,
        interval=[contrast.low, contrast.high] if known and contrast is not None else None,  # type: ignore[list-item] # known
        p=contrast.p if contrast is not None else None,
        told_apart=one.told_apart,
        better=one.judgement == "better" if one.told_apart else None,
        unrepeated=one.judgement == "unrepeated",
    )


def _watched(row: WatchedRow) -> JsonWatched:
    return JsonWatched(
        host=row.host,
        key=row.key,
        name=row.name,
        unit=row.unit,
        values=[cell.sample.value if cell.sample else None for cell in row.cells],
        errors=[cell.sample.error if cell.sample else None for cell in row.cells],
        changes=[cell.contrast.change if cell.contrast else None for cell in row.cells],
        ps=[cell.contrast.p if cell.contrast else None for cell in row.cells],
        judgements=[cell.judgement for cell in row.cells],
    )


def _value(entry: SideValue) -> float | None:
    return entry.sample.value if entry.sample is not None else None


def _row(row: JobRow) -> JsonRow:
    return JsonRow(
        thing=row.thing,
        job=row.job,
        op=row.op,
        metric=row.metric.name,
        quantity=row.metric.quantity,
        more_is_better=row.metric.more_is_better,
        values=[_job_cell(cell, first=at == 0) for at, cell in enumerate(row.cells)],
    )


def _job_cell(cell: JobCell, *, first: bool) -> ComparisonValue:
    sample, contrast = cell.sample, cell.contrast
    return ComparisonValue(
        value=sample.value if sample else None,
        error=sample.error if sample else None,
        runs=sample.runs if sample else 0,
        change=contrast.change if contrast is not None and math.isfinite(contrast.change) else None,
        low=contrast.low if contrast else None,
        high=contrast.high if contrast else None,
        p=contrast.p if contrast else None,
        judgement=None if first else cell.judgement,
    )
