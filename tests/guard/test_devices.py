"""What may be written, on real block devices: loop devices made and removed here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError
from loadstone.plan.safety import guard, in_use
from loadstone.plan.safety.use import Use, UseKind
from tests.support.devices import attached, call, empty, mounted, tool

from .plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 64 << 20
pytestmark = pytest.mark.root


@pytest.fixture
def backing(tmp_path: Path) -> Path:
    return empty(tmp_path / "backing", SIZE)


@pytest.fixture
def loop(backing: Path) -> Iterator[str]:
    with attached(backing) as device:
        yield device


def refusal(device: str, *, consent: bool = True) -> str:
    agreed = guard.Consent(frozenset({device} if consent else set()))
    with pytest.raises(RefusedError) as caught:
        guard.secure(plan(target(device, "block", size_bytes=SIZE)), agreed)
    return str(caught.value)


def test_an_empty_device_may_be_written_and_is_opened_exclusively(loop: str) -> None:
    secured = guard.secure(plan(target(loop, "block", size_bytes=SIZE)), guard.Consent())
    found = secured.targets[0]
    assert found.exclusive
    assert found.identity is not None
    assert found.identity.special == Path(loop).stat().st_rdev


def test_reading_a_mounted_device_is_allowed_and_not_exclusive(loop: str, tmp_path: Path) -> None:
    call("mkfs.ext4", "-q", loop)
    with mounted(loop, tmp_path / "mnt"):
        secured = guard.secure(
            plan(target(loop, "block", size_bytes=SIZE, read_only=True), read=100, write=0), guard.Consent()
        )
    assert not secured.targets[0].exclusive


def test_a_file_system_needs_consent(loop: str) -> None:
    call("mkfs.ext4", "-q", loop)
    assert "ext4 at offset 1080" in refusal(loop, consent=False)
    guard.secure(plan(target(loop, "block", size_bytes=SIZE)), guard.Consent(frozenset({loop})))


def test_a_mounted_device_is_refused_even_with_consent(loop: str, tmp_path: Path) -> None:
    call("mkfs.ext4", "-q", loop)
    with mounted(loop, tmp_path / "mnt"):
        said = refusal(loop)
    assert f"{Path(loop).name} is mounted at {tmp_path / 'mnt'} (ext4)" in said


def test_a_disk_with_a_mounted_partition_is_refused_and_so_is_the_partition(
    backing: Path, tmp_path: Path
) -> None:
    table = "label: dos\n2048,65536,83\n"
    subprocess.run(
        [tool("sfdisk"), "-q", str(backing)], input=table, text=True, check=True, capture_output=True
    )
    with attached(backing) as disk:
        assert "dos" in refusal(disk, consent=False)
        subprocess.run([tool("partx"), "--add", disk], check=False, capture_output=True)
        part = Path(disk + "p1")
        if not part.exists():
            pytest.skip("this kernel makes no partitions on loop devices")
        try:
            call("mkfs.ext4", "-q", str(part))
            with mounted(str(part), tmp_path / "mnt"):
                assert f"{part.name} is mounted" in refusal(disk)
                assert f"{part.name} is mounted" in refusal(str(part))
        finally:
            call("partx", "--delete", disk)


def test_another_loop_over_the_same_file_counts(loop: str, backing: Path, tmp_path: Path) -> None:
    call("mkfs.ext4", "-q", loop)
    with attached(backing) as twin, mounted(loop, tmp_path / "mnt"):
        assert f"{Path(loop).name} is mounted" in refusal(twin)


def test_a_file_behind_a_loop_device_is_refused(loop: str, backing: Path) -> None:
    with pytest.raises(RefusedError, match=f"it backs {Path(loop).name}"):
        guard.secure(plan(target(str(backing))), guard.Consent(frozenset({str(backing)})))


def test_a_device_behind_a_loop_device_is_refused(loop: str) -> None:
    with attached(Path(loop)) as upper:
        assert f"{Path(loop).name} backs {Path(upper).name}" in refusal(loop)


def test_swap_is_refused_even_with_consent(loop: str) -> None:
    call("mkswap", loop)
    assert "it carries swap" in refusal(loop, consent=False)
    try:
        call("swapon", loop)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"swap is not possible here: {error.stderr.strip()}")
    try:
        assert f"{Path(loop).name} is used as swap" in refusal(loop)
    finally:
        call("swapoff", loop)


def test_every_member_of_a_mounted_btrfs_is_in_use(tmp_path: Path) -> None:
    parts = [tmp_path / "a", tmp_path / "b"]
    for part in parts:
        with part.open("wb") as out:
            out.truncate(128 << 20)
    with attached(parts[0]) as first, attached(parts[1]) as second:
        call("mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid0", first, second)
        with mounted(first, tmp_path / "mnt"):
            assert f"{Path(second).name} belongs to the mounted btrfs" in refusal(second)


def test_what_claims_exclusively_is_seen_without_other_traces(loop: str) -> None:
    descriptor = os.open(loop, os.O_RDONLY | os.O_EXCL)
    try:
        assert in_use.device_uses(Path(loop), in_use.Snapshot()) == [
            "the kernel says it is in use (opening it exclusively gives EBUSY)"
        ]
    finally:
        os.close(descriptor)
    assert in_use.device_uses(Path(loop), in_use.Snapshot()) == []


def test_a_loop_device_over_a_mounted_device_is_in_use(loop: str, tmp_path: Path) -> None:
    """Found by reading: what a loop device stands on was looked at for a file and not for a device."""
    call("mkfs.ext2", "-q", "-F", loop)
    with attached(Path(loop)) as over, attached(Path(over)) as highest:
        assert in_use.device_uses(Path(highest), in_use.Snapshot()) == []
        with mounted(loop, tmp_path / "point"):
            told = f"{Path(loop).name} is mounted at {tmp_path / 'point'} (ext2)"
            for one in (over, highest):
                assert told in in_use.device_uses(Path(one), in_use.Snapshot())


def test_what_a_process_writes_on_a_partition_is_in_use_on_its_disk(loop: str) -> None:
    table = "label: dos\n2048,20480\n24576,20480\n"
    subprocess.run([tool("sfdisk"), "-q", "--no-reread", loop], input=table, text=True, check=True)
    call("partx", "-a", loop)
    try:
        first, second = f"{loop}p1", f"{loop}p2"
        with Path(first).open("r+b"):
            host = in_use.Snapshot()
            use = Use(UseKind.OPEN, "a process has it open for writing")
            host.__dict__["users"] = {(0, Path(first).stat().st_rdev): [use]}
            told = [f"{Path(first).name}: a process has it open for writing"]
            assert in_use.device_uses(Path(loop), host) == told
            assert in_use.device_uses(Path(first), host) == told
            assert in_use.device_uses(Path(second), host) == []
    finally:
        call("partx", "-d", loop)
