"""Writes `python/loadstone/plan/backends.py` from `contract/backends.json` (`make docs`).

Knows how a row of JSON becomes a row of Python. Knows no backend and no column.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "contract" / "backends.json"
MODULE: Final = ROOT / "python" / "loadstone" / "plan" / "backends.py"
HEAD: Final = '''"""What each backend of the engine can do, and what it asks for.

Generated from `contract/backends.json` by `tests/support/backend_table.py`: run `make docs`, do not
edit. What a column means is said in `crates/engine/src/plan/backend.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One row."""

'''


def text() -> str:
    """Return the module."""
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text())
    columns = [f"    {name}: {_type([row[name] for row in rows])}\n" for name in rows[0]]
    values = [f'    "{row["name"]}": Capabilities({_values(row)}),\n' for row in rows]
    return HEAD + "".join(columns) + "\n\nBACKENDS: Final = {\n" + "".join(values) + "}\n"


def _type(values: list[Any]) -> str:
    kinds = {type(value).__name__ for value in values}
    return " | ".join(sorted(kinds - {"NoneType"})) + (" | None" if "NoneType" in kinds else "")


def _values(row: dict[str, Any]) -> str:
    fields = (f"        {name}={_value(value)},\n" for name, value in row.items())
    return "\n" + "".join(fields) + "    "


def _value(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
