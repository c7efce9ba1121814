"""The heads of tables, by their names in the catalogue of messages.

Knows which of them are terms of the field, which every language writes alike. Knows no table.
"""

from __future__ import annotations

import re
from typing import Final

from loadstone.messages import say

TERM: Final = re.compile(r"(?:IOPS|op|min|max|stddev|p\d+(?:\.\d+)?)?")
"""IOPS, statistics and percentiles, and the head of a column that has none."""


def table_heads(*names: str) -> tuple[str, ...]:
    """Return the heads of columns: a term as it is, any other as `report.column` of the catalogue has it."""
    return tuple(one if TERM.fullmatch(one) else say(f"report.column.{one}") for one in names)
