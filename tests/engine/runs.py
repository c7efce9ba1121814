"""Runs of the engine by itself, and what they left."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadstone.engine.binary import find

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class EngineOutcome:
    """What a run left: exit code, events, rows of the samples."""

    code: int
    events: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    out: Path

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == kind]

    def total(self, column: str, **where: Any) -> int:
        """Sum of a column over the rows with these values."""
        return sum(row[column] for row in self.rows if all(row[key] == value for key, value in where.items()))


def start(document: dict[str, Any], directory: Path) -> subprocess.Popen[str]:
    """Starts the engine; the caller keeps its standard input."""
    path = directory / "plan.json"
    path.write_text(json.dumps(document))
    return subprocess.Popen(
        [find(), "run", path, "--out", directory / "out"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], directory: Path) -> EngineOutcome:
    """Waits for the end, with standard input open, and reads what there is."""
    assert process.stdout is not None
    events = [json.loads(line) for line in process.stdout]
    code = process.wait(timeout=120)
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()
    out = directory / "out"
    return EngineOutcome(code, events, arrow_rows(out / "samples.arrows"), out)


def arrow_rows(path: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Rows of an Arrow stream, of these columns only when given; none without the file."""
    if not path.exists():
        return []
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        table = reader.read_all()
        rows: list[dict[str, Any]] = (table.select(columns) if columns else table).to_pylist()
    return rows


def run(document: dict[str, Any], directory: Path) -> EngineOutcome:
    """Runs a Plan to its end."""
    return finish(start(document, directory), directory)
