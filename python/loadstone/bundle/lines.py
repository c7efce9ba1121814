"""Files of one JSON object per line whose last line may be cut off.

Knows that only a line with its line end was written in full. Knows no line's meaning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read_lines(path: Path, *, without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the objects of the whole lines up to the first that cannot be read; no file is none.

    Keys in `without` are left out, so that what is bulky and not needed takes no memory.
    """
    found: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                value = json.loads(line)
                if isinstance(value, dict):
                    for key in without:
                        value.pop(key, None)
                    found.append(value)
    except FileNotFoundError:
        return []
    except ValueError:
        return found
    return found
