from __future__ import annotations

import errno
import itertools
import resource
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.bundle import arrows, layout
from loadstone.bundle.host import host_to_parquet
from loadstone.errors import system_error_number
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
    assert pl.concat(found).equals(pl.concat(arrows.pieces(made.path / "samples.arrows", layout.SAMPLES)))


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


def test_zeros_in_place_of_samples_are_damage_and_not_an_end(tmp_path: Path) -> None:
    """A host that lost power leaves them: an unsealed run read as one that had measured nothing."""
    made = runs.make(tmp_path / "a", seconds=4.0, seal=None)
    path = made.path / "samples.arrows"
    whole = path.read_bytes()
    rows = sum(one.height for one in arrows.pieces(path, layout.SAMPLES))
    for begin, least in ((0, 0), (len(whole) // 2 & ~4095, 1)):
        path.write_bytes(whole[:begin].ljust(len(whole), b"\0"))
        told: list[str] = []
        found = sum(one.height for one in arrows.pieces(path, layout.SAMPLES, told.append))
        assert least <= found < rows
        assert "samples.arrows is damaged from byte" in told[0]
        # The interval in which the zeros begin may have its length, and is told by itself then.
        assert told[1:] in ([], ["samples.arrows: 1 of its intervals cannot be read"])


@pytest.mark.in_turn
def test_a_length_that_would_hide_what_comes_after_it_is_damage(tmp_path: Path) -> None:
    """Each bit of what says how long a message is: what follows was taken for a message cut off."""
    made = runs.make(tmp_path / "a", seconds=4.0, seal=None)
    path = made.path / "samples.arrows"
    whole = path.read_bytes()
    rows = sum(one.height for one in arrows.pieces(path, layout.SAMPLES))
    with path.open("rb") as file:
        ends = [*itertools.accumulate(map(len, arrows._messages(file, len(whole))))]
    second = ends[1]
    metadata_bytes = int.from_bytes(whole[second + 4 : second + 8], "little")
    metadata = whole[second + 8 : second + 8 + metadata_bytes]
    body_at = arrows._field_at(metadata, int.from_bytes(metadata[:4], "little"), arrows.BODY_LENGTH_SLOT)
    assert int.from_bytes(metadata[body_at : body_at + 8], "little") == ends[2] - second - 8 - metadata_bytes
    places = [(second + 4, 32), (second + 8 + body_at, 40)]
    for place, bits in places:
        for bit in range(bits):
            damaged = bytearray(whole)
            damaged[place + bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            told: list[str] = []
            found = sum(one.height for one in arrows.pieces(path, layout.SAMPLES, told.append))
            assert found < rows
            assert len(told) == 1, (place, bit)


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["samples", "host"])
def test_a_table_whose_end_finds_no_room_tells_the_systems_reason(kind: str, tmp_path: Path) -> None:
    """On a full disk the footer ended in *Invalid thrift: transport error*, without a remedy."""
    out = tmp_path / "out.parquet"
    if kind == "samples":
        frame = pl.DataFrame({"a": range(5000)}, schema={"a": pl.UInt32})

        def write() -> None:
            arrows.sink(lambda: [frame], out, frame.schema, 1000)
    else:
        lines = tmp_path / "host.jsonl"
        lines.write_text(
            "".join(f'{{"t_ns":{at},"dt_ns":{at * 7},"x":{at * at}}}\n' for at in range(1, 3000))
        )

        def write() -> None:
            host_to_parquet(lines, out, {"x"})

    write()
    whole, rows = out.stat().st_size, pl.read_parquet(out).height
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    told: list[int | None] = []
    try:
        for room in (*range(4, whole, max(1, whole // 60)), *range(max(4, whole - 700), whole, 13)):
            out.unlink()
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
            try:
                write()
            except (OSError, pl.exceptions.PolarsError) as error:
                told.append(system_error_number(error))
            else:
                # In one piece the host's rows need less room.
                told.append(0 if pl.read_parquet(out).height == rows else None)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(told) > 60
    assert set(told) - ({0} if kind == "host" else set()) == {errno.EFBIG}
