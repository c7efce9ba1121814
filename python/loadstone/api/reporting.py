"""The report of anything that was measured: a run, studies, another tool's result, a directory of results.

Knows which report a path has, and where it is written when nobody says where.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.api.results import REPORT, open_bundle
from loadstone.audit.find_results import SearchProgress, is_bundle
from loadstone.bundle import study as on_disk
from loadstone.bundle.experiment import is_experiment
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.output import check

if TYPE_CHECKING:
    from collections.abc import Sequence

OVERLAY: Final = Path("curves.html")


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Where a report was written, and why its figures may not be all that was measured."""

    path: Path
    doubts: tuple[str, ...]
    not_read: str | None = None
    """That results in a directory could not be read, in a sentence."""
    passed_over: tuple[str, ...] = ()
    """What was not read in it, each with its reason."""


def check_report(path: Path) -> None:
    """Raise `InputError` or `RefusedError` where a report could not be written: before anything is read."""
    check(path)


def write_report(
    result: Path | str, *others: Path | str, output: Path | str | None = None, unverified: bool = False
) -> WrittenReport:
    """Write the report of a run, a study, an experiment, another tool's result, or a directory of those.

    `others` are more studies, whose latency curves are laid over those of the first. `output` ends in
    .html, .md or .pdf, of runs and studies also in .svg or .png [default: report.html in a bundle or study;
    here curves.html for several studies, NAME-report.html for the rest]. Raises `InputError` for what cannot
    be read or written, `BundleError` for a damaged bundle. An experiment that may be `unverified` is reported
    as the study that it is.
    """
    path, out = Path(result), None if output is None else Path(output)
    if not others and not unverified and is_experiment(path):
        from loadstone.api.experimenting import open_experiment

        return WrittenReport(open_experiment(path).report(out), ())
    if others or on_disk.is_study(path):
        return _studies([path, *map(Path, others)], out, unverified=unverified)
    if not is_bundle(path):
        return _results(path, out, unverified=unverified)
    opened = open_bundle(path, unverified=unverified)
    return WrittenReport(opened.report(out), tuple(opened.doubts))


def _studies(paths: Sequence[Path], output: Path | None, *, unverified: bool) -> WrittenReport:
    from loadstone.report.study import page as study_page

    for path in paths:
        if not on_disk.is_study(path):
            raise make_error(InputError, "api.report.no_study", path=path)
    where = output or (OVERLAY if len(paths) > 1 else paths[0] / REPORT)
    check(where)
    read = [study_page.read(path, unverified=unverified) for path in paths]
    study_page.write(read, where)
    return WrittenReport(where, tuple(doubt for one in read for doubt in one.doubts))


def _results(path: Path, output: Path | None, *, unverified: bool) -> WrittenReport:
    from loadstone.comparison.side import side
    from loadstone.report import results_report

    one_side = side(path, SearchProgress(unverified=unverified))
    where = output or Path(f"{path.resolve().stem}-{results_report.REPORT}")
    check(where)
    results_report.write(one_side, where)
    passed_over = tuple(one_side.said_of(one) for one in one_side.passed)
    return WrittenReport(where, tuple(one_side.doubts), one_side.not_read, passed_over)
