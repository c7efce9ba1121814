"""`pattern=FILE`: what is written, and what such a file must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, LoadstoneError, RefusedError
from loadstone.formats.vdbench import expand, lower, read

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.workload.model import Job

BLOCKS = (
    "sd=sd1,lun=/data/a,size=64m\nwd=w1,sd=sd1,rdpct={reads},xfersize=4k\nrd=r1,wd=w1,iorate=max,elapsed=4\n"
)
FILES = (
    "fsd=f1,anchor=/data/t,depth=1,width=1,files=2,size=4k\n"
    "fwd=w1,fsd=f1,operation=write\nrd=r1,fwd=w1,fwdrate=max,format=no,elapsed=4\n"
)


def job(where: Path, content: bytes, rest: str, general: str = "") -> Job:
    (where / "pattern").write_bytes(content)
    path = where / "p.parm"
    path.write_text(f"pattern={where}/pattern\n{general}{rest}")
    file = read([path], variables={})
    return lower(file, expand(file)[-1]).jobs[0]


def test_its_bytes_are_written_in_whole_words(tmp_path: Path) -> None:
    for rest in (BLOCKS.format(reads=0), FILES):
        assert job(tmp_path, b"abcdefghij", rest).payload.buffer_pattern == tuple(b"abcdefgh")
    assert job(tmp_path, b"abcd", BLOCKS.format(reads=100)).payload.buffer_pattern is None, (
        "nothing is written"
    )


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"abc", InputError, "has 3 bytes, expected 4 or more"),
        (bytes(65_540), RefusedError, "more than 65536 bytes are not supported"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_at_its_line(
    tmp_path: Path, content: bytes, kind: type[LoadstoneError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        job(tmp_path, content, BLOCKS.format(reads=0))
    assert caught.value.where is not None
    assert (caught.value.where.line, caught.value.where.option) == (1, "pattern")


@pytest.mark.parametrize("other", ["compratio=2", "dedupratio=2,dedupunit=4k", "validate=yes"])
def test_only_one_keyword_says_what_is_written(tmp_path: Path, other: str) -> None:
    with pytest.raises(InputError, match=f"pattern= and {other.partition('=')[0]}= exclude each other"):
        job(tmp_path, b"abcd", BLOCKS.format(reads=0), other + "\n")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "p.parm"
    path.write_text("pattern=/nowhere/at/all\n" + BLOCKS.format(reads=0))
    file = read([path], variables={})
    with pytest.raises(InputError, match="/nowhere/at/all cannot be read: No such file"):
        lower(file, expand(file)[-1])


@pytest.mark.parametrize("keyword", ["formatxfersize=0m", "formatsds=yes\nformatxfersize=0", "dedupunit=0"])
def test_a_size_of_nothing_is_refused_where_it_stands(tmp_path: Path, keyword: str) -> None:
    """Found by fuzzing: a division by zero."""
    path = tmp_path / "p.parm"
    path.write_text(f"{keyword}\n{BLOCKS.format(reads=0)}")
    with pytest.raises(InputError, match="expected 512 bytes or a multiple of it"):
        read([path], variables={})
