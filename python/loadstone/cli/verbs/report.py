"""`loadstone report`: the report of a run or a study, as a page or as charts.

Knows what is said of it; `loadstone.write_report` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.errors import InputError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence


def report(
    bundle: Path,
    /,
    *others: Path,
    output: Annotated[list[Path] | None, Parameter(name=["--output", "-o"], negative="")] = None,
    unverified: Unverified = False,
) -> int:
    """Write the report of a run, a study, an experiment, or another tool's result.

    Parameters
    ----------
    bundle
        Directory of a run, a study or an experiment, also of one that was killed. Or another tool's result
        (what `loadstone audit` reads), or a directory of any of these.
    others
        More studies whose latency curves are laid over those of the first.
    output
        File to write (repeat for several): .html, .md or .pdf, of runs and studies also .svg or .png with
        all charts. [default: report.html in a bundle or study; here curves.html for several studies,
        NAME-report.html for others].
    """
    from loadstone.api import drawing

    with drawing.early_of_run(bundle, output or [Path("report.html")]):
        return _written(bundle, others, output, unverified=unverified)


def _written(bundle: Path, others: Sequence[Path], output: Sequence[Path] | None, *, unverified: bool) -> int:
    from loadstone.api.reporting import check_report, write_report

    for named in output or []:
        check_report(named)
    doubts: tuple[str, ...] = ()
    left_out: str | None = None
    passed_over: tuple[str, ...] = ()
    wanted: Sequence[Path | None] = output or [None]
    for path in wanted:
        try:
            written = write_report(bundle, *others, output=path, unverified=unverified)
        except InputError as error:
            if path is not None or not isinstance(error.__cause__, OSError):
                raise
            # Nobody chose the place that cannot be written.
            hint = say("api.report_elsewhere", bundle=bundle)
            raise InputError(error.message, where=error.where, hint=hint) from error
        if written.doubts != doubts:
            console.doubts(written.doubts)
        doubts = written.doubts
        left_out, passed_over = written.not_read, written.passed_over
        console.say(f"report: {written.path}")
    for sentence in passed_over:
        console.say(f"warning: {sentence}")
    return exitcodes.DONE if left_out is None else exitcodes.USAGE
