"""What was reached of a data sheet, as lines and cells.

Knows words and units: data sheets count bytes in powers of 1000, and so do these. Every number
comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import units

if TYPE_CHECKING:
    from loadstone.analysis.spec import Row


def line(row: Row) -> str:
    """Say it in one line for a terminal."""
    _, _, measured, specified, share, source = cells(row)
    return f"data sheet: {row.name} {row.op}: {measured} is {share} of {specified} ({source})"


def cells(row: Row) -> tuple[str, str, str, str, str, str]:
    """Return job, operation, measured, specified, percent reached, and where the figure is from."""
    share = percent(row)
    return row.name, row.op, _rate(row, row.measured.value), _rate(row, row.specified), share, row.source


def percent(row: Row) -> str:
    """Write the share in percent, with the digits that its standard error carries."""
    value, error = row.share * 100, row.share_error
    if error is None:
        return f"{units.digits(value)}{units.THIN}%"
    error *= 100
    text = units.digits(value)
    places = len(text.partition(".")[2])
    told = f"{error:.{places}f}" if round(error, places) > 0 else f"<{10.0**-places:.{places}f}"
    return f"{text}{units.THIN}±{units.THIN}{told}{units.THIN}%"


def _rate(row: Row, value: float) -> str:
    if row.quantity == "iops":
        return f"{units.count(value)}{units.THIN}IOPS"
    return units.bandwidth_decimal(value)
