from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from loadstone.bundle import arrows, layout
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_follower_reads_every_row_once_however_the_file_grows(tmp_path: Path) -> None:
    made = runs.make(tmp_path / "a", seconds=4.0, seal=None)
    whole = (made.path / "samples.arrows").read_bytes()
    growing = tmp_path / "growing.arrows"
    follower = arrows.Follower(growing, layout.SAMPLES)
    assert follower.new().height == 0
    found = []
    # Cuts fall into the header, into messages, and between them.
    for end in [*range(0, len(whole), 997), len(whole)]:
        growing.write_bytes(whole[:end])
        found.append(follower.new())
    assert follower.new().height == 0
    assert len([piece for piece in found if piece.height]) > 3
    assert pl.concat(found).equals(arrows.read(made.path / "samples.arrows", layout.SAMPLES))
