"""What passes for test data and what somebody could miss."""

from __future__ import annotations

import os
import sqlite3
import zlib
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.content import content

if TYPE_CHECKING:
    from pathlib import Path


def test_holes_zeros_and_random_bytes_are_test_data(tmp_path: Path) -> None:
    hole, zeros, noise, tail = (tmp_path / name for name in ("hole", "zeros", "noise", "tail"))
    with hole.open("wb") as file:
        file.truncate(1 << 30)
    zeros.write_bytes(bytes(1 << 20))
    noise.write_bytes(os.urandom(1 << 20))
    tail.write_bytes(os.urandom((1 << 16) + 1000))
    assert [content(path) for path in (hole, zeros, noise, tail)] == [None] * 4


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert content(tmp_path / "empty") is None


def test_text_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(bytes(8192) + b"remember the milk, " * 4096)
    assert content(path) == "it holds text at offset 8192"


def test_a_database_is_structured_data(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as database:
        database.execute("create table t (a integer, b blob)")
        database.executemany("insert into t values (?, ?)", ((n, os.urandom(90)) for n in range(2000)))
    database.close()
    found = content(path)
    assert found is not None
    assert found.startswith("it holds structured data")


@pytest.mark.parametrize("size", [1, 10, 63, 100, 5000])
def test_a_short_file_is_content(tmp_path: Path, size: int) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"ab" * (size // 2) + b"c")
    assert content(path) is not None


def test_compressed_data_passes_only_without_a_header(tmp_path: Path) -> None:
    """What cannot be told from noise is told by its header, as long as it has one in plain bytes."""
    path = tmp_path / "archive.tar"
    path.write_bytes(b"file-name".ljust(512, b"\0") + zlib.compress(os.urandom(1 << 16)))
    assert content(path) is not None
