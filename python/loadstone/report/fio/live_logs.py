"""fio's log files while the run goes on, for those who follow them; fio itself writes them at its end.

Knows which lines are certain: those of windows that later ones followed, and of I/Os that are done.
At the end `logs.write` makes the files what they are to be, and takes a line back only where it has
to: rows that came late, a stream that did not begin when it was due. Files of several jobs, and
packed ones, are left to it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone import output
from loadstone.bundle import layout
from loadstone.bundle.arrows import Follower
from loadstone.report.fio import zlib_log
from loadstone.report.fio.logs import (
    LOGGED,
    LogFile,
    in_windows,
    io_lines,
    of_member,
    requested,
    window_lines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.report.fio.reported_lines import Member

SECOND_NS: Final = 1_000_000_000


class GrowingLogs:
    """The logs of a run: tell it every event, and it writes what is certain once a second."""

    def __init__(self, plan: Plan, everyone: Sequence[Member], bundle: Path, directory: Path) -> None:
        files = requested(plan, everyone, directory)
        shared = Counter(file.path for file in files)
        self._logs = [_Log(plan, file) for file in files if shared[file.path] == 1 and _can_grow(file)]
        self._plan = plan
        self._samples = Follower(bundle / "samples.arrows", layout.SAMPLES)
        self._ios = Follower(bundle / "ios.arrows", layout.IOS)
        self._due_ns = SECOND_NS
        self._stages = {0: 0}
        self._unix_ns = 0

    @property
    def grown(self) -> dict[Path, output.GrowingFile]:
        """The files that were begun."""
        return {log.file.path: log.out for log in self._logs if log.out is not None}

    def event(self, event: Mapping[str, Any]) -> None:
        """Take notice of an event. Raises what `output` does when a file cannot be written."""
        if event.get("type") == "start":
            self._unix_ns = int(event["unix_ns"])
        elif event.get("type") == "stage":
            self._stages[int(event["stage"])] = int(event["t_ns"])
        elif event.get("type") == "tick" and self._logs and int(event["t_ns"]) >= self._due_ns:
            self._due_ns = int(event["t_ns"]) + SECOND_NS
            self._grow()

    def _grow(self) -> None:
        # What cannot be read now is read a second later, or once the bundle is sealed.
        if any(log.file.window_ms for log in self._logs) and (rows := _new(self._samples)) is not None:
            for log in self._logs:
                if log.file.window_ms and (start_ns := self._start_ns(log.file)) is not None:
                    log.windows(rows, start_ns, self._epoch_ms(log.file, start_ns))
        each_io = any(not log.file.window_ms for log in self._logs)
        if each_io and (new_ios := _new(self._ios)) is not None:
            ios = new_ios.filter(LOGGED & ~pl.col("ramp"))
            for log in self._logs:
                if not log.file.window_ms and (start_ns := self._start_ns(log.file)) is not None:
                    log.each_io(ios, start_ns, self._epoch_ms(log.file, start_ns))

    def _start_ns(self, file: LogFile) -> int | None:
        """Return when a stream is measured from, if its stage has begun."""
        stream = self._plan.streams[file.stream]
        stage = self._plan.workers[stream.worker].stage
        if stage not in self._stages:
            return None
        return self._stages[stage] + stream.limits.start_delay_ns + stream.limits.ramp_ns

    def _epoch_ms(self, file: LogFile, start_ns: int) -> int:
        return (self._unix_ns + start_ns) // 1_000_000 if file.asked.unix_epoch else 0


def _new(follower: Follower) -> pl.DataFrame | None:
    try:
        return follower.new()
    except OSError:
        return None


def _can_grow(file: LogFile) -> bool:
    if file.path.name.endswith(zlib_log.SUFFIX) or file.asked.alternate_epoch or file.is_empty:
        return False
    return bool(file.window_ms) or file.kind != "clat_hist"


class _Log:
    """One file, and what is not in it yet."""

    def __init__(self, plan: Plan, file: LogFile) -> None:
        self.file = file
        self.out: output.GrowingFile | None = None
        self._plan = plan
        self._waiting: pl.DataFrame | None = None
        self._done = 0
        """Windows that are written."""

    def windows(self, samples: pl.DataFrame, start_ns: int, epoch_ms: int) -> None:
        """Write the windows that another one followed."""
        window_ms = self.file.window_ms
        new = of_member(samples, self._plan, self.file)
        rows = new if self._waiting is None else pl.concat([self._waiting, new])
        placed = in_windows(rows, start_ns, window_ms)
        last = int(str(placed["window"].max())) if placed.height else 0
        whole = placed.filter((pl.col("window") < last) & (pl.col("window") >= self._done))
        self._done = max(self._done, last)
        self._waiting = placed.filter(pl.col("window") >= last).drop("window")
        lines = window_lines(self._plan, self.file, whole, lambda window: epoch_ms + (window + 1) * window_ms)
        if lines:
            self._append("".join(f"{line}\n" for line in lines))

    def each_io(self, ios: pl.DataFrame, start_ns: int, epoch_ms: int) -> None:
        """Write the I/Os that are done."""
        stream_ios = ios.filter(pl.col("stream") == self.file.stream)
        if stream_ios.height:
            lines = io_lines(stream_ios, self.file, start_ns, epoch_ms)
            self._append(lines.write_csv(include_header=False, quote_style="never"))

    def _append(self, text: str) -> None:
        if self.out is None:
            output.directory(self.file.path.parent)
            self.out = output.GrowingFile(self.file.path)
        self.out.append(text.encode())
