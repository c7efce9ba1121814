"""Writing by a namespace's character device is writing to its block device: both are looked at as one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.path import nvme
from loadstone.path.block import BlockDevice
from loadstone.plan.host_facts import TargetFacts, namesake_of
from loadstone.plan.model import Identity, Namesake, Plan, Target, TargetKind
from loadstone.plan.safety import guard
from loadstone.plan.safety.in_use import Snapshot
from tests.path.trees import KernelTree
from tests.support.devices import attached, call

from .plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = "/dev/null"
"""Stands for the character device: what it is, is looked up by its number, 1:3."""


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    backing = tmp_path / "backing"
    with backing.open("wb") as out:
        out.truncate(64 << 20)
    with attached(backing) as device:
        yield device


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelTree:
    """A host where NODE is ng0n1, and nvme0n1 hangs on the same controller."""
    made = KernelTree(tmp_path / "host")
    block = made.block("pci0000:00/nvme/nvme0/nvme0n1", "259:1")
    (block / "device").symlink_to(block.parent)
    generic = block.parent / "ng0n1"
    generic.mkdir()
    (made.sys / "class" / "nvme-generic").mkdir()
    (generic / "subsystem").symlink_to(made.sys / "class" / "nvme-generic")
    (generic / "device").symlink_to(block.parent)
    made.link("dev/char/1:3", generic)
    return made


def written() -> Target:
    return plan(target(NODE, "char")).targets[0]


def beside(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Let a real block device be the node of nvme0n1."""
    status = Path(path).stat()
    identity = Identity(device=status.st_dev, inode=status.st_ino, special=status.st_rdev, born_ns=None)
    monkeypatch.setattr(guard, "namesake_of", lambda _: Namesake(path=path, identity=identity))


def test_without_its_block_device_nothing_is_written_whatever_is_consented(host: KernelTree) -> None:
    # There is no /dev/nvme0n1 of that number here.
    found = guard.examine(written(), Snapshot(host.sys))
    assert found.path == NODE
    assert found.in_use == ["its block device cannot be found, so its users are not known"]


def test_a_node_of_another_device_is_not_taken(host: KernelTree) -> None:
    null = BlockDevice("null", host.sys / "devices/pci0000:00/nvme/nvme0/nvme0n1")
    assert namesake_of(null) is None


@pytest.mark.root
def test_what_is_empty_may_be_written(host: KernelTree, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch, loop)
    assert guard.examine(written(), Snapshot(host.sys)) == guard.TargetFinding(NODE)


@pytest.mark.root
def test_a_signature_needs_consent(host: KernelTree, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch, loop)
    call("mkfs.ext4", "-q", loop)
    found = guard.examine(written(), Snapshot(host.sys))
    assert not found.in_use
    assert any("ext" in one for one in found.needs_consent)


@pytest.mark.root
def test_what_is_mounted_is_refused(
    host: KernelTree, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(monkeypatch, loop)
    call("mkfs.ext4", "-q", loop)
    point = tmp_path / "mounted"
    point.mkdir()
    try:
        call("mount", loop, str(point))
    except Exception as error:  # noqa: BLE001 - whatever keeps a host from mounting is told
        pytest.skip(f"nothing can be mounted here: {error}")
    try:
        found = guard.examine(written(), Snapshot(host.sys))
    finally:
        call("umount", str(point))
    assert found.in_use == ["the kernel says it is in use (opening it exclusively gives EBUSY)"]


def test_the_guard_names_the_block_device_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Plan made before says of it may be another device by now."""
    now = Namesake(path="/dev/nvme7n1", identity=Identity(device=1, inode=2, special=3, born_ns=None))
    monkeypatch.setattr(nvme, "namesake", lambda _: object())
    monkeypatch.setattr(guard, "namesake_of", lambda _: now)
    before = {"path": "/dev/nvme0n1", "identity": None}
    one = target(NODE, "nvme", direct=True, exclusive=True, namesake=before)
    made: Plan = plan(one, backend=COMMANDS)
    monkeypatch.setattr(guard, "examine", lambda *_, **__: guard.TargetFinding(NODE))
    (secured,) = guard.secure(made, guard.Consent()).targets
    assert secured.namesake == now
    assert secured.exclusive
    assert secured.identity is not None
    assert secured.identity.special == os.makedev(1, 3)


COMMANDS = {
    "type": "io_uring_cmd",
    "registered_files": True,
    "fixed_buffers": True,
    "iopoll": False,
    "sqpoll": False,
}


def test_facts_say_that_it_is_a_disk() -> None:
    assert TargetFacts(TargetKind.NVME).is_device
    assert TargetFacts(TargetKind.BLOCK).is_device
    assert not TargetFacts(TargetKind.CHAR).is_device
