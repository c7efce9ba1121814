"""`loadstone export`: a bundle's results in another format.

Knows the names of the formats; they are written in `loadstone.report.exports`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.bundle.read import Bundle
from loadstone.cli import study

Kind = Literal["fio-json", "fio-logs", "csv", "parquet", "prometheus", "markdown"]


def export(
    bundle: Path, kind: Kind, /, *, output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
) -> int:
    """Write a bundle's results in another format.

    Parameters
    ----------
    bundle
        Directory of a run.
    kind
        Which format.
    output
        File, or directory for fio-logs [default: standard output; samples-flat.parquet and the current
        directory for what is not text].
    """
    study.refuse(bundle, "export")
    opened = Bundle.open(bundle)
    from loadstone.report.exports import export as write

    write(opened, kind, output)
    return exitcodes.DONE
