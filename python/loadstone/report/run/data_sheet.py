"""What was reached of a data sheet, as lines and cells.

Knows words and units: data sheets count bytes in powers of 1000, and so do these. Every number
comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis import against_data_sheet
from loadstone.messages import say
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.against_data_sheet import SpecRow
    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.run_figures import RunFigures

HEADING: Final = say("report.column.of_data_sheet")
"""Of a column of `share`, which is only there where a run was held against one."""
HEADINGS: Final = table_heads("run", "job", "op", "source", "measured", "data_sheet", "reached")


def line(row: SpecRow) -> str:
    """Say it in one line for a terminal."""
    _, _, measured, specified, reached, source = cells(row)
    return say(
        "report.run.data_sheet",
        name=row.name,
        op=row.op,
        measured=measured,
        reached=reached,
        specified=specified,
        source=source,
    )


def cells(row: SpecRow) -> tuple[str, str, str, str, str, str]:
    """Return job, operation, measured, specified, percent reached, and where the figure is from."""
    rates = _rate(row, row.measured.value), _rate(row, row.specified)
    return row.name, row.op, *rates, percent(row), row.source


def percent(row: SpecRow) -> str:
    """Write the share of a figure that was reached."""
    return _percent(row.share, row.share_error)


def share(estimate: Estimate | None) -> str:
    """Write the share of the figure that was come nearest to."""
    return units.NONE if estimate is None else _percent(estimate.value, estimate.error)


def best(runs: Sequence[RunFigures]) -> list[tuple[str, SpecRow]]:
    """Return for each figure of the sheet the run of a study that came nearest to it, by name."""
    return against_data_sheet.best(
        (run.point.name, run.summary.spec) for run in runs if run.summary is not None
    )


def _percent(share: float, share_error: float | None) -> str:
    """Write a share in percent, with the digits that its standard error carries."""
    text = units.digits(share * 100)
    if share_error is None:
        return f"{text}{units.THIN}%"
    places, error = len(text.partition(".")[2]), share_error * 100
    error_text = f"{error:.{places}f}" if round(error, places) > 0 else f"<{10.0**-places:.{places}f}"
    return f"{text}{units.THIN}±{units.THIN}{error_text}{units.THIN}%"


def _rate(row: SpecRow, value: float) -> str:
    if row.quantity == "iops":
        return f"{units.count(value)}{units.THIN}IOPS"
    return units.bandwidth_decimal(value)
