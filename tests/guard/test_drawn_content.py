"""Content of any kind drawn to any place: what is missed, held against the stated chance."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path
from random import Random

import pytest
from lab.safety.draws import LAYOUTS, laid

from loadstone.plan.safety import content, sampling, structure_offsets
from loadstone.plan.safety.content import look
from loadstone.plan.safety.sampling import BLOCK_BYTES, Space
from tests.support.devices import attached

DRAWS = int(os.environ.get("LOADSTONE_DRAWS", "24"))
PASSES = (32, 32, 64)


def piece(draw: Random, length: int) -> bytes:
    """Some bytes that are not all zero."""
    if length > BLOCK_BYTES:
        return (piece(draw, BLOCK_BYTES) * (length // BLOCK_BYTES + 1))[:length]
    what = draw.choice(("text", "random", "ones", "sparse", "byte", "pages"))
    if what == "text":
        return bytes(draw.choices(b"etaoin shrdlu\n", k=length))
    if what == "random":
        return draw.randbytes(length - 1) + b"\1"
    if what == "ones":
        return b"\xff" * length
    made = bytearray(length)
    if what == "pages":
        for at in range(0, length, 8192):
            made[at : at + 8] = draw.randbytes(8)[: length - at]
    elif what == "sparse":
        for _ in range(3):
            made[draw.randrange(length)] = draw.randrange(1, 256)
    made[draw.randrange(length)] = draw.randrange(1, 256)
    return bytes(made)


def filled(path: Path, size: int, draw: Random) -> None:
    with path.open("wb") as file:
        file.truncate(size)
        for offset, length in laid(draw, draw.choice(LAYOUTS), size):
            file.seek(offset)
            file.write(piece(draw, length))


def share(path: Path, size: int) -> float:
    """The share of blocks that hold anything, looked up in all of it."""
    blocks = -(-size // BLOCK_BYTES)
    with path.open("rb") as file:
        held = 0
        for _ in range(blocks):
            held += bool(file.read(BLOCK_BYTES).strip(b"\0"))
    return held / blocks


def test_nothing_is_missed_where_all_is_read(tmp_path: Path) -> None:
    """Sparse files of any size: their data is all there is to read."""
    for seed in range(DRAWS):
        draw = Random(seed)
        path = tmp_path / "file"
        filled(path, int(2 ** draw.uniform(0, 33)) + 1, draw)
        assert look(path).held is not None, seed
        path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("draws", [DRAWS, pytest.param(25 * DRAWS, marks=pytest.mark.nightly)])
def test_a_sample_misses_no_more_than_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draws: int
) -> None:
    """As on a device that is too long to be read: its holes are not known, and nothing is read whole."""
    monkeypatch.setattr(content, "WHOLE_BYTES", 0)
    monkeypatch.setattr(sampling, "PASSES", PASSES)
    # Only the sample: what stands at known places is found besides.
    monkeypatch.setattr(structure_offsets, "HEAD_BYTES", BLOCK_BYTES)
    monkeypatch.setattr(structure_offsets, "TAIL_BYTES", BLOCK_BYTES)
    monkeypatch.setattr(structure_offsets, "places", lambda _: [])
    monkeypatch.setattr(content._Look._sampled, "__defaults__", (PASSES,))
    monkeypatch.setattr(content.BlockReader, "space", lambda reader: Space.of([(0, reader.size_bytes)]))
    missed, stated, spread = 0, 0.0, 0.0
    for seed in range(10_000, 10_000 + draws):
        draw = Random(seed)
        path = tmp_path / "file"
        size = int(2 ** draw.uniform(24, 26)) // 512 * 512
        filled(path, size, draw)
        chance = sampling.chance_of_missing(share(path, size), sum(PASSES))
        looked = look(path)
        assert looked.held is not None or looked.samples == sum(PASSES)
        missed += looked.held is None
        stated += chance
        spread += chance * (1 - chance)
    assert missed <= stated + 4 * math.sqrt(spread) + 1, f"{missed} missed, {stated:.1f} stated"
    if told := os.environ.get("LOADSTONE_DRAWS_TOLD"):
        Path(told).write_text(f"{draws} draws, {missed} missed, {stated:.1f} stated\n")


@pytest.mark.root
def test_nothing_is_missed_on_a_loop_device_over_a_sparse_file(tmp_path: Path) -> None:
    for seed in range(20_000, 20_000 + max(4, DRAWS // 20)):
        draw = Random(seed)
        path = tmp_path / "image"
        filled(path, max(1 << 20, int(2 ** draw.uniform(20, 37))) // 4096 * 4096, draw)
        try:
            with attached(path) as device:
                assert look(Path(device)).held is not None, seed
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device: {error}")
        path.unlink()
