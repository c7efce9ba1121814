"""What a latency curve says on a terminal.

Knows words and columns. Every number comes from `analysis.curve`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.text import Text

from loadstone import units
from loadstone.messages import say
from loadstone.report.fit_width import fitted
from loadstone.report.run import data_sheet
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from rich.console import Console

    from loadstone.analysis.statistics.knee import Knee
    from loadstone.analysis.study.curve import Curve, LatencyLimit, LoadPoint

HEADINGS: Final = table_heads("load", "achieved", "mean", "p50", "p99", "p99.9", "runs", "")
SPARE: Final = table_heads("p99.9", "p50", "runs")
"""What goes where there is no room, in this order."""


def terminal(curve: Curve, console: Console) -> None:
    """Print a curve: its points, its knee and its limit."""
    if curve.name:
        console.print(Text(curve.name, "bold"))
    console.print(fitted(*table(curve), console.width, spare=SPARE), soft_wrap=True)
    for line in sentences(curve):
        console.print(Text(line))


def table(curve: Curve) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows, the maximum first; what was reached of a data sheet where there is one."""
    loads = [*([curve.maximum] if curve.maximum else []), *curve.loads]
    if all(load.sheet_share is None for load in loads):
        return list(HEADINGS), [cells(load, curve) for load in loads]
    rows = [[*cells(load, curve), data_sheet.share(load.sheet_share)] for load in loads]
    return [*HEADINGS, data_sheet.HEADING], rows


def cells(load: LoadPoint, curve: Curve) -> list[str]:
    """Return the cells of `HEADINGS`; the load of large blocks is bandwidth."""
    remarks = [] if load.valid else [say("report.mark.not_valid")]
    remarks += [say("report.mark.rate_not_held")] if load.held is False else []
    if curve.limit is not None and load.percent is not None:
        remarks.append(_limit_words(load))
    iops = f"{units.with_error(load.iops, 'count')} IOPS"
    return [
        say("report.mark.closed_loop") if load.percent is None else f"{load.percent:.3g}{units.THIN}%",
        units.with_error(load.bandwidth, "binary") if curve.large_blocks else iops,
        units.with_error(load.mean_ns, "time"),
        *(units.duration(load.percentiles_ns[percent]) for percent in (50.0, 99.0, 99.9)),
        str(load.runs),
        ", ".join(remarks),
    ]


def _limit_words(load: LoadPoint) -> str:
    """Say what becomes of the limit, and by which share of I/Os: the percentile itself may not be known."""
    if load.keeps is None:
        return say("report.curve.limit_undecided")
    share = (
        ""
        if load.beyond is None
        else say("report.curve.beyond", share=units.digits(100 * load.beyond), space=units.THIN)
    )
    return f"limit {'kept' if load.keeps else 'exceeded'}{share}"


def renamed(curve: Curve, label: str) -> Curve:
    """Return a curve under a name that tells it from those of other studies."""
    return replace(curve, name=f"{label}: {curve.name}" if curve.name else label)


def sentences(curve: Curve) -> list[str]:
    """Say what is read off the curve."""
    if curve.maximum is None:
        return [say("report.curve.no_maximum")]
    if curve.loads and curve.left_out == len(curve.loads):
        return [say("report.curve.none_valid")]
    lines = [_knee(curve.knee, curve), *([_limit(curve.limit)] if curve.limit else [])]
    if curve.left_out:
        lines.append(say("report.curve.left_out", invalid=curve.left_out, loads=len(curve.loads)))
    return lines


def load_text(curve: Curve, iops: float) -> str:
    """Write a load of a curve as its maximum is written: of large blocks as bandwidth."""
    return units.bandwidth(curve.bytes_per_s(iops)) if curve.large_blocks else f"{units.count(iops)} IOPS"


def _knee(knee: Knee | None, curve: Curve) -> str:
    if knee is None:
        return say("report.curve.no_knee")
    known = curve.maximum is not None and curve.maximum.valid
    share = knee.load / curve.maximum.iops.value if curve.maximum and known else None
    of = "" if share is None else say("report.curve.of_maximum", maximum_share=share)
    return say(
        "report.curve.knee",
        load=load_text(curve, knee.load),
        low=load_text(curve, knee.low).removesuffix(" IOPS"),
        high=load_text(curve, knee.high).removesuffix(" IOPS"),
        of_maximum=of,
        latency_ns=knee.latency_ns,
    )


def _limit(limit: LatencyLimit) -> str:
    text = limit.slo.text
    if limit.holds is None and limit.breaks is None:
        return say("report.curve.undecided", limit=text)
    if limit.holds is None:
        broken = _rate(limit.breaks)
        if limit.undecided:
            return say("report.curve.undecided_below", limit=text, broken=broken, loads=limit.undecided)
        return say("report.curve.always_broken", limit=text, broken=broken)
    if limit.breaks is None:
        return say("report.curve.always_kept", limit=text, kept=_rate(limit.holds))
    between = say("report.curve.between", loads=limit.undecided) if limit.undecided else ""
    return say(
        "report.curve.decided",
        limit=text,
        kept=_rate(limit.holds),
        broken=_rate(limit.breaks),
        between=between,
    )


def _rate(load: LoadPoint | None) -> str:
    if load is None:
        return units.NONE
    if load.large_blocks:
        return units.figure(load.bandwidth, "binary")
    return f"{units.with_error(load.iops, 'count')} IOPS"
