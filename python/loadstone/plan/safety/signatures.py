"""What is written on a device or in an image: partition tables, file systems, RAID, LVM, LUKS.

Knows the magic numbers of the formats an administrator would miss, each from its on-disk
format's documentation, and asks `wipefs` (util-linux) as well when it is installed, which
knows many more. Reads only. Judges nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.plan.safety import structure_offsets
from loadstone.plan.safety.content import ALIGN_BYTES, BlockReader

if TYPE_CHECKING:
    from pathlib import Path

WIPEFS_TIMEOUT_S = 10.0
HEAD_BYTES = 1 << 20
KIB = 1024


@dataclass(frozen=True, order=True)
class Signature:
    """A recognised structure: `name` (`ext4`, `gpt`) at `offset_bytes`."""

    offset_bytes: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} at offset {self.offset_bytes}"


FIXED: tuple[tuple[str, int, bytes], ...] = (
    ("ext2/ext3/ext4", 1080, b"\x53\xef"),
    ("xfs", 0, b"XFSB"),
    ("btrfs", 64 * KIB + 64, b"_BHRfS_M"),
    ("f2fs", 1024, b"\x10\x20\xf5\xf2"),
    ("bcachefs", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    ("bcache", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
    ("squashfs", 0, b"hsqs"),
    ("jfs", 32 * KIB, b"JFS1"),
    ("iso9660", 32 * KIB + 1, b"CD001"),
    ("ntfs", 3, b"NTFS    "),
    ("exfat", 3, b"EXFAT   "),
    ("fat", 54, b"FAT1"),
    ("fat32", 82, b"FAT32   "),
    ("LUKS", 0, b"LUKS\xba\xbe"),
    ("Linux RAID (md 1.1)", 0, b"\xfc\x4e\x2b\xa9"),
    ("Linux RAID (md 1.2)", 4096, b"\xfc\x4e\x2b\xa9"),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("Oracle ASM", 32, b"ORCLDISK"),
    ("qcow2 image", 0, b"QFI\xfb"),
    ("VMDK image", 0, b"KDMV"),
    ("VHDX image", 0, b"vhdxfile"),
    ("gpt", 512, b"EFI PART"),
    ("gpt", 4096, b"EFI PART"),
)
SWAP_PAGES = (4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB)
ZFS_LABEL_BYTES = 256 * KIB
ZFS_MAGIC = 0x00BAB10C
MD_MAGIC = b"\xfc\x4e\x2b\xa9"
TAIL_BYTES = 192 * KIB
LVM_TEXT = b"Text Format Volume Group"
"""In all text metadata of LVM2 (lib/format_text/export.c)."""
LUKS_SECOND = tuple(16 * KIB << shift for shift in range(9))
"""Where LUKS2 may keep its second header (LUKS2 on-disk format, table 1)."""
COPIES: tuple[tuple[str, int, bytes], ...] = (
    ("ext2/ext3/ext4 (copy of the superblock)", 56, b"\x53\xef"),
    ("ext2/ext3/ext4 (copy of the superblock)", 1024 + 56, b"\x53\xef"),
    ("xfs (copy of the superblock)", 0, b"XFSB"),
    ("btrfs (copy of the superblock)", 64, b"_BHRfS_M"),
    ("LUKS (second header)", 0, b"SKUL\xba\xbe"),
)


def read(path: Path) -> list[Signature]:
    """Return the signatures on `path`, by offset. Raises `OSError` when it cannot be read.

    Copies of superblocks are looked for where nothing else is known.
    """
    with BlockReader(path) as reader:
        signatures = _own(reader)
        wipefs_signatures = _wipefs(path)
        if not signatures and not wipefs_signatures:
            signatures = _copies(reader)
    # Where both know one, the tool's word is finer ("ext4" for "ext2/ext3/ext4").
    finer = {signature.offset_bytes for signature in wipefs_signatures}
    own_signatures = [signature for signature in signatures if signature.offset_bytes not in finer]
    return sorted({*own_signatures, *wipefs_signatures})


def _own(reader: BlockReader) -> list[Signature]:
    head = reader.read_some(0, HEAD_BYTES)
    signatures = [
        Signature(offset, name)
        for name, offset, magic in FIXED
        if head[offset : offset + len(magic)] == magic
    ]
    signatures += [*_mbr(head), *_swap(head), *_lvm(head), *_zfs(reader), *_tail(reader)]
    return signatures


def _copies(reader: BlockReader) -> list[Signature]:
    """Look for copies of superblocks and headers, the first one of each."""
    copies: dict[str, Signature] = {}
    for offset in sorted({*structure_offsets.places(reader.size_bytes), *LUKS_SECOND}):
        start = offset - offset % ALIGN_BYTES
        try:
            block = reader.read_some(start, 2 * ALIGN_BYTES)
        except OSError:
            continue
        for name, at, magic in COPIES:
            place = offset - start + at
            if block[place : place + len(magic)] == magic:
                copies.setdefault(name, Signature(offset + at, name))
    return list(copies.values())


def _mbr(head: bytes) -> list[Signature]:
    """Find an MBR: its mark and a partition with a type (a file system's boot sector has only the mark)."""
    if head[510:512] != b"\x55\xaa":
        return []
    entries = [head[446 + 16 * i : 462 + 16 * i] for i in range(4)]
    plausible = all(entry[0] in {0x00, 0x80} for entry in entries)
    return [Signature(510, "dos partition table")] if plausible and any(e[4] for e in entries) else []


def _swap(head: bytes) -> list[Signature]:
    marks = (b"SWAPSPACE2", b"SWAP-SPACE")
    return [Signature(page - 10, "swap") for page in SWAP_PAGES if head[page - 10 : page] in marks]


def _lvm(head: bytes) -> list[Signature]:
    """Find an LVM2 label, which may stand in any of the first four sectors."""
    starts = (0, 512, 1024, 1536)
    labels = [Signature(at, "LVM2 member") for at in starts if head[at : at + 8] == b"LABELONE"]
    text = head.find(LVM_TEXT)
    return labels or ([Signature(text, "LVM2 metadata")] if text >= 0 else [])


def _zfs(reader: BlockReader) -> list[Signature]:
    """Look for an uberblock in any of the four labels: two at the start, two at the end."""
    size_bytes = reader.size_bytes
    end = size_bytes - size_bytes % ZFS_LABEL_BYTES
    labels = [0, ZFS_LABEL_BYTES, end - 2 * ZFS_LABEL_BYTES, end - ZFS_LABEL_BYTES]
    for label in labels:
        if label < 0:
            continue
        ring = reader.read_some(label + 128 * KIB, 128 * KIB)
        for at in range(0, len(ring) - 8, KIB):
            word = ring[at : at + 8]
            if ZFS_MAGIC in (struct.unpack("<Q", word)[0], struct.unpack(">Q", word)[0]):
                return [Signature(label + 128 * KIB + at, "ZFS member")]
    return []


def _tail(reader: BlockReader) -> list[Signature]:
    """Structures that stand at the end: the backup GPT and the older md superblocks."""
    size_bytes = reader.size_bytes
    start = max(0, size_bytes - TAIL_BYTES) // ALIGN_BYTES * ALIGN_BYTES
    tail = reader.read_some(start, TAIL_BYTES + ALIGN_BYTES)
    known = [(size_bytes - sector, "gpt (backup)", b"EFI PART") for sector in (512, 4096)]
    known.append((((size_bytes // 512 - 16) & ~7) * 512, "Linux RAID (md 1.0)", MD_MAGIC))
    known.append(((size_bytes & ~(64 * KIB - 1)) - 64 * KIB, "Linux RAID (md 0.90)", MD_MAGIC))
    return [
        Signature(at, name)
        for at, name, magic in known
        if at > 0 and tail[at - start : at - start + len(magic)] == magic
    ]


def _wipefs(path: Path) -> list[Signature]:
    """Ask wipefs, which changes nothing with --no-act; nothing when it is missing or fails."""
    program = shutil.which("wipefs", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if program is None:
        return []
    argv = [program, "--no-act", "--json", str(path)]
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    try:
        listed = json.loads(process.communicate(timeout=WIPEFS_TIMEOUT_S)[0] or b"{}").get("signatures", [])
    except (ValueError, subprocess.TimeoutExpired):
        # Not waited for: a device that hangs keeps it in the kernel.
        process.kill()
        return []
    return [Signature(int(entry["offset"], 16), entry["type"]) for entry in listed]
