"""Files of one JSON object per line whose last line may be cut off.

Knows that only a line with its line end was written in full. Knows no line's meaning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of the whole lines up to the first that cannot be read; no file is none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = []
    for line in content.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            break
        if isinstance(value, dict):
            found.append(value)
    return found
