"""The matrix of a study, which stands right under its answer, and what its numbers are worth.

Knows a line for each pattern, curve or combination, and that what is not valid is struck through.
Computes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.study.curve import curves
from loadstone.analysis.study.patterns import patterns
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.study.sweep import shown, sweep
from loadstone.audit.judge import WORST_FIRST
from loadstone.messages import say
from loadstone.report.article.elements import ArticleTable, TableCell, VerdictLine
from loadstone.report.study import curve as study_curve
from loadstone.report.study import sweep as study_sweep
from loadstone.report.study.terminal import reasons
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.curve import Curve, LoadPoint
    from loadstone.analysis.study.patterns import StudyPattern
    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.sweep import Sweep
    from loadstone.bundle.study import StudyRecord

OF_PATTERNS: Final = table_heads(
    "pattern", "IOPS", "bandwidth", "latency_mean", "p99", "valid_runs", "verdict"
)
OF_CURVES: Final = table_heads(
    "curve", "maximum", "mean_there", "p99_there", "knee", "mean_at_knee", "valid_loads"
)

ALSO_OF_RUNS: Final = table_heads("verdict", "IOPS", "bandwidth", "mean", "p99")
"""How a table of runs calls what `OF_PATTERNS` has."""
MAX_EACH: Final = 5
"""So many passes have their values beside the mean."""


def worth(runs: Sequence[RunFigures], of: str = "") -> list[VerdictLine]:
    """Return what the runs of a study are worth: how many have each verdict, then each reason."""
    counts = Counter(run.point.verdict for run in runs if run.point.verdict is not None)
    order = [kind for kind in WORST_FIRST if counts[kind]]
    if not order:
        return []
    verdicts = ", ".join(f"{counts[kind]} {NAMES[kind]}" for kind in order)
    runs_of = f"{sum(counts.values())} run{'s' if sum(counts.values()) != 1 else ''}"
    return [
        VerdictLine(f"{of}: {runs_of}" if of else runs_of, order[0], verdicts),
        *(VerdictLine(NAMES[kind], kind, names.rstrip("."), why) for kind, names, why in reasons(runs)),
    ]


def matrix(
    studies: Sequence[tuple[str, StudyRecord, Sequence[RunFigures]]],
) -> list[ArticleTable]:
    """Return the tables; several studies are curves, and share one."""
    named_curves = [
        (name, one) for name, study, runs in studies for one in curves(runs, slo_of(study)) if one.loads
    ]
    if named_curves:
        return [_of_curves(named_curves)]
    _, study, runs = studies[0]
    if study.kind == "sweep":
        return _of_sweep(sweep(runs, study.settings))
    if study.settings.get("rounds"):
        return []
    lines = patterns(runs, alike=study.kind == "repeat")
    return [ArticleTable(OF_PATTERNS, [_pattern(one) for one in lines], matrix=True)] if lines else []


def told_of_runs(study: StudyRecord, runs: Sequence[RunFigures]) -> frozenset[str]:
    """Return the columns of the table of runs that the matrix has, where each of its lines is one run."""
    if study.kind not in ("list", "repeat") or study.settings.get("rounds"):
        return frozenset()
    if any(one.loads for one in curves(runs, slo_of(study))):
        return frozenset()
    lines = patterns(runs, alike=study.kind == "repeat")
    of_lines = [run.point.name for one in lines for run, _ in one.each]
    alone = of_lines == [run.point.name for run in runs] and len(lines) == len(runs)
    return frozenset(ALSO_OF_RUNS) if alone and not any(run.point.error for run in runs) else frozenset()


def _pattern(one: StudyPattern) -> list[TableCell | str]:
    pooled = one.sound or one.measured
    kinds = [line.verdict for _, line in one.each]
    worst = next((kind for kind in WORST_FIRST if kind in kinds), None)
    return [
        one.name,
        *_cells(pooled, _each(one), struck=one.sound is None),
        f"{one.valid} of {len(one.each)}",
        NAMES[worst] if worst is not None else units.NONE,
    ]


def _each(one: StudyPattern) -> str:
    """Return the rate of every pass, where there are few; what is not valid is told as such."""
    if not 1 < len(one.each) <= MAX_EACH:
        return ""
    rates = []
    for _, line in one.each:
        rate = units.figure(line.rate, "binary" if line.large_blocks else "count")
        rates.append(
            rate if line.valid or one.sound is None else say("report.mark.value_not_valid", value=rate)
        )
    return " · ".join(rates)


def _cells(pooled: Pooled | None, each: str, *, struck: bool) -> list[TableCell]:
    if pooled is None:
        return [TableCell(units.NONE)] * 4
    texts = [
        units.with_error(pooled.iops, "count"),
        units.with_error(pooled.bandwidth, "binary"),
        units.with_error(pooled.mean_ns, "time"),
        units.duration(pooled.percentiles_ns.get(99.0)),
    ]
    strong = 1 if pooled.large_blocks else 0
    return [
        TableCell(text, struck=struck, strong=at == strong, below=each if at == strong else "")
        for at, text in enumerate(texts)
    ]


def _of_curves(named_curves: Sequence[tuple[str, Curve]]) -> ArticleTable:
    return ArticleTable(OF_CURVES, [_curve(name, curve) for name, curve in named_curves], matrix=True)


def _curve(of: str, curve: Curve) -> list[TableCell | str]:
    name = ": ".join(part for part in (of, curve.name) if part) or "curve"
    most, knee = curve.maximum, curve.knee
    sound = len(curve.loads) - curve.left_out
    return [
        name,
        *_maximum(most),
        units.NONE if knee is None else study_curve.load_text(curve, knee.load),
        units.NONE if knee is None else units.duration(knee.latency_ns),
        f"{sound} of {len(curve.loads)}",
    ]


def _maximum(most: LoadPoint | None) -> list[TableCell | str]:
    if most is None:
        return [units.NONE] * 3
    rate = (
        units.with_error(most.bandwidth, "binary")
        if most.large_blocks
        else f"{units.with_error(most.iops, 'count')} IOPS"
    )
    texts = [rate, units.duration(most.mean_ns.value), units.duration(most.percentiles_ns.get(99.0))]
    return [
        TableCell(text, struck=not most.valid, strong=at == 0 and most.valid) for at, text in enumerate(texts)
    ]


def _of_sweep(sweep_figures: Sweep) -> list[ArticleTable]:
    broken = {cell.values for cell in sweep_figures.cells if cell.found is not None and cell.sound is None}
    if len(sweep_figures.axes) == 1:
        headings, rows = study_sweep.table(sweep_figures)
        values = [(one,) for one in sweep_figures.axes[0].values]
        chosen = {
            shown(sweep_figures.axes[0].name, one.value)
            for one in sweep_figures.advice
            if one.value is not None
        }
        cells: list[list[TableCell | str]] = [
            [
                row[0],
                *(TableCell(text, struck=key in broken, strong=row[0] in chosen) for text in row[1:]),
            ]
            for key, row in zip(values, rows, strict=True)
        ]
        return [ArticleTable(headings, cells, matrix=True)]
    down, across = sweep_figures.axes[-2:]
    tables = []
    for fixed, name in study_sweep.planes(sweep_figures):
        for quantity in (*sweep_figures.rates, "p99"):
            headings, rows = study_sweep.matrix(sweep_figures, fixed, quantity)
            struck: list[list[TableCell | str]] = [
                [
                    texts[0],
                    *(
                        TableCell(text, struck=(*fixed, row, column) in broken)
                        for column, text in zip(across.values, texts[1:], strict=True)
                    ),
                ]
                for row, texts in zip(down.values, rows, strict=True)
            ]
            title = ", ".join(part for part in (study_sweep.TITLES[quantity], name) if part)
            tables.append(ArticleTable(headings, struck, title=title, matrix=True))
    return tables
