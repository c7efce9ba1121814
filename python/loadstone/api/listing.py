"""What was measured before: the runs and studies of a directory as a table.

Reads of each its manifest and `result.json`, which are held against the seal; no samples: who opens one
of them does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from loadstone import file_kind
from loadstone.bundle import layout, members, seal
from loadstone.bundle import study as on_disk
from loadstone.errors import BundleError, InputError, as_text
from loadstone.messages import make_error

RUNS: dict[str, pl.DataType] = {
    "path": pl.String(),
    "kind": pl.String(),
    "started": pl.Datetime("us", "UTC"),
    "status": pl.String(),
    "runs": pl.UInt32(),
    "iops": pl.Float64(),
    "bytes_per_s": pl.Float64(),
    "mean_ns": pl.Float64(),
    "p99_ns": pl.Float64(),
    "verdict": pl.String(),
}
"""Columns of `list_runs`; what is not known is null. `kind` is `run`, or what kind of study."""


def list_runs(directory: Path | str) -> pl.DataFrame:
    """Return a row for each run and study in a directory, the newest first.

    Columns are `RUNS`. A run that was never sealed has no figures here, nor one whose result was altered
    since. Raises `InputError` for what is no directory.
    """
    place = Path(directory)
    try:
        inside = sorted(place.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise make_error(InputError, "api.listing.no_directory", path=place) from error
    except OSError as error:
        raise make_error(InputError, "api.listing.unreadable", path=place, reason=error.strerror) from error
    rows = [row for path in inside if file_kind.is_directory(path) and (row := _row(path)) is not None]
    table = pl.DataFrame(rows, schema=pl.Schema(RUNS), orient="row")
    return table.sort("started", "path", descending=[True, False], nulls_last=True)


def _row(path: Path) -> dict[str, Any] | None:
    is_study = on_disk.is_study(path)
    if not is_study and not members.exists(path, layout.MANIFEST):
        return None
    row: dict[str, Any] = dict.fromkeys(RUNS) | {
        "path": as_text(str(path)),
        "kind": "run",
        "status": "unreadable",
    }
    try:
        whole = row | (_of_study(path) if is_study else {"runs": 1} | _of_run(path))
        pl.DataFrame([whole], schema=pl.Schema(RUNS), orient="row")
    except (BundleError, AttributeError, LookupError, TypeError, ValueError, OverflowError, PolarsError):
        # One that is damaged is listed as such: who opens it is told what is wrong.
        return row
    return whole


def _of_study(path: Path) -> dict[str, Any]:
    record = on_disk.read(path)
    return {
        "kind": record.kind,
        "started": _moment(record.started),
        "status": record.status,
        "runs": sum(point.bundle is not None for point in record.points),
    }


def _of_run(path: Path) -> dict[str, Any]:
    document = members.document(path, layout.MANIFEST)
    manifest = seal.Manifest.model_validate(document)
    began = manifest.created_unix_ns // 10**9
    row = {"started": datetime.fromtimestamp(began, UTC) if began else None, "status": manifest.status}
    if manifest.files is None:
        return row | {"status": "partial"}
    if not members.exists(path, layout.RESULT) and layout.RESULT not in manifest.files:
        return row
    if seal.differs(path, document, manifest, layout.RESULT):
        return row | {"status": "altered"}
    return row | _figures(members.document(path, layout.RESULT))


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    total, verdict = result.get("total") or {}, result.get("verdict") or {}
    latency = total.get("latency_ns") or {}
    return {
        "status": result["status"],
        "started": _moment(result.get("started")),
        "iops": total.get("iops"),
        "bytes_per_s": total.get("bandwidth_bytes_per_s"),
        "mean_ns": latency.get("mean"),
        "p99_ns": (latency.get("percentiles") or {}).get("99"),
        "verdict": verdict.get("kind"),
    }


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
