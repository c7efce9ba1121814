"""A study's results as a table for a spreadsheet or for an issue.

Knows which columns there are. A run that measured nothing has a row without numbers.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone import printable
from loadstone.analysis.study.run_figures import PERCENTILES
from loadstone.report.exports import as_csv
from loadstone.report.study import terminal as study_terminal
from loadstone.report.study.terminal import HEADINGS, cells
from loadstone.report.table_heads import table_heads
from loadstone.screen import Screen

if TYPE_CHECKING:
    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.run_figures import LineFigures, RunFigures
    from loadstone.report.study.page import StudyPage

WIDTH: Final = 200


def csv(whole: StudyPage) -> str:
    """Return one row per run, job and operation, and one of the whole where a run has several."""
    names = list(dict.fromkeys(name for run in whole.runs for name in run.point.factors))
    rows: list[dict[str, Any]] = []
    for run in whole.runs:
        rows += [_row(run, line, names) for line in _lines(run)] or [_row(run, None, names)]
    if whole.verified is False:
        rows = [{**row, "verified": False} for row in rows]
    return as_csv(pl.DataFrame(rows, infer_schema_length=None)) if rows else ""


def markdown(whole: StudyPage) -> str:
    """Return the runs as a table, and below it what the study says."""
    rows = [
        [*table_heads("run", "job", "op"), *HEADINGS],
        ["---", "---", "---", *["---:"] * len(HEADINGS)],
    ]
    for run in whole.runs:
        rows += [[run.point.name, line.job, line.op, *cells(line)] for line in _lines(run)]
    table = ["| " + " | ".join(printable.markdown(cell) for cell in row) + " |" for row in rows]
    console = Screen(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    study_terminal.summary(whole.study, whole.runs, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    summary = "\n".join(line.rstrip() for line in text.splitlines())
    doubts = [line for doubt in whole.doubts for line in (f"**{doubt}**", "")]
    return "\n".join([*doubts, *table, "", printable.fenced(summary)]) + "\n"


def _lines(run: RunFigures) -> list[LineFigures]:
    return [*run.lines, *([run.whole] if run.whole is not None and len(run.lines) > 1 else [])]


def _row(run: RunFigures, line: LineFigures | None, names: list[str]) -> dict[str, Any]:
    point = run.point
    row: dict[str, Any] = {"run": point.name}
    row |= {name: None if (value := point.factors.get(name)) is None else str(value) for name in names}
    row |= {
        "job": line.job if line else None,
        "op": line.op if line else None,
        "operations": line.operations if line else None,
        "errors": line.errors if line else None,
        **_estimate("iops", line.iops if line else None),
        **_estimate("bandwidth_bytes_per_s", line.bandwidth if line else None),
        **_estimate("latency_mean_ns", line.mean_ns if line else None),
    }
    row |= {f"latency_p{p:g}_ns": line.percentiles_ns[p] if line else None for p in PERCENTILES}
    row |= {
        "latency_max_ns": line.max_ns if line else None,
        "asked_iops": line.asked_iops if line else None,
        "held": line.held if line else None,
        "verdict": point.verdict,
        "status": point.status,
        "bundle": point.bundle,
    }
    return row


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    return {
        name: estimate.value if estimate else None,
        f"{name}_error": estimate.error if estimate else None,
    }
