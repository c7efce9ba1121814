from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

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


@pytest.mark.parametrize("said", [4096, 1 << 46, -1])
def test_a_buffer_that_its_message_has_no_room_for_is_damage(tmp_path: Path, said: int) -> None:
    """Found by fuzzing: Polars took 158 TB for it, got none, and broke the program off."""
    table = pl.DataFrame({"a": [1, 2, 3]}, schema={"a": pl.UInt64})
    stream = table.write_ipc_stream(None).getvalue()
    path, three_numbers = tmp_path / "x.arrows", (24).to_bytes(8, "little")
    assert stream.count(three_numbers) == 1
    told: list[str] = []
    for content in (stream, stream.replace(three_numbers, said.to_bytes(8, "little", signed=True))):
        path.write_bytes(content)
        found = list(arrows.pieces(path, table.schema, told.append))
        assert [one.height for one in found] == ([3] if content is stream else [])
    assert len(told) == 1
    assert "is damaged from byte" in told[0]
