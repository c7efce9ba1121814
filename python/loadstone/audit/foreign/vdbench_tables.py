"""The tables in an output directory of vdbench: the runs that came to an average.

Knows flatfile.html (columns by the names in its header, so that every 5.04 reads alike, runs on
devices and in file systems), and what summary.html and totals.html print. Knows no Case.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from loadstone.audit.foreign import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

START: Final = re.compile(r"Starting RD=(?P<run>[^;]+);(?P<rest>.*)")
ELAPSED: Final = re.compile(r"\belapsed=(\d{1,9})\b")
WARMUP: Final = re.compile(r"\bwarmup=(\d{1,9})\b")
AVERAGE: Final = re.compile(r"avg_(?P<first>\d{1,9})-(?P<last>\d{1,9}|n)")
CLOCK: Final = re.compile(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)")


@dataclass(slots=True)
class Started:
    """The line with which a run starts. `loops` as printed, such as `threads=8 xfersize=4k`."""

    run: str
    loops: str = ""
    elapsed_s: int | None = None
    warmup: bool = False


@dataclass(slots=True)
class AveragedRun:
    """One run: columns of its average, and the intervals that it is the average of."""

    average: dict[str, str]
    started: Started
    first: int
    last: int | None = None
    intervals: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The run as vdbench prints it, with what loops made of it."""
        loops = self.started.loops
        return f"{self.started.run} ({loops})" if loops else self.started.run

    @property
    def step_s(self) -> float | None:
        """Length of an interval, by the times of the rows; a run over midnight starts anew."""
        times = [at for row in self.intervals if (at := _clock_s(row.get("tod", ""))) is not None]
        steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
        return float(max(1, round(median(steps)))) if steps else None

    @property
    def seconds(self) -> float | None:
        """The time that the average is of: intervals, or else what the start of the run announced."""
        if self.last is None:
            return None
        count, step = self.last - self.first + 1, self.step_s
        if step is not None:
            return count * step
        if not self.started.elapsed_s:
            return None
        # Warmup comes before the elapsed time; without one the first interval is left out of it.
        return self.started.elapsed_s * (1.0 if self.started.warmup else count / self.last)


def lines(path: Path) -> list[str]:
    """Return the text of one of vdbench's pages."""
    return html.unescape(re.sub(r"<[^>\n]*>", "", reader.text(path))).splitlines()


def starts(path: Path) -> list[Started]:
    """Return the starts of runs in order."""
    matches = map(START.search, lines(path))
    return [_started(match) for match in matches if match is not None]


def _started(match: re.Match[str]) -> Started:
    before, _, loops = match["rest"].partition("For loops:")
    elapsed = ELAPSED.search(before)
    return Started(
        run=match["run"].strip(),
        loops="" if loops.strip() == "None" else loops.strip(),
        elapsed_s=int(elapsed[1]) if elapsed else None,
        warmup=WARMUP.search(before) is not None,
    )


def flat(path: Path, announced: Sequence[Started]) -> tuple[list[AveragedRun], list[str]]:
    """Read flatfile.html: a header whose names are single words, then rows. Second: what to say."""
    table = _Flat(path, list(announced))
    rows = [(number, line) for number, line in enumerate(lines(path), start=1) if line.strip()]
    for at, (number, line) in enumerate(rows):
        table.take(number, line, last=at == len(rows) - 1)
    table.close()
    return table.runs, table.notes


class _Flat:
    """A flatfile while it is read."""

    def __init__(self, path: Path, announced: list[Started]) -> None:
        self._path, self._announced = path, announced
        self._names: list[str] = []
        self._intervals: list[dict[str, str]] = []
        self.runs: list[AveragedRun] = []
        self.notes: list[str] = []

    def take(self, number: int, line: str, *, last: bool) -> None:
        words = line.split()
        if line.startswith("*"):
            return
        if words[0] == "tod":
            self.close()
            self._names = words
            return
        if not self._names:
            return
        if len(words) != len(self._names):
            if last:
                self.notes.append(f"line {number} of {self._path.name} is cut off and is left out")
                return
            raise reader.wrong(
                self._path, "columns", number, found=str(len(words)), expected=str(len(self._names))
            )
        self._row(dict(zip(self._names, words, strict=True)))

    def _row(self, row: dict[str, str]) -> None:
        match = AVERAGE.fullmatch(row.get("Interval", ""))
        run = row.get("Run", "")
        if self._intervals and self._intervals[-1].get("Run") != run:
            self.close()
        if match is None:
            self._intervals.append(row)
            return
        first, last = int(match["first"]), None if match["last"] == "n" else int(match["last"])
        if last is not None and last < first:
            self.notes.append(f"{run} ended in its first interval, so that its average is of nothing")
            self._intervals = []
            return
        intervals = [one for one in self._intervals if _between(one["Interval"], first, last)]
        self.runs.append(AveragedRun(row, self._start(run), first, last, intervals))
        self._intervals = []

    def _start(self, run: str) -> Started:
        """Return what was announced of the next run of this name."""
        for at, one in enumerate(self._announced):
            if one.run == run:
                del self._announced[: at + 1]
                return one
        return Started(run)

    def close(self) -> None:
        """Tell of intervals that no average came after."""
        if self._intervals:
            name = self._intervals[-1].get("Run", "")
            self.notes.append(
                f"{name} ended after interval {self._intervals[-1].get('Interval')} without an average "
                "and is left out"
            )
        self._intervals = []


def _between(interval: str, first: int, last: int | None) -> bool:
    number = reader.whole(interval)
    return number is not None and first <= number and (last is None or number <= last)


_COLUMNS: Final = {
    "i/o rate": "rate",
    "MB/sec 1024**2": "MB/sec",
    "bytes i/o": "bytes/io",
    "read pct": "read%",
    "resp time": "resp",
    "read resp": "read_resp",
    "write resp": "write_resp",
    "resp max": "resp_max",
    "read max": "read_max",
    "write max": "write_max",
    "resp stddev": "resp_std",
    "queue depth": "queue_depth",
    "cpu% sys+u": "cpu_used",
    "cpu% sys": "cpu_kernel",
}
"""Names of the two header lines of a summary to those of the flatfile."""


_FILE_COLUMNS: Final = {
    "reqstdops rate": "Rate",
    "reqstdops resp": "Resp",
    "cpu% total": "cpu_used",
    "cpu% sys": "cpu_kernel",
    "read pct": "read%",
    "read rate": "Read_rate",
    "read resp": "Read_resp",
    "write rate": "Write_rate",
    "write resp": "Write_resp",
    "mb/sec read": "MB_read",
    "mb/sec write": "MB_write",
    "mb/sec total": "MB/sec",
}
"""The same of runs in file systems, whose upper line names groups of columns (`...read...`)."""
_GROUP: Final = re.compile(r"\.+([\w/%]+)\.+|\S+")


def printed(path: Path) -> Iterator[AveragedRun]:
    """Read averages as summary.html and totals.html print them."""
    upper = ""
    columns: list[str] = []
    started = Started("")
    for line in lines(path):
        words = line.split()
        if (match := START.search(line)) is not None:
            started = _started(match)
        elif any(word.strip(".").lower() == "interval" for word in words):
            upper = line
        elif upper and words:
            columns = _grouped(upper, line) if ".interval." in upper.lower() else _single(upper, words)
            upper = ""
        elif len(words) > 2 and (average := AVERAGE.fullmatch(words[1])) and len(words) - 2 == len(columns):
            row = {name: value for name, value in zip(columns, words[2:], strict=True) if name}
            last = None if average["last"] == "n" else int(average["last"])
            if last is not None and last < int(average["first"]):
                continue  # It ended in its first interval.
            yield AveragedRun(row | {"tod": words[0]}, started, int(average["first"]), last)


def _single(upper: str, lower: Sequence[str]) -> list[str]:
    """Return the columns of a run on devices: a word above and one below make a name."""
    above = upper.split()
    above = above[above.index("interval") + 1 :]
    if len(above) != len(lower):
        return []
    return [_COLUMNS.get(f"{one} {two}", "") for one, two in zip(above, lower, strict=True)]


def _grouped(upper: str, lower: str) -> list[str]:
    """Return the columns of a run in file systems: each word below stands under the name of its group."""
    groups = [(match.start(), (match[1] or match[0]).lower()) for match in _GROUP.finditer(upper)]
    names = []
    for match in re.finditer(r"\S+", lower):
        group = next((name for start, name in reversed(groups) if start < match.end()), "")
        names.append(_FILE_COLUMNS.get(f"{group} {match[0]}", ""))
    return names


def _clock_s(text: str) -> float | None:
    match = CLOCK.match(text)
    return int(match[1]) * 3600.0 + int(match[2]) * 60.0 + float(match[3]) if match else None
