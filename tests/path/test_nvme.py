"""A namespace's two devices, found by each other in a small sysfs, as the kernel links them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadstone.path import nvme
from loadstone.path.discover import discover
from tests.path.trees import KernelTree

CONTROLLER = "pci0000:00/0000:00:04.0/nvme/nvme0"


@pytest.fixture
def host(tmp_path: Path) -> KernelTree:
    made = KernelTree(tmp_path)
    block = made.block(f"{CONTROLLER}/nvme0n1", "259:1")
    (block / "device").symlink_to(block.parent)
    generic(made, "ng0n1", "236:0", block.parent)
    return made


def generic(host: KernelTree, name: str, number: str, controller: Path) -> Path:
    there = controller / name
    host.write(there, {"dev": f"{number}\n"})
    (host.sys / "class" / nvme.CLASS).mkdir(parents=True, exist_ok=True)
    (there / "subsystem").symlink_to(host.sys / "class" / nvme.CLASS)
    (there / "device").symlink_to(controller)
    host.link(f"dev/char/{number}", there)
    return there


def test_the_block_device_of_the_same_name_on_the_same_controller(host: KernelTree) -> None:
    number = os.makedev(236, 0)
    found = nvme.namesake(number, host.sys)
    assert nvme.is_generic(number, host.sys)
    assert found is not None
    assert (found.name, found.number) == ("nvme0n1", os.makedev(259, 1))


def test_another_controllers_device_of_that_name_is_not_it(host: KernelTree) -> None:
    other = host.sys / "devices" / "pci0000:00/0000:00:05.0/nvme/nvme9"
    generic(host, "ng0n1", "236:7", other)
    assert nvme.is_generic(os.makedev(236, 7), host.sys)
    assert nvme.namesake(os.makedev(236, 7), host.sys) is None


def test_one_path_of_several_has_no_block_device(host: KernelTree) -> None:
    generic(host, "ng0c1n1", "236:1", host.sys / "devices" / CONTROLLER)
    assert nvme.namesake(os.makedev(236, 1), host.sys) is None


def test_a_block_device_that_is_not_there(host: KernelTree) -> None:
    generic(host, "ng0n2", "236:2", host.sys / "devices" / CONTROLLER)
    assert nvme.namesake(os.makedev(236, 2), host.sys) is None


def test_other_character_devices_are_none(host: KernelTree) -> None:
    null = Path("/dev/null").stat().st_rdev
    assert not nvme.is_generic(null)
    assert not nvme.is_generic(os.makedev(236, 99), host.sys)
    assert nvme.namesake(null) is None


def test_the_path_under_it_is_known_and_its_counters_are_not(host: KernelTree) -> None:
    # /dev/null stands for the node: what it is, is looked up by its number.
    link = host.sys / "dev/char/1:3"
    link.symlink_to((host.sys / "dev/char/236:0").resolve())
    path = discover("/dev/null", sys=host.sys, proc=host.proc)
    assert [(layer.name, layer.kind) for layer in path.layers][:2] == [
        ("/dev/null", "char"),
        ("nvme0n1", "nvme"),
    ]
    assert path.layers[0].below == ("nvme0n1",)
    assert all(layer.counters is None for layer in path.layers)
    assert "the I/O of nvme0n1: its counters do not see NVMe commands" in path.gaps
