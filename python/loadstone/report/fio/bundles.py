"""What fio would have written about a bundle's run.

The way in for everything that has a bundle: `loadstone fio` and `loadstone export BUNDLE
fio-json|fio-logs`. Units and meanings are fio's where docs/drop-in.md does not say
otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report.fio import collect, disk_use, document, iolog, logs, normal, terse
from loadstone.version import FIO_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.report.fio.stats import DiskUse
    from loadstone.workload.model import Workload


def source(
    bundle: Bundle,
    *,
    workload: Workload | None = None,
    disks: Sequence[DiskUse] | None = None,
    notes: Sequence[str] | None = None,
) -> collect.Source:
    """Gather what the results of a bundle are made of.

    What is not given comes from the bundle. Raises BundleError for a bundle without a
    readable Plan or workload.
    """
    if notes is None:
        notes = [str(note.get("text", note) if isinstance(note, dict) else note) for note in bundle.notes]
    requested_workload = workload if workload is not None else bundle.workload
    if bundle.doubt is not None:
        notes = [bundle.doubt, *notes]
    if disks is None:
        disks = disk_use.disks(bundle.host())
    return collect.Source(
        bundle.plan, requested_workload, bundle.samples(), bundle.events, notes=notes, disks=disks
    )


def json_document(bundle: Bundle, plus: bool = True) -> dict[str, Any]:
    """Return fio's JSON document of a run; with `plus`, histogram bins (`json+`)."""
    fio_json = document.document(collect.report(source(bundle)), plus=plus)
    return fio_json if bundle.verified is not False else {"loadstone verified": False, **fio_json}


def normal_text(bundle: Bundle) -> str:
    """Return fio's human output of a run, headers included."""
    report = collect.report(source(bundle))
    headers = (*report.headers, FIO_VERSION)
    return "".join(f"{row}\n" for row in headers) + normal.text(report)


def terse_lines(bundle: Bundle, version: int = 3) -> list[str]:
    """Return fio's terse lines of a run; versions 2 to 5."""
    return terse.lines(collect.report(source(bundle)), version)


def write_logs(bundle: Bundle, directory: Path) -> list[Path]:
    """Write the log files the run's jobs asked for under `directory`; return their paths.

    A run that asked for none gets averages of bandwidth, IOPS and latencies over the
    run's own intervals, by the names `<job>_<kind>.<N>.log`.
    """
    run_source, ios = source(bundle), logs.ios_of(bundle)
    written = logs.write(logs.asked_or_default(run_source), ios, directory)
    return written if ios is None else [*written, *iolog.write(run_source, ios, directory)]
