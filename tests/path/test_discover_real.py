"""Data paths on real parts of this host: loop devices, ext4, btrfs, zram, limits of control groups."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.path.discover import discover
from loadstone.path.underlying import under_path
from tests.payload.parts import CONTROL, zram
from tests.support.devices import PATH, attached, call, mounted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.path.layers import DataPath, Layer

pytestmark = pytest.mark.root
MIB = 1 << 20


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory on tmpfs, where loop devices are fast."""
    place = Path("/dev/shm") / f"loadstone-test-{os.getpid()}"
    if not place.parent.is_dir():
        pytest.skip("there is no /dev/shm")
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place)


def formatted(device: str, *words: str) -> None:
    if shutil.which(words[0], path=PATH) is None:
        pytest.skip(f"{words[0]} is not installed")
    call(*words, device)


def layer(path: DataPath, name: str) -> Layer:
    one = path.layer(name)
    assert one is not None, [layer.name for layer in path.layers]
    return one


def test_ext4_on_a_loop_device_down_to_the_file_behind_it(memory: Path, tmp_path: Path) -> None:
    backing = memory / "disk"
    backing.touch()
    os.truncate(backing, 64 * MIB)
    with attached(backing) as device:
        formatted(device, "mkfs.ext4", "-q")
        point = tmp_path / "mnt"
        with mounted(device, point):
            with (point / "data").open("wb") as file:
                file.write(os.urandom(MIB))
                file.flush()
                os.posix_fallocate(file.fileno(), MIB, MIB)
                file.truncate(4 * MIB)
                os.fsync(file.fileno())
            path = discover(str(point / "data"))
            name = Path(device).name
            chain = [
                str(point / "data"),
                f"ext4 on {point}",
                name,
                str(backing),
                "tmpfs on /dev/shm",
                "memory",
            ]
            assert [one.name for one in path.layers] == chain
            assert [one.below for one in path.layers] == [(one,) for one in chain[1:]] + [()]
            file_facts = path.layers[0].facts
            assert (file_facts["written_bytes"], file_facts["unwritten_bytes"]) == (MIB, MIB)
            assert (file_facts["hole_bytes"], file_facts["complete"]) == (2 * MIB, True)
            assert layer(path, name).counters == f"block.{name}"
            assert layer(path, name).facts["backing_file"] == str(backing)
            backing_facts = layer(path, str(backing)).facts
            assert backing_facts["size_bytes"] == 64 * MIB
            assert isinstance(backing_facts["hole_bytes"], int)
            assert backing_facts["hole_bytes"] > 40 * MIB
            assert path.gaps == ()


@pytest.mark.in_turn
def test_btrfs_over_several_devices_shows_all_of_them_and_its_profiles(memory: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        devices = []
        for at in range(4):
            backing = memory / f"d{at}"
            backing.touch()
            os.truncate(backing, 256 * MIB)
            devices.append(stack.enter_context(attached(backing)))
        formatted(devices[0], "mkfs.btrfs", "-q", "-d", "raid10", "-m", "raid1", "-L", "lab", *devices[1:])
        point = tmp_path / "mnt"
        point.mkdir()
        try:
            call("mount", "-o", f"compress=zstd,device={',device='.join(devices)}", devices[0], str(point))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"btrfs cannot be mounted here: {error.stderr.strip()}")
        stack.callback(call, "umount", str(point))
        (point / "data").write_bytes(b"x" * MIB)
        os.sync()
        names = [Path(device).name for device in devices]
        path = discover(str(point / "data"))
        pool = layer(path, "btrfs raid10 lab")
        assert sorted(pool.below) == sorted(names)
        assert (pool.facts["data_profile"], pool.facts["metadata_profile"]) == ("raid10", "raid1")
        system = layer(path, f"btrfs on {point}")
        assert system.facts["copy_on_write"] is True
        assert system.facts["compression"] == "zstd:3"
        assert path.layers[0].facts["encoded_bytes"] == MIB
        (point / "plain").touch()
        chattr = shutil.which("chattr", path=PATH)
        if chattr is not None:
            call("chattr", "+C", str(point / "plain"))
            plain = layer(discover(str(point / "plain")), f"btrfs on {point}")
            assert plain.facts["copy_on_write"] is False
            assert "compression" not in plain.facts
        assert {one.name for one in under_path(point / "data")} >= set(names)


def test_a_zram_disk_compresses_into_memory() -> None:
    if os.geteuid() != 0 or not CONTROL.exists():
        pytest.skip("zram disks need root and the zram driver")
    with zram() as disk:
        algorithm = disk.algorithms()[0]
        disk.empty(algorithm, 16 * MIB)
        path = discover(disk.path)
        assert [(one.name, one.kind) for one in path.layers] == [
            (Path(disk.path).name, "zram"),
            ("memory", "memory"),
        ]
        assert path.layers[0].facts["compression"] == algorithm
        assert path.layers[0].facts["size_bytes"] == 16 * MIB


def test_a_limit_set_now_is_a_layer_and_gone_when_lifted(memory: Path) -> None:
    control = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")
    own = [line for line in Path("/proc/self/cgroup").read_text().splitlines() if ":blkio:" in line]
    if not own or not own[0].endswith(":/") or not os.access(control, os.W_OK):
        pytest.skip("needs version 1's blkio controller, and to be in its root group")
    (memory / "disk").touch()
    os.truncate(memory / "disk", 16 * MIB)
    with attached(memory / "disk") as device:
        status = Path(device).stat()
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        try:
            control.write_text(f"{number} 500")
            top = discover(device).layers[0]
        finally:
            control.write_text(f"{number} 0")
        name = Path(device).name
        assert (top.name, top.kind, top.below) == (f"cgroup / on {name}", "cgroup", (name,))
        assert [(c.quantity, c.op, c.per_s, c.kind) for c in top.ceilings] == [
            ("iops", "write", 500.0, "limit")
        ]
        assert discover(device).layers[0].name == name
