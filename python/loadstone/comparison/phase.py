"""One phase of one run, ready to be compared: what it did, how fast, and what its number is worth.

Knows how a phase is made of a bundle's stage or of another tool's case, and by what two phases
are repeats of each other. Pools and compares nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from loadstone.analysis.histogram import MIN_BEYOND, Histogram
from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.significance import Sample
from loadstone.analysis.study.curve import RATE
from loadstone.analysis.study.run_figures import are_large
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge, judge_case
from loadstone.comparison import measured_values, settings
from loadstone.comparison.metric import BANDWIDTH, IOPS
from loadstone.comparison.pattern_name import pattern

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Total
    from loadstone.audit.case import Case
    from loadstone.audit.foreign.reader import ForeignResults
    from loadstone.bundle.study import Factor, Point
    from loadstone.comparison.measured_values import OfJob, Value
    from loadstone.comparison.metric import Metric
    from loadstone.verdict import Verdict

REPEAT: Final = "repeat"
"""The factor of a study by which nothing differs."""
LEAST_SAMPLE: Final = 0.5
"""Of the usual length; what is shorter has no rate."""
MAX_POINTS: Final = 120
"""Of a course over time: more are not told apart on a chart."""
LatencyKind = Literal["lat", "clat"]
Tail = tuple[tuple[float, float], ...]
"""1 / (share of I/Os beyond), and the latency there in ns, while `MIN_BEYOND` I/Os lie beyond."""
OTHER_BLOCKS: Final = 0.1
"""Of a block size: by more than so much it is another one."""


@dataclass(frozen=True)
class ComparedPhase:
    """Jobs that ran at the same time, in one run."""

    run: str
    path: Path
    name: str
    pattern: str
    """In the words of a results table."""
    verdict: Verdict
    case: Case
    number: int
    """Which of the loads of this pattern in its run it is; repeats under one name are one load."""
    label: str = ""
    """What the study called the run, where a list gave it a name."""
    factors: Mapping[str, Factor] = field(default_factory=dict)
    """What a study varied, repeats apart."""
    values: Mapping[Metric, Value] = field(default_factory=dict)
    jobs: Mapping[OfJob, Value] = field(default_factory=dict)
    tails: Mapping[LatencyKind, Histogram | Tail] = field(default_factory=dict)
    """Of a bundle a histogram each; of another tool the percentiles that it printed, of one kind."""
    asked: tuple[float, float] = (0.0, 0.0)
    """Operations and bytes per second that all jobs together were to do at most; 0: no limit."""
    summary: Summary | None = None
    """Of a bundle: what it was made of."""
    stage: int = 0
    """Which line of its stages it is."""
    form: str = ""
    """What printed it, and how: `fio JSON`."""
    beside: tuple[Path, ...] = ()
    """Other results that ran at the same time and are in its numbers."""

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """What its jobs asked for, in the field's words: each run is held against many others."""
        return settings.of_phase(self)

    def tail(self, kind: LatencyKind) -> Tail:
        """Return one of its tails; empty where nobody kept it."""
        tail = self.tails.get(kind, ())
        return _tail(tail) if isinstance(tail, Histogram) else tail

    @property
    def valid(self) -> bool:
        """Whether anything may rest on its numbers."""
        return self.verdict.kind != "not_valid"

    @property
    def paths(self) -> tuple[Path, ...]:
        """All results that its numbers are of."""
        return (self.path, *self.beside)

    @property
    def why(self) -> str:
        """Why it is not valid, in a sentence."""
        decided = self.verdict.decided_by
        return decided[1] if decided is not None else self.verdict.sentences

    @property
    def paced(self) -> bool:
        """Whether its rate was asked for, so that only latency tells anything."""
        return bool(self.case.jobs) and all(
            job.paced or job.rate_iops is not None or job.rate_bytes_per_s is not None
            for job in self.case.jobs
        )

    @property
    def tells_rate(self) -> bool:
        """Whether it is known which rate was asked for, or that none was."""
        rated = [
            job.paced is not None or job.rate_iops is not None or job.rate_bytes_per_s is not None
            for job in self.case.jobs
        ]
        return self.case.source == "bundle" or (bool(rated) and all(rated))

    @property
    def large_blocks(self) -> bool:
        """Whether bandwidth tells more than IOPS."""
        block = self.block_bytes
        return isinstance(self.values.get(BANDWIDTH), Sample) if block is None else are_large(block)

    @property
    def block_bytes(self) -> float | None:
        """Bytes of an I/O on average."""
        iops, moved = self.values.get(IOPS), self.values.get(BANDWIDTH)
        if isinstance(iops, Sample) and isinstance(moved, Sample) and iops.value:
            return moved.value / iops.value
        return None

    @property
    def depth(self) -> int | None:
        """I/Os that all clones together keep outstanding; None where they were not counted."""
        if any(job.clones_from_times for job in self.case.jobs):
            return None
        parts = [None if job.iodepth is None else job.iodepth * (job.clones or 1) for job in self.case.jobs]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None

    def has_other_blocks(self, other: ComparedPhase) -> bool:
        """Tell whether its I/Os have another size, so that neither rate alone says which is faster."""
        one, two = self.block_bytes, other.block_bytes
        return one is not None and two is not None and abs(one - two) > OTHER_BLOCKS * abs(one)

    @property
    def on_a_curve(self) -> bool:
        """Whether it is one load of a latency curve, which is compared as a whole."""
        return RATE in self.factors

    @property
    def is_a_maximum(self) -> bool:
        """Whether it is the load in a closed loop that the others of its curve are shares of."""
        return RATE in self.factors and self.factors[RATE] is None

    @property
    def order_unknown(self) -> bool:
        """Whether nothing tells if its I/Os were in order or at random."""
        return any(job.operation is None and job.random_percent is None for job in self.case.jobs)

    @property
    def names(self) -> tuple[str, ...]:
        """The jobs by name."""
        return tuple(sorted(job.job for job in self.case.jobs))


def phases(
    path: Path, foreign_results: ForeignResults, point: Point | None, *, named: bool = False
) -> Iterator[ComparedPhase]:
    """Make the phases of one result, in their order; `named`: the name of its point means something."""
    loads_by_pattern: dict[str, list[Hashable]] = {}
    summary: Summary | None = foreign_results.summary
    summary_fields = iter(_of_summary(summary)) if summary is not None else None
    for case, verdict in _judged(foreign_results):
        fields: dict[str, Any] = next(summary_fields) if summary_fields is not None else of_case(case)
        if case.source == "published" and case.setup.baseline:
            continue
        words = pattern(case)
        phase = ComparedPhase(
            run=point.name if point is not None else path.name or str(path),
            path=path,
            name=case.name,
            pattern=words,
            verdict=verdict if verdict is not None else judge_case(case),
            case=case,
            number=1,
            form=foreign_results.format.partition(" (")[0],
            label=_label(point) if named else "",
            factors={} if point is None else {k: v for k, v in point.factors.items() if k != REPEAT},
            **fields,
        )
        loads = loads_by_pattern.setdefault(words, [])
        # Under its own name once more it is a repeat, where all that may differ is known.
        load: Hashable = (case.name, phase.names) if phase.depth is not None else len(loads)
        if load not in loads:
            loads.append(load)
        yield replace(phase, number=1 + loads.index(load))


def _judged(foreign_results: ForeignResults) -> Iterator[tuple[Case, Verdict | None]]:
    """Yield a case for each stage, with its verdict where that rests on more.

    On several hosts a stage is one phase of all of them, and worth as much as the worst of its hosts.
    """
    summary = foreign_results.summary
    if summary is None or summary.bundle.hosts is None:
        for case in foreign_results.cases:
            yield case, None
        return
    of_all = [one for one in foreign_results.cases if one.of_host is None]
    by_host: dict[str, list[Case]] = {}
    for one in foreign_results.cases:
        if one.of_host is not None:
            by_host.setdefault(one.of_host, []).append(one)
    for at, case in enumerate(cases(summary)):
        of_stage = [own[at] for own in by_host.values() if at < len(own)]
        yield case, judge([*of_all, *of_stage]).verdict


def _label(point: Point | None) -> str:
    if point is None:
        return ""
    return point.name.removesuffix(f" {REPEAT} {point.factors.get(REPEAT)}")


def _of_summary(summary: Summary) -> Iterator[dict[str, Any]]:
    jobs = summary.totals("job")
    for total in summary.totals("stage"):
        stage_jobs = [job for job in jobs if set(job.line.streams) <= set(total.line.streams)]
        latencies = total.data.latencies if total.data is not None else {}
        yield {
            "values": measured_values.of_stage(total, {}),
            "jobs": {
                key: value
                for job in stage_jobs
                for key, value in measured_values.of_jobs(summary, job, {}).items()
            },
            "tails": {kind: latencies[kind].histogram for kind in ("lat", "clat") if kind in latencies},
            "asked": _planned_rate(summary, total),
            "summary": summary,
            "stage": total.line.key,
        }


def _tail(histogram: Histogram) -> Tail:
    least = MIN_BEYOND / histogram.count if histogram.count else 1.0
    beyond, values_ns = histogram.tail_columns()
    enough = beyond >= least
    inverse, far_ns = 1 / beyond[enough], values_ns[enough].astype(np.float64)
    return tuple(zip(inverse.tolist(), far_ns.tolist(), strict=True))


def _printed_tails(case: Case) -> dict[LatencyKind, Tail]:
    """Return the percentiles that a tool printed of a phase with one operation: others cannot be added."""
    of_all = case.total if len(case.ops) != 1 else next(iter(case.ops.values()))
    if of_all.printed is None or not of_all.operations:
        return {}
    kind, latency = of_all.printed
    least = 100 * MIN_BEYOND / of_all.operations
    points = tuple(
        (100 / (100 - percent), ns)
        for percent, ns in sorted(latency.printed.items())
        if 100 - percent >= least and ns > 0
    )
    return {"clat" if kind == "clat" else "lat": points}


def _planned_rate(summary: Summary, total: Total) -> tuple[float, float]:
    """Return what the Plan says: what was due in the measured time is never the same twice."""
    by_unit = {"ops": 0.0, "bytes": 0.0}
    for index in total.line.streams:
        stream = summary.measurement.plan.streams[index]
        pace, tree = stream.pace, stream.tree
        for rate in (pace.read, pace.write, pace.trim, tree.rate if tree is not None else None):
            if rate is not None:
                by_unit[rate.amount.unit] += rate.amount.per_second
    return by_unit["ops"], by_unit["bytes"]


def with_tails(phase: ComparedPhase) -> ComparedPhase:
    """Return a phase whose percentiles have errors, from within its run: repeats tell better ones."""
    summary = phase.summary
    if summary is None:
        return phase
    by_stage, by_job = measured_values.tails(summary)
    total = next(one for one in summary.totals("stage") if one.line.key == phase.stage)
    stage_jobs = [job for job in summary.totals("job") if set(job.line.streams) <= set(total.line.streams)]
    jobs = {
        key: value
        for job in stage_jobs
        for key, value in measured_values.of_jobs(summary, job, by_job).items()
    }
    return replace(phase, values=measured_values.of_stage(total, by_stage), jobs=jobs)


def of_case(case: Case) -> dict[str, Any]:
    """Return the fields of a phase that follow from another tool's case."""
    values = measured_values.of_case(case)
    known = [one.value for one in case.repeats]
    if case.source == "published" and len(known) > 1 and any(known):
        # Its figure is the mean of runs that were all printed, of the one rate or of the other. They are
        # rounded: three that are alike are not known without an error.
        printed_metric = BANDWIDTH if case.total.iops is None else IOPS
        rounding = measured_values.rounding_error(known, printed_metric)
        for metric in (IOPS, BANDWIDTH):
            rate = values.get(metric)
            if isinstance(rate, Sample):
                scale = rate.value / (sum(known) / len(known))
                printed = statistics.of_runs([Sample(one * scale, None, None) for one in known])
                values[metric] = replace(printed, error=max(printed.error or 0.0, rounding * scale))
    requested_rates = (
        sum(job.rate_iops or 0.0 for job in case.jobs),
        sum(job.rate_bytes_per_s or 0.0 for job in case.jobs),
    )
    return {
        "values": values,
        "jobs": measured_values.of_case_jobs(case),
        "tails": _printed_tails(case),
        "asked": requested_rates,
    }


def rate_over_time(phase: ComparedPhase) -> tuple[tuple[float, float], ...]:
    """Return the rate over time, seconds since the phase began; empty where nobody kept it."""
    table = measured_values.over_time(phase.case)
    column = "bytes_per_s" if phase.large_blocks else "iops"
    if table is None or table.height == 0 or column not in table.columns or "start_ns" not in table.columns:
        return ()
    if "end_ns" in table.columns:
        # The moment in which a phase drains is no sample.
        length = pl.col("end_ns") - pl.col("start_ns")
        table = table.filter(length >= LEAST_SAMPLE * length.median())
    whole = table.group_by("start_ns").agg(pl.col(column).sum()).sort("start_ns")
    first = whole["start_ns"][0]
    every = -(-whole.height // MAX_POINTS)
    parts = whole.group_by(pl.int_range(pl.len()) // every, maintain_order=True).agg(
        pl.col("start_ns").first(), pl.col(column).mean()
    )
    rows = parts.select("start_ns", column).iter_rows()
    return tuple(((at - first) / 1e9, float(rate)) for at, rate in rows if rate is not None)
