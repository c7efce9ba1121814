"""From a run's samples and events to fio's figures.

Knows which columns of `samples.arrows` and which events make which of fio's fields.
Deliberately knows no output format. What differs from fio in meaning is written down in
docs/drop-in.md, because a field that keeps fio's name must say when it is not fio's
measurement.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.analysis import depth_search
from loadstone.analysis.aggregate import add_histograms, added_up
from loadstone.analysis.histogram import NO_SAMPLES, Histogram
from loadstone.analysis.latency import NO_IO, summed
from loadstone.plan import special_engines
from loadstone.plan.derived import reads_back
from loadstone.report.fio import steady_and_target
from loadstone.report.fio.reported_lines import (
    Member,
    empty_line,
    group_members,
    headers,
    members,
    numbers,
    of_fio,
)
from loadstone.report.fio.stats import (
    DIRECTION_NAMES,
    SYNC,
    WRITE,
    Direction,
    DiskUse,
    JobLine,
    RateWindows,
    Report,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from loadstone.plan.model import Plan
    from loadstone.workload.model import Workload

WINDOW_NS: Final = 500_000_000
"""fio samples bandwidth and IOPS over half a second (bwavgtime, iopsavgtime)."""
KINDS: Final = ("slat", "clat", "lat")


@dataclass(slots=True)
class Source:
    """What a result is made of. `samples` has the columns of contract/README.md."""

    plan: Plan
    workload: Workload
    samples: pl.DataFrame
    events: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()
    disks: Sequence[DiskUse] = ()
    everyone: list[Member] = field(default_factory=list)
    searching: frozenset[int] = frozenset()
    """Streams whose search for a latency target had not ended. All they did counts, as in fio."""

    def __post_init__(self) -> None:
        if not self.everyone:
            self.everyone = members(self.plan, self.workload)
        self.searching = depth_search.searching(self.plan, self.samples)
        cells = {use.cell for stream in self.searching for use in self.plan.streams[stream].files}
        if cells:
            counts = pl.col("cell").is_in(sorted(cells))
            self.samples = self.samples.with_columns((pl.col("ramp") & ~counts).alias("ramp"))

    def event(self, kind: str) -> Mapping[str, Any]:
        """Return the last event of a type, empty when there was none."""
        return next((e for e in reversed(self.events) if e.get("type") == kind), {})

    def stream_ends(self) -> dict[int, Mapping[str, Any]]:
        """Return the `stream_end` event of each stream that has one."""
        return {int(e["stream"]): e for e in self.events if e.get("type") == "stream_end"}

    def verify_ends(self) -> list[Mapping[str, Any]]:
        """Return the `verify_end` events."""
        return [e for e in self.events if e.get("type") == "verify_end"]


@dataclass(slots=True)
class MeasuredSpan:
    """When a stream was measured, in nanoseconds since the run's origin."""

    start_ns: int
    end_ns: int

    @property
    def ms(self) -> int:
        """Length in milliseconds, at least 1, as fio counts run times."""
        return max(1, round((self.end_ns - self.start_ns) / 1e6))


def report(source: Source) -> Report:
    """Everything fio reports about the run."""
    spans = measured_spans(source)
    lines: list[JobLine] = []
    line_of_unit: dict[int, int] = {}
    grouped = group_members(source.plan, source.everyone)
    for index, together in enumerate(grouped):
        lines.append(empty_line(source.plan, together))
        line_of_unit.update({member.unit: index for member in together})
    rows = _measured(source, line_of_unit)
    # A damaged bundle may have a tree's rows under the Plan of another.
    rows = rows.filter(pl.col("op") < len(DIRECTION_NAMES)).filter(~_only_last_flushes(source.plan))
    _fill_totals(lines, rows)
    _fill_windows(lines, rows, source.plan.interval_ns)
    for line, together in zip(lines, grouped, strict=True):
        _fill_times(line, together, spans, source)
        _fill_depths(line, together, source)
        _fill_errors(line, together, source)
        line.steady = steady_and_target.steady(together, source.plan, source.events)
        line.latency_goal = steady_and_target.latency(together, source.events, source.searching)
        if not any(member.has_slat for member in together):
            for direction in line.directions:
                direction.slat = NO_IO
        if all(member.job.engine.ioengine in special_engines.BY_NAME for member in together):
            for direction in line.directions:  # fio times the operation and nothing around it.
                direction.lat = NO_IO
    _share_cpu(lines, source)
    start_ms = int(source.event("start").get("unix_ns", 0)) // 1_000_000
    length_ns = _end_ns(source)
    shown = sum(together[0].is_shown for together in grouped)
    return Report(
        lines=lines[:shown],
        left_out=lines[shown:],
        global_options=of_fio(source.workload.global_options),
        disks=source.disks,
        notes=source.notes,
        headers=headers(source.plan, source.everyone),
        unix_ms=start_ms + length_ns // 1_000_000,
        elapsed_s=math.ceil(length_ns / 1e9) or 1,
    )


def measured_spans(source: Source) -> dict[int, MeasuredSpan]:
    """Start (after the ramp) and end of each stream; of one still running, up to now."""
    ends = source.stream_ends()
    now_ns = _end_ns(source)
    spans: dict[int, MeasuredSpan] = {}
    for index, stream in enumerate(source.plan.streams):
        end = ends.get(index)
        if end is None:
            start_ns = _first_sample_ns(source, index)
            spans[index] = MeasuredSpan(start_ns + stream.limits.ramp_ns, max(now_ns, start_ns))
        else:
            ramp_end_ns = 0 if index in source.searching else int(end.get("ramp_end_ns") or 0)
            start_ns = max(int(end["started_ns"]), ramp_end_ns)
            spans[index] = MeasuredSpan(start_ns, max(start_ns, int(end["ended_ns"])))
    return spans


def _first_sample_ns(source: Source, stream: int) -> int:
    cells = [use.cell for use in source.plan.streams[stream].files]
    first = source.samples.filter(pl.col("cell").is_in(cells))["start_ns"].min()
    return int(first) if isinstance(first, int) else 0


def _end_ns(source: Source) -> int:
    ended = source.event("end").get("t_ns")
    if ended is not None:
        return int(ended)
    last = source.samples["end_ns"].max() if source.samples.height else 0
    return int(last) if isinstance(last, int) else 0


def _measured(source: Source, line_of_unit: Mapping[int, int]) -> pl.DataFrame:
    """Rows that count for the result, with the line they belong to."""
    lines = pl.DataFrame(
        {
            "cell": list(range(len(source.plan.cells))),
            "line": [line_of_unit[cell.unit] for cell in source.plan.cells],
        },
        schema={"cell": pl.UInt32, "line": pl.Int64},
    )
    return source.samples.filter(~pl.col("ramp")).join(lines, on="cell", how="inner")


def _only_last_flushes(plan: Plan) -> pl.Expr:
    """Rows of flushes where a job flushes nothing before its end: fio counts no flush of its end."""
    flushing = (one for one in plan.streams if one.flush.fsync_every or one.flush.fdatasync_every)
    cells = sorted({use.cell for one in flushing for use in one.files})
    return (pl.col("op") == SYNC) & ~pl.col("cell").is_in(cells)


def _fill_totals(lines: Sequence[JobLine], rows: pl.DataFrame) -> None:
    keys = ("line", "op", "priority")
    histograms: dict[str, dict[tuple[int, ...], Histogram]] = {kind: {} for kind in KINDS}
    for kind, by_key in histograms.items():
        add_histograms(by_key, rows, kind, keys)
    # fio has no word for an I/O that waits for its turn in the generator: it is in lat alone. With it
    # the mean of slat would be beyond its own maximum.
    for row in added_up(rows, keys, KINDS, "ops").iter_rows(named=True):
        line, key = lines[row["line"]], (row["line"], row["op"], row["priority"])
        slat, clat, lat = (summed(row, kind, histograms[kind].get(key, NO_SAMPLES)) for kind in KINDS)
        if row["op"] == SYNC:
            line.sync_ios += int(row["ops"])
            line.sync += clat
            continue
        part = Direction(
            bytes=int(row["bytes"]),
            ios=int(row["ops"]) + int(row["errors"]),
            shorts=int(row["shorts"]),
            errors=int(row["errors"]),
            slat=slat,
            clat=clat,
            lat=lat,
            priorities={row["priority"]: {"clat": clat, "lat": lat}},
        )
        line.directions[row["op"]].add(part)


def _fill_windows(lines: Sequence[JobLine], rows: pl.DataFrame, interval_ns: int) -> None:
    """Bandwidth (KiB/s) and IOPS over windows of whole intervals of about half a second.

    The last window is left out when it is shorter than half of the others: a rate over a
    few microseconds says nothing.
    """
    per_window = max(1, round(WINDOW_NS / interval_ns))
    intervals = added_up(rows.filter(pl.col("op") != SYNC), ("line", "op"), over="interval")
    placed = intervals.with_columns((pl.col("interval") // per_window).alias("window"))
    windows = added_up(placed, ("line", "op", "window"), more={"length_ns": "sum"})
    windows = windows.filter(pl.col("length_ns") > per_window * interval_ns // 2)
    for (index, op), part in windows.group_by("line", "op", maintain_order=True):
        direction = lines[int(str(index))].directions[int(str(op))]
        if not direction.ios:
            continue
        seconds = [ns / 1e9 for ns in part["length_ns"]]
        direction.bandwidth = RateWindows.of(
            [b / s / 1024 for b, s in zip(part["bytes"], seconds, strict=True)]
        )
        direction.iops_windows = RateWindows.of([n / s for n, s in zip(part["ops"], seconds, strict=True)])


def _fill_times(
    line: JobLine, together: Iterable[Member], spans: Mapping[int, MeasuredSpan], source: Source
) -> None:
    stream_spans = [spans[stream] for member in together for stream in member.streams]
    line.runtime_ms = sum(span.ms for span in stream_spans)
    # What was written is read back in a time of its own.
    streams = source.plan.streams
    numbers = [stream for member in together for stream in member.streams]
    asked_ms = max((spans[n].ms for n in numbers if not reads_back(streams[n])), default=0)
    back_ms = max((spans[n].ms for n in numbers if reads_back(streams[n])), default=0)
    reads = any(streams[n].pattern.read_percent for n in numbers if not reads_back(streams[n]))
    by_headers = [event for event in source.verify_ends() if event.get("stream") in numbers]
    within_ms = max((round(event.get("reading_ns", 0) / 1e6) for event in by_headers), default=0)
    asked_ms, back_ms = max(asked_ms - within_ms, 0), back_ms + within_ms
    for op, direction in enumerate(line.directions):
        reading_ms = (asked_ms if reads else 0) + back_ms
        direction.runtime_ms = (asked_ms if op else reading_ms) if direction.ios else 0
    for ios, moved in (event["rehearsed"] for event in by_headers if event.get("rehearsed")):
        # What verify_only did not write counts as written, in no time.
        line.directions[WRITE].ios += ios
        line.directions[WRITE].bytes += moved
    origin_ms = int(source.event("start").get("unix_ns", 0)) // 1_000_000
    line.start_unix_ms = origin_ms + min(span.start_ns for span in stream_spans) // 1_000_000
    line.pid = int(source.event("hello").get("pid", 0))


def _fill_depths(line: JobLine, together: Iterable[Member], source: Source) -> None:
    ends = source.stream_ends()
    for member in together:
        for stream in member.streams:
            end = ends.get(stream)
            if end is None:
                continue
            for counts, name in (
                (line.depth, "depth"),
                (line.submit, "submit_batches"),
                (line.complete, "complete_batches"),
            ):
                for i, count in enumerate(end.get(name, ())):
                    counts[i] += int(count)


def _fill_errors(line: JobLine, together: Iterable[Member], source: Source) -> None:
    streams = {stream for member in together for stream in member.streams}
    line.total_errors = sum(direction.errors for direction in line.directions)
    end = _end(streams, source, goes_on=line.continue_on_error)
    number_of = numbers(source.plan)
    clones = {number_of[stream] for stream in streams}
    line.failed_clones = sum(
        _end(
            {stream for stream in streams if number_of[stream] == clone},
            source,
            goes_on=line.continue_on_error,
        ).ended_by_error
        for clone in clones
    )
    line.first_error = end.first_error
    if not end.failed:
        return
    line.error = end.first_error or (_ETIMEDOUT if end.reasons & {"rate_minimum", "latency"} else _EIO)
    function = "check_min_rate" if "rate_minimum" in end.reasons else "io_u error"
    if "latency" in end.reasons:
        function = "max latency exceeded"
    if line.error == _EILSEQ:
        function = "verify"
    line.error_text = f"file:engine, func={function}, error={os.strerror(line.error)}"


@dataclass(frozen=True, slots=True)
class _End:
    """How streams ended. `first_error` 0: nothing went wrong on the way."""

    reasons: frozenset[str]
    first_error: int
    failed: bool
    ended_by_error: bool
    """What counts for the exit code: an error that was continued after does not."""


def _end(streams: Set[int], source: Source, *, goes_on: bool) -> _End:
    """Return how streams ended; `goes_on`: an error ends none of them, and counts at the end."""
    first = next(
        (
            e
            for e in source.events
            if e.get("type") in {"io_error", "hung", "damage"} and e.get("stream") in streams
        ),
        None,
    )
    ends = source.stream_ends()
    reasons = frozenset(str(ends[stream].get("reason")) for stream in streams if stream in ends)
    if first is None and any(
        e.get("type") == "verify_end" and e.get("stream") in streams and e.get("damaged")
        for e in source.events
    ):
        # So much was damaged that only others told where.
        first = {"type": "damage"}
    error = 0
    damaged = first is not None and first.get("type") == "damage"
    if first is not None:
        error = _EILSEQ if damaged else int(first.get("errno") or 0) or _EIO
    ended = bool(reasons & {"error", "hung", "rate_minimum", "damage", "latency"}) or (
        damaged and not goes_on
    )
    return _End(reasons, error, ended or damaged or (goes_on and error > 0), ended)


_EIO: Final = 5
_EILSEQ: Final = 84
"""What fio says of data that are not what was written."""
_ETIMEDOUT: Final = 110


def _share_cpu(lines: Sequence[JobLine], source: Source) -> None:
    """Spread the whole process's CPU, kernel workers included, over the lines by their I/Os."""
    end = source.event("end") or source.event("tick")
    total = sum(line.ios + line.sync_ios for line in lines)
    if not total:
        return
    for line in lines:
        share = (line.ios + line.sync_ios) / total
        line.user_ns = share * float(end.get("cpu_user_ns", 0))
        line.system_ns = share * float(end.get("cpu_system_ns", 0))
        switches = int(end.get("voluntary_switches", 0)) + int(end.get("involuntary_switches", 0))
        line.context_switches = round(share * switches)
        line.major_faults = round(share * int(end.get("major_faults", 0)))
        line.minor_faults = round(share * int(end.get("minor_faults", 0)))
