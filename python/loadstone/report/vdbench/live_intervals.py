"""A run's intervals while it goes on: the same numbers its bundle will give later.

Knows when an interval is complete: when the engine has told of a time after it, and the monitors too.
Reads the bundle as it is written, each row once. Knows no page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.bundle import layout
from loadstone.bundle.arrows import Follower
from loadstone.bundle.hosts import HOSTS
from loadstone.report.vdbench.interval_totals import (
    PROCESSORS,
    SECOND_NS,
    Counted,
    lengths_s,
    of_workloads,
    tallies,
    windowed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.report.vdbench.interval_totals import CpuUse, PartTotals

_NUMBERS: Final = (
    *("start_ns", "end_ns", "stage", "cell", "op", "ops", "bytes", "errors", "shorts"),
    *("clat_sum_ns", "clat_sumsq_ns2", "clat_min_ns", "clat_max_ns"),
)


class LiveSamples:
    """Samples of a bundle that is written, interval by interval."""

    def __init__(self, bundle: Path, window_ns: int, interval: int, *, on_files: bool) -> None:
        self._follower = Follower(bundle / "samples.arrows", layout.SAMPLES)
        self._window_ns = window_ns
        self._asked = interval
        self._on_files = on_files
        # The samples of a run on hosts come when it is over: until then no interval is known.
        self._grows = not (bundle / HOSTS).exists()
        self._waiting: pl.DataFrame | None = None
        """Samples of intervals that were not taken."""
        self.taken = 0

    def complete(self, told_ns: int, grace_ns: int) -> int:
        """Return how many intervals are whole once the engine has told of a time."""
        if not self._grows:
            return 0
        # What ends after the time is up belongs to the last interval, which waits for it.
        return min((told_ns - grace_ns) // self._window_ns, self._asked - 1)

    def begun(self) -> int:
        """Return how many intervals there are at the end, those that are not whole included."""
        waiting = self._read_on()
        if not waiting.height:
            return self.taken
        last = int(str(waiting["window"].max())) + 1
        return max(min(last, self._asked), self.taken + 1)

    def take(self, upto: int) -> tuple[pl.DataFrame, list[float]]:
        """Return the samples up to an interval, numbered from 0 on, and the length of each in seconds.

        The last one takes what came late.
        """
        first = self.taken
        waiting = self._read_on().with_columns(pl.col("window").clip(first, self._asked - 1))
        self._waiting = waiting.filter(pl.col("window") >= upto)
        rows = waiting.filter(pl.col("window") < upto).with_columns(pl.col("window") - first)
        self.taken = upto
        return rows, lengths_s(rows, upto - first)

    def _read_on(self) -> pl.DataFrame:
        rows = self._follower.new().select(_NUMBERS)
        new = windowed(rows if self._on_files else of_workloads(rows), self._window_ns)
        self._waiting = new if self._waiting is None else pl.concat([self._waiting, new])
        return self._waiting


class LiveIntervals(Counted):
    """A bundle that is being written, as vdbench counts it."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        self._parts: list[PartTotals] = []
        self._windows = LiveSamples(
            bundle.path, self.interval_s * SECOND_NS, self.asked_intervals, on_files=self.on_files
        )
        self._host = _Lines(bundle.path / layout.HOST)
        self._grace_ns = bundle.plan.interval_ns
        self._told_ns = 0
        self._unix_ns: int | None = None

    @property
    def started_unix_ns(self) -> int | None:
        """Wall clock of the first I/O, once the engine has told it."""
        return self._unix_ns

    def tell(self, event: Mapping[str, Any]) -> None:
        """Take notice of an event."""
        if event.get("type") == "start":
            self._unix_ns = int(event["unix_ns"])
        elif event.get("type") == "tick":
            self._told_ns = int(event["t_ns"])

    def advance(self) -> int:
        """Add the intervals that are complete to every part, and return how many there are in all."""
        upto = self._windows.complete(self._told_ns, self._grace_ns)
        upto = min(upto, self._host.watched_ns() // (self.interval_s * SECOND_NS))
        if upto > self._windows.taken:
            self._add(upto)
        return self._windows.taken

    def _add(self, upto: int) -> None:
        parts = [self.whole, *self.storages, *self.workloads]
        rows, lengths = self._windows.take(upto)
        for part in parts:
            part_rows = rows.filter(pl.col("cell").is_in(list(part.cells)))
            part.intervals += tallies(part_rows, lengths, self.asked)

    def _fill(self, parts: Sequence[PartTotals]) -> None:
        """Leave the intervals to `advance`."""

    def cpu(self, first: int, last: int) -> CpuUse | None:
        """Return the use of the CPUs in intervals."""
        self.processors = self._host.table()
        use = super().cpu(first, last)
        self._host.forget(last * self.interval_s * SECOND_NS)
        return use


class _Lines:
    """The monitors' rows as they are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rows: list[dict[str, Any]] = []
        self._until_ns = 0

    def watched_ns(self) -> int:
        """Read on, and return the time up to which the host was watched."""
        if not self._path.exists():
            return self._until_ns
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        whole = new.rfind(b"\n") + 1
        self._at += whole
        for line in new[:whole].splitlines():
            row = json.loads(line)
            self._rows.append({name: row[name] for name in ("t_ns", "dt_ns", *PROCESSORS) if name in row})
        if self._rows:
            self._until_ns = int(self._rows[-1]["t_ns"])
        return self._until_ns

    def table(self) -> pl.DataFrame:
        """Return the rows that are not forgotten."""
        return pl.from_dicts(self._rows, infer_schema_length=None) if self._rows else pl.DataFrame()

    def forget(self, before_ns: int) -> None:
        """Drop what no later interval needs."""
        self._rows = [row for row in self._rows if row["t_ns"] > before_ns]
