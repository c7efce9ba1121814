"""How far real compressors shrink what was asked to be compressible.

`buffer_compress_percentage=P` makes P percent of each chunk constant and the rest random, so
P percent is what a perfect coder would save. Real ones add a little for every run of random
bytes: they are held to 2 points of what the same coder makes of the easiest bytes with that
share, and coders that add next to nothing to 2 points of P itself.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.payload import content, parts

SIZE_BYTES = 8 << 20
TOLERANCE_POINTS = 2.0
EXTENT_BYTES = 128 << 10
"""What btrfs compresses at a time."""
SECTOR_BYTES = 4096
"""What btrfs rounds a compressed extent up to."""

needs_zram = pytest.mark.skipif(
    os.geteuid() != 0 or not (parts.CONTROL / "hot_add").exists(), reason="needs root and a kernel with zram"
)
needs_btrfs = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("mkfs.btrfs") is None
    or "btrfs" not in Path("/proc/filesystems").read_text(),
    reason="needs root, mkfs.btrfs and a kernel with btrfs",
)


def zram_stores(disk: parts.ZramDisk, algorithm: str, percent: int, *options: str) -> float:
    disk.empty(algorithm, SIZE_BYTES)
    share = f"--buffer_compress_percentage={percent}"
    content.write(disk.path, SIZE_BYTES, "--direct=1", share, *options)
    return disk.stored_percent()


def zram_could_store(disk: parts.ZramDisk, algorithm: str, percent: int) -> float:
    disk.empty(algorithm, SIZE_BYTES)
    with Path(disk.path).open("wb", buffering=0) as out:
        out.write(content.best(SIZE_BYTES, percent))
        os.fsync(out.fileno())
    return disk.stored_percent()


@pytest.mark.in_turn
@pytest.mark.root
@needs_zram
@pytest.mark.parametrize("algorithm", ["lzo", "lzo-rle", "lz4", "zstd"])
def test_zram_stores_what_it_could(algorithm: str) -> None:
    with parts.zram() as disk:
        if algorithm not in disk.algorithms():
            pytest.skip(f"this kernel's zram has no {algorithm}")
        for percent in (30, 50, 90):
            stored = zram_stores(disk, algorithm, percent)
            assert abs(stored - zram_could_store(disk, algorithm, percent)) <= TOLERANCE_POINTS
            if algorithm in {"lz4", "zstd"}:
                assert abs(stored - (100 - percent)) <= TOLERANCE_POINTS


@pytest.mark.in_turn
@pytest.mark.root
@needs_zram
def test_zram_keeps_a_page_whole_that_shrinks_too_little() -> None:
    """No fault of the payload: the easiest bytes of that share fare the same."""
    with parts.zram() as disk:
        assert zram_could_store(disk, "lzo-rle", 10) == 100.0
        assert zram_stores(disk, "lzo-rle", 10) == 100.0
        assert zram_stores(disk, "lzo-rle", 0) == 100.0


@pytest.mark.in_turn
@pytest.mark.parametrize("percent", [10, 50, 90])
def test_zstd_and_lz4_save_what_was_asked(tmp_path: Path, percent: int) -> None:
    """In pieces as large as those of btrfs, each for itself."""
    path = tmp_path / "data"
    content.write(path, SIZE_BYTES, f"--buffer_compress_percentage={percent}")
    data = path.read_bytes()
    assert len(data) == SIZE_BYTES
    pieces = [data[at : at + EXTENT_BYTES] for at in range(0, SIZE_BYTES, EXTENT_BYTES)]
    for codec in ("zstd", "lz4"):
        kept = 100 * sum(len(pa.compress(piece, codec=codec, asbytes=True)) for piece in pieces) / SIZE_BYTES
        assert abs(kept - (100 - percent)) <= TOLERANCE_POINTS, codec


@pytest.mark.in_turn
def test_one_buffer_written_again_is_incompressible_only_in_small_pieces(tmp_path: Path) -> None:
    """With nothing asked, as with fio, a buffer keeps most of its bytes from write to write."""
    for name, options in (("kept", ()), ("refilled", ("--refill_buffers",))):
        content.write(tmp_path / name, EXTENT_BYTES, *options)
    kept, refilled = ((tmp_path / name).read_bytes() for name in ("kept", "refilled"))
    assert len(pa.compress(kept[: content.BLOCK_BYTES], codec="zstd", asbytes=True)) >= content.BLOCK_BYTES
    assert len(pa.compress(kept, codec="zstd", asbytes=True)) < EXTENT_BYTES / 10
    assert len(pa.compress(refilled, codec="zstd", asbytes=True)) >= EXTENT_BYTES


@pytest.mark.in_turn
@pytest.mark.root
@needs_btrfs
def test_btrfs_stores_what_it_could(tmp_path: Path) -> None:
    """Without preallocation: btrfs never compresses what is written to preallocated space.

    A compressed extent takes whole sectors, so 50 percent of 128 KiB takes 17 of 32, not 16.
    """
    rounding = 100 * SECTOR_BYTES / EXTENT_BYTES
    with parts.btrfs(tmp_path) as disk:
        for percent in (30, 50, 90):
            share = f"--buffer_compress_percentage={percent}"
            stored = btrfs_stores(disk, percent, share, "--fallocate=none")
            assert -TOLERANCE_POINTS <= stored - (100 - percent) <= TOLERANCE_POINTS + rounding
            before = disk.used_bytes()
            (disk.folder / f"best{percent}").write_bytes(content.best(SIZE_BYTES, percent))
            could = 100 * (disk.used_bytes() - before) / SIZE_BYTES
            assert abs(stored - could) <= max(TOLERANCE_POINTS, rounding)
        assert btrfs_stores(disk, 51, "--buffer_compress_percentage=51", "--fallocate=native") == 100.0


def btrfs_stores(disk: parts.CompressingBtrfs, percent: int, *options: str) -> float:
    before = disk.used_bytes()
    content.write(disk.folder / f"ours{percent}", SIZE_BYTES, *options)
    return 100 * (disk.used_bytes() - before) / SIZE_BYTES
