"""What fio writes: JSON, human and terse output, and log files.

The functions that take a bundle are in `bundles` and loaded when asked for: parts of this
room are used where nothing heavy may be imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadstone.report.fio.bundles import json_document, normal_text, source, terse_lines, write_logs

__all__ = ["json_document", "normal_text", "source", "terse_lines", "write_logs"]


def __getattr__(name: str) -> Any:
    """Load a function on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.bundles"), name)
