"""A run of a study in a few numbers: one line for all of it, or one per job and operation.

Knows how a run's totals become the lines that studies are tabled, drawn and compared by.
Knows neither other runs nor how they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, get_args

from loadstone.analysis.against_data_sheet import nearest
from loadstone.analysis.summary import summarise
from loadstone.analysis.tail import percentile_intervals
from loadstone.bundle import layout, members
from loadstone.errors import BundleError
from loadstone.messages import say
from loadstone.verdict import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.latency import Latency
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals
    from loadstone.bundle.study import Opened, Point

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
ALL_OPS: Final = "all"
WHOLE: Final = "total"
KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}
LARGE_BLOCK_BYTES: Final = 64 << 10
"""From about this mean size on bandwidth says more than IOPS."""
ROUNDED: Final = 0.9
"""A mean of blocks of 64 KiB may be a little less: of rates that were printed, or with the end of a file."""


def are_large(block_bytes: float) -> bool:
    """Tell whether bandwidth says more than IOPS of I/Os of this mean size."""
    return block_bytes >= ROUNDED * LARGE_BLOCK_BYTES


@dataclass(frozen=True)
class LineFigures:
    """One line of one run; None where nothing was measured."""

    job: str
    """Its name, or `WHOLE`."""
    op: str
    """`read`, `write`, `trim`, `sync`, or `ALL_OPS`: the first three together."""
    operations: int
    errors: int
    iops: Estimate | None
    bandwidth: Estimate | None
    latency: Latency | None
    """`lat`: from the intended start."""
    intervals_ns: dict[float, tuple[int, int] | None]
    """95 % interval of each percentile; empty for the lines of single jobs."""
    block_bytes: float | None
    """Mean size of an I/O."""
    asked_iops: float | None
    """What an open loop asked for; None in a closed loop."""
    held: bool | None
    sheet_share: Estimate | None = None
    """Of the data sheet's figure it came nearest to; None without one, and for the lines of single jobs."""
    verdict: Kind | None = None
    """Of its run, or of its phase where the run has several."""

    @property
    def valid(self) -> bool:
        """Whether anything may rest on its numbers."""
        return self.verdict != "not_valid"

    @property
    def mean_ns(self) -> Estimate | None:
        """The mean of its latency."""
        return self.latency.mean if self.latency else None

    @cached_property
    def percentiles_ns(self) -> dict[float, int | None]:
        """Those of its latency that a study shows."""
        return self.latency.percentiles(PERCENTILES) if self.latency else dict.fromkeys(PERCENTILES)

    @property
    def max_ns(self) -> int | None:
        """Its longest latency."""
        return None if self.latency is None or self.latency.max_ns is None else int(self.latency.max_ns)

    @property
    def large_blocks(self) -> bool:
        """Whether bandwidth says more than IOPS."""
        return self.block_bytes is not None and are_large(self.block_bytes)

    @property
    def rate(self) -> Estimate | None:
        """Bandwidth for large blocks, IOPS for others."""
        return self.bandwidth if self.large_blocks else self.iops


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run of a study and its lines; `whole` is None when nothing was measured, or in stages."""

    point: Point
    whole: LineFigures | None
    lines: tuple[LineFigures, ...]
    summary: Summary | None = None
    """What the numbers are from, for questions they do not answer."""
    silent: tuple[str, ...] = ()
    """The jobs that completed nothing and so have no line."""

    @property
    def valid(self) -> bool:
        """Whether all of its numbers may be built upon; its lines say which, where it ran in phases."""
        return self.point.verdict != "not_valid"


def sound(runs: Sequence[RunFigures]) -> list[RunFigures]:
    """Return what of some runs may be built upon: their valid lines; runs without one are left out."""
    valid_parts = [
        replace(
            one,
            whole=one.whole if one.valid else None,
            lines=tuple(line for line in one.lines if line.valid),
        )
        for one in runs
    ]
    return [one for one in valid_parts if one.lines]


def run(point: Point, summary: Summary | None) -> RunFigures:
    """Return a run's numbers."""
    if summary is None:
        return RunFigures(point, None, ())
    if point.status is None:
        # Nobody judged it, and nothing is to rest on a part of a run.
        cut = {"verdict": "not_valid", "error": say("bundle.study.not_ended")}
        point = point.model_copy(update=cut)
    silent = tuple(total.line.name for total in summary.totals("job") if not total.ops)
    return RunFigures(point, _whole(point, summary), tuple(_lines(point, summary)), summary, silent)


def runs(opened: Opened) -> list[RunFigures]:
    """Add up all runs of a study."""
    run_bundles = [(point, opened.bundles.get(point.name)) for point in opened.study.points]
    return [run(point, None if bundle is None else summarise(bundle)) for point, bundle in run_bundles]


def _verdicts(point: Point, summary: Summary) -> dict[int, Kind | None]:
    """Return the verdict on each job, by its line: that of its phase, as the run's result has it."""
    jobs, stages = summary.totals("job"), summary.totals("stage")
    verdicts: dict[int, Kind | None] = dict.fromkeys((job.line.key for job in jobs), point.verdict)
    if point.verdict is None or len(stages) < 2:
        return verdicts
    try:
        document = members.document(summary.bundle.path, layout.RESULT)
        kinds = [KINDS[one["verdict"]["kind"]] for one in document["phases"]]
    except (BundleError, LookupError, TypeError, ValueError):
        return verdicts  # A run that was killed has no result: all of it is what its study says.
    if len(kinds) == len(stages):
        for stage, kind in zip(stages, kinds, strict=True):
            stage_jobs = (job for job in jobs if set(job.line.streams) <= set(stage.line.streams))
            verdicts |= dict.fromkeys((job.line.key for job in stage_jobs), kind)
    return verdicts


def _whole(point: Point, summary: Summary) -> LineFigures | None:
    total = summary.total
    if total.data is None or not total.data.operations or len(summary.measurement.stages_of(total.line)) > 1:
        return None
    ops = total.requested
    lat = total.data.latencies.get("lat")
    intervals = percentile_intervals(summary.measurement, lat.histogram, PERCENTILES) if lat else {}
    op_pacing = [row for row in summary.pacing if row.unit == "ops"]
    # Jobs without a rate beside paced ones: nothing asked for the whole.
    paced = {row.job_key for row in op_pacing} == {job.line.key for job in summary.totals("job")}
    return _measured(
        WHOLE,
        ops[0] if len(ops) == 1 else ALL_OPS,
        total.data,
        sum(row.asked_per_s for row in op_pacing) if paced else None,
        held=all(row.held for row in op_pacing) if paced else None,
        intervals_ns=intervals,
        sheet_share=nearest(summary.spec),
        verdict=point.verdict,
    )


def _lines(point: Point, summary: Summary) -> list[LineFigures]:
    figures = []
    verdicts = _verdicts(point, summary)
    for total in summary.totals("job"):
        for op, stats in total.ops.items():
            row = next((r for r in summary.pacing if r.job_key == total.line.key and r.op == op), None)
            ops = row if row is not None and row.unit == "ops" else None
            figures.append(
                _measured(
                    total.line.name,
                    op,
                    stats,
                    ops.asked_per_s if ops else None,
                    held=row.held if row else None,
                    verdict=verdicts[total.line.key],
                )
            )
    return figures


def _measured(
    job: str,
    op: str,
    stats: OpTotals,
    asked_iops: float | None,
    *,
    held: bool | None,
    verdict: Kind | None,
    intervals_ns: dict[float, tuple[int, int] | None] | None = None,
    sheet_share: Estimate | None = None,
) -> LineFigures:
    return LineFigures(
        job=job,
        op=op,
        operations=stats.operations,
        errors=stats.errors,
        iops=stats.iops,
        bandwidth=stats.bandwidth,
        latency=stats.latencies.get("lat"),
        intervals_ns=intervals_ns or {},
        block_bytes=stats.bytes / stats.operations if stats.operations else None,
        asked_iops=asked_iops,
        held=held,
        sheet_share=sheet_share,
        verdict=verdict,
    )
