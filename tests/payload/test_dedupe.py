"""How many equal blocks are in what was written, counted in the file itself."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.payload import content

if TYPE_CHECKING:
    from pathlib import Path

SIZE_BYTES = 64 << 20
TOLERANCE_POINTS = 2.0


def unique_percent(path: Path) -> float:
    data = path.read_bytes()
    blocks = len(data) // content.BLOCK_BYTES
    hashes = {
        hashlib.blake2b(data[at : at + content.BLOCK_BYTES], digest_size=16).digest()
        for at in range(0, len(data), content.BLOCK_BYTES)
    }
    return 100 * len(hashes) / blocks


@pytest.mark.in_turn
@pytest.mark.parametrize("percent", [30, 90, 100])
def test_the_share_of_repeated_blocks(tmp_path: Path, percent: int) -> None:
    content.write(tmp_path / "data", SIZE_BYTES, f"--dedupe_percentage={percent}")
    assert abs(unique_percent(tmp_path / "data") - (100 - percent)) <= TOLERANCE_POINTS


@pytest.mark.in_turn
@pytest.mark.parametrize("options", [(), ("--buffer_compress_percentage=50",)])
def test_nothing_repeats_unasked(tmp_path: Path, options: tuple[str, ...]) -> None:
    content.write(tmp_path / "data", SIZE_BYTES, *options)
    assert unique_percent(tmp_path / "data") == 100.0


@pytest.mark.in_turn
def test_clones_do_not_repeat_each_other(tmp_path: Path) -> None:
    options = ("--numjobs=4", f"--offset_increment={SIZE_BYTES // 4}")
    content.write(tmp_path / "data", SIZE_BYTES // 4, *options, f"--filesize={SIZE_BYTES}")
    assert (tmp_path / "data").stat().st_size == SIZE_BYTES
    assert unique_percent(tmp_path / "data") == 100.0


@pytest.mark.in_turn
def test_repeated_blocks_compress_as_asked(tmp_path: Path) -> None:
    content.write(tmp_path / "data", SIZE_BYTES, "--dedupe_percentage=50", "--buffer_compress_percentage=50")
    assert abs(unique_percent(tmp_path / "data") - 50) <= TOLERANCE_POINTS
    data = (tmp_path / "data").read_bytes()
    assert abs(100 * data.count(0) / len(data) - 50) <= TOLERANCE_POINTS
