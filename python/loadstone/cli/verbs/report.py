"""`loadstone report`: the report of a run or a study, as a page or as charts.

Knows where it is written when nobody says where.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.errors import InputError

OVERLAY = Path("curves.html")


def report(
    bundle: Path,
    /,
    *others: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    unverified: Unverified = False,
) -> int:
    """Write the report of a run, a study, or another tool's result.

    Parameters
    ----------
    bundle
        Directory of a run or a study, also of one that was killed; another tool's result (what `loadstone
        audit` reads); or a directory of any of these.
    others
        More studies whose latency curves are laid over those of the first.
    output
        File to write: .html, .md or .pdf, of runs and studies also .svg or .png with all charts [default:
        report.html in a bundle or study; here curves.html for several studies, NAME-report.html for others].
    """
    from loadstone.bundle import study as on_disk

    if others or on_disk.is_study(bundle):
        return _studies([bundle, *others], output, unverified=unverified)
    from loadstone.audit.find_results import is_bundle

    if not is_bundle(bundle):
        return _results(bundle, output, unverified=unverified)
    from loadstone.api.results import open_bundle

    opened = open_bundle(bundle, unverified=unverified)
    where = opened.report(output)
    console.doubts(opened.doubts)
    console.say(f"report: {where}")
    return exitcodes.DONE


def _studies(paths: list[Path], output: Path | None, *, unverified: bool) -> int:
    from loadstone.bundle import study as on_disk
    from loadstone.cli.display.run_summary import REPORT
    from loadstone.output import check
    from loadstone.report.study import page as study_page

    for path in paths:
        if not on_disk.is_study(path):
            raise InputError(
                f"{path} is no study; only latency curves are laid over each other",
                hint="`loadstone curve` makes them; `loadstone compare` holds runs against each other",
            )
    where = output or (OVERLAY if len(paths) > 1 else paths[0] / REPORT)
    check(where)
    read = [study_page.read(path, unverified=unverified) for path in paths]
    study_page.write(read, where)
    console.doubts([doubt for one in read for doubt in one.doubts])
    console.say(f"report: {where}")
    return exitcodes.DONE


def _results(path: Path, output: Path | None, *, unverified: bool) -> int:
    """Write the report of another tool's result, or of a directory of results."""
    from loadstone.comparison.side import side
    from loadstone.output import check
    from loadstone.report import results

    found = side(path, unverified=unverified)
    where = output or Path(f"{path.resolve().stem}-{results.REPORT}")
    check(where)
    results.write(found, where)
    console.doubts(list(found.doubts))
    console.say(f"report: {where}")
    return exitcodes.DONE
