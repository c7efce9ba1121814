"""How devices stand on each other, in a small sysfs made here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone.path.block import BlockDevice, above, loops
from loadstone.path.underlying import below, under_path

if TYPE_CHECKING:
    from pathlib import Path


class Sysfs:
    """A tree with the links the kernel makes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("block", "class/block", "dev/block", "devices"):
            (root / folder).mkdir(parents=True)

    def disk(self, name: str, number: str, **attributes: str) -> BlockDevice:
        return self._add(self.root / "devices" / name, number, attributes)

    def part(self, disk: BlockDevice, name: str, number: str) -> BlockDevice:
        return self._add(disk.sys / name, number, {"partition": "1"})

    def stack(self, upper: BlockDevice, lower: BlockDevice) -> None:
        for device, folder, other in ((upper, "slaves", lower), (lower, "holders", upper)):
            (device.sys / folder).mkdir(exist_ok=True)
            (device.sys / folder / other.name).symlink_to(other.sys)

    def _add(self, place: Path, number: str, attributes: dict[str, str]) -> BlockDevice:
        place.mkdir()
        (place / "dev").write_text(number + "\n")
        for attribute, value in attributes.items():
            path = place / attribute.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(value + "\n")
        (self.root / "dev" / "block" / number).symlink_to(place)
        (self.root / "class" / "block" / place.name).symlink_to(place)
        if "partition" not in attributes:
            (self.root / "block" / place.name).symlink_to(place)
        return BlockDevice(place.name, place)


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_a_device_is_found_by_number_and_by_name(sysfs: Sysfs) -> None:
    disk = sysfs.disk("sda", "8:0", size="2048")
    assert BlockDevice.of_number(os.makedev(8, 0), sysfs.root) == disk
    assert BlockDevice.of_name("sda", sysfs.root) == disk
    assert disk.number == os.makedev(8, 0)
    assert disk.size_bytes == 1 << 20
    assert BlockDevice.of_number(os.makedev(8, 99), sysfs.root) is None


def test_a_partition_knows_its_disk_and_the_disk_its_partitions(sysfs: Sysfs) -> None:
    disk = sysfs.disk("sda", "8:0")
    part = sysfs.part(disk, "sda1", "8:1")
    assert part.disk() == disk
    assert disk.disk() == disk
    assert disk.partitions() == [part]


def test_above_and_below_follow_partitions_and_holders_to_the_end(sysfs: Sysfs) -> None:
    disks = [sysfs.disk(f"sd{letter}", f"8:{16 * at}") for at, letter in enumerate("ab")]
    parts = [sysfs.part(disk, f"{disk.name}1", f"8:{16 * at + 1}") for at, disk in enumerate(disks)]
    raid = sysfs.disk("md0", "9:0")
    volume = sysfs.disk("dm-0", "253:0")
    for part in parts:
        sysfs.stack(raid, part)
    sysfs.stack(volume, raid)
    assert {device.name for device in above(disks[0])} == {"sda1", "md0", "dm-0"}
    assert {device.name for device in below(volume)} == {"md0", "sda1", "sdb1", "sda", "sdb"}
    assert above(volume) == []


def test_only_loops_that_are_set_up_count(sysfs: Sysfs) -> None:
    sysfs.disk("loop0", "7:0")
    used = sysfs.disk("loop1", "7:1", loop__backing_file="/images/a b")
    assert loops(sysfs.root) == [used]
    assert used.backing_file() == "/images/a b"


def test_what_does_not_exist_stands_on_nothing(tmp_path: Path) -> None:
    assert under_path(tmp_path / "missing") == []
