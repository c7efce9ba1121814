"""Data sheets: the file, its mistakes, and the array that follows from it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import InputError
from loadstone.path import quantity, spec
from loadstone.path.layers import DataPath, Layer
from loadstone.path.spec import Spec

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
# a comment
format = 1
name = "Acme 4000"
media = "ssd"
drives = 13
spindles = 12
raid = "{raid}"
cache = "2 GiB"
links = ["4 x 16GFC", "SAS 12G"]

[drive]
read_iops = 90_000
write_iops = 30_000
read_bandwidth = "1100 MB/s"
write_bandwidth = "800 MB/s"
"""


def read(tmp_path: Path, content: str) -> Spec:
    path = tmp_path / "sheet.toml"
    path.write_text(content)
    return spec.read(path)


def error(tmp_path: Path, content: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    return caught.value


@pytest.mark.parametrize(
    ("raid", "write_iops", "write_megabytes"),
    [
        ("jbod", 360e3, 9600),
        ("0", 360e3, 9600),
        ("1", 180e3, 4800),
        ("10", 180e3, 4800),
        ("5", 90e3, 8800),
        ("6", 60e3, 8000),
    ],
)
def test_the_write_penalty_of_each_level(
    tmp_path: Path, raid: str, write_iops: float, write_megabytes: float
) -> None:
    made = read(tmp_path, WHOLE.format(raid=raid))
    reads, writes, stream = made.iops("read"), made.iops("write"), made.bandwidth("write")
    assert reads is not None
    assert writes is not None
    assert stream is not None
    assert reads.per_s == 1.08e6
    assert (writes.per_s, writes.access, writes.block_bytes_at_most) == (write_iops, "random", 4096)
    assert stream.per_s == write_megabytes * 1e6
    assert stream.access == "sequential"
    whole = made.bandwidth("read")
    assert whole is not None
    assert whole.per_s == 13.2e9


def test_groups_of_parity_and_a_mixture(tmp_path: Path) -> None:
    made = read(tmp_path, WHOLE.format(raid="5").replace('raid = "5"', 'raid = "50"\ngroup_drives = 4'))
    stream, mixed = made.bandwidth("write"), made.mixed_iops(0.75)
    assert stream is not None
    assert stream.per_s == 9 * 800e6
    assert mixed is not None
    # A read takes 1, a write 4 x 3 of 12 x 90k: 0.75 x 1 + 0.25 x 12 = 3.75 each on average.
    assert mixed.per_s == pytest.approx(1.08e6 / 3.75)
    assert mixed.op == "both"


def test_the_lower_of_the_drives_and_the_array_holds(tmp_path: Path) -> None:
    made = read(
        tmp_path, WHOLE.format(raid="0") + "[array]\nread_iops = 500000\nread_bandwidth = '99 GB/s'\n"
    )
    reads, stream = made.iops("read"), made.bandwidth("read")
    assert reads is not None
    assert (reads.per_s, reads.source) == (500e3, "data sheet of Acme 4000")
    assert stream is not None
    assert stream.per_s == 13.2e9


def test_it_is_the_lowest_layer_of_a_path(tmp_path: Path) -> None:
    made = read(tmp_path, WHOLE.format(raid="10"))
    path = DataPath(
        target="/dev/sda",
        layers=(Layer(name="sda", kind="disk", below=("ata1",)), Layer(name="ata1", kind="link")),
    )
    found = made.under(path)
    assert [(one.name, one.below) for one in found.layers] == [
        ("sda", ("ata1",)),
        ("ata1", ("Acme 4000",)),
        ("Acme 4000", ()),
    ]
    array = found.layers[-1]
    assert array.facts["cache_bytes"] == 2 << 30
    kinds = [(one.kind, one.quantity, one.op) for one in array.ceilings]
    assert kinds[:2] == [("link", "bytes_per_s", "each")] * 2
    assert len(kinds) == 6


def test_what_a_bundle_keeps_is_read_again(tmp_path: Path) -> None:
    made = read(tmp_path, WHOLE.format(raid="6"))
    assert Spec.model_validate(made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("media =", "medium =", 4, ["medium", "is not a known key"]),
        ('"ssd"', '"flash"', 4, ["media", "'hdd', 'ssd'", "flash"]),
        ("drives = 13", 'drives = "13"', 5, ["drives", "whole number, without quotes"]),
        ("drives = 13", "drives = 11", None, ["found 12 spindles of 11 drives, expected at most 11"]),
        ("spindles = 12", "spindles = 11", None, ["mirrors pairs", "11"]),
        ('"2 GiB"', '"2"', 8, ["cache", "2", "one of B"]),
        ('"2 GiB"', '"2 GB/s"', 8, ["cache", "'GB/s'"]),
        ("4 x 16GFC", "4 x 16FC", 9, ["links: found", "4 x 16FC", "4 x 16GFC"]),
        ("read_iops = 90_000", "read_iops = -1", 12, ["drive.read_iops", "more than 0"]),
        ('"1100 MB/s"', '"1100 Mb/s"', 14, ["drive.read_bandwidth", "'Mb/s'"]),
        ("read_iops", "reed_iops", 12, ["drive.reed_iops", "is not a known key"]),
        ("format = 1", "format = 2", 2, ["format"]),
        ('raid = "10"\n', "", None, ["raid is missing", "12 drives"]),
        ("spindles = 12", "group_drives = 4\nspindles = 12", None, ["group_drives has no effect"]),
    ],
)
def test_mistakes_name_the_line_and_what_is_expected(
    tmp_path: Path, old: str, new: str, line: int | None, words: list[str]
) -> None:
    content = WHOLE.format(raid="10")
    assert old in content
    found = error(tmp_path, content.replace(old, new, 1))
    assert found.where is not None
    assert found.where.line == line
    for word in words:
        assert word in str(found)


def test_a_near_name_is_told(tmp_path: Path) -> None:
    content = WHOLE.format(raid="10")
    assert error(tmp_path, content.replace("media", "mdia")).hint == "did you mean 'media'?"
    assert error(tmp_path, content.replace("read_iops", "reed_iops")).hint == "did you mean 'read_iops'?"


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "is not TOML" in str(error(tmp_path, 'format = 1\nname = "x\n'))
    assert error(tmp_path, 'format = 1\nname = "x\n').where.line == 2  # type: ignore[union-attr] # it has one
    assert "found no figure" in str(error(tmp_path, 'format = 1\nname = "x"\n'))
    assert "name: is missing" in str(error(tmp_path, "format = 1\n"))
    with pytest.raises(InputError, match="No such file"):
        spec.read(tmp_path / "none.toml")
    (tmp_path / "raw.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not text"):
        spec.read(tmp_path / "raw.toml")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 GiB", 2 << 30), ("1 GB", 10**9), ("512 B", 512), ("1.5 kB", 1500), ("1_000 KiB", 1024000)],
)
def test_sizes(text: str, value: int) -> None:
    assert quantity.size_bytes(text) == value


@given(st.text(max_size=30))
@pytest.mark.in_turn
def test_no_text_breaks_a_quantity(text: str) -> None:
    for reader in (quantity.size_bytes, quantity.block_bytes, quantity.bandwidth_bytes_per_s):
        with contextlib.suppress(ValueError):
            assert reader(text) >= 0
