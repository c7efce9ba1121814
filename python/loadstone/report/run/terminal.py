"""The summary a run ends with on a terminal.

Knows what fits in a width. Every number comes from the analysis with its unit and error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from loadstone import notes, printable, units
from loadstone.analysis import commit
from loadstone.analysis.read_back import verified
from loadstone.messages import say
from loadstone.report.run import answer, data_sheet
from loadstone.report.run.summary_text import cost, of_verified, rates
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals, Total

HEADINGS: Final = table_heads("IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "max", "errors")
DROPPED: Final = table_heads("p99.9", "mean", "p50", "bandwidth", "max")
"""What goes where there is no room, in this order."""
MAX_JOBS: Final = 16
"""More jobs than this are not listed one by one: the report and the JSON have them."""
STYLES: Final = {"complete": "green", "interrupted": "yellow", "partial": "yellow", "failed": "red"}


def summary(run_summary: Summary, console: Console) -> None:
    """Print what a run measured: jobs, total, CPU per I/O, notes and problems."""
    head = Text.assemble(
        (run_summary.status, STYLES.get(run_summary.status, "")),
        say("report.run.after", length=units.seconds(run_summary.duration_s))
        if run_summary.duration_s
        else say("report.run.before_the_load"),
        f" · {_many(len(run_summary.measurement.plan.targets), 'target')}",
        f" · {_many(len(run_summary.measurement.plan.streams), 'stream')}",
    )
    console.print(head)
    if _listed(run_summary):
        console.print(_table(run_summary, console.width), soft_wrap=True)
        console.print(Text(say("report.legend.latency"), "dim"))
    elif not any(total.ops for total in run_summary.totals("job")):
        console.print(say("report.results.nothing"))
    for line, rate_held in rates(run_summary.pacing):
        console.print(Text(line, "" if rate_held else "yellow"))
    for figure in run_summary.spec:
        console.print(Text(data_sheet.line(figure)))
    for line in _facts(run_summary):
        console.print(Text(line))
    for problem in run_summary.problems:
        again = f" (and {problem.count - 1} more)" if problem.count > 1 else ""
        console.print(Text(f"problem: {problem.message}{again}", "red"))


def _listed(run_summary: Summary) -> list[tuple[str, Total]]:
    jobs = run_summary.totals("job")
    few = len(jobs) <= MAX_JOBS
    listed = [(total.line.name, total) for total in jobs] if few else []
    if len(of_hosts := answer.by_phase(run_summary, "host")) <= MAX_JOBS:
        listed += [(f"on {name}", total) for name, total in of_hosts]
    phases = answer.phases(run_summary)
    if run_summary.has_total or (not few and not phases):
        listed.append(
            ("total" if few else say("report.run.total_of_jobs", count=len(jobs)), run_summary.total)
        )
    elif not few and len(phases) <= MAX_JOBS:
        listed += phases
    return [(printable.line(name), total) for name, total in listed if total.ops]


def _table(run_summary: Summary, width: int) -> Text:
    """Return the widest form of the table that fits: first errors go, then columns.

    Where names have no room beside the numbers they get lines of their own.
    """
    listed = _listed(run_summary)
    for beside, errors, columns in _forms():
        lines = _laid_out(listed, columns, beside=beside, errors=errors)
        if max(cell_len(line) for line, _ in lines) <= width:
            break
    return Text("\n").join(Text(line, "bold" if strong else "") for line, strong in lines)


def _forms() -> Iterator[tuple[bool, bool, tuple[int, ...]]]:
    """Names beside the numbers, errors, and which of `HEADINGS`; the best to read first."""
    every = tuple(range(len(HEADINGS)))
    yield True, True, every
    yield True, False, every
    yield False, False, every
    for dropped in range(len(DROPPED)):
        yield False, False, tuple(at for at in every if HEADINGS[at] not in DROPPED[: dropped + 1])


def _laid_out(
    listed: list[tuple[str, Total]], columns: tuple[int, ...], *, beside: bool, errors: bool
) -> list[tuple[str, bool]]:
    """Return lines, and whether each is a heading."""
    failed = any(stats.errors for _, total in listed for stats in total.ops.values())
    columns = tuple(at for at in columns if failed or HEADINGS[at] != say("report.column.errors"))
    rows = [[say("report.column.job") if beside else "", "", *(HEADINGS[at] for at in columns)]]
    for name, total in listed:
        rows += [] if beside else [[name]]
        for index, (op, stats) in enumerate(total.ops.items()):
            texts = cells(stats, errors=errors)
            first = "" if index or not beside else name
            rows.append([first, op, *(texts[at] for at in columns)])
    whole = [row for row in rows if len(row) > 1]
    widths = [max(cell_len(row[at]) for row in whole) for at in range(len(whole[0]))]
    return [(_joined(row, widths), index == 0 or len(row) == 1) for index, row in enumerate(rows)]


def _joined(row: list[str], widths: list[int]) -> str:
    if len(row) == 1:
        return row[0]
    pads = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
    shown = [
        pad + cell if at > 1 else cell + pad for at, (cell, pad) in enumerate(zip(row, pads, strict=True))
    ]
    return "  ".join(shown).rstrip()


def cells(stats: OpTotals, *, errors: bool = True) -> list[str]:
    """Return IOPS, bandwidth, mean, p50, p99, p99.9, maximum and errors as text.

    Without `errors` only IOPS carry their standard error.
    """
    lat = stats.latencies.get("lat")
    mean, moved = (lat.mean if lat else None), (stats.bandwidth if stats.bytes else None)
    return [
        units.with_error(stats.iops, "count"),
        units.with_error(moved, "binary") if errors else units.figure(moved, "binary"),
        units.with_error(mean, "time") if errors else units.figure(mean, "time"),
        *(units.duration(lat.percentile(percent) if lat else None) for percent in (50, 99, 99.9)),
        units.duration(lat.max_ns if lat else None),
        units.count(stats.errors) if stats.errors else "0",
    ]


def _facts(run_summary: Summary) -> list[str]:
    read_back = verified(run_summary.bundle)
    lines = [] if read_back is None else [f"verified: {of_verified(read_back)}"]
    used = run_summary.cpu_of(run_summary.total)
    if used is not None and used[0].ios:
        cpu = used[0]
        lines.append(say("report.run.cpu_per_io", user_ns=cpu.user_ns_per_io, system_ns=cpu.system_ns_per_io))
    lines += cost(run_summary.tool)
    lines += [
        say("report.run.commit", job=total.line.name, mean_ns=time_ns)
        for total in run_summary.totals("job")[:MAX_JOBS]
        if (time_ns := commit.mean_ns(run_summary.measurement, total)) is not None
    ]
    shorts = run_summary.total.data.shorts if run_summary.total.data else 0
    if shorts:
        lines.append(say("report.run.shorts", short_ios=shorts))
    return lines + [
        f"note: {notes.place(note.where, others)}{note.text}"
        for note, others in notes.once(run_summary.notes)
    ]


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
