"""A run or a study that was measured, opened: estimates, verdict, tables, report, exports.

Knows how the analysis becomes Polars frames. Computes no figure itself; each is computed when it
is first asked for.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from loadstone.analysis.summary import Summary, summarise
from loadstone.analysis.totals import PERCENTILES
from loadstone.api import exporting
from loadstone.audit.run import SealedFigures, audit
from loadstone.bundle import members
from loadstone.bundle import study as on_disk
from loadstone.bundle.disk import reason, remedy
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError, RunError
from loadstone.messages import make_error, say
from loadstone.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.api.export_formats import Kind, Layout
    from loadstone.errors import LoadstoneError
    from loadstone.session import Outcome
    from loadstone.verdict import Audited, Verdict

By = Literal["all", "stage", "group", "job", "unit", "target"]
TOGETHER = "all"
"""Reads, writes and trims of a line together."""
REPORT = "report.html"

_PERCENTILES = {percent: f"p{percent:g}_ns" for percent in PERCENTILES}
ESTIMATES: dict[str, pl.DataType] = {
    "name": pl.String(),
    "op": pl.String(),
    "measured_s": pl.Float64(),
    "operations": pl.UInt64(),
    "bytes": pl.UInt64(),
    "errors": pl.UInt64(),
    "iops": pl.Float64(),
    "iops_error": pl.Float64(),
    "bytes_per_s": pl.Float64(),
    "bytes_per_s_error": pl.Float64(),
    "mean_ns": pl.Float64(),
    "mean_ns_error": pl.Float64(),
    "stddev_ns": pl.Float64(),
    "min_ns": pl.UInt64(),
    "max_ns": pl.UInt64(),
    **{name: pl.UInt64() for name in _PERCENTILES.values()},
}
"""Columns of `Result.estimates`; an error is one standard error, and what is not known is null."""


class Result:
    """One run, whole or partial. `error` is what went wrong in a run made here.

    The bundle of a run made here is opened when something is read that was not computed for it.
    """

    def __init__(
        self, opened: Bundle | Path, ended: Outcome | None = None, figures: SealedFigures | None = None
    ) -> None:
        if isinstance(opened, Bundle):
            self._bundle = opened
        self._ended = ended
        self._path = opened.path if isinstance(opened, Bundle) else opened
        self.error: LoadstoneError | None = None if ended is None else ended.error
        self._told: dict[str, Any] | None = None
        if figures is not None and figures.summary is not None and figures.audited is not None:
            self.summary, self.audited, self._told = figures.summary, figures.audited, figures.told

    def __repr__(self) -> str:
        return f"<loadstone.Result {self.path} {self.status}>"

    @cached_property
    def _bundle(self) -> Bundle:
        return Bundle.open(self._path)

    @property
    def path(self) -> Path:
        """The bundle's directory."""
        return self._path

    @property
    def status(self) -> str:
        """`complete`, `interrupted`, `failed`, or `partial` for a run that was never sealed."""
        return self._bundle.status if self._ended is None else str(self._ended.status)

    @property
    def has_figures(self) -> bool:
        """Whether its figures could be computed when it ended; `error` says why not."""
        return self._ended is None or self._told is not None

    @property
    def exit_code(self) -> int:
        """What the command line ends with after such a run; 0 for one that was opened."""
        return 0 if self._ended is None else self._ended.exit_code

    @property
    def bundle(self) -> Bundle:
        """What it is made of, as the command line's reports take it; may change between versions."""
        return self._bundle

    @property
    def altered(self) -> str | None:
        """How it differs from what was sealed; None unless it was opened with `unverified`."""
        return self._bundle.doubt

    @property
    def doubts(self) -> list[str]:
        """Why these may not be all the numbers that were measured; empty when nothing speaks against it."""
        _ = self.summary.problems
        read = self.summary.bundle
        return read.doubts

    @cached_property
    def summary(self) -> Summary:
        """The run added up, as the command line's report and exports take it; may change between versions."""
        return summarise(self._bundle)

    @cached_property
    def audited(self) -> Audited:
        """The verdict on the run, and on each of its phases."""
        return audit(self.summary)

    @property
    def verdict(self) -> Verdict:
        """What the run's numbers are worth."""
        return self.audited.verdict

    def estimates(self, by: By = "job") -> pl.DataFrame:
        """Return rates and latencies: a row per line and operation, and one (`all`) of its data operations.

        Columns are `ESTIMATES`; docs/python.md describes them.
        """
        rows = [row for total in self.summary.totals(by) for row in _rows(total)]
        return pl.DataFrame(rows, schema=pl.Schema(ESTIMATES), orient="row")

    def samples(self) -> pl.DataFrame:
        """Return what the engine measured: a row per interval, job, target and operation."""
        from loadstone.report.exports import flat

        return flat(self._bundle)

    def ios(self) -> pl.DataFrame | None:
        """Return a row per I/O; None where the job did not ask for a log of them."""
        return self._bundle.ios()

    def host(self, *starts: str) -> pl.DataFrame:
        """Return the host's counters, once a second; with `starts` only columns that begin so."""
        return self._bundle.host(*starts)

    def document(self) -> dict[str, Any]:
        """Return the document of `--json` (docs/result-json.md)."""
        return self._told if self._told is not None else self.summary.document(self.audited)

    def print(self, screen: Screen | None = None, *, judged: bool = True) -> None:
        """Print the tables, the verdict and the answer as the command line does; `judged` as in `report`."""
        from loadstone.report.run import answer, terminal
        from loadstone.report.verdict import words as verdict

        screen = screen or Screen(highlight=False)
        terminal.summary(self.summary, screen)
        if judged:
            verdict.terminal(self.audited, screen)
            answer.terminal(answer.answer(self.summary, self.audited), screen)

    def report(self, path: Path | str | None = None, *, judged: bool = True) -> Path:
        """Write the report (.html, .md, .pdf, .svg or .png) and return where; in the bundle by default.

        Without `judged` it says nothing of what the rate is worth. Raises `RunError` where that fails.
        """
        from loadstone.output import check
        from loadstone.report.run import files

        where = self.path / REPORT if path is None else Path(path)
        check(where)
        try:
            files.write(self.summary, where, (lambda: self.audited) if judged else None)
        except (OSError, MemoryError) as error:
            elsewhere = say("api.report_elsewhere", bundle=str(self.path))
            raise make_error(
                RunError,
                "api.report_not_written",
                hint=remedy(error) if members.is_shortage(error) else elsewhere,
                path=str(where),
                reason=reason(error),
            ) from error
        return where

    def export(self, kind: Kind, path: Path | str, *, layout: Layout | None = None) -> Path:
        """Write the results in another format to a file, or a directory for several files."""
        unverified = self._bundle.verified is False
        exporting.write(self.path, kind, Path(path), layout=layout, unverified=unverified)
        return Path(path)


class Study:
    """Several runs that belong together: a list, repeats, a sweep or a curve."""

    def __init__(self, opened: on_disk.Opened) -> None:
        self._opened = opened
        self.runs = {name: Result(bundle) for name, bundle in opened.bundles.items()}

    def __repr__(self) -> str:
        return f"<loadstone.Study {self.path} {self.kind} of {len(self.runs)} runs>"

    @property
    def path(self) -> Path:
        """The study's directory."""
        return self._opened.path

    @property
    def kind(self) -> str:
        """`list`, `repeat`, `sweep` or `curve`."""
        return self._opened.study.kind

    @property
    def doubts(self) -> list[str]:
        """Why these may not be all the numbers that were measured."""
        return self._opened.doubts

    def points(self) -> pl.DataFrame:
        """Return a row per run: its name, role, status, verdict, and a column per factor."""
        points = self._opened.study.points
        factors = list(dict.fromkeys(name for point in points for name in point.factors))
        rows = [
            {
                "run": point.name,
                "role": point.role,
                "status": point.status,
                "verdict": point.verdict,
                **{name: point.factors.get(name) for name in factors},
            }
            for point in points
        ]
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)

    def estimates(self, by: By = "job") -> pl.DataFrame:
        """Return the estimates of all runs, with the run and its factors in front."""
        points = self.points()
        tables = [
            result.estimates(by).select(pl.lit(name).alias("run"), pl.all())
            for name, result in self.runs.items()
        ]
        if not tables:
            return pl.DataFrame(schema={"run": pl.String(), **ESTIMATES})
        return points.drop("status").join(pl.concat(tables), on="run", how="inner", maintain_order="left")


def open_bundle(path: Path | str, *, unverified: bool = False) -> Result:
    """Open the directory of a run. Raises `BundleError`.

    A sealed run is held against its seal; `unverified` opens it although something was altered.
    """
    if on_disk.is_study(Path(path)):
        raise make_error(BundleError, "api.results.study", path=path)
    return Result(Bundle.open(Path(path), unverified=unverified))


def open_study(path: Path | str, *, unverified: bool = False) -> Study:
    """Open the directory of a study. Raises `BundleError`."""
    return Study(on_disk.open_all(Path(path), unverified=unverified))


def _rows(total: Total) -> Iterator[dict[str, Any]]:
    lines: Iterable[tuple[str, OpTotals | None]] = [*total.ops.items(), (TOGETHER, total.data)]
    for op, stats in lines:
        if stats is not None:
            yield {
                "name": total.line.name,
                "op": op,
                "measured_s": total.measured_ns / 1e9,
                **_figures(stats),
            }


def _figures(stats: OpTotals) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "operations": stats.operations,
        "bytes": stats.bytes,
        "errors": stats.errors,
        "iops": stats.iops.value if stats.iops else None,
        "iops_error": stats.iops.error if stats.iops else None,
        "bytes_per_s": stats.bandwidth.value if stats.bandwidth else None,
        "bytes_per_s_error": stats.bandwidth.error if stats.bandwidth else None,
    }
    latency = stats.latencies.get("lat")
    if latency is not None:
        figures |= {
            "mean_ns": latency.mean_ns,
            "mean_ns_error": latency.mean_error_ns,
            "stddev_ns": latency.stddev_ns,
            "min_ns": latency.min_ns,
            "max_ns": latency.max_ns,
            **{name: latency.percentile(percent) for percent, name in _PERCENTILES.items()},
        }
    return figures
