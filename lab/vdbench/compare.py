"""What two directories of vdbench's pages say, and where they differ.

Knows pages by their names, header lines by their words and rows by flatfile.html's columns. Which of the two
programs is right is not its business.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

NOT_MADE: Final = re.compile(
    r"config|parmscan|swat_mon.*|messages|.*\.var_adm_msgs|localhost-\d+\.stdout|localhost-[1-9]\d*"
)
"""Pages about the program itself, its Java processes and a charting tool nobody can get."""
_HEADER: Final = re.compile(
    r"interval +i/o|1024\*\*2|\.\.Interval\.\.|ReqstdOps| rate +resp|min\(ms\)|Anchor size|files +dirs|"
    r"tod +timestamp"
)
_TIME: Final = re.compile(r"^\d\d:\d\d:\d\d\.\d{3} ")
_DATE: Final = re.compile(r"^[A-Z][a-z]{2} \d\d, \d{4}")
_FORMAT: Final = "SD_format"
_NOTHING: Final = "avg_2-1"
"""The average of a run that ended in its first interval: vdbench has no histogram of it."""
_SIZE: Final = re.compile(r"(Anchor size: .*; bytes:).*")
_SIGMAS: Final = 5.0


@dataclass(frozen=True, slots=True)
class VdbenchDirectory:
    """One directory, read."""

    names: frozenset[str]
    headers: dict[str, frozenset[str]]
    columns: list[str]
    rows: list[dict[str, str]]

    @property
    def averages(self) -> list[dict[str, str]]:
        """The rows of averages; what only fills an SD is left out."""
        wanted = (row for row in self.rows if row["Run"] != _FORMAT)
        return [row for row in wanted if row["Interval"].startswith("avg")]


@dataclass(slots=True)
class VdbenchDifference:
    """What differs, in words, by what it is about."""

    lists: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    mixes: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """What differs as docs/vdbench.md says, and why."""


def read(directory: Path) -> VdbenchDirectory:
    """Read a directory of pages."""
    names, headers = set[str](), dict[str, frozenset[str]]()
    for path in directory.glob("*.html"):
        name = path.stem
        if NOT_MADE.fullmatch(name):
            continue
        names.add(name)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        headers[name] = frozenset(_plain(line) for line in lines if _HEADER.search(line))
    columns, rows = _flat((directory / "flatfile.html").read_text(errors="replace").splitlines())
    return VdbenchDirectory(frozenset(names), headers, columns, rows)


def _plain(line: str) -> str:
    """Return a header line without what belongs to its run: time, date, anchor."""
    line = _DATE.sub("DATE", _TIME.sub("", line))
    return re.sub(r"Anchor size: anchor=\S+:", "Anchor size: anchor=ANCHOR:", line).strip()


def _flat(lines: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    at = next((n for n, line in enumerate(lines) if line.startswith(" ") and "timestamp" in line), None)
    if at is None:
        return [], []
    columns = lines[at].split()
    rows = (line.split() for line in lines[at + 1 :] if line and not line.startswith(("*", "<")))
    return columns, [dict(zip(columns, row, strict=True)) for row in rows if len(row) == len(columns)]


def differences(
    real: VdbenchDirectory,
    ours: VdbenchDirectory,
    seconds: float,
    difference: VdbenchDifference,
    *,
    sizes: bool = False,
) -> None:
    """Add what differs between two directories. `sizes`: files have several, so that their sum is drawn."""
    difference.files += [f"no {name}.html" for name in sorted(real.names - ours.names)]
    for name in sorted(ours.names - real.names):
        # vdbench counts the workloads of SD_format, too, and has pages for two and more.
        alone = name.removesuffix(".histogram").startswith("wd") and "wd2" not in ours.names
        (difference.known if alone else difference.files).append(f"{name}.html is ours only")
    for name in sorted(real.names & ours.names):
        _headers(name, real, ours, difference, sizes=sizes)
    if real.columns != ours.columns:
        difference.columns.append(f"{len(real.columns)} columns, ours {len(ours.columns)}")
    their_averages, our_averages = real.averages, ours.averages
    if [row["Run"] for row in their_averages] != [row["Run"] for row in our_averages]:
        difference.mixes.append(f"rows of {len(their_averages)} runs, ours of {len(our_averages)}")
        return
    for left, right in zip(their_averages, our_averages, strict=True):
        difference.mixes += [f"{left['Run']}: {text}" for text in _mix(left, right, seconds)]
        if left["Interval"] != right["Interval"] and not left["Run"].startswith("format_for"):
            nothing = (left["Interval"], right["Interval"]) == (_NOTHING, "avg_1-1")
            mismatch = f"{left['Run']}: {left['Interval']}, ours {right['Interval']}"
            (difference.known if nothing else difference.mixes).append(mismatch)


def _headers(
    name: str, real: VdbenchDirectory, ours: VdbenchDirectory, difference: VdbenchDifference, *, sizes: bool
) -> None:
    """Compare the header lines of a page."""
    their_headers, our_headers = real.headers[name], ours.headers[name]
    if sizes and their_headers != our_headers:
        their_headers, our_headers = (
            frozenset(_SIZE.sub(r"\1", line) for line in lines) for lines in (their_headers, our_headers)
        )
        if their_headers == our_headers:
            difference.known.append(f"{name}: bytes of an anchor")
    missing = their_headers - our_headers
    if slaves := {line for line in missing if line.startswith("Slave:")}:
        difference.known.append(f"{name}: a table of slaves")
    if missing := missing - slaves:
        difference.headers.append(f"{name}: {min(missing)[:60]!r} is missing")
    if more := our_headers - their_headers:
        empty = (
            "histogram" in name
            and not their_headers
            and any(row["Interval"] == _NOTHING for row in real.rows)
        )
        (difference.known if empty else difference.headers).append(f"{name}: {min(more)[:60]!r} is ours only")


def _mix(real: dict[str, str], ours: dict[str, str], seconds: float) -> list[str]:
    """Compare rate, reads and sizes; each within the noise of two runs of so many operations."""
    if real["Run"].startswith("format_for"):
        return []  # How long it took, and so every rate, is the host's.
    files = "Reqrate" in real
    words = (
        ("Rate", "Read_rate", "Write_rate", "Xfersize", "Reqrate")
        if files
        else ("rate", "read%", "", "bytes/io", "reqrate")
    )
    rate, reads, writes, size, requested = ([_number(row, word) for row in (real, ours)] for word in words)
    rates, wanted = rate, requested
    if any(value is None for value in rates):
        return []
    counts = [max(1.0, (value or 0.0) * seconds) for value in rates]
    noise = _SIGMAS * math.sqrt(sum(1 / count for count in counts))
    mismatches = []
    if wanted[0] != wanted[1] and not real["Run"].endswith("%)"):
        mismatches.append(f"asked for {wanted[0]}, ours {wanted[1]}")
    paced = (wanted[0] or 0) < 900_000 and not real["Run"].endswith("%)")
    if paced and _apart(rates, 0.1 + noise):
        mismatches.append(f"{rates[0]:.0f}/s, ours {rates[1]:.0f}/s")
    shares = reads
    if files:
        sums = [(read or 0) + (write or 0) for read, write in zip(shares, writes, strict=True)]
        shares = [100 * (one or 0) / whole if whole else 0.0 for one, whole in zip(shares, sums, strict=True)]
    if abs((shares[0] or 0) - (shares[1] or 0)) > 1 + 50 * noise:
        mismatches.append(f"{shares[0]:.0f} % reads, ours {shares[1]:.0f} %")
    if _apart(size, 0.02 + noise):
        mismatches.append(f"{size[0]:.0f} bytes, ours {size[1]:.0f}")
    return mismatches


def _apart(values: list[float | None], share: float) -> bool:
    left, right = (value or 0.0 for value in values)
    return abs(left - right) > share * max(left, right)


def _number(row: dict[str, str], word: str) -> float | None:
    try:
        return float(row[word])
    except (KeyError, ValueError):
        return None
