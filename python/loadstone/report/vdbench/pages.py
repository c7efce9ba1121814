"""The directory of files vdbench leaves behind: summary, totals, histograms, SDs, status.

Knows which page holds what of a run, and when: at its start, after an interval, at its end. So the same
pages are written after the runs, and while they go on. Numbers and lines are made elsewhere.
"""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Final, Literal

from loadstone import output
from loadstone.errors import BundleError
from loadstone.messages import make_error
from loadstone.report.runs_to_export import open_runs, why_nothing
from loadstone.report.vdbench import (
    anchor_pages,
    buckets,
    flatfile,
    flatfile_fs,
    interval_lines,
    interval_lines_fs,
)
from loadstone.report.vdbench.directory import Directory, Page, TaggedLine
from loadstone.report.vdbench.interval_totals import (
    READ,
    WRITE,
    Counted,
    CpuUse,
    IntervalTotals,
    PartTotals,
    added,
    runs_of,
)
from loadstone.report.vdbench.page_headers import Everything, known
from loadstone.report.vdbench.skew import skew
from loadstone.report.vdbench.wording import run_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.report.runs_to_export import ExportedRuns
    from loadstone.report.vdbench.interval_lines import Layout

_Cpu = CpuUse | Literal[False] | None
_OF_ALL: Final = ("summary", "localhost", "localhost-0")
"""Pages that tell everything together."""
_FIXED: Final = ("logfile", "totals", "status", "parmfile", "errorlog", "flatfile", "histogram", "skew")
_BEFORE: Final = (
    "Starting slaves",
    "Slaves connected",
    "Query host configuration started",
    "Query host configuration completed",
)


def export(path: Path, out: Path, layout: Layout = "50407", *, unverified: bool = False) -> tuple[str, ...]:
    """Write the pages of a bundle or of a study's runs into a directory, which is made; return their doubts.

    Raises InputError when it cannot be written, BundleError when there is nothing to write.
    """
    runs = open_runs(path, unverified=unverified)
    pages = of(runs, out.name, layout)
    if pages is None:
        hint = next(iter(runs.doubts), None) or next(filter(None, map(why_nothing, runs.bundles)), None)
        raise make_error(BundleError, "report.vdbench.no_results", hint=hint, path=path)
    with output.together():
        Directory(out).settle(pages.all)
    return runs.doubts


def of(exported: ExportedRuns, name: str, layout: Layout) -> Pages | None:
    """Return the pages of some runs; None when nothing was measured."""
    runs = [run for bundle in exported.bundles for run in runs_of(bundle) if run.whole.intervals]
    if not runs:
        return None
    first = runs[0].bundle
    pages = Pages(layout, name, Everything([known(run) for run in runs], first.inputs, created_s(first)))
    for run in runs:
        pages.begin(run)
        for number in range(1, len(run.whole.intervals) + 1):
            pages.interval(run, number)
        pages.end(run)
    pages.close(runs[-1])
    for doubt in reversed(exported.doubts):
        pages.mark(doubt)
    return pages


def created_s(bundle: Bundle) -> float:
    """Return when a run was begun, in seconds of the wall clock."""
    return int(bundle.manifest.get("created_unix_ns") or 0) / 1e9


class Pages:
    """All pages while runs are added to them, one after the other."""

    def __init__(self, layout: Layout, name: str, everything: Everything) -> None:
        self._layout = layout
        self._name = name
        self._runs = everything
        self._on_files = everything.on_files
        self._ops = interval_lines_fs.shown(everything.asked, layout)
        self._begun = 0
        self._filled: set[str] = set()
        self._pages: dict[str, Page] = {}
        parts = [*everything.storages, *everything.workloads]
        for page in (
            *("summary", *_FIXED, *(("anchors",) if self._on_files else ()), "localhost", "localhost-0"),
            *parts,
            *(f"{part}.histogram" for part in parts),
        ):
            self._open(page)
        self._pages["flatfile"].body += (
            flatfile_fs.header(layout) if self._on_files else flatfile.header(layout)
        )
        if self._on_files:
            self._pages["anchors"].body += anchor_pages.first(everything.trees)

    @property
    def all(self) -> list[Page]:
        """The pages."""
        return list(self._pages.values())

    def mark(self, doubt: str) -> None:
        """Say on every page why its numbers may not be those that were measured."""
        for page in self._pages.values():
            page.body.insert(1, f"* {doubt}")

    def _open(self, name: str) -> None:
        title = f"<title>Vdbench {html.escape(self._name)}/{html.escape(name)}.html</title><pre>"
        self._pages[name] = Page(name, [TaggedLine(title), *self._runs.head(name)])

    def begin(self, run: Counted) -> None:
        """Say on every page that a run has started."""
        self._begun += 1
        start = html.escape(f"{_clock(run, 0)} {run_line(run.facts)}")
        anchor = TaggedLine(f'<a name="_{self._begun}"></a><i><b>{start}</b></i>')
        for page in self._pages.values():
            if page.name not in ("status", "parmfile", "errorlog", "flatfile"):
                page.body += ["", anchor, ""]
        if self._begun == 1:
            self._status(run, 0, _BEFORE, run_too=False)
            self._pages["totals"].body += self._head(run, cpu=True)
        self._status(run, 0, ("Starting",))

    def interval(self, run: Counted, number: int) -> None:
        """Add an interval to every page that has them."""
        for name, part in [*self._parts(run), *self._idle(run)]:
            self._pages[name].body += self._interval(run, number, part, with_cpu=self._has_cpu(name))
        self._pages["logfile"].body += self._interval(run, number, run.whole, with_cpu=True)
        self._flat(run, str(number), number, number)
        # Without a warmup the first interval is none of the result.
        if number == run.warmup_intervals:
            self._status(run, number, ("Warmup done",))

    def end(self, run: Counted) -> None:
        """Add what is known of a run once it is over."""
        last = len(run.whole.intervals)
        idle = [(name, part) for name, part in self._idle(run) if self._has_idle_average(name)]
        for name, part in [*self._parts(run), *idle]:
            self._pages[name].body += self._averages(run, part, with_cpu=self._has_cpu(name))
        averages = self._averages(run, run.whole, with_cpu=True)
        self._pages["logfile"].body += averages
        self._pages["totals"].body += averages[:1]
        self._flat(run, f" {run.average_name}" if self._layout == "50407" else run.average_name)
        self._histograms("histogram", run, run.whole)
        for part in (*run.storages, *run.workloads):
            self._histograms(f"{part.name}.histogram", run, part)
        self._filled |= run.filled
        self._pages["skew"].body += skew(run, _clock(run, last), self._ops, self._filled)
        if self._on_files:
            self._pages["anchors"].body += anchor_pages.rows(run, self._runs.trees)
        self._errors(run)
        self._status(run, last, ("Workload done", "Slaves done"))

    def close(self, run: Counted) -> None:
        """Say that everything is done; `run` is the last one."""
        last = len(run.whole.intervals)
        self._status(run, last, ("Shutting down slaves", "Vdbench complete"), run_too=False)
        self._pages["summary"].body.append(f"{_clock(run, last)} Vdbench execution completed successfully")

    def _has_cpu(self, name: str) -> bool:
        """Whether a page has columns of the CPUs: in 5.04.06 those of the hosts alone."""
        return self._layout == "50407" or name in _OF_ALL

    def _parts(self, run: Counted) -> list[tuple[str, PartTotals]]:
        parts = [(name, run.whole) for name in _OF_ALL]
        return parts + [(part.name, part) for part in (*run.storages, *run.workloads)]

    def _idle(self, run: Counted) -> list[tuple[str, PartTotals]]:
        """Return what has a page and nothing to do in a run: its lines are zeros, as in vdbench."""
        busy = {name for name, _ in self._parts(run)}
        names = [one for one in (*self._runs.storages, *self._runs.workloads) if one not in busy]
        zeros = [IntervalTotals(one.seconds, asked=run.asked) for one in run.whole.intervals] if names else []
        return [(name, PartTotals(name, frozenset(), zeros)) for name in names]

    def _has_idle_average(self, name: str) -> bool:
        """Whether vdbench tells an average of nothing: of all but SDs."""
        return self._on_files or name not in self._runs.storages

    def _interval(self, run: Counted, number: int, part: PartTotals, *, with_cpu: bool) -> list[str]:
        header = self._head(run, cpu=with_cpu) if number % interval_lines.EVERY == 1 else []
        cpu: _Cpu = run.cpu(number, number) if with_cpu else False
        return [*header, self._line(run, number, str(number), part.intervals[number - 1], cpu)]

    def _head(self, run: Counted, *, cpu: bool) -> list[str]:
        if self._on_files:
            return interval_lines_fs.header(self._layout, _date(run), self._ops, cpu=cpu)
        return interval_lines.header(self._layout, _date(run), cpu=cpu)

    def _line(self, run: Counted, interval: int, name: str, tally: IntervalTotals, cpu: _Cpu) -> str:
        time_text = _clock(run, interval)
        if self._on_files:
            return interval_lines_fs.line(self._layout, time_text, name, tally, self._ops, cpu=cpu)
        return interval_lines.line(self._layout, time_text, name, tally, cpu)

    def _averages(self, run: Counted, part: PartTotals, *, with_cpu: bool) -> list[str]:
        last = len(part.intervals)
        cpu: _Cpu = run.cpu(run.first_counted, last) if with_cpu else False
        lines = [self._line(run, last, run.average_name, run.average(part), cpu)]
        if self._on_files:
            counted = part.intervals[run.first_counted - 1 :]
            begin = (_clock(run, last), run.average_name)
            lines += interval_lines_fs.spread(self._layout, *begin, counted, self._ops, cpu=with_cpu)
        return lines

    def _histograms(self, name: str, run: Counted, part: PartTotals) -> None:
        option = run.facts.get("histogram", "")
        reads, writes = run.histogram(part, READ), run.histogram(part, WRITE)
        if run.on_files:
            since = "since warmup" if self._layout == "50407" else ""
            title = f"Total of all requested operations {since}".rstrip() + ": "
            lines = buckets.table(title, run.requested(part), option, self._layout)
        elif reads.count and writes.count:
            lines = buckets.table("Reads and writes:", reads + writes, option, self._layout)
            lines += buckets.table("Reads:", reads, option, self._layout)
            lines += buckets.table("Writes:", writes, option, self._layout)
        else:
            word = "reads" if reads.count else "writes"
            title = f"Only {word} done for this workload:"
            lines = buckets.table(title, reads if reads.count else writes, option, self._layout)
        self._pages[name].body += lines or ["No statistics generated for this run."]

    def _flat(self, run: Counted, name: str, first: int | None = None, end: int | None = None) -> None:
        first, end = first or run.first_counted, end or len(run.whole.intervals)
        parts = run.whole.intervals[first - 1 : end]
        stamps, cpu = (_clock(run, end), _stamp(run, end)), run.cpu(first, end)
        self._pages["flatfile"].body.append(
            flatfile_fs.row(self._layout, stamps, run, name, parts, cpu=cpu)
            if self._on_files
            else flatfile.row(self._layout, stamps, run, name, added(parts), cpu=cpu)
        )

    def _status(self, run: Counted, at: int, states: Sequence[str], *, run_too: bool = True) -> None:
        run_words = f"\trd={run.facts['rd']}\tFor loops: {run.facts['loops'] or 'None'}" if run_too else ""
        self._pages["status"].body += [f"{_stamp(run, at)}\t{state}{run_words}" for state in states]

    def _errors(self, run: Counted) -> None:
        failures = run.went_wrong
        if failures:
            self._pages["errorlog"].body += ["", f"{_clock(run, 0)} {run_line(run.facts)}", ""]
        for event in failures:
            text = f"{event.get('op', '')} at {event.get('offset')}: {event.get('message')}".strip()
            self._pages["errorlog"].body.append(text)


def _moment(run: Counted, interval: int) -> float:
    """Return the wall clock at the end of an interval; 0: the start of the run."""
    seconds = added(run.whole.intervals[:interval]).seconds
    started_ns = run.started_unix_ns
    # Of a run that had nothing to do it is known when its bundle began.
    return (created_s(run.bundle) if started_ns is None else started_ns / 1e9) + seconds


def _clock(run: Counted, interval: int) -> str:
    moment = _moment(run, interval)
    return time.strftime("%H:%M:%S", time.localtime(moment)) + f".{int(moment * 1000) % 1000:03d}"


def _stamp(run: Counted, interval: int) -> str:
    return time.strftime("%m/%d/%Y-%H:%M:%S-%Z ", time.localtime(_moment(run, interval)))


def _date(run: Counted) -> str:
    return time.strftime("%b %d, %Y", time.localtime(_moment(run, 0)))
