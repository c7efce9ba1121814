"""The summary a run ends with on a terminal.

Knows rich tables. Every number comes from the analysis with its unit and error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table
from rich.text import Text

from loadstone.analysis.summary import summarise
from loadstone.report import units
from loadstone.report.said import cost, rate

if TYPE_CHECKING:
    from rich.console import Console

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Stats, Total
    from loadstone.bundle.read import Bundle

WIDE: Final = 110
"""Columns a table needs."""
HEADINGS: Final = ("IOPS", "bandwidth", "latency mean", "p50", "p99", "p99.9", "max", "errors")
MAX_JOBS: Final = 16
"""More jobs than this are not listed one by one: the report and the JSON have them."""
STYLES: Final = {"complete": "green", "interrupted": "yellow", "partial": "yellow", "failed": "red"}


def summary(bundle: Bundle, console: Console) -> None:
    """Print what a run measured: jobs, total, CPU per I/O, notes and problems."""
    made = summarise(bundle)
    head = Text.assemble(
        (bundle.status, STYLES.get(bundle.status, "")),
        f" after {units.seconds(made.duration_s)}",
        f" · {_many(len(made.measurement.plan.targets), 'target')}",
        f" · {_many(len(made.measurement.plan.streams), 'stream')}",
    )
    console.print(head)
    if any(total.ops for total in made.totals("job")):
        console.print(_table(made) if console.width >= WIDE else _blocks(made))
        console.print(Text("± is one standard error; latency runs from the intended start to the end", "dim"))
    else:
        console.print("nothing was measured")
    for row in made.pacing:
        console.print(Text(rate(row), "" if row.held else "yellow"))
    for line in _facts(made):
        console.print(Text(line))
    for problem in made.problems:
        again = f" (and {problem.count - 1} more)" if problem.count > 1 else ""
        console.print(Text(f"problem: {problem.message}{again}", "red"))


def _listed(made: Summary) -> list[tuple[str, Total]]:
    jobs = made.totals("job")
    few = len(jobs) <= MAX_JOBS
    listed = [(total.line.name, total) for total in jobs] if few else []
    if made.has_total or not few:
        listed.append(("total" if few else f"total of {len(jobs)} jobs", made.total))
    return listed


def _table(made: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("job", overflow="fold")
    for name in ("op", *HEADINGS):
        table.add_column(name, justify="left" if name == "op" else "right", no_wrap=True)
    for name, total in _listed(made):
        if total is made.total:
            table.add_section()
        for index, (op, stats) in enumerate(total.ops.items()):
            table.add_row(Text("" if index else name), op, *cells(stats))
    return table


def _blocks(made: Summary) -> Text:
    """Return the table's content as lines that fit where the table does not."""
    lines: list[str] = []
    for name, total in _listed(made):
        lines.append(name)
        for op, stats in total.ops.items():
            said = [f"{heading} {text}" for heading, text in zip(HEADINGS, cells(stats), strict=True)]
            lines += [f"  {op + ':':6} " + ", ".join(said[:2]), "         " + ", ".join(said[2:6])]
            lines.append("         " + ", ".join(said[6:]))
    return Text("\n".join(lines))


def cells(stats: Stats) -> list[str]:
    """Return IOPS, bandwidth, mean, p50, p99, p99.9, maximum and errors as text."""
    lat = stats.latencies.get("lat")
    return [
        units.with_error(stats.iops, "count"),
        units.with_error(stats.bandwidth, "binary") if stats.bytes else units.NONE,
        units.with_error(lat.mean if lat else None, "time"),
        *(units.duration(lat.percentile(percent) if lat else None) for percent in (50, 99, 99.9)),
        units.duration(lat.max_ns if lat else None),
        units.count(stats.errors) if stats.errors else "0",
    ]


def _facts(made: Summary) -> list[str]:
    lines: list[str] = []
    used = made.cpu_of(made.total)
    if used is not None and used[0].ios:
        cpu = used[0]
        lines.append(
            f"CPU per I/O: {units.duration(cpu.user_ns_per_io)} user + "
            f"{units.duration(cpu.system_ns_per_io)} system, kernel workers included"
        )
    lines += cost(made.tool)
    shorts = made.total.data.shorts if made.total.data else 0
    if shorts:
        lines.append(f"{units.count(shorts)} I/Os moved fewer bytes than asked")
    places = {note: f"{note.where}: " if note.where else "" for note in made.notes}
    return lines + [f"note: {place}{note.text}" for note, place in places.items()]


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
