"""Writes `python/loadstone/plan/backends.json` from `contract/backends.json` (`make docs`): a row a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

CONTRACT: Final = Path(__file__).parents[2] / "contract" / "backends.json"


def text() -> str:
    """Return the table."""
    rows = json.loads(CONTRACT.read_text())
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(text())
