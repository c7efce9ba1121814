"""fio's log files: bandwidth, IOPS, latencies and latency histograms over time.

Knows their names, columns and clocks: the time is milliseconds since the job was measured
(its start, or the end of its ramp). Deliberately knows no bundle's layout: samples and
I/Os come as frames. Averages come from the run's intervals, so a window that had no
completion still has a bandwidth and an IOPS line, of 0 (fio leaves it out).

Columns: `time, value, direction, size[, offset], priority[, issue time]`; value is KiB/s,
IOPS or nanoseconds; direction 0 read, 1 write, 2 trim; the issue time is nanoseconds on the
clock of `time`, in the logs of slat and clat alone. Windows have size, offset and issue time 0.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Final

import polars as pl

from loadstone import file_name, output
from loadstone.analysis.aggregate import added_up
from loadstone.bundle import layout
from loadstone.errors import as_text
from loadstone.plan import io_priority
from loadstone.report.fio import zlib_log
from loadstone.report.fio.collect import MeasuredSpan, Source, measured_spans
from loadstone.report.fio.histlog import histogram_rows
from loadstone.report.fio.output_options import naming_option
from loadstone.report.fio.reported_lines import numbers
from loadstone.report.fio.stats import SYNC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.plan.model import Plan
    from loadstone.report.fio.reported_lines import Member
    from loadstone.workload.model import Job
    from loadstone.workload.output_requests import LogRequests

CHUNK_ROWS: Final = 2_000_000
"""I/Os turned into text at a time."""
SUFFIX: Final = "log"
AGGREGATE_WINDOW_MS: Final = 500
LOGGED: Final = (pl.col("error") == 0) & (pl.col("op") != SYNC)
"""I/Os that have a line, if they count."""
_AVERAGE, _MAXIMUM, _BOTH = range(3)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file that was asked for, or one thread's part of it."""

    kind: str
    """`bw`, `iops`, `slat`, `clat`, `lat` or `clat_hist`."""
    path: Path
    member: Member
    stream: int
    window_ms: int
    """0: a line per I/O."""

    @property
    def is_empty(self) -> bool:
        """Whether fio's file would be empty: of a job left out, or slat of an engine without a queue."""
        return not self.member.is_shown or (self.kind == "slat" and not self.member.has_slat)

    @property
    def option(self) -> str:
        """The field of the job that asks for it."""
        parts = {"slat": "lat", "clat": "lat", "clat_hist": "hist"}
        return f"outputs.logs.{parts.get(self.kind, self.kind)}"

    @property
    def asked(self) -> LogRequests:
        """The job's log options."""
        return self.member.job.outputs.logs


def requested(plan: Plan, everyone: Sequence[Member], directory: Path) -> list[LogFile]:
    """Find all log files the jobs ask for, under `directory` unless their prefix is absolute."""
    files: list[LogFile] = []
    number_of = numbers(plan)
    for member in everyone:
        logs, stats = member.job.outputs.logs, member.job.outputs.stats
        average = logs.avg_msec or 0
        windows = {
            "bw": average if stats.bw_window_msec is None else min(average, stats.bw_window_msec),
            "iops": average if stats.iops_window_msec is None else min(average, stats.iops_window_msec),
        }
        wanted = [(kind, getattr(logs, kind), windows[kind]) for kind in ("bw", "iops")]
        shown = {"lat": stats.show_lat, "slat": stats.show_slat, "clat": stats.show_clat}
        # What `disable_lat` and its like leave out has no log in fio either.
        wanted += [(kind, logs.lat, average) for kind, show in shown.items() if show is not False]
        wanted.append(("clat_hist", logs.hist, logs.hist_msec or 0))
        for kind, prefix, window_ms in wanted:
            if prefix is None:
                continue
            by_stream = kind != "clat_hist" and not window_ms
            for stream in member.streams if by_stream else member.streams[:1]:
                path = directory / _name(member.job, prefix, kind, number_of[stream])
                files.append(LogFile(kind, path, member, stream, window_ms))
    return files


def _name(job: Job, prefix: str | None, kind: str, number: int) -> str:
    """Return a path of the user's, or a name that stays in the directory and fits, whatever the job's is."""
    logs = job.outputs.logs
    suffix = zlib_log.SUFFIX if logs.store_compressed else SUFFIX
    per_job = "" if logs.per_job is False else f".{number}"
    ending = f"_{kind}{per_job}.{suffix}"
    return f"{prefix}{ending}" if prefix else file_name.short(job.name, ending)


def write(
    source: Source,
    ios: pl.LazyFrame | None,
    directory: Path,
    grown: Mapping[Path, output.GrowingFile] | None = None,
) -> list[Path]:
    """Write every log file asked for; return the paths, each once.

    `ios` has the columns of `ios.arrows`; it is needed when a log without averaging was
    asked for. Files of that name are replaced; jobs that share a name follow one another.
    `grown`: those that were written while the run went on, to which what is missing is added.
    """
    files = requested(source.plan, source.everyone, directory)
    with _Outputs(files, grown or {}) as outputs:
        spans = measured_spans(source)
        per_io = [f for f in files if f.kind != "clat_hist" and not f.window_ms]
        for file in files:
            if file.window_ms:
                outputs.text(file, _of_windows(source, file, spans[file.stream]))
        if per_io and ios is not None:
            _each_io(ios, per_io, spans, source, outputs)
    return outputs.paths


def ios_of(bundle: Bundle) -> pl.LazyFrame | None:
    """Return the I/Os of a bundle without loading them where that is possible."""
    sealed = bundle.path / layout.STREAMS["ios.arrows"]
    if bundle.verified and sealed.exists() and as_text(str(sealed)) == str(sealed):
        return pl.scan_parquet(sealed)
    ios = bundle.ios()
    return None if ios is None else ios.lazy()


def asked_or_default(source: Source) -> Source:
    """Return the source itself, or one asking for averages when no job asks for any log."""
    if any(job.outputs.logs.wanted for job in source.workload.jobs):
        return source
    window_ms = max(1, source.plan.interval_ns // 1_000_000)

    def logging(job: Job) -> Job:
        name = job.name.replace("/", "_")
        options = {"bw": name, "iops": name, "lat": name, "avg_msec": window_ms}
        return job.changed({f"outputs.logs.{log}": value for log, value in options.items()})

    workload = source.workload.model_copy(update={"jobs": tuple(map(logging, source.workload.jobs))})
    return replace(source, workload=workload, everyone=[])


class _Outputs:
    """The open files, compressed where asked for."""

    def __init__(self, files: list[LogFile], grown: Mapping[Path, output.GrowingFile]) -> None:
        self._grown = grown
        self._first = {file.path: file for file in reversed(files)}
        self.paths = list(dict.fromkeys(file.path for file in files))
        self._open: dict[Path, IO[bytes]] = {}
        self._stack = contextlib.ExitStack()
        self._packers = {f.path: zlib.compressobj() for f in files if f.path.name.endswith(zlib_log.SUFFIX)}

    def __enter__(self) -> _Outputs:
        with contextlib.ExitStack() as stack:
            for path in self.paths:
                asking, file = self._first[path], self._grown.get(path)
                with naming_option(asking.member.job, asking.option):
                    output.directory(path.parent)
                    self._open[path] = stack.enter_context(
                        output.opened(path) if file is None else output.settled(file)
                    )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            for path, packer in self._packers.items():
                self._open[path].write(packer.flush())
        self._stack.__exit__(*raised)  # type: ignore[arg-type]  # what a with statement hands on

    def text(self, log: LogFile, rows: list[str]) -> None:
        if rows:
            self.data(log.path, ("\n".join(rows) + "\n").encode())

    def frame(self, log: LogFile, rows: pl.DataFrame) -> None:
        if rows.height:
            text = rows.write_csv(include_header=False, quote_style="never")
            self.data(log.path, text.encode())

    def data(self, path: Path, content: bytes) -> None:
        packer = self._packers.get(path)
        self._open[path].write(content if packer is None else packer.compress(content))


def _epoch_ms(source: Source, log: LogFile, span: MeasuredSpan) -> int:
    """Give what is added to every time: 0, or when the job began on the clock asked for."""
    if not (log.asked.unix_epoch or log.asked.alternate_epoch):
        return 0
    unix_ns = int(source.event("start").get("unix_ns", 0)) + span.start_ns
    clock = log.asked.alternate_epoch_clock_id or time.CLOCK_REALTIME
    if clock != time.CLOCK_REALTIME:
        unix_ns += time.clock_gettime_ns(clock) - time.time_ns()
    return unix_ns // 1_000_000


def _each_io(
    ios: pl.LazyFrame,
    files: list[LogFile],
    spans: Mapping[int, MeasuredSpan],
    source: Source,
    outputs: _Outputs,
) -> None:
    epochs = {id(file): _epoch_ms(source, file, spans[file.stream]) for file in files}
    rows = int(ios.select(pl.len()).collect().item())
    for start in range(0, rows, CHUNK_ROWS):
        counted = ~pl.col("ramp") | pl.col("stream").is_in(sorted(source.searching))
        part = ios.slice(start, CHUNK_ROWS).filter(LOGGED & counted).collect()
        for file in files:
            stream_ios = part.filter(pl.col("stream") == file.stream)
            if file.is_empty:
                continue
            outputs.frame(file, io_lines(stream_ios, file, spans[file.stream].start_ns, epochs[id(file)]))


def io_lines(ios: pl.DataFrame, log: LogFile, start_ns: int, epoch_ms: int) -> pl.DataFrame:
    """Return a line for each I/O."""
    values = {
        # as fio: the rate of this one I/O, in 1,000 bytes per second
        "bw": (pl.col("bytes").cast(pl.UInt64) * 1_000_000)
        // pl.max_horizontal(pl.col("clat_ns"), pl.lit(1, pl.UInt64)),
        "iops": pl.lit(1),
    }
    value = values[log.kind] if log.kind in values else pl.col(f"{log.kind}_ns")
    ended_ns = pl.col("t_ns").cast(pl.Int64) - start_ns
    columns = [ended_ns.clip(lower_bound=0) // 1_000_000 + epoch_ms, value]
    if log.asked.max_value == _BOTH:
        columns.append(value)
    columns += [pl.col("op"), pl.col("bytes")]
    if log.asked.offset:
        columns.append(pl.col("offset"))
    columns.append(_priorities(log))
    if log.asked.issue_time:
        issued_ns = (ended_ns - pl.col("clat_ns").cast(pl.Int64)).clip(lower_bound=0)
        columns.append(issued_ns if log.kind in {"slat", "clat"} else pl.lit(0))
    texts = [column.cast(pl.String) for column in columns]
    return ios.select(pl.concat_str(texts, separator=", ").alias("line"))


def _priorities(log: LogFile) -> pl.Expr:
    """Each I/O's priority: its number, or whether it is of the real-time class."""
    if not log.asked.prio:
        return io_priority.class_of(pl.col("priority")).eq(io_priority.REAL_TIME).cast(pl.UInt8)
    return pl.col("priority").map_elements("0x{:04x}".format, return_dtype=pl.String)


def _no_priority(log: LogFile) -> str:
    """Return what fio writes of many I/Os."""
    return "0x0000" if log.asked.prio else "0"


def of_member(samples: pl.DataFrame, plan: Plan, log: LogFile) -> pl.DataFrame:
    """Return the samples that a log is about."""
    cells = [i for i, cell in enumerate(plan.cells) if cell.unit == log.member.unit]
    return samples.filter(~pl.col("ramp") & pl.col("cell").is_in(cells) & (pl.col("op") != SYNC))


def in_windows(rows: pl.DataFrame, start_ns: int, window_ms: int) -> pl.DataFrame:
    """Add the column `window`: where the middle of each interval falls.

    A last window of less than a tenth of the length goes to the one before.
    """
    window_ns = window_ms * 1_000_000
    middle_ns = (pl.col("start_ns").cast(pl.Int64) + pl.col("end_ns").cast(pl.Int64)) // 2 - start_ns
    placed = rows.with_columns((middle_ns.clip(lower_bound=0) // window_ns).alias("window"))
    if not placed.height:
        return placed
    last = placed.select(pl.col("window").max()).item()
    tail = placed.filter(pl.col("window") == last)
    length_ns = int(tail.select(pl.col("end_ns").max() - pl.col("start_ns").min()).item())
    if last and length_ns < window_ns // 10:
        placed = placed.with_columns(pl.col("window").clip(upper_bound=last - 1))
    return placed


def _of_windows(source: Source, log: LogFile, span: MeasuredSpan) -> list[str]:
    rows = in_windows(of_member(source.samples, source.plan, log), span.start_ns, log.window_ms)
    last = rows["window"].max() if rows.height else 0
    epoch_ms = _epoch_ms(source, log, span)
    return window_lines(
        source.plan, log, rows, lambda window: epoch_ms + _window_end_ms(log, window, last, span)
    )


def window_lines(plan: Plan, log: LogFile, rows: pl.DataFrame, end_ms: Callable[[int], int]) -> list[str]:
    """Return the lines of windows; `rows` have the column `window`."""
    if log.is_empty:
        return []
    if log.kind == "clat_hist":
        pattern, coarseness = plan.streams[log.stream].pattern, log.asked.hist_coarseness or 0
        return [
            f"{end_ms(window)}, {op}, {_largest(pattern, op)}, {columns}"
            for window, op, columns in histogram_rows(rows, coarseness)
        ]
    return [
        _window_line(log, end_ms(window), op, mean, most)
        for window, op, mean, most in _averages(log, rows).iter_rows()
    ]


def _averages(log: LogFile, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `window`, `op`, the average and the maximum of each window that has a line."""
    keys, length = ("window", "op"), pl.col("length_ns")
    if log.kind in {"bw", "iops"}:
        amount = pl.col("bytes") / 1024 if log.kind == "bw" else pl.col("ops")
        intervals = added_up(rows, keys, over="interval").with_columns(maximum=amount / length * 1e9)
        windows = added_up(intervals, keys, more={"length_ns": "sum", "maximum": "max"})
        return windows.select(*keys, (amount / length * 1e9).alias("average"), "maximum")
    windows = added_up(rows, keys, (log.kind,), "ops").filter(pl.col("ops") > 0)
    return windows.select(
        *keys,
        (pl.col(f"{log.kind}_sum_ns") / pl.col("ops")).alias("average"),
        pl.col(f"{log.kind}_max_ns").cast(pl.Float64).alias("maximum"),
    )


def _window_end_ms(log: LogFile, window: int, last: object, span: MeasuredSpan) -> int:
    end_ms = (window + 1) * log.window_ms
    # The last one may be cut short, or hold a little more; a few milliseconds are none of both.
    return span.ms if window == last and abs(span.ms - end_ms) > log.window_ms // 50 else end_ms


def _window_line(log: LogFile, end_ms: int, op: int, mean: float, most: float) -> str:
    style = log.asked.max_value or _AVERAGE
    values = [round(most if style == _MAXIMUM else mean)]
    if style == _BOTH:
        values.append(round(most))
    offset = ["0"] if log.asked.offset else []
    issued = ["0"] if log.asked.issue_time else []
    return ", ".join([str(end_ms), *map(str, values), str(op), "0", *offset, _no_priority(log), *issued])


def _largest(pattern: object, op: int) -> int:
    sizes = getattr(pattern, ("read", "write", "trim")[op]).sizes
    if sizes.type == "fixed":
        return int(sizes.bytes)
    if sizes.type == "range":
        return int(sizes.max_bytes)
    return max(int(entry.bytes) for entry in sizes.table)


def write_aggregate(source: Source, directory: Path) -> list[Path]:
    """Write fio's `--bandwidth-log`: all jobs' bandwidth, one file per direction."""
    shown = {member.unit for member in source.everyone if member.is_shown}
    cells = [index for index, cell in enumerate(source.plan.cells) if cell.unit in shown]
    rows = source.samples.filter(~pl.col("ramp") & (pl.col("op") != SYNC) & pl.col("cell").is_in(cells))
    windows = added_up(in_windows(rows, 0, AGGREGATE_WINDOW_MS), ("window", "op"))
    seconds_of = (pl.col("end_ns") - pl.col("start_ns")) / 1e9
    paths = aggregates(directory)
    for op, path in enumerate(paths):
        lines = [
            f"{(window + 1) * AGGREGATE_WINDOW_MS}, {round(count / 1024 / seconds)}, {op}, 0, 0"
            for window, kind, count, seconds in windows.select(
                "window", "op", "bytes", seconds_of
            ).iter_rows()
            if kind == op and seconds
        ]
        output.write(path, "".join(line + "\n" for line in lines))
    return paths


def aggregates(directory: Path) -> list[Path]:
    """Return the files of `--bandwidth-log`."""
    return [directory / f"agg-{name}_bw.log" for name in ("read", "write", "trim")]
