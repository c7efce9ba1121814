"""`loadstone export`: a bundle's results in another format.

Knows the names of the formats; they are written in `loadstone.report.exports`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.api.export_formats import Kind, Layout  # noqa: TC001 - the argument parser reads it
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.errors import InputError, Where
from loadstone.messages import make_error


def export(
    bundle: Path,
    kind: Kind,
    where: Path | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    layout: Layout | None = None,
    unverified: Unverified = False,
) -> int:
    """Write a bundle's results in another format.

    Parameters
    ----------
    bundle
        Directory of a run; of a study, too, for csv, markdown, iometer-csv and vdbench.
    kind
        Which format. vdbench is the files of 5.04.07, vdbench-50406 those of 5.04.06.
    where
        The same as --output.
    output
        File, or directory for fio-logs and vdbench [default: standard output; samples-flat.parquet and the
        current directory for what is not text].
    layout
        Columns of iometer-csv: of Iometer 1.1, or the 56 of 2008 and 2006 [default: 1.1].
    """
    if where is not None and output is not None:
        raise make_error(InputError, "cli.option.twice", where=Where("command line", option="--output"))
    if layout is not None and kind != "iometer-csv":
        raise make_error(
            InputError, "cli.export.layout", where=Where("command line", option="--layout"), format=kind
        )
    from loadstone.api import exporting

    out = output or where or exporting.default(kind)
    console.doubts(exporting.write(bundle, kind, out, layout=layout, unverified=unverified))
    return _tell_place(out)


def _tell_place(out: Path | None) -> int:
    """Tell where it was written."""
    if out is not None:
        console.say(f"export: {'files in ' if out.is_dir() else ''}{out.absolute()}")
    return exitcodes.DONE
