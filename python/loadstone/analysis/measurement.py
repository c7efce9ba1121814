"""A run's samples together with who they belong to and when they count.

Knows the Plan's units, cells, targets and streams, and how lines of a result are formed from
them. Computes no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from loadstone.analysis import stops
from loadstone.analysis.aggregate import add_histograms, columns_added_up
from loadstone.analysis.histogram import Histogram
from loadstone.analysis.steady_start import settled
from loadstone.bundle import layout
from loadstone.bundle.layout import LATENCIES
from loadstone.bundle.sums import OVER_TIME, grouped, last_of, window_of
from loadstone.plan.derived import cells_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.estimate import Estimate
    from loadstone.bundle.read import Bundle
    from loadstone.plan.model import Plan

OF_CELL: Final = ("cell", "op")
LISTS: Final = [f"{latency}_{name}" for latency in LATENCIES for name in ("bucket", "count")]
SAMPLES_OF_LISTS: Final = [
    pl.col(f"{latency}_count").list.sum().cast(pl.Int64).alias(f"{latency}_samples") for latency in LATENCIES
]
By = Literal["all", "stage", "group", "job", "unit", "target", "host", "target of stage", "host of stage"]
"""What a line of a result stands for. A `job` is a section: all of its clones."""


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """One line of a result and the cells and streams it is made of."""

    key: int
    name: str
    cells: frozenset[int]
    streams: tuple[int, ...]


_OfWindows = dict[tuple[int, int, int, int], "tuple[NDArray[np.int64], NDArray[np.int64]]"]
_Parts = dict[tuple[int, int, int, int], "list[tuple[NDArray[np.int64], NDArray[np.int64]]]"]
_Windows = tuple[tuple[By, str, bool], int, _OfWindows]


@cache
def _no_numbers() -> pl.DataFrame:
    return layout.SAMPLES.to_frame().with_columns(SAMPLES_OF_LISTS).drop(LISTS)


class Measurement:
    """What a bundle holds, read once."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.plan: Plan = bundle.plan
        self.settled = settled(bundle)
        self.stops = stops.stops(bundle)
        self._lines: dict[By, list[MeasuredLine]] = {}
        self._rows: dict[By, pl.DataFrame] = {}
        self._windows: _Windows | None = None
        """What was asked of the histograms last, in windows of so many intervals."""
        self.shares_beyond: dict[int, Estimate | None] = {}
        """What `analysis.tail.beyond` found, by limit in nanoseconds."""

    def lines(self, by: By) -> list[MeasuredLine]:
        """Return the lines of a grouping in the Plan's order; cells without a target are in no target."""
        if by not in self._lines:
            cells_of: dict[object, set[int]] = {}
            names: dict[object, str] = {}
            for cell in range(len(self.plan.cells)):
                for identity, name in self._belongs(cell, by):
                    cells_of.setdefault(identity, set()).add(cell)
                    names[identity] = name
            self._lines[by] = [
                MeasuredLine(key, names[identity], frozenset(cells), self._streams_on(cells))
                for key, (identity, cells) in enumerate(cells_of.items())
            ]
        return self._lines[by]

    def pieces(self, columns: Sequence[str] = tuple(layout.SAMPLES)) -> Iterator[pl.DataFrame]:
        """Yield the samples a piece at a time.

        What came before the load had settled is ramp, too, and what the engine's own stops reach into.
        """
        from_ns, left_out = self.settled.from_ns, self.stops.left_out
        if not from_ns and not left_out:
            yield from self.bundle.sample_pieces(columns)
            return
        uncounted = (pl.col("start_ns") < from_ns) | ~stops.outside(left_out)
        for piece in self.bundle.sample_pieces([*columns, *sorted({"start_ns", "end_ns"} - set(columns))]):
            yield piece.with_columns(pl.col("ramp") | uncounted).select(columns)

    @property
    def samples(self) -> pl.DataFrame:
        """The samples without their histograms; `*_samples` says how many each of those holds."""
        return self._read[0]

    def rows(self, by: By) -> pl.DataFrame:
        """Return `samples` with a column `key`, the line each row belongs to."""
        if by not in self._rows:
            # The samples' columns are shared: one more is all that is kept.
            self._rows[by] = self._keyed(self.samples, by)
        return self._rows[by]

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what is made at once again."""
        return {**self.__dict__, "_rows": {}}

    def windows(self, by: By, latency: str, every: int, *, ramp: bool = True) -> _OfWindows:
        """Return buckets and counts of each (key, op, stage, window of `every` intervals).

        Ramps are in it unless `ramp` is false.

        Sorted by key. One pass over the histograms of this latency, or none: windows that are some of
        the last ones together are added up. Only what is not empty is kept.
        """
        selection = (by, latency, ramp)
        if self._windows is None or self._windows[0] != selection or every % self._windows[1]:
            self._windows = (selection, every, self._read_windows(by, latency, every, ramp=ramp))
        _, finer, known = self._windows
        if every == finer:
            return known
        parts: _Parts = {}
        for (key, op, stage, window), counts in known.items():
            parts.setdefault((key, op, stage, window * finer // every), []).append(counts)
        return {name: _one(several) for name, several in parts.items()}

    def _read_windows(self, by: By, latency: str, every: int, *, ramp: bool) -> _OfWindows:
        histogram_parts: _Parts = {}
        summed = latency == OVER_TIME and self._sums_window is not None and every % self._sums_window == 0
        for read in (self.bundle.sums if summed else self.pieces)(_columns_of(latency)):
            self._add_windows(
                histogram_parts, read if ramp else read.filter(~pl.col("ramp")), by, latency, every
            )
        return {name: _one(parts) for name, parts in sorted(histogram_parts.items())}

    def _add_windows(self, parts: _Parts, piece: pl.DataFrame, by: By, latency: str, every: int) -> None:
        keys = ("key", "op", "stage", "window")
        rows = self._keyed(piece, by).with_columns((pl.col("interval") // every).alias("window"))
        for (key, op, stage, window), buckets, counts in grouped(rows.drop_nulls(keys), latency, keys):
            parts.setdefault((key, op, stage, window), []).append((buckets, counts))

    def histograms(self, latency: str) -> dict[tuple[int, ...], Histogram]:
        """Return the measured histogram of each (cell, op) that has samples of this latency.

        Every grouping is a sum of these; the samples are gone through once.
        """
        return self._read[1][latency]

    @cached_property
    def window(self) -> int:
        """How many intervals a window has that is right for a chart, and for the error of a percentile."""
        return window_of(last_of(self.samples["interval"]))

    @cached_property
    def _sums_window(self) -> int | None:
        """Intervals in a window of the sealed sums; None where other rows count than when they were made."""
        return None if self.settled.from_ns or self.stops.left_out else self.bundle.sums_window

    @cached_property
    def _read(self) -> tuple[pl.DataFrame, dict[str, dict[tuple[int, ...], Histogram]]]:
        """The columns that are numbers, and the histograms added up: as sealed, or in one pass."""
        every = self._sums_window
        if every is None:
            return self._added_up()
        sums: dict[str, dict[tuple[int, ...], Histogram]] = {latency: {} for latency in LATENCIES}
        parts: _Parts = {}
        for latency, histograms in sums.items():
            for piece in self.bundle.sums(_columns_of(latency)):
                add_histograms(histograms, piece.filter(~pl.col("ramp")), latency, OF_CELL)
                if latency == OVER_TIME:
                    # A chart of many jobs wants them together, and to read them again takes longer than this.
                    self._add_windows(parts, piece, "all", latency, every)
        together = {name: _one(several) for name, several in sorted(parts.items())}
        self._windows = (("all", OVER_TIME, True), every, together)
        numbers = [*layout.NUMBERS, *layout.COUNTED]
        empty = pl.DataFrame(schema={**layout.SAMPLES, **layout.COUNTED}).select(numbers)
        return pl.concat([empty, *self.pieces(numbers)]), sums

    def _added_up(self) -> tuple[pl.DataFrame, dict[str, dict[tuple[int, ...], Histogram]]]:
        tables = [_no_numbers()]
        sums: dict[str, dict[tuple[int, ...], Histogram]] = {latency: {} for latency in LATENCIES}
        for piece in self.pieces():
            numbers = piece.with_columns(SAMPLES_OF_LISTS).drop(LISTS)
            # A copy: columns that are kept as they are would keep the whole piece in memory.
            tables.append(numbers[np.arange(numbers.height)])
            measured = piece.filter(~pl.col("ramp")) if piece["ramp"].any() else piece
            for latency, histograms in sums.items():
                add_histograms(histograms, measured, latency, OF_CELL)
        return pl.concat(tables), sums

    def _keyed(self, table: pl.DataFrame, by: By) -> pl.DataFrame:
        """Add `key`; rows of cells in no line are left out. The columns themselves are shared."""
        key_of = np.full(len(self.plan.cells), -1, np.int64)
        for line in self.lines(by):
            key_of[list(line.cells)] = line.key
        keys = key_of[table["cell"].to_numpy()]
        if (key_of < 0).any():
            table, keys = table.filter(keys >= 0), keys[keys >= 0]
        return table.hstack([pl.Series("key", keys.astype(np.uint32))])

    def stages_of(self, line: MeasuredLine) -> list[int]:
        """Return the stages a line's streams run in, ascending."""
        streams, workers = self.plan.streams, self.plan.workers
        return sorted({workers[streams[index].worker].stage for index in line.streams})

    def measured_ns(self, line: MeasuredLine) -> int:
        """Return the time in which at least one of the line's streams was measured."""
        return sum(end - start for start, end in self.union(line))

    def covered_ns(
        self,
        line: MeasuredLine,
        starts_ns: NDArray[np.int64],
        ends_ns: NDArray[np.int64],
        *,
        ramp: bool = False,
    ) -> NDArray[np.float64]:
        """Return how much of each interval one of the line's streams was measured (or ran, with `ramp`)."""
        edges, covered = [0], [0]
        for start, end in self.union(line, ramp=ramp):
            edges += [start, end]
            covered += [covered[-1], covered[-1] + end - start]
        upto = np.interp(np.stack([starts_ns, ends_ns]), edges, covered)
        return np.asarray(upto[1] - upto[0], np.float64)

    @cached_property
    def ended_ns(self) -> int:
        """Time of the last thing known of, since the run's origin; 0 when nothing began."""
        end = self.bundle.event("end")
        last = self.samples["end_ns"].max()
        return max(int(end["t_ns"]) if end else 0, int(last) if isinstance(last, int) else 0)

    @cached_property
    def spans(self) -> list[tuple[int, int, int]]:
        """Start, end of the ramp and end of each stream in ns; all three equal when it never ran.

        A stream that did not tell its end (the run was killed) ends with its last sample.
        """
        end_events = {int(e["stream"]): e for e in self.bundle.events if e.get("type") == "stream_end"}
        of_cells = columns_added_up(self.samples, ("cell",))
        sampled_spans = {
            int(cell): (int(of_cells["start_ns"][at]), int(of_cells["end_ns"][at]))
            for at, cell in enumerate(of_cells["cell"])
        }
        return [
            self._span(index, end_events.get(index), sampled_spans) for index in range(len(self.plan.streams))
        ]

    def _span(
        self, index: int, told: dict[str, object] | None, seen: dict[int, tuple[int, int]]
    ) -> tuple[int, int, int]:
        stream = self.plan.streams[index]
        if told is not None:
            if told.get("started_ns") is None:
                return 0, 0, 0
            start, end = int(str(told["started_ns"])), int(str(told["ended_ns"]))
            ramp_end = int(str(told.get("ramp_end_ns") or start))
        else:
            sample_spans = [seen[cell] for cell in cells_of(stream) if cell in seen]
            if not sample_spans:
                return 0, 0, 0
            start, end = min(one[0] for one in sample_spans), max(one[1] for one in sample_spans)
            start = min(start + stream.limits.start_delay_ns, end)
            ramp_end = start + stream.limits.ramp_ns
        ramp_end = max(ramp_end, self.settled.from_ns)
        return start, min(max(ramp_end, start), max(start, end)), max(start, end)

    def issued_until_ns(self, line: MeasuredLine) -> int:
        """Return when the last stream of a line had run for as long as it was to, or ended before.

        From then on nothing is begun: what ends later was in flight, and tells nothing of a course.
        """
        ends = [0]
        for index in line.streams:
            limits, (start, _, end) = self.plan.streams[index].limits, self.spans[index]
            due = start + limits.ramp_ns + limits.runtime_ns
            ends.append(min(end, due) if limits.runtime_ns else end)
        return max(ends)

    def union(self, line: MeasuredLine, *, ramp: bool = False) -> list[tuple[int, int]]:
        """Return the times in which any stream of the line was measured, apart and ascending.

        Without the stops of the engine, unless ramps are asked for, too.
        """
        spans = [(self.spans[i][0 if ramp else 1], self.spans[i][2]) for i in line.streams]
        merged = stops.merged([(start, end) for start, end in spans if end > start])
        return merged if ramp else stops.without(merged, self.stops.left_out)

    def _streams_on(self, cells: set[int]) -> tuple[int, ...]:
        return tuple(index for index, stream in enumerate(self.plan.streams) if cells_of(stream) & cells)

    def _belongs(self, cell: int, by: By) -> list[tuple[object, str]]:
        """Identity and name of the lines a cell is in."""
        entry = self.plan.cells[cell]
        unit = self.plan.units[entry.unit]
        host = self._host_of(entry.unit)
        one: tuple[object, str] | None
        match by:
            case "all":
                one = (0, "all")
            case "group":
                one = (unit.group, f"group {unit.group}")
            case "job":
                one = ((unit.name, unit.group), unit.name)
            case "unit":
                name = unit.name if unit.clone is None else f"{unit.name}.{unit.clone}"
                one = (entry.unit, name if host is None else f"{host[1]}: {name}")
            case "host":
                one = host
            case "target of stage":
                stage, at = self._stage_of_cell(cell), entry.target
                one = None if at is None or stage is None else ((stage, at), self.plan.targets[at].path)
            case "host of stage":
                stage = self._stage_of_cell(cell)
                one = None if host is None or stage is None else ((stage, host[0]), host[1])
            case "stage":
                stage = self._stage_of_cell(cell)
                one = None if stage is None else (stage, f"stage {stage}")
            case "target":
                at = entry.target
                one = None if at is None else (at, self.plan.targets[at].path)
        return [] if one is None else [one]

    def _host_of(self, unit: int) -> tuple[int, str] | None:
        """Return number and name of the host a unit ran on; None of a run on one."""
        hosts = self.bundle.hosts
        number = None if hosts is None else hosts.of_unit(unit)
        return None if hosts is None or number is None else (number, hosts.hosts[number].name)

    def _stage_of_cell(self, cell: int) -> int | None:
        return next(
            (
                self.plan.workers[stream.worker].stage
                for stream in self.plan.streams
                if cell in cells_of(stream)
            ),
            None,
        )


def _columns_of(latency: str) -> list[str]:
    """Return the columns that windows of a latency are made of."""
    return ["cell", "op", "stage", "interval", "ramp", f"{latency}_bucket", f"{latency}_count"]


def _one(
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add up histograms, each as buckets and counts."""
    if len(parts) == 1:
        return parts[0]
    whole = Histogram.of(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    used = np.flatnonzero(whole.counts)
    return used, whole.counts[used]
