"""Magic numbers, each written where its format's documentation puts it."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.safety import signatures

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 16 << 20


@pytest.fixture(autouse=True)
def without_wipefs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test our own table; the tool's knowledge is its own affair."""
    monkeypatch.setattr(signatures, "_wipefs", lambda _path: [])


def image(tmp_path: Path, *pieces: tuple[int, bytes]) -> Path:
    path = tmp_path / "image"
    with path.open("wb") as out:
        out.truncate(SIZE)
        for offset, data in pieces:
            out.seek(offset)
            out.write(data)
    return path


def names(path: Path) -> list[str]:
    return [signature.name for signature in signatures.read(path)]


def test_nothing_on_zeros_and_on_random_bytes(tmp_path: Path) -> None:
    assert names(image(tmp_path)) == []
    assert names(image(tmp_path, (0, os.urandom(1 << 20)))) == []


@pytest.mark.parametrize(
    ("offset", "magic", "name"),
    [
        (0x438, b"\x53\xef", "ext2/ext3/ext4"),
        (0, b"XFSB", "xfs"),
        (0x10040, b"_BHRfS_M", "btrfs"),
        (0, b"LUKS\xba\xbe", "LUKS"),
        (4096, struct.pack("<I", 0xA92B4EFC), "Linux RAID (md 1.2)"),
        (0, struct.pack("<I", 0xA92B4EFC), "Linux RAID (md 1.1)"),
        ((SIZE // 512 - 16 & ~7) * 512, struct.pack("<I", 0xA92B4EFC), "Linux RAID (md 1.0)"),
        ((SIZE & ~0xFFFF) - 0x10000, struct.pack("<I", 0xA92B4EFC), "Linux RAID (md 0.90)"),
        (512, b"LABELONE", "LVM2 member"),
        (4086, b"SWAPSPACE2", "swap"),
        (512, b"EFI PART", "gpt"),
        (4096, b"EFI PART", "gpt"),
        (SIZE - 512, b"EFI PART", "gpt (backup)"),
        (128 << 10, struct.pack("<Q", 0x00BAB10C), "ZFS member"),
        (SIZE - (256 << 10) + (128 << 10) + 1024, struct.pack(">Q", 0x00BAB10C), "ZFS member"),
        (4096 + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache"),
        (0, b"QFI\xfb", "qcow2 image"),
    ],
)
def test_known_by_its_magic(tmp_path: Path, offset: int, magic: bytes, name: str) -> None:
    assert names(image(tmp_path, (offset, magic))) == [name]
    # One byte off, and it is not there.
    assert name not in names(image(tmp_path, (offset, magic[:-1] + bytes([magic[-1] ^ 0xFF]))))


def test_a_partition_table_needs_a_partition(tmp_path: Path) -> None:
    mark = (510, b"\x55\xaa")
    entry = bytes([0x80, 0, 2, 0, 0x83, 0, 0, 0]) + struct.pack("<II", 2048, 2048)
    assert names(image(tmp_path, mark)) == []
    assert names(image(tmp_path, mark, (446, entry))) == ["dos partition table"]


def test_several_are_all_told_by_offset(tmp_path: Path) -> None:
    found = signatures.read(image(tmp_path, (0x10040, b"_BHRfS_M"), (0, b"XFSB")))
    assert [str(one) for one in found] == ["xfs at offset 0", "btrfs at offset 65600"]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 4096, 65536])
def test_tiny_files_are_read_without_error(tmp_path: Path, size: int) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(b"\0" * size)
    assert signatures.read(path) == []


def test_real_ext4_is_named_by_wipefs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [
        shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") for tool in ("mkfs.ext4", "wipefs")
    ]
    if None in tools:
        pytest.skip("mkfs.ext4 or wipefs is not installed")
    path = image(tmp_path)
    subprocess.run([str(tools[0]), "-q", str(path)], check=True)
    assert names(path) == ["ext2/ext3/ext4"]
    monkeypatch.undo()
    assert names(path) == ["ext4"]
