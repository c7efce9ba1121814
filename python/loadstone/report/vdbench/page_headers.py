"""What stands at the top of vdbench's pages: titles, links, and what is known before the first run.

Knows the words and their order. A link is told only for a page that is made.
"""

from __future__ import annotations

import html
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from loadstone.report.vdbench import anchor_pages
from loadstone.report.vdbench.directory import Page, TaggedLine
from loadstone.report.vdbench.interval_lines_fs import OFTEN
from loadstone.report.vdbench.wording import FORMAT
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.report.vdbench.interval_totals import Counted
    from loadstone.workload.trees import TreeShape

LABEL_WIDTH: Final = 32
FIRST: Final = (
    ("Link to logfile", "logfile"),
    ("Run totals", "totals"),
    ("Vdbench status", "status"),
    ("Copy of input parameter files", "parmfile"),
    ("Link to errorlog", "errorlog"),
    ("Link to flatfile", "flatfile"),
)
MADE_BY: Final = f"Loadstone {__version__}; the pages are those of vdbench."
SKEW: Final = (
    "Workload skew report",
    "",
    "What each workload, SD or FSD and host did, and its share against what was asked for.",
    "",
)
STATUS: Final = (
    "* Vdbench status",
    "",
    "* One line per state, tab-delimited: time, state, run, loops.",
    "",
)
NO_ERRORS: Final = (
    "Error log. If there are no error messages beyond this line "
    "then there were no Data Validation or I/O errors."
)


@dataclass(frozen=True, slots=True)
class Known:
    """One run, as the pages name it before it starts."""

    rd: str
    loops: str
    on_files: bool
    storages: tuple[str, ...]
    workloads: tuple[str, ...]
    asked: frozenset[str]
    trees: Mapping[str, TreeShape] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """Its name and loops."""
        return f"{self.rd} For loops: {self.loops or 'None'}"


@dataclass(frozen=True, slots=True)
class Everything:
    """All runs of a directory. `created_unix_s`: when the first of them began."""

    runs: Sequence[Known]
    inputs: Mapping[str, bytes]
    created_unix_s: float

    @property
    def on_files(self) -> bool:
        """Whether they work in trees."""
        return any(run.on_files for run in self.runs)

    @property
    def storages(self) -> list[str]:
        """The SDs or FSDs, by name."""
        return _all(run.storages for run in self.runs)

    @property
    def workloads(self) -> list[str]:
        """The WDs or FWDs, by name."""
        return _all(run.workloads for run in self.runs)

    @property
    def asked(self) -> frozenset[str]:
        """Every operation that some run on file systems asks for, or a format needs."""
        formats = any(run.rd.startswith(FORMAT) for run in self.runs)
        return frozenset(OFTEN if formats else ()).union(*(run.asked for run in self.runs))

    @property
    def trees(self) -> dict[str, TreeShape]:
        """Every tree, by anchor."""
        trees: dict[str, TreeShape] = {}
        for run in self.runs:
            for anchor, tree in run.trees.items():
                trees.setdefault(anchor, tree)
        return trees

    def index(self) -> list[str]:
        """Return the links to the runs."""
        links = []
        for number, run in enumerate(self.runs, start=1):
            label = "Link to Run Definitions:" if number == 1 else ""
            link = f'<A HREF="#_{number}">{html.escape(run.full_name)}</A>'
            links.append(TaggedLine(f"{label:<{LABEL_WIDTH}} {link}"))
        return [*links, ""]

    def head(self, page: str) -> list[str]:
        """Return the first lines of a page, after its title."""
        if page == "summary":
            return self._summary()
        if page == "parmfile":
            return self._parameter_files()
        if page == "flatfile":
            return []
        lines = [*self._words(page), ""]
        return lines if page in ("status", "errorlog") else [*lines, *self.index()]

    def _words(self, page: str) -> list[str]:
        """Return what a page says it is."""
        fixed: dict[str, Sequence[str]] = {
            "totals": ("Run totals", ""),
            "logfile": (MADE_BY, "", *self._sizes()),
            "status": STATUS[:-1],
            "errorlog": (f"Vdbench error log, created {self._created()} ", NO_ERRORS),
            "histogram": ("Total response time histogram.", ""),
            "skew": SKEW,
            "anchors": ("Anchor status report", "", *anchor_pages.header(list(self.trees))),
            "localhost": (
                "Host summary report(s) for host=localhost",
                "",
                _linked("Link to slave summary report", ["localhost-0"]),
                "",
            ),
            "localhost-0": ("Slave summary report for slave=localhost-0", ""),
        }
        if page in fixed:
            return list(fixed[page])
        return self._of_part(page)

    def _of_part(self, page: str) -> list[str]:
        """Return what the page of an SD, WD, FSD or FWD, or of its histogram, says it is."""
        name = page.removesuffix(".histogram")
        storage = name in self.storages
        kind = ("fsd" if storage else "fwd") if self.on_files else ("sd" if storage else "wd")
        if page != name:
            words = {
                "sd": "SD response time histogram.",
                "wd": f"wd={name} response time histogram.",
            }
            return [words.get(kind, f"Performance histogram for {kind.upper()}={name}"), ""]
        titles = {"sd": f"SD report for sd={name}", "wd": f"Workload Report for wd={name}"}
        label = "Performance histogram" if self.on_files else "response time histogram"
        link = TaggedLine(f"{f'Link to {label}:':<{LABEL_WIDTH}} {_link(f'{name}.histogram', 'histogram')}")
        title = titles.get(kind, f"Report for {kind} {name}")
        return [title, "", link, ""]

    def _summary(self) -> list[str]:
        lines = [MADE_BY, f"Vdbench summary report, created {self._created()} ({self._created()})", ""]
        lines += [_linked(label, [name]) for label, name in FIRST]
        lines += ["", _linked("Link to HOST reports", ["localhost"])]
        if self.on_files:
            lines.append(_linked("Link to FSD reports", self.storages))
            lines.append(_linked("Link to FWD reports", self.workloads))
        lines.append(_linked("Link to response time histogram", ["histogram"]))
        lines.append(_linked("Link to workload skew report", ["skew"]))
        if self.on_files:
            lines.append(_linked("Link to anchor report", ["anchors"]))
        else:
            lines.append(_linked("Link to SD reports", self.storages))
            lines += ["", _linked("Link to workload report", self.workloads)]
        return [*lines, "", *self.index()]

    def _parameter_files(self) -> list[str]:
        lines: list[str] = []
        for name, raw in self.inputs.items():
            text = html.escape(raw.decode("utf-8", "replace"), quote=False)
            lines += ["", f"* Contents of parameter file: {name}", "", *text.split("\n")]
        return lines

    def _sizes(self) -> list[str]:
        if not self.trees:
            return []
        began = time.strftime("%H:%M:%S.000", time.localtime(self.created_unix_s))
        return [*(f"{began} {line}" for line in anchor_pages.sizes(self.trees)), ""]

    def _created(self) -> str:
        return time.strftime("%H:%M:%S %b %d %Y %Z", time.localtime(self.created_unix_s))


def known(run: Counted) -> Known:
    """Return a run that was done as the pages name it."""
    return Known(
        run.facts["rd"],
        run.facts["loops"],
        run.on_files,
        tuple(part.name for part in run.storages),
        # A run that only makes trees has pages for the workloads it makes them for, empty as they are.
        (*(part.name for part in run.workloads), *run.facts.get("made_for", "").split()),
        (run.asked or frozenset()) | frozenset(run.facts.get("operations_after", "").split()),
        anchor_pages.trees_of(run.jobs),
    )


def _linked(label: str, names: Sequence[str]) -> str:
    links = " ".join(f"{_link(name, name)}{'' if len(names) == 1 else '   '}" for name in names)
    return TaggedLine(f"{label + ':':<{LABEL_WIDTH}} {links}".rstrip())


def _link(name: str, text: str) -> str:
    return f'<A HREF="{quote(Page(name).file)}">{html.escape(text)}</A>'


def _all(names: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for some in names for name in some))
