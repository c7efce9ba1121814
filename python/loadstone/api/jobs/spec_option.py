"""`--spec`: the data sheet that a run or a study is held against.

Knows that the file goes into the bundle beside the job. What it says is `path.spec`'s to read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone import input_file
from loadstone.path import spec

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.path.spec import Spec


@dataclass(frozen=True, slots=True)
class DataSheet:
    """What was read, and the file's content for the bundle; both empty without `--spec`."""

    spec: Spec | None = None
    inputs: dict[str, bytes] = field(default_factory=dict)


def read(path: Path | None) -> DataSheet:
    """Read the file; raises `InputError` for what it cannot mean."""
    if path is None:
        return DataSheet()
    content = input_file.read(path, "data sheet")
    return DataSheet(spec.parse(content, path), {str(path): content})
