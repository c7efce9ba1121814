"""What two experiments cannot have at the same time: the same thing under another name, or a part of it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from loadstone.control.all_controls import Controls
from loadstone.experiment import claims
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.path.block import BlockDevice
from tests.path.trees import KernelTree
from tests.support.devices import attached, call, empty

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.control.control_kind import Setting


FILLED = """title = "Filled"
runtime = "1s"

[[patterns]]
name = "read"
options = {{ ioengine = "null", rw = "randread", bs = "4k", size = "1g" }}

[[factors]]
name = "full"
kind = "fill_level"
of = "{folder}"
levels = ["as is", "99%"]
"""


def overlap(*paths: str | Path) -> bool:
    first, second = ({one.subject for one in claims.things([str(path)])} for path in paths)
    return bool(first & second)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return empty(tmp_path / "image", 32 << 20)


@pytest.fixture
def disk(image: Path) -> Iterator[str]:
    with attached(image) as device:
        yield device


def test_a_file_is_one_claim_by_all_of_its_names(image: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(image)
    os.link(image, tmp_path / "second")
    assert overlap(image, tmp_path / "link")
    assert overlap(image, tmp_path / "second")
    assert not overlap(image, tmp_path)


def test_what_is_not_there_yet_is_claimed_by_its_name(tmp_path: Path) -> None:
    assert overlap(tmp_path / "new", tmp_path / "x" / ".." / "new")
    assert not overlap(tmp_path / "new", tmp_path / "other")


@pytest.mark.root
def test_a_loop_device_and_its_file_are_one_claim(disk: str, image: Path, tmp_path: Path) -> None:
    assert overlap(disk, image)
    assert not overlap(disk, tmp_path)


@pytest.mark.root
def test_a_partition_and_its_disk_are_one_claim(disk: str, image: Path) -> None:
    call("sfdisk", "-q", "--no-reread", disk, given="label: dos\n2048,20480\n24576,20480\n")
    try:
        call("partx", "--add", disk)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no partition can be added here: {error.stderr.strip()}")
    try:
        first, second = f"{disk}p1", f"{disk}p2"
        assert overlap(first, disk)
        assert overlap(disk, second)
        assert overlap(first, second)
        assert overlap(first, image)
    finally:
        call("partx", "--delete", disk)


def test_a_volume_takes_its_members_and_their_disks(tmp_path: Path) -> None:
    host = KernelTree(tmp_path)
    disks = [host.block(name, f"8:{16 * at}") for at, name in enumerate(("sda", "sdb"))]
    parts = [
        host.block(f"{disk.name}/{disk.name}1", f"8:{16 * at + 1}", {"partition": "1"})
        for at, disk in enumerate(disks)
    ]
    volume = host.block("dm-0", "253:0")
    for part in parts:
        host.stack(volume, part)
    found = set(claims.stack(BlockDevice.of_name("dm-0", host.sys)))
    assert found == {"/dev/dm-0", "/dev/sda1", "/dev/sda", "/dev/sdb1", "/dev/sdb"}


def test_two_directories_of_one_file_system_are_not_filled_by_two(tmp_path: Path) -> None:
    """Each would have been measured at a level that the other's file had a part in."""

    def claimed(folder: Path) -> set[Setting]:
        folder.mkdir()
        path = folder / "fill.toml"
        path.write_text(FILLED.format(folder=folder))
        prepared = prepare(path, ReadOptionsOfExperiment())
        return {one for one in claims.settings(prepared, Controls()) if one.control in ("", "fill_level")}

    first, second = claimed(tmp_path / "a"), claimed(tmp_path / "b")
    assert len(first) == len(second) == 2
    assert {one.control for one in first & second} == {""}
