"""The export formats by name: which takes a run, which a study too, and what writes each.

Knows names only; each format is made in `report`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from loadstone.bundle import study as on_disk
from loadstone.bundle.read import Bundle
from loadstone.errors import InputError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from loadstone.api.export_formats import Kind, Layout

VDBENCH: Final[dict[str, Literal["50406", "50407"]]] = {"vdbench": "50407", "vdbench-50406": "50406"}


def write(
    bundle: Path, kind: Kind, out: Path | None, *, layout: Layout | None = None, unverified: bool = False
) -> list[str]:
    """Write a run or a study to `out`; None: text to standard output. Return what is to be doubted of it.

    Raises `BundleError` for what cannot be read, `InputError` for a study where one run is meant
    and for a path that cannot be written.
    """
    if kind == "iometer-csv":
        from loadstone.report import exports, iometer

        text, doubts = iometer.export(bundle, layout or "1.1", unverified=unverified)
        exports.put(text, out)
        return list(doubts)
    if layout is not None:
        raise make_error(InputError, "api.export.layout", format=kind)
    if kind in VDBENCH:
        from loadstone.report.vdbench import pages

        return list(pages.export(bundle, out or Path(), VDBENCH[kind], unverified=unverified))
    if kind in ("csv", "markdown") and on_disk.is_study(bundle):
        from loadstone.report import exports
        from loadstone.report.study import page as study_page
        from loadstone.report.study import table_export

        of_study = table_export.csv if kind == "csv" else table_export.markdown
        read = study_page.read(bundle, unverified=unverified)
        exports.put(of_study(read), out)
        return list(read.doubts)
    refuse_study(bundle, f"export {kind}")
    opened = Bundle.open(bundle, unverified=unverified)
    if kind.startswith("fio-"):
        from loadstone.report.runs_to_export import refuse_unread

        refuse_unread(opened)
    from loadstone.report.exports import export

    export(opened, kind, out)
    return opened.doubts


def default(kind: Kind) -> Path | None:
    """Return where a format goes when nobody says where; None: standard output."""
    if kind in VDBENCH:
        return Path()
    from loadstone.report.exports import DEFAULTS

    return DEFAULTS.get(kind)


def refuse_study(path: Path, verb: str) -> None:
    """Raise InputError for a study where one run is meant, naming its runs."""
    if not on_disk.is_study(path):
        return
    points = on_disk.read(path, unverified=True).points
    bundles = [point.bundle for point in points if point.bundle is not None]
    key = "api.export.study_of_one" if len(bundles) == 1 else "api.export.study"
    hint = say("api.export.name_one", first=path / bundles[0]) if bundles else None
    raise make_error(InputError, key, hint=hint, path=path, runs=len(bundles), verb=verb)
