"""Which rules judged a line, and which weights chose its probes: digests of what a verdict rests on.

Knows the source of the audit, of the analysis it reads, and of the predictions, and the fitted numbers.
Judges nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from blake3 import blake3

import loadstone
from loadstone.explanations.weights import FILE, FITTED

ROOMS: Final = ("analysis", "audit", "explanations", "path")
DIGITS: Final = 12
ROOT: Final = Path(loadstone.__file__).parent


@cache
def rules_digest() -> str:
    """Return the digest of the present rules, fitted numbers apart."""
    told = blake3()
    for file in sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        told.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return told.hexdigest()[:DIGITS]


@cache
def weights_digest() -> str:
    """Return the digest of all that was fitted."""
    return blake3((ROOT / "explanations" / FILE).read_bytes()).hexdigest()[:DIGITS]


@cache
def choice_digest() -> str:
    """Return the digest of what chooses probes: how readings are weighed, and no regression on that."""
    return blake3(FITTED.weights.model_dump_json().encode()).hexdigest()[:DIGITS]
