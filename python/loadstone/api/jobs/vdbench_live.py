"""Interval lines while a run of a parameter file is going on, as vdbench prints them.

Knows when an interval is complete: when the engine has told of a time after it. The lines are made
of the bundle's own samples as they are written, so that they are those of a later export.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

from loadstone.monitor.cpu import Cpu as Processors
from loadstone.report.vdbench import interval_lines, interval_lines_fs
from loadstone.report.vdbench.interval_totals import (
    CPU_KINDS,
    SECOND_NS,
    CpuUse,
    IntervalTotals,
    added,
    asked_of,
    shares,
    tallies,
)
from loadstone.report.vdbench.live_intervals import LiveSamples
from loadstone.report.vdbench.wording import run_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.study.controller import Next

LAYOUT: Final = "50407"


def watch(wanted: Next, say: Callable[[str], None]) -> IntervalLines | None:
    """Return who says the lines of a run; None for one that is not from a parameter file."""
    facts = wanted.workload.global_options
    return IntervalLines(facts, say) if "rd" in facts else None


class IntervalLines:
    """A `session.Progress` that says a line for each interval, and the averages at the end."""

    def __init__(self, facts: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._facts = facts
        self._say = say
        self._windows: LiveSamples | None = None
        self._done: list[IntervalTotals] = []
        self._processors = Processors()
        self._before = self._read()
        self._spent = dict.fromkeys(CPU_KINDS, 0.0)
        self._grace_ns = 0
        self._asked_ops: frozenset[str] | None = None
        """What counts on file systems; None for SDs."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Say what runs."""
        self._asked_ops = asked_of(plan, self._facts)
        interval_s = int(self._facts["interval"])
        # A run that ends by its data may have fewer.
        intervals = (int(self._facts["elapsed"]) + int(self._facts["warmup"])) // interval_s
        on_files = self._asked_ops is not None
        self._windows = LiveSamples(bundle, interval_s * SECOND_NS, intervals, on_files=on_files)
        self._grace_ns = plan.interval_ns
        self._say(f"{_clock()} {run_line(self._facts)}")

    def event(self, event: Mapping[str, Any]) -> None:
        """Print the intervals that are complete."""
        if event.get("type") == "start":
            self._before = self._read()
        if event.get("type") == "tick" and self._windows is not None:
            whole = self._windows.complete(int(event["t_ns"]), self._grace_ns)
            if whole > len(self._done):
                self._print(whole)

    def finish(self) -> None:
        """Print what is left, and the averages."""
        begun = 0
        with contextlib.suppress(OSError):
            begun = 0 if self._windows is None else self._windows.begun()
        if begun > len(self._done):
            self._print(begun)
        if not self._done:
            return
        first = (
            (int(self._facts["warmup"]) // int(self._facts["interval"]) or 1) if len(self._done) > 1 else 0
        )
        cpu = shares(self._spent)
        name = f"avg_{first + 1}-{len(self._done)}"
        self._say(self._line(name, added(self._done[first:]), cpu))
        if self._asked_ops is not None:
            ops = interval_lines_fs.shown(self._asked_ops, LAYOUT)
            for text in interval_lines_fs.spread(LAYOUT, _clock(), name, self._done[first:], ops, cpu=True):
                self._say(text)

    def _head(self) -> list[str]:
        date = time.strftime("%b %d, %Y")
        if self._asked_ops is None:
            return interval_lines.header(LAYOUT, date, cpu=True)
        return interval_lines_fs.header(
            LAYOUT, date, interval_lines_fs.shown(self._asked_ops, LAYOUT), cpu=True
        )

    def _line(self, name: str, tally: IntervalTotals, cpu: CpuUse | None) -> str:
        if self._asked_ops is None:
            return interval_lines.line(LAYOUT, _clock(), name, tally, cpu)
        return interval_lines_fs.line(
            LAYOUT, _clock(), name, tally, interval_lines_fs.shown(self._asked_ops, LAYOUT), cpu=cpu
        )

    def _print(self, upto: int) -> None:
        """Print the intervals up to one."""
        assert self._windows is not None  # noqa: S101 - `begin` comes first
        try:
            rows, lengths = self._windows.take(upto)
        except OSError:
            return  # A table for who looks on ends no run: it is read again at the next tick.
        cpu = self._since()
        for tally in tallies(rows, lengths, self._asked_ops):
            self._done.append(tally)
            number = len(self._done)
            if number % interval_lines.EVERY == 1:
                for text in self._head():
                    self._say(text)
            self._say(self._line(str(number), tally, cpu))

    def _since(self) -> CpuUse | None:
        """Return the use of the CPUs since the last time."""
        now = self._read()
        spent = {kind: now[kind] - self._before[kind] for kind in CPU_KINDS}
        self._before = now
        if len(self._done) >= (int(self._facts["warmup"]) // int(self._facts["interval"]) or 1):
            self._spent = {kind: self._spent[kind] + spent[kind] for kind in CPU_KINDS}
        return shares(spent)

    def _read(self) -> dict[str, float]:
        growing = self._processors.read().growing
        return {kind: float(growing.get(f"cpu.all.{kind}_ns", 0)) for kind in CPU_KINDS}


def _clock() -> str:
    now = time.time()
    return time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
