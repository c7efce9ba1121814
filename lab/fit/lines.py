"""The situations that weights are fitted on, and those that they are calibrated on, as kept with the source.

Knows the compressed file and what a line needs to be weighed again. Fits nothing.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blake3 import blake3
from lab.probes import rows
from lab.probes.draw import KINDS, NEVER_FITTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lab.probes.rows import Row

FILE: Final = Path(__file__).parent / "situations.jsonl.xz"
CALIBRATION: Final = Path(__file__).parent / "calibration.jsonl.xz"
"""Drawn later, as those are that are scored: nothing is fitted on them but how often it was right."""


def compact(row: Row) -> Row:
    """Return a line without what can be worked out again: words, bundles, what was said with probes."""
    plain = {key: value for key, value in row["plain"].items() if key != "explanations"}
    compacted = {key: row[key] for key in ("seed", "kind", "change", "rate", "facts")}
    tried = {key: _readings(row[key]) for key in ("tried", "tried_without") if row.get(key)}
    return {**compacted, "plain": plain, **tried}


def _readings(tried: Row) -> Row:
    return {
        **tried,
        "left_out": [],
        "tried": [
            {
                **one,
                "bundle": "",
                "result": "",
                "readings": [
                    {**reading, "value": round(reading["value"], 4), "error": round(reading["error"], 4)}
                    for reading in one["readings"]
                ],
            }
            for one in tried["tried"]
        ],
    }


def keep(every: Iterable[Row], file: Path = FILE, *, several: bool = False) -> None:
    """Write a file. `several`: with the families that weights and regressions never see."""
    fitted = (
        row
        for row in every
        if "failed" not in row and (several or KINDS[row["kind"]].family not in NEVER_FITTED)
    )
    lines = sorted((compact(row) for row in fitted), key=lambda row: int(row["seed"]))
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    file.write_bytes(lzma.compress(text.encode(), preset=9))


def kept(file: Path = FILE) -> tuple[list[Row], str]:
    """Return the situations that count, and the hash of all of them."""
    text = lzma.decompress(file.read_bytes())
    every = [json.loads(line) for line in text.splitlines()]
    return [row for row in every if rows.counts(row)], blake3(text).hexdigest()
