"""The directory of files vdbench leaves behind: summary, totals, histograms, SDs, status.

Knows which page holds what, and the links between them. Numbers and lines are made elsewhere.
"""

from __future__ import annotations

import html
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from loadstone.bundle import study
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError, InputError
from loadstone.report.vdbench import buckets, fileflat, filelines, flat, lines
from loadstone.report.vdbench.skew import skew
from loadstone.report.vdbench.tally import READ, WRITE, Counted, Cpu, Part, added
from loadstone.report.vdbench.words import run_line

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.report.vdbench.lines import Layout
    from loadstone.report.vdbench.tally import Tally

_Cpu = Cpu | Literal[False] | None
_LABEL_WIDTH: Final = 32
_WITH_CPU: Final = ("summary", "localhost")


@dataclass(slots=True)
class _Page:
    """One file: its name without ending, and its lines."""

    name: str
    title: str
    body: list[str] = field(default_factory=list)


def export(path: Path, out: Path, layout: Layout = "50407") -> None:
    """Write the pages of a bundle or of a study's runs into a directory, which is made.

    Raises InputError when it cannot be written, BundleError when there is nothing to write.
    """
    runs = [Counted(bundle) for bundle in bundles(path)]
    runs = [run for run in runs if run.whole.intervals]
    if not runs:
        raise BundleError(f"{path}: no run has measured anything")
    pages = _Pages(layout, runs)
    for number, run in enumerate(runs, start=1):
        pages.add(number, run)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for page in pages.finished():
            head = f"<title>Vdbench {html.escape(out.name)}/{page.name}.html</title><pre>"
            text = "\n".join([head, page.title, "", *page.body])
            (out / f"{page.name}.html").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: the export cannot be written: {error.strerror}") from error


def bundles(path: Path) -> list[Bundle]:
    """Return the bundle at a path, or those of the study there, in order."""
    if not study.is_study(path):
        return [Bundle.open(path)]
    found = (study.bundle_of(path, point) for point in study.read(path).points)
    return [bundle for bundle in found if bundle is not None]


class _Pages:
    """All pages while runs are added to them."""

    def __init__(self, layout: Layout, runs: list[Counted]) -> None:
        self._layout = layout
        self._runs = runs
        self._pages: dict[str, _Page] = {}
        self._links: list[tuple[str, str]] = []
        self._open("summary", f"Vdbench summary report, created {time.strftime('%H:%M:%S %b %d %Y %Z')}")
        for name, title in (
            ("totals", "Run totals"),
            ("logfile", "Vdbench logfile"),
            ("status", "* Vdbench status"),
            ("flatfile", "* Flat file"),
            ("histogram", "Total response time histogram."),
            ("skew", "Workload skew report"),
            ("errorlog", "Error log"),
            ("parmfile", "Parameter files"),
            ("localhost", "Host summary report(s) for host=localhost"),
        ):
            self._open(name, title)
            self._links.append((f"Link to {name}", name))
        self._on_files = any(run.on_files for run in runs)
        self._ops = filelines.shown({op for run in runs for op in run.asked or ()})
        self._pages["flatfile"].body += fileflat.header(layout) if self._on_files else flat.header()
        self._pages["status"].body += ["* Tab-delimited: time, state, run, loops", ""]
        for name, raw in runs[0].bundle.inputs.items():
            text = html.escape(raw.decode("utf-8", "replace"))
            self._pages["parmfile"].body += [f"* Contents of parameter file: {html.escape(name)}", "", text]

    def _open(self, name: str, title: str) -> _Page:
        if name not in self._pages:
            self._pages[name] = _Page(name, title)
        return self._pages[name]

    def add(self, number: int, run: Counted) -> None:
        """Put a run on every page."""
        start = f"{_clock(run, 0)} {run_line(run.facts)}"
        anchor = f'<a name="_{number}"></a><i><b>{html.escape(start)}</b></i>'
        parts: list[tuple[str, Part]] = [(name, run.whole) for name in _WITH_CPU]
        storages, workloads = run.storages, run.workloads
        parts += [(part.name, part) for part in storages]
        parts += [(part.name, part) for part in workloads if len(workloads) > 1 or run.on_files]
        for name, part in parts:
            page = self._open(name, f"Report for {name}")
            page.body += ["", anchor, *self._intervals(run, part, with_cpu=name in _WITH_CPU)]
        self._histograms("histogram", run, run.whole, anchor)
        for part in [*storages, *(workloads if run.on_files else [])]:
            self._histograms(f"{part.name}.histogram", run, part, anchor)
        averages = self._averages(run, run.whole, with_cpu=True)
        head = self._head(run, cpu=True)
        self._pages["totals"].body += ["", anchor, *(head if number == 1 else [""]), *averages]
        text = self._intervals(run, run.whole, with_cpu=True)
        self._pages["logfile"].body += ["", html.escape(start), *text]
        self._pages["skew"].body += ["", anchor, "", *skew(run)]
        self._flat(run)
        self._status(run)
        self._errors(run, anchor)

    def _intervals(self, run: Counted, part: Part, *, with_cpu: bool) -> list[str]:
        made: list[str] = []
        for number, tally in enumerate(part.intervals, start=1):
            if number % lines.EVERY == 1:
                made += self._head(run, cpu=with_cpu)
            cpu: _Cpu = run.cpu(number, number) if with_cpu else False
            made.append(self._line(run, number, str(number), tally, cpu))
        return [*made, *self._averages(run, part, with_cpu=with_cpu)]

    def _head(self, run: Counted, *, cpu: bool) -> list[str]:
        if self._on_files:
            return filelines.header(self._layout, _date(run), self._ops, cpu=cpu)
        return lines.header(self._layout, _date(run), cpu=cpu)

    def _line(self, run: Counted, interval: int, name: str, tally: Tally, cpu: _Cpu) -> str:
        time_text = _clock(run, interval)
        if self._on_files:
            return filelines.line(self._layout, time_text, name, tally, self._ops, cpu=cpu)
        return lines.line(self._layout, time_text, name, tally, cpu)

    def _averages(self, run: Counted, part: Part, *, with_cpu: bool) -> list[str]:
        last = len(part.intervals)
        cpu: _Cpu = run.cpu(run.first_counted, last) if with_cpu else False
        made = [self._line(run, last, run.average_name, run.average(part), cpu)]
        if self._on_files:
            counted = part.intervals[run.first_counted - 1 :]
            begin = (_clock(run, last), run.average_name)
            made += filelines.spread(self._layout, *begin, counted, self._ops, cpu=with_cpu)
        return made

    def _histograms(self, name: str, run: Counted, part: Part, anchor: str) -> None:
        page = self._open(name, f"Performance histogram for {name.removesuffix('.histogram')}")
        asked = run.facts.get("histogram", "")
        reads, writes = run.histogram(part, READ), run.histogram(part, WRITE)
        page.body += ["", anchor, ""]
        if run.on_files:
            page.body += buckets.table("Total of all requested operations: ", run.requested(part), asked)
            return
        if reads.count and writes.count:
            page.body += buckets.table("Reads and writes:", reads + writes, asked)
            page.body += buckets.table("Reads:", reads, asked)
            page.body += buckets.table("Writes:", writes, asked)
        else:
            word = "reads" if reads.count else "writes"
            title = f"Only {word} done for this workload:"
            page.body += buckets.table(title, reads if reads.count else writes, asked)

    def _flat(self, run: Counted) -> None:
        whole, last = run.whole, len(run.whole.intervals)
        rows = [(str(n), n, n, tally) for n, tally in enumerate(whole.intervals, start=1)]
        rows.append((run.average_name, run.first_counted, last, run.average(whole)))
        for name, first, end, tally in rows:
            stamps, cpu = (_clock(run, end), _stamp(run, end)), run.cpu(first, end)
            parts = whole.intervals[first - 1 : end]
            row = (
                fileflat.row(self._layout, stamps, run, name, parts, cpu=cpu)
                if self._on_files
                else flat.row(stamps, run, name, tally, cpu)
            )
            self._pages["flatfile"].body.append(row)

    def _status(self, run: Counted) -> None:
        what = f"rd={run.facts['rd']}\tFor loops: {run.facts['loops'] or 'None'}"
        last = len(run.whole.intervals)
        states = [("Starting", 0), ("Workload done", last)]
        if run.facts["warmup"] != "0" and last >= run.first_counted:
            states.insert(1, ("Warmup done", run.first_counted - 1))
        self._pages["status"].body += [f"{_stamp(run, at)}\t{state}\t{what}" for state, at in states]

    def _errors(self, run: Counted, anchor: str) -> None:
        told = [event for event in run.bundle.events if event.get("type") in ("io_error", "damage")]
        if told:
            self._pages["errorlog"].body += ["", anchor, ""]
        for event in told:
            text = f"{event.get('op', '')} at {event.get('offset')}: {event.get('message')}".strip()
            self._pages["errorlog"].body.append(html.escape(text))

    def finished(self) -> list[_Page]:
        """Return the pages, links in place."""
        last = self._runs[-1]
        self._pages["status"].body.append(f"{_stamp(last, len(last.whole.intervals))}\tVdbench complete")
        links = [*self._links]
        links += [(f"Link to report for {name}", name) for name in self._pages if name not in self._fixed()]
        index = [
            f'{label + ":":<{_LABEL_WIDTH}} <A HREF="{html.escape(name)}.html">{html.escape(name)}</A>'
            for label, name in links
        ]
        for number, run in enumerate(self._runs, start=1):
            label = "Link to Run Definitions:" if number == 1 else ""
            said = html.escape(f"{run.facts['rd']} For loops: {run.facts['loops'] or 'None'}")
            index.append(f'{label:<{_LABEL_WIDTH}} <A HREF="#_{number}">{said}</A>')
        summary = self._pages["summary"]
        summary.body = [*index, *summary.body]
        return list(self._pages.values())

    def _fixed(self) -> set[str]:
        return {"summary", *(name for _, name in self._links)}


def _moment(run: Counted, interval: int) -> float:
    """Return the wall clock at the end of an interval; 0: the start of the run."""
    seconds = added(run.whole.intervals[:interval]).seconds
    return (run.started_unix_ns or 0) / 1e9 + seconds


def _clock(run: Counted, interval: int) -> str:
    moment = _moment(run, interval)
    return time.strftime("%H:%M:%S", time.localtime(moment)) + f".{int(moment * 1000) % 1000:03d}"


def _stamp(run: Counted, interval: int) -> str:
    return time.strftime("%m/%d/%Y-%H:%M:%S-%Z ", time.localtime(_moment(run, interval)))


def _date(run: Counted) -> str:
    return time.strftime("%b %d, %Y", time.localtime(_moment(run, 0)))
