"""What holds nothing and what somebody could miss."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from pathlib import Path

import pytest

from loadstone.plan.safety import content_evidence
from loadstone.plan.safety.content import BlockReader, ContentFound, look
from tests.e2e.fuse_dir import Faults, mounted

needs_fuse = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and /dev/fuse"
)


def test_holes_and_zeros_hold_nothing(tmp_path: Path) -> None:
    hole, zeros = tmp_path / "hole", tmp_path / "zeros"
    with hole.open("wb") as file:
        file.truncate(1 << 40)
    zeros.write_bytes(bytes((1 << 20) + 1000))
    # Of a terabyte of holes a sample is read.
    assert [look(path) for path in (hole, zeros)] == [ContentFound(None, 1024), ContentFound(None)]


@pytest.mark.parametrize("size", [1, 100, 1 << 20, (1 << 20) + 1000])
def test_random_bytes_may_be_a_backup_or_a_key(tmp_path: Path, size: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"k" + os.urandom(size - 1))
    assert look(path).held is not None


def test_one_byte_is_found_wherever_it_stands(tmp_path: Path) -> None:
    """Issue 11, 1.2: text every 16 MiB of a sparse file was missed."""
    path = tmp_path / "sparse"
    draw = random.Random(11)
    for size in (1, 4095, 4096, 65537, 3 << 20, 1 << 30):
        for _ in range(5):
            at = draw.randrange(size)
            with path.open("wb") as file:
                file.truncate(size)
                file.seek(at)
                file.write(b"x")
            assert look(path).held == f"it holds text at offset {at}"


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bad"
    path.write_bytes(bytes(1 << 20))

    def bad(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(BlockReader, "read", bad)
    assert look(path).held == "it cannot be read at offset 0 to see what it holds: Input/output error"


@needs_fuse
@pytest.mark.root
@pytest.mark.parametrize("at", [4096, 132 << 10, (1 << 20) - 4096])
def test_what_stands_behind_a_block_that_cannot_be_read_is_not_taken_for_zeros(
    tmp_path: Path, at: int
) -> None:
    """A read that meets one later ends before it, without an error: what came after was not looked at."""
    with mounted(tmp_path / "bad", faults=Faults(unreadable=(at,))) as bad:
        path = bad.path / "image"
        path.write_bytes(bytes(at + 4096) + b"a diary, " * 1000)
        assert look(path).held is not None
        assert content_evidence.evidence(path)


@needs_fuse
@pytest.mark.root
@pytest.mark.parametrize("size", [100_000, 64 << 20, (64 << 20) + 4096])
def test_a_file_system_that_tells_of_holes_where_there_is_data_is_not_believed(
    tmp_path: Path, size: int
) -> None:
    """As ZFS did of what was just written, and a server may: SEEK_DATA found no data at all."""
    with mounted(tmp_path / "wrong", faults=Faults(tells_holes=True)) as wrong:
        path = wrong.path / "image"
        with path.open("wb") as file:
            file.truncate(size)
            file.seek(size // 2 // 4096 * 4096)
            file.write(b"a diary, " * 1000)
        with path.open("rb") as file, pytest.raises(OSError, match="No such device or address"):
            os.lseek(file.fileno(), 0, os.SEEK_DATA)
        assert look(path).held == f"it holds text at offset {size // 2 // 4096 * 4096}"


def test_a_file_that_ends_before_its_size_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(bytes(1 << 20))
    with BlockReader(path) as reader:
        os.truncate(path, 8192)
        with pytest.raises(OSError, match=r"it ends after 8.00\sKiB, before its size"):
            reader.read(0, 1 << 20)


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert look(tmp_path / "empty").held is None


def test_text_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(bytes(8192) + b"remember the milk, " * 4096)
    assert look(path).held == "it holds text at offset 8192"


def test_a_database_is_structured_data(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as database:
        database.execute("create table t (a integer, b blob)")
        database.executemany("insert into t values (?, ?)", ((n, os.urandom(90)) for n in range(2000)))
    database.close()
    found = look(path).held
    assert found is not None
    assert found.startswith("it holds structured data")


@pytest.mark.parametrize("size", [1, 10, 63, 100, 5000])
def test_a_short_file_is_content(tmp_path: Path, size: int) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"ab" * (size // 2) + b"c")
    assert look(path).held is not None


def test_what_a_reader_without_memory_did_not_see_is_not_taken_for_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that ended in an error had taken places that then nobody looked at."""
    path = tmp_path / "x"
    path.write_bytes(bytes(16 << 20) + b"text" + bytes(16 << 20))
    real, calls = BlockReader.read, []

    def short(self: BlockReader, offset: int, length: int) -> bytes:
        calls.append(offset)
        if offset <= 16 << 20 < offset + length and len(calls) > 1:
            raise MemoryError
        return real(self, offset, length)

    monkeypatch.setattr(BlockReader, "read", short)
    assert look(path).held == "it cannot be looked through: out of memory"


def test_content_is_found_where_no_thread_may_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refused)
    path = tmp_path / "x"
    path.write_bytes(bytes(3 << 20) + b"text")
    assert look(path).held == "it holds text at offset 3145728"
