"""What a run looks like while it runs: events in, a few rows out.

Pure: knows the Plan and the engine's events, and no terminal. Rates are over the time since
the last look. Percentiles of several histograms cannot be had from their percentiles; where
a row covers more than one, the largest is shown, which the true value cannot exceed; that of the
total says that it is such a bound, because jobs may differ widely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.analysis.requested_ops import added_up_names
from loadstone.api.jobs.plan_lines import stage_lengths_ns, stages_of_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.plan.model import Plan


@dataclass(slots=True)
class ProgressRow:
    """One job and operation (or all of them) over `span_ns`."""

    job: str
    op: str
    ramp: bool = False
    ops: int = 0
    bytes: int = 0
    errors: int = 0
    p50_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0
    inflight: int = 0
    span_ns: int = 0
    bounds: bool = False
    """Whether the percentiles are the largest of several jobs."""
    _inflight: dict[object, int] = field(default_factory=dict)

    @property
    def iops(self) -> float | None:
        """Operations per second, `None` before any time has passed."""
        return self.ops * 1e9 / self.span_ns if self.span_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bandwidth, `None` before any time has passed."""
        return self.bytes * 1e9 / self.span_ns if self.span_ns else None

    def add(self, cell: object, row: Mapping[str, Any]) -> None:
        """Add one line of a tick."""
        self.ops += row["ops"]
        self.bytes += row["bytes"]
        self.errors += row["errors"]
        self.p50_ns = max(self.p50_ns, row["p50_ns"])
        self.p99_ns = max(self.p99_ns, row["p99_ns"])
        self.max_ns = max(self.max_ns, row["max_ns"])
        self.ramp = bool(row["ramp"])
        self._inflight[cell] = row["inflight"]
        self.inflight = sum(self._inflight.values())


@dataclass(slots=True)
class LayoutProgress:
    """Preparation of the files so far."""

    done_bytes: int
    total_bytes: int


@dataclass(slots=True)
class PhaseTotals:
    """What a phase came to, ramps left out."""

    number: int
    name: str
    ops: int = 0
    bytes: int = 0
    began_ns: int | None = None
    ended_ns: int = 0

    @property
    def _seconds(self) -> float:
        return (self.ended_ns - (self.began_ns or 0)) / 1e9

    @property
    def iops(self) -> float | None:
        """Operations per second, `None` when nothing was measured."""
        return self.ops / self._seconds if self.began_ns is not None and self._seconds > 0 else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bandwidth, `None` when nothing was measured."""
        return self.bytes / self._seconds if self.began_ns is not None and self._seconds > 0 else None


class ProgressTable:
    """Collects events; `take` gives the rows since the last take."""

    def __init__(self, plan: Plan) -> None:
        self._jobs = [plan.units[cell.unit].name for cell in plan.cells]
        self._stages_of = stages_of_cells(plan)
        self._stages = stage_lengths_ns(plan)
        self._names = stage_names(plan)
        self._added_up = added_up_names(plan)
        self._phase = PhaseTotals(1, self._names[0] if self._names else "")
        self._stage = 0
        self._stage_began_ns = 0
        self._now_ns = 0
        self._taken_ns = 0
        self._rows: dict[tuple[str, str], ProgressRow] = {}
        self._layout: dict[int, LayoutProgress] = {}
        self._errors = 0
        self.notes: list[str] = []
        self.running = False

    @property
    def phases(self) -> int:
        """How many phases the run has."""
        return len(self._stages)

    @property
    def phase(self) -> int:
        """The number of the phase that runs, from 1."""
        return self._stage + 1

    @property
    def share(self) -> float | None:
        """The part of the planned time that is over, `None` where bytes and not a clock end a phase."""
        left_ns = self.left_ns()
        whole = [length for length in self._stages if length is not None]
        if left_ns is None or len(whole) < len(self._stages) or not sum(whole):
            return None
        return 1 - left_ns / sum(whole)

    def event(self, event: Mapping[str, Any]) -> PhaseTotals | None:
        """Take note of one event; returns the phase that it ends, which is never the last."""
        over = None
        if event.get("type") == "stage" and event["stage"] > self._stage:
            over = self._phase
            name = self._names[event["stage"]] if event["stage"] < len(self._names) else ""
            self._phase = PhaseTotals(event["stage"] + 1, name)
        self._noted(event)
        return over

    def _noted(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "layout":
                self._layout[event["target"]] = LayoutProgress(event["done_bytes"], event["total_bytes"])
            case "start":
                self.running = True
            case "stage":
                self._stage, self._stage_began_ns = event["stage"], event["t_ns"]
                self._rows, self._taken_ns = {}, event["t_ns"]
                self._now_ns = max(self._now_ns, event["t_ns"])
            case "tick":
                self._tick(event)
            case "note" | "silent":
                self.notes.append(str(event["text"]))

    def layout(self) -> LayoutProgress | None:
        """Return the preparation over all targets, `None` when there is none or it is over."""
        if self.running or not self._layout:
            return None
        parts = self._layout.values()
        return LayoutProgress(sum(part.done_bytes for part in parts), sum(part.total_bytes for part in parts))

    def left_ns(self) -> int | None:
        """Time left as planned, `None` when bytes and not a clock end a stage still to come."""
        if not self.running:
            return None
        ahead = self._stages[self._stage :]
        known = [length for length in ahead if length is not None]
        if len(known) < len(ahead):
            return None
        return max(0, sum(known) - (self._now_ns - self._stage_began_ns))

    def take(self) -> tuple[list[ProgressRow], ProgressRow | None, int]:
        """Rows since the last take, their total (`None` without rows), errors since the start."""
        rows = list(self._rows.values())
        span_ns = self._now_ns - self._taken_ns
        total: ProgressRow | None = None
        for row in rows:
            row.span_ns = span_ns
            if row.op in self._added_up:
                total = total or ProgressRow("total", "", span_ns=span_ns)
                _merge(total, row)
        self._rows, self._taken_ns = {}, self._now_ns
        return rows, total, self._errors

    def _tick(self, event: Mapping[str, Any]) -> None:
        before_ns = max(self._now_ns, self._stage_began_ns)
        self._now_ns = event["t_ns"]
        self._errors += sum(line["errors"] for line in event["rows"])
        # The last I/Os of a phase may be told after it has ended.
        phase_rows = [line for line in event["rows"] if self._stage in self._stages_of[line["cell"]]]
        counted = [line for line in phase_rows if not line["ramp"] and line["op"] in self._added_up]
        if counted:
            phase = self._phase
            phase.began_ns = before_ns if phase.began_ns is None else phase.began_ns
            phase.ended_ns = self._now_ns
            phase.ops += sum(line["ops"] for line in counted)
            phase.bytes += sum(line["bytes"] for line in counted)
        for line in phase_rows:
            cell, op = line["cell"], line["op"]
            key = (self._jobs[cell], op)
            self._rows.setdefault(key, ProgressRow(*key)).add((cell, op), line)


def stage_names(plan: Plan) -> list[str]:
    """Return the jobs of each stage, in its order."""
    names: dict[int, dict[str, None]] = {}
    for stream in plan.streams:
        names.setdefault(plan.workers[stream.worker].stage, {})[
            stream.name.rpartition(".")[0] or stream.name
        ] = None
    titles = []
    for stage in sorted(names):
        first, *others = names[stage]
        titles.append(f"{first} and {len(others)} more" if others else first)
    return titles


def _merge(total: ProgressRow, row: ProgressRow) -> None:
    total.ops += row.ops
    total.bytes += row.bytes
    total.errors += row.errors
    total.bounds = bool(total.max_ns)
    total.p50_ns = max(total.p50_ns, row.p50_ns)
    total.p99_ns = max(total.p99_ns, row.p99_ns)
    total.max_ns = max(total.max_ns, row.max_ns)
    total.inflight += row.inflight
