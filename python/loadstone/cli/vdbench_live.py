"""Interval lines while a run of a parameter file is going on, as vdbench prints them.

Knows when an interval is complete: when the engine has told of a time after it. The lines are made
of the bundle's own samples as they are written, so that they are those of a later export.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.bundle import layout
from loadstone.bundle.arrows import Follower
from loadstone.cli import talk
from loadstone.monitor.cpu import Cpu as Processors
from loadstone.report.vdbench import filelines, lines
from loadstone.report.vdbench.tally import (
    SECOND_NS,
    Cpu,
    Tally,
    added,
    asked_of,
    lengths_s,
    of_workloads,
    tallies,
    windowed,
)
from loadstone.report.vdbench.words import run_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.study.controller import Next

LAYOUT: Final = "50407"
_NUMBERS: Final = (
    *("start_ns", "end_ns", "stage", "op", "ops", "bytes"),
    *("clat_sum_ns", "clat_sumsq_ns2", "clat_max_ns"),
)
_KINDS: Final = ("user", "system", "irq", "iowait", "steal", "idle")


def watch(wanted: Next) -> IntervalLines | None:
    """Return who prints the lines of a run; None for one that is not from a parameter file."""
    facts = wanted.workload.global_options
    return IntervalLines(facts) if "rd" in facts else None


class IntervalLines:
    """A `session.Progress` that prints a line for each interval, and the averages at the end."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self._facts = facts
        self._window_ns = int(facts["interval"]) * SECOND_NS
        self._follower: Follower | None = None
        self._waiting: pl.DataFrame | None = None
        """Samples of intervals that are not complete."""
        self._done: list[Tally] = []
        self._processors = Processors()
        self._before = self._read()
        self._spent = dict.fromkeys(_KINDS, 0.0)
        self._grace_ns = 0
        self._asked_ops: frozenset[str] | None = None
        """What counts on file systems; None for SDs."""
        self._asked = (int(facts["elapsed"]) + int(facts["warmup"])) // int(facts["interval"])
        """Intervals that were asked for; a run that ends by its data may have fewer."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Say what runs."""
        self._follower = Follower(bundle / "samples.arrows", layout.SAMPLES)
        self._grace_ns = plan.interval_ns
        self._asked_ops = asked_of(plan, self._facts)
        talk.say(f"{_clock()} {run_line(self._facts)}")

    def event(self, event: Mapping[str, Any]) -> None:
        """Print the intervals that are complete."""
        if event.get("type") == "start":
            self._before = self._read()
        if event.get("type") == "tick":
            whole = (int(event["t_ns"]) - self._grace_ns) // self._window_ns
            # What ends after the time is up belongs to the last interval, which waits for it.
            whole = min(whole, self._asked - 1)
            if whole > len(self._done):
                self._print(whole)

    def finish(self) -> None:
        """Print what is left, and the averages."""
        waiting = self._read_on()
        if waiting.height:
            last = int(str(waiting["window"].max())) + 1
            self._print(max(min(last, self._asked), len(self._done) + 1))
        if not self._done:
            return
        first = (
            (int(self._facts["warmup"]) // int(self._facts["interval"]) or 1) if len(self._done) > 1 else 0
        )
        total = sum(self._spent.values())
        cpu = _shares(self._spent) if total else None
        name = f"avg_{first + 1}-{len(self._done)}"
        talk.say(self._line(name, added(self._done[first:]), cpu))
        if self._asked_ops is not None:
            ops = filelines.shown(self._asked_ops)
            for text in filelines.spread(LAYOUT, _clock(), name, self._done[first:], ops, cpu=True):
                talk.say(text)

    def _head(self) -> list[str]:
        date = time.strftime("%b %d, %Y")
        if self._asked_ops is None:
            return lines.header(LAYOUT, date, cpu=True)
        return filelines.header(LAYOUT, date, filelines.shown(self._asked_ops), cpu=True)

    def _line(self, name: str, tally: Tally, cpu: Cpu | None) -> str:
        if self._asked_ops is None:
            return lines.line(LAYOUT, _clock(), name, tally, cpu)
        return filelines.line(LAYOUT, _clock(), name, tally, filelines.shown(self._asked_ops), cpu=cpu)

    def _read_on(self) -> pl.DataFrame:
        """Return all samples of intervals that were not printed."""
        assert self._follower is not None  # noqa: S101 - `begin` comes first
        rows = self._follower.new().select(_NUMBERS)
        new = windowed(rows if self._asked_ops else of_workloads(rows), self._window_ns)
        self._waiting = new if self._waiting is None else pl.concat([self._waiting, new])
        return self._waiting

    def _print(self, upto: int) -> None:
        """Print the intervals up to one, the last of which takes what came late."""
        first = len(self._done)
        waiting = self._read_on().with_columns(pl.col("window").clip(first, self._asked - 1))
        self._waiting = waiting.filter(pl.col("window") >= upto)
        shifted = waiting.filter(pl.col("window") < upto).with_columns(pl.col("window") - first)
        cpu = self._since()
        for tally in tallies(shifted, lengths_s(shifted, upto - first), self._asked_ops):
            self._done.append(tally)
            number = len(self._done)
            if number % lines.EVERY == 1:
                for text in self._head():
                    talk.say(text)
            talk.say(self._line(str(number), tally, cpu))

    def _since(self) -> Cpu | None:
        """Return the use of the processors since the last time."""
        now = self._read()
        spent = {kind: now[kind] - self._before[kind] for kind in _KINDS}
        self._before = now
        if len(self._done) >= (int(self._facts["warmup"]) // int(self._facts["interval"]) or 1):
            self._spent = {kind: self._spent[kind] + spent[kind] for kind in _KINDS}
        return _shares(spent) if sum(spent.values()) else None

    def _read(self) -> dict[str, float]:
        growing = self._processors.read().growing
        return {kind: float(growing.get(f"cpu.all.{kind}_ns", 0)) for kind in _KINDS}


def _shares(spent: Mapping[str, float]) -> Cpu:
    whole = sum(spent.values())
    share = {kind: 100 * value / whole for kind, value in spent.items()}
    return Cpu(share["user"], share["system"] + share["irq"], share["iowait"], share["idle"])


def _clock() -> str:
    now = time.time()
    return time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
