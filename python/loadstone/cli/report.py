"""`loadstone report`: the report of a bundle as a page or as charts.

Knows where it is written when nobody says where.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.bundle.read import Bundle
from loadstone.cli import study, talk
from loadstone.cli.finish import REPORT


def report(
    bundle: Path, /, *, output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
) -> int:
    """Write the report of a bundle.

    Parameters
    ----------
    bundle
        Directory of a run; one that was killed will do.
    output
        File to write: .html, .svg, .png or .pdf [default: report.html in the bundle].
    """
    study.refuse(bundle, "report")
    opened = Bundle.open(bundle)
    from loadstone.analysis.summary import summarise
    from loadstone.audit.run import audit
    from loadstone.report import page

    where = output or bundle / REPORT
    made = summarise(opened)
    page.write(made, where, audit(made))
    talk.say(f"report: {where}")
    return exitcodes.DONE
