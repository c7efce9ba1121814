"""The groups of lines in Iometer's result file: specifications, and rows that belong together.

Knows how keys and values follow each other, that columns changed their names from 2006 to 1.1, and
that the specifications a row means are those written last before it. Knows no Case.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.audit.foreign import reader
from loadstone.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MIN_COLUMNS: Final = 6
SPECIFICATION: Final = "Access Specification Name"


@dataclass(frozen=True, slots=True)
class SpecificationLine:
    """A line of a specification."""

    size_bytes: int
    percent: float
    read_percent: float
    random_percent: float
    delay_ms: float = 0.0
    burst: int = 1
    reply_bytes: int = 0


@dataclass(slots=True)
class WorkerRows:
    """A row of a worker and the rows of its targets; its specification and depth are theirs, too."""

    manager: str
    row: dict[str, str]
    targets: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The worker's name in its manager."""
        return self.row.get("Target Name", "")


@dataclass(slots=True)
class Test:
    """The row of all managers, with the rows under it and the specifications they mean."""

    description: str
    row: dict[str, str]
    specifications: dict[str, list[SpecificationLine]]
    managers: list[dict[str, str]] = field(default_factory=list)
    workers: list[WorkerRows] = field(default_factory=list)

    @property
    def over_network(self) -> bool:
        """Whether its I/Os, or part of them, went over a network: both ends of a connection have a row.

        The far end is called `[name]`; it reads what the near one writes, and is in the totals, too.
        """
        kinds = {target.get("Target Type") for worker in self.workers for target in worker.targets}
        return "NETWORK" in kinds or any(one.name.startswith("[") for one in self.workers)


@dataclass(slots=True)
class ResultFile:
    """What a file holds, as far as it could be read."""

    tests: list[Test] = field(default_factory=list)
    version: str = ""
    any_row: bool = False
    notes: list[str] = field(default_factory=list)


def read(path: Path) -> ResultFile:
    """Read a file. Raises InputError for a row that does not fit its header."""
    return _Reading(path).file()


class _Reading:
    """A file on its way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = ResultFile()
        self._description = ""
        self._header: list[str] = []
        self._specifications: dict[str, list[SpecificationLine]] = {}
        self._name = ""

    def file(self) -> ResultFile:
        rows = list(self._rows())
        key = ""
        for at, (number, row) in enumerate(rows):
            if row[0].lstrip().startswith("'"):
                key = row[0].strip().strip("'").lower()
                self._key(key, row)
                continue
            try:
                self._values(key, row, number)
            except InputError:
                if at < len(rows) - 1 or not self._file.tests:
                    raise
                self._file.notes.append(f"line {number} is cut off and is left out")
        return self._file

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for number, row in enumerate(csv.reader(reader.text(self._path).splitlines()), start=1):
                if any(cell.strip() for cell in row):
                    yield number, row
        except csv.Error as error:
            raise reader.wrong(self._path, "not_csv", reason=str(error)) from error

    def _key(self, key: str, row: Sequence[str]) -> None:
        if key == "target type":
            self._header = [name.strip().lstrip("'") for name in row]
        elif key in ("access specifications", "test type"):
            # What was written before is what rows before it meant.
            self._specifications, self._name = {}, ""

    def _values(self, key: str, row: Sequence[str], number: int) -> None:
        """Keep a line of values under the key before it."""
        if key == "test type":
            self._description = ",".join(row[1:]).strip()
        elif key == "version":
            self._file.version = self._file.version or row[0].strip()
        elif key == "access specification name":
            # The last value is the default assignment; a comma may be in the name.
            self._name = ",".join(row[:-1] if len(row) > 1 else row).strip()
            self._specifications[self._name] = []
        elif key == "size" and self._name:
            self._specifications[self._name].append(self._line(row, number))
        elif key == "target type":
            self._result(row, number)

    def _line(self, row: Sequence[str], number: int) -> SpecificationLine:
        values = [reader.number(cell) for cell in row if cell.strip()]
        known = [value for value in values if value is not None]
        if len(known) < 4 or len(known) < len(values):
            raise reader.wrong(self._path, "specification", number, found=repr(",".join(row)[:60]))
        absent = (0.0, 1.0, 0.0, 0.0)
        delay, burst, _, reply = (*known[4:8], *absent[len(known[4:8]) :])
        return SpecificationLine(
            size_bytes=int(known[0]),
            percent=known[1],
            read_percent=known[2],
            random_percent=known[3],
            delay_ms=delay,
            burst=int(burst) or 1,
            reply_bytes=int(reply),
        )

    def _result(self, cells: Sequence[str], number: int) -> None:
        # Rows of older versions may end before the last columns of their header.
        if len(cells) < MIN_COLUMNS:
            raise reader.wrong(
                self._path, "columns", number, found=str(len(cells)), expected=str(len(self._header))
            )
        self._file.any_row = True
        row = {name: cell.strip() for name, cell in zip(self._header, cells, strict=False)}
        kind = row.get("Target Type")
        tests = self._file.tests
        if kind == "ALL":
            tests.append(Test(self._description, row, self._specifications))
        elif not tests:
            return
        elif kind == "MANAGER":
            tests[-1].managers.append(row)
        elif kind == "WORKER":
            manager = tests[-1].managers[-1].get("Target Name", "") if tests[-1].managers else ""
            tests[-1].workers.append(WorkerRows(manager, row))
        elif kind in ("DISK", "NETWORK") and tests[-1].workers:
            tests[-1].workers[-1].targets.append(row)
