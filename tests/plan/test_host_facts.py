"""What is found at real paths of this host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadstone.errors import InputError
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import TargetKind
from tests.support.devices import attached, empty


def test_this_host() -> None:
    here = HostFacts.here()
    assert set(here.cpus) == os.sched_getaffinity(0)
    assert here.memory_bytes > 1 << 28


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 10_000)
    facts = HostFacts.here().target(str(path), None)
    found = path.stat()
    assert (facts.kind, facts.exists, facts.size_bytes) == (TargetKind.FILE, True, 10_000)
    assert facts.identity is not None
    assert (facts.identity.device, facts.identity.inode) == (found.st_dev, found.st_ino)
    assert facts.free_bytes
    assert facts.logical_block_bytes % 512 == 0


def test_a_file_with_holes(tmp_path: Path) -> None:
    path = tmp_path / "holes"
    with path.open("wb") as file:
        file.truncate(10 << 20)
    facts = HostFacts.here().target(str(path), None)
    assert facts.size_bytes == 10 << 20
    assert facts.allocated_bytes is not None
    assert facts.allocated_bytes < facts.size_bytes


def test_what_is_not_there(tmp_path: Path) -> None:
    host = HostFacts.here()
    facts = host.target(str(tmp_path / "new"), None)
    assert (facts.kind, facts.exists, facts.size_bytes, facts.identity) == (TargetKind.FILE, False, 0, None)
    assert not (tmp_path / "new").exists()
    assert not host.target(str(tmp_path / "no" / "deeper" / "new"), None).exists
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="Not a directory"):
        host.target(str(tmp_path / "file" / "new"), None)
    with pytest.raises(InputError, match="there is no directory /dev/no") as caught:
        host.target("/dev/no/disk", None)
    assert caught.value.hint == "mkdir -p /dev/no"
    with pytest.raises(InputError, match="there is no device /dev/nvm9"):
        host.target("/dev/nvm9", None)


def test_what_is_no_target(tmp_path: Path) -> None:
    host = HostFacts.here()
    with pytest.raises(InputError, match="is a directory"):
        host.target(str(tmp_path), None)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a device"):
        host.target(str(tmp_path / "pipe"), None)


def test_a_character_device() -> None:
    facts = HostFacts.here().target("/dev/null", None)
    assert (facts.kind, facts.size_bytes, facts.punts) == (TargetKind.CHAR, 0, False)
    assert facts.at_once
    assert not HostFacts.here().target("/dev/random", None).at_once


def test_a_file_in_memory_punts(tmp_path: Path) -> None:
    kinds = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    if ["/dev/shm", "tmpfs"] not in kinds:
        pytest.skip("/dev/shm is no tmpfs here")
    assert HostFacts.here().target(f"/dev/shm/loadstone-none-{os.getpid()}", None).punts


@pytest.mark.root
@pytest.mark.parametrize("sector", [512, 4096])
def test_a_loop_device(tmp_path: Path, sector: int) -> None:
    with attached(empty(tmp_path / "image", 8 << 20), f"--sector-size={sector}") as device:
        facts = HostFacts.here().target(device, None)
        assert (facts.kind, facts.size_bytes, facts.logical_block_bytes) == (
            TargetKind.BLOCK,
            8 << 20,
            sector,
        )
        assert facts.identity is not None
        assert facts.identity.special == Path(device).stat().st_rdev
        assert not facts.punts
