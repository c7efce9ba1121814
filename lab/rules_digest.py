"""Which rules judged a line: a digest of what a verdict rests on, fitted numbers apart.

Knows the source of the audit, of the analysis it reads, and of the predictions. Judges nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from blake3 import blake3

import loadstone

ROOMS: Final = ("analysis", "audit", "explanations", "path")
DIGITS: Final = 12


@cache
def rules_digest() -> str:
    """Return the digest of the present rules."""
    root = Path(loadstone.__file__).parent
    told = blake3()
    for file in sorted(file for room in ROOMS for file in (root / room).rglob("*.py")):
        told.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return told.hexdigest()[:DIGITS]
