"""What a file or device may hold: one function for each kind, which writes it into an image.

Knows how to make it, with the real program where there is one; `needs` says which that is. By hand are
made: md's superblocks, which mdadm writes only through a kernel that has md, bcache's, and where a real
program's work is cut down to a part. Random parts are drawn from the seed that is given. Knows no trial.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import lzma
import os
import shutil
import sqlite3
import struct
import subprocess
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

MIB = 1 << 20
SIZE_BYTES = 384 * MIB
"""Of every image: XFS has no smaller ones than 300 MiB."""
PATHS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class ContentKind:
    """A kind of content. `precious`: somebody could miss it."""

    name: str
    make: Callable[[Path, Random], None]
    needs: str | None = None
    precious: bool = True

    @property
    def missing(self) -> str | None:
        """The program that is not here, None when all is."""
        return absent(self.needs)


def program(name: str) -> str | None:
    return shutil.which(name, path=PATHS)


def absent(name: str | None) -> str | None:
    """Return the name of a program that is needed and not here."""
    return None if name is None or program(name) else name


def call(*words: str | Path, text: str | None = None) -> str:
    name = program(str(words[0])) or str(words[0])
    done = subprocess.run(
        [name, *map(str, words[1:])], input=text, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def put(path: Path, *pieces: tuple[int, bytes]) -> None:
    with path.open("r+b") as file:
        for offset, data in pieces:
            file.seek(offset)
            file.write(data)


def wipe(path: Path, *kept: tuple[int, int]) -> None:
    """Leave only some ranges of an image."""
    with path.open("rb") as file:
        pieces = [(offset, _read(file, offset, length)) for offset, length in kept]
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
    put(path, *pieces)


def _read(file: io.BufferedReader, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def words(draw: Random, count: int) -> bytes:
    letters = "etaoin shrdlu\n"
    return "".join(draw.choices(letters, k=count)).encode()


def _at(offset: int, data: Callable[[Random], bytes]) -> Callable[[Path, Random], None]:
    return lambda path, draw: put(path, (offset, data(draw)))


def _tar(draw: Random) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for number in range(20):
            data = words(draw, draw.randrange(1, 40000))
            info = tarfile.TarInfo(f"notes/{number}.txt")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def _zip(draw: Random) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", words(draw, 100000))
    return stream.getvalue()


def _png(draw: Random) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + draw.randbytes(50000)


def _jpeg(draw: Random) -> bytes:
    return b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + draw.randbytes(200000) + b"\xff\xd9"


def _mp4(draw: Random) -> bytes:
    return struct.pack(">I", 24) + b"ftypisom\0\0\2\0isomiso2" + draw.randbytes(500000)


def _pages(draw: Random) -> bytes:
    """Database pages: a small header, rows from the end, room between."""
    content = b""
    for number in range(64):
        rows = draw.randbytes(draw.randrange(100, 3000))
        content += (
            struct.pack("<QHHHH", number, 1, 24, 8192 - len(rows), 0).ljust(8192 - len(rows), b"\0") + rows
        )
    return content


def _sqlite(path: Path, draw: Random) -> None:
    file = path.with_name("made.sqlite")
    with sqlite3.connect(file) as database:
        database.execute("create table t (a integer, b blob)")
        database.executemany("insert into t values (?, ?)", ((n, draw.randbytes(90)) for n in range(2000)))
    database.close()
    put(path, (0, file.read_bytes()))
    file.unlink()


def _encrypted(path: Path, draw: Random) -> None:
    plain, encrypted = path.with_name("made.plain"), path.with_name("made.enc")
    plain.write_bytes(words(draw, 300000))
    call(
        "openssl",
        "enc",
        "-aes-256-ctr",
        "-nosalt",
        "-K",
        "00" * 32,
        "-iv",
        "00" * 16,
        "-in",
        plain,
        "-out",
        encrypted,
    )
    put(path, (0, encrypted.read_bytes()))
    plain.unlink()
    encrypted.unlink()


def _qcow2(path: Path, _: Random) -> None:
    image = path.with_name("made.qcow2")
    call("qemu-img", "create", "-q", "-f", "qcow2", image, "1G")
    put(path, (0, image.read_bytes()))
    image.unlink()


def _every(step: int) -> Callable[[Path, Random], None]:
    return lambda path, draw: put(
        path, *[(offset + draw.randrange(4096), words(draw, 40)) for offset in range(0, SIZE_BYTES, step)]
    )


def _one_byte(path: Path, draw: Random) -> None:
    put(path, (draw.randrange(SIZE_BYTES), b"\1"))


def _made_by(*command: str) -> Callable[[Path, Random], None]:
    def make(path: Path, _: Random) -> None:
        call(*command, path)

    return make


def _ext_copies(*options: str, block: int) -> Callable[[Path, Random], None]:
    """Only the copies of the superblock are left, of every group but the first."""

    def make(path: Path, _: Random) -> None:
        call("mkfs.ext4", "-q", "-F", "-b", str(block), *options, path)
        first = 1 if block == 1024 else 0
        group = 8 * block * block
        starts = range(group + first * block, SIZE_BYTES, group)
        wipe(path, *[(start, 4096) for start in starts])

    return make


def _xfs_copies(path: Path, _: Random) -> None:
    call("mkfs.xfs", "-q", "-f", path)
    wipe(path, *[(SIZE_BYTES // 4 * group, 512) for group in (1, 2, 3)])


def _btrfs_copy(path: Path, _: Random) -> None:
    call("mkfs.btrfs", "-q", "-f", path)
    wipe(path, (64 * MIB, 4096))


def _gpt(path: Path, _: Random) -> None:
    call("sfdisk", "-q", path, text="label: gpt\n2048,65536\n")


def _gpt_backup(path: Path, draw: Random) -> None:
    _gpt(path, draw)
    wipe(path, (SIZE_BYTES - 33 * 512, 33 * 512))


def _dos(path: Path, _: Random) -> None:
    call("sfdisk", "-q", path, text="label: dos\n2048,65536,83\n")


def _luks(version: str) -> Callable[[Path, Random], None]:
    def make(path: Path, _: Random) -> None:
        key = path.with_name("made.key")
        key.write_bytes(b"key")
        how = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
        call("cryptsetup", "luksFormat", "-q", "--type", version, *how, "--key-file", key, path)
        key.unlink()

    return make


def _luks_second(path: Path, draw: Random) -> None:
    _luks("luks2")(path, draw)
    wipe(path, (16 << 10, 16 << 10))


def _md(offset: int) -> Callable[[Path, Random], None]:
    return lambda path, draw: put(path, (offset, struct.pack("<I", 0xA92B4EFC) + draw.randbytes(200)))


def _volume_group(path: Path, _: Random) -> None:
    device = call("losetup", "--find", "--show", path)
    try:
        # Of the host's own volumes nothing is looked at, nor its locks waited for.
        only = f'devices {{ use_devicesfile=0 filter=["a|^{device}$|","r|.*|"] }}'
        for words in (("pvcreate", "-y", device), ("vgcreate", "-y", "lab", device)):
            call(words[0], "--nolocking", "--config", only, *words[1:])
    finally:
        call("losetup", "--detach", device)


def _volume_group_without_label(path: Path, draw: Random) -> None:
    _volume_group(path, draw)
    wipe(path, (4096, MIB - 4096))


def _zpool(path: Path, _: Random) -> None:
    """By zfs-fuse, which needs nothing of the kernel's but FUSE; a host has room for one."""
    name = f"lab{os.getpid()}"
    with Path("/dev/shm/loadstone-lab-zfs.lock").open("w") as one:
        fcntl.flock(one, fcntl.LOCK_EX)
        quiet = subprocess.DEVNULL
        server = subprocess.Popen(["zfs-fuse", "-n", "--no-kstat-mount"], stdout=quiet, stderr=quiet)
        try:
            _patiently("zpool", "list")
            call("zpool", "create", "-m", "none", name, path)
            call("zpool", "export", name)
        finally:
            server.terminate()
            server.wait()


def _patiently(*words: str) -> None:
    """Call a program whose server has just been started."""
    end_s = time.monotonic() + 20
    while True:
        try:
            call(*words)
        except RuntimeError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)
        else:
            return


def _zpool_end(path: Path, draw: Random) -> None:
    _zpool(path, draw)
    wipe(path, (SIZE_BYTES - 512 * 1024, 512 * 1024))


LVM_TEXT = b'lab {\nid = "x"\nseqno = 1\n}\ncontents = "Text Format Volume Group"\nversion = 1\n'

KINDS: tuple[ContentKind, ...] = (
    ContentKind("nothing but a hole", lambda *_: None, precious=False),
    ContentKind("zeros", _at(0, lambda _: bytes(8 * MIB)), precious=False),
    ContentKind("a random key", _at(0, lambda draw: draw.randbytes(3_000_000))),
    ContentKind("text", _at(0, lambda draw: words(draw, 100_000))),
    ContentKind("text that begins at 1 MiB", _at(MIB, lambda draw: words(draw, 1000))),
    ContentKind("text every 16 MiB of a sparse image", _every(16 * MIB)),
    ContentKind("one byte somewhere", _one_byte),
    ContentKind("its last byte", _at(SIZE_BYTES - 1, lambda _: b"\n")),
    ContentKind("a tar archive", _at(0, _tar)),
    ContentKind("a gzip archive", _at(0, lambda draw: gzip.compress(words(draw, 300_000)))),
    ContentKind("an xz archive", _at(0, lambda draw: lzma.compress(words(draw, 100_000)))),
    ContentKind("a zip archive", _at(0, _zip)),
    ContentKind(
        "a gzip archive at 100 MiB", _at(100 * MIB, lambda draw: gzip.compress(words(draw, 300_000)))
    ),
    ContentKind("a PNG image", _at(0, _png)),
    ContentKind("a JPEG image", _at(0, _jpeg)),
    ContentKind("an MP4 video", _at(0, _mp4)),
    ContentKind("an encrypted file", _encrypted, "openssl"),
    ContentKind("an SQLite database", _sqlite),
    ContentKind("database pages", _at(0, _pages)),
    ContentKind("database pages at 1 MiB", _at(MIB, _pages)),
    ContentKind("a qcow2 image", _qcow2, "qemu-img"),
    ContentKind("ext2", _made_by("mkfs.ext2", "-q", "-F"), "mkfs.ext2"),
    ContentKind("ext3", _made_by("mkfs.ext3", "-q", "-F"), "mkfs.ext3"),
    ContentKind("ext4", _made_by("mkfs.ext4", "-q", "-F"), "mkfs.ext4"),
    ContentKind("ext4, only its backup superblocks, 1 KiB blocks", _ext_copies(block=1024), "mkfs.ext4"),
    ContentKind("ext4, only its backup superblocks, 4 KiB blocks", _ext_copies(block=4096), "mkfs.ext4"),
    ContentKind(
        "ext4, only its backup superblocks, sparse_super2",
        _ext_copies("-O", "sparse_super2", block=2048),
        "mkfs.ext4",
    ),
    ContentKind("XFS", _made_by("mkfs.xfs", "-q", "-f"), "mkfs.xfs"),
    ContentKind("XFS, only its backup superblocks", _xfs_copies, "mkfs.xfs"),
    ContentKind("btrfs", _made_by("mkfs.btrfs", "-q", "-f"), "mkfs.btrfs"),
    ContentKind("btrfs, only its copy at 64 MiB", _btrfs_copy, "mkfs.btrfs"),
    ContentKind("f2fs", _made_by("mkfs.f2fs", "-q", "-f"), "mkfs.f2fs"),
    ContentKind("FAT", _made_by("mkfs.vfat"), "mkfs.vfat"),
    ContentKind("swap", _made_by("mkswap"), "mkswap"),
    ContentKind("a GPT", _gpt, "sfdisk"),
    ContentKind("only the backup of a GPT", _gpt_backup, "sfdisk"),
    ContentKind("a DOS partition table", _dos, "sfdisk"),
    ContentKind("LUKS1", _luks("luks1"), "cryptsetup"),
    ContentKind("LUKS2", _luks("luks2"), "cryptsetup"),
    ContentKind("LUKS2, only its second header", _luks_second, "cryptsetup"),
    ContentKind("LVM, a volume group", _volume_group, "vgcreate"),
    ContentKind("LVM, its text metadata without the label", _volume_group_without_label, "vgcreate"),
    ContentKind("LVM, a label", _at(512, lambda _: b"LABELONE" + bytes(16) + b"LVM2 001")),
    ContentKind("LVM, a page of text metadata", _at(4608, lambda _: LVM_TEXT)),
    ContentKind("md 0.90", _md((SIZE_BYTES & ~0xFFFF) - 0x10000)),
    ContentKind("md 1.0", _md((SIZE_BYTES // 512 - 16 & ~7) * 512)),
    ContentKind("md 1.2", _md(4096)),
    ContentKind("a ZFS pool", _zpool, "zfs-fuse"),
    ContentKind("a ZFS pool, only its labels at the end", _zpool_end, "zfs-fuse"),
    ContentKind(
        "a ZFS label at the end", _at(SIZE_BYTES - 128 * 1024, lambda _: struct.pack("<Q", 0x00BAB10C))
    ),
    ContentKind("bcache", _at(4096 + 24, lambda _: bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"))),
)
