"""What a file system in user space stands on: other hosts, directories that it shows, or a disk."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab.parts import MIB, Stage, unmount, until

from loadstone.path import ceilings, fuse
from loadstone.path.discover import discover
from loadstone.path.mounts import PROC, Mount
from loadstone.path.underlying import under_path
from tests.support.devices import call

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0200120A:2A39", "10.18.0.2"),
        ("0100007F:0016", "127.0.0.1"),
        ("0000000000000000FFFF0000020012C6:2A39", "198.18.0.2"),
        ("B80D0120000000000000000001000000:0BB8", "2001:db8::1"),
    ],
)
def test_an_address_as_the_kernel_prints_it(text: str, address: str) -> None:
    assert fuse.address_of(text) == address


def test_the_other_ends_of_a_process_are_those_of_its_own_sockets() -> None:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.9", 0)))
        ours = stack.enter_context(socket.create_connection(listener.getsockname()))
        theirs = stack.enter_context(listener.accept()[0])
        assert ours.getsockname() == theirs.getpeername()
        peers = list(fuse.peers_of(PROC / "self"))
        assert "127.0.0.9" in peers
        before = len(peers)
        theirs.close()
        ours.close()
        assert len(list(fuse.peers_of(PROC / "self"))) == before - 2


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as parts:
        yield parts


@pytest.mark.root
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("nbdfuse", "nbdkit", "tc")),
    reason="not installed: nbdfuse (libnbd-bin), nbdkit or tc (iproute2)",
)
@pytest.mark.in_turn
def test_the_path_of_a_served_file_goes_on_to_the_network(stage: Stage) -> None:
    """Behind nbdfuse it ended: neither a slow interface nor a shaped one could limit anything."""
    device = stage.remote("1gbit")
    near = f"{stage.folder.name[-8:]}h"
    call("tc", "qdisc", "add", "dev", near, "root", "tbf", "rate", "80mbit", "burst", "64kb",
         "latency", "200ms")  # fmt: skip
    path = discover(device)
    served = next(layer for layer in path.layers if layer.kind == "fuse")
    assert served.facts["programs"] == ["nbdfuse"]
    assert served.facts["peers"] == ["198.18.0.2"]
    assert served.below == (near,)
    interface = path.layer(near)
    assert interface is not None
    assert interface.ceilings == (ceilings.shaped("tbf", near, 1e7, 1500),)


def _mounted(stage: Stage, *words: str | Path) -> Path:
    """A mount of a program in user space that stays in the foreground."""
    point = stage.folder / "shown"
    point.mkdir()
    stage._program(*words, point)
    until(lambda: os.path.ismount(point), "the mount")
    stage._stack.callback(unmount, point)
    return point


@pytest.mark.root
@pytest.mark.skipif(shutil.which("bindfs") is None, reason="not installed: bindfs")
@pytest.mark.in_turn
def test_the_path_of_a_shown_directory_goes_on_to_its_disk(stage: Stage) -> None:
    """Seen: bindfs answered from the page cache at 90k IOPS, and nobody counted the disk with 200."""
    disk = stage.loop(64)
    directory = stage.ext4(disk)
    file = directory / "file"
    file.write_bytes(bytes(MIB))
    shown = _mounted(stage, "bindfs", "-f", directory) / "file"
    path = discover(str(shown))
    kinds = [layer.kind for layer in path.layers[:5]]
    assert kinds == ["file", "fuse", "file", "file_system", "loop"]
    assert [layer.name for layer in path.layers if layer.counters] == [Path(disk).name]
    assert under_path(shown)[0].name == Path(disk).name
    assert not any("bindfs" in gap for gap in path.gaps)


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bindfs") is None, reason="not installed: bindfs")
def test_what_a_shown_directory_answers_from_memory_is_no_measure_of_its_disk(stage: Stage) -> None:
    directory = stage.ext4(stage.loop(64))
    file = directory / "file"
    file.write_bytes(os.urandom(16 * MIB))
    call("sync", str(file))
    file.read_bytes()
    shown = _mounted(stage, "bindfs", "-f", directory) / "file"
    job = "[j]\nioengine=psync\nrw=randread\nbs=4k\ntime_based\nruntime=3\nfilename={0}\ndirect=1\n"
    result = json.loads((stage.run(job, shown) / "result.json").read_text())
    assert "page_cache_read" in {cause["rule"] for cause in result["verdict"]["causes"]}


@pytest.mark.root
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("fuse2fs", "mkfs.ext4")), reason="not installed: fuse2fs"
)
@pytest.mark.in_turn
def test_the_path_goes_on_to_the_disk_that_a_program_has_open(stage: Stage) -> None:
    disk = stage.loop(64)
    call("mkfs.ext4", "-q", "-F", disk)
    file = _mounted(stage, "fuse2fs", "-f", disk) / "file"
    file.write_bytes(bytes(MIB))
    path = discover(str(file))
    assert [layer.kind for layer in path.layers[:3]] == ["file", "fuse", "loop"]
    assert path.layers[2].name == Path(disk).name


@pytest.mark.root
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("nbdfuse", "nbdkit")), reason="not installed: nbdfuse or nbdkit"
)
@pytest.mark.in_turn
def test_a_file_whose_server_is_not_seen_stands_on_nothing(stage: Stage) -> None:
    """Its mount is named after /dev/fuse, which is no directory; what an export does is its own affair."""
    file = stage.fuse_file("rdelay=1ms", filters=["delay"])
    layers = discover(str(file)).layers
    assert [layer.kind for layer in layers] == ["file", "fuse"]
    assert layers[1].below == ()


def test_a_mount_names_the_directories_that_it_shows() -> None:
    mount = Mount(1, "/", "/shown", "fuse.unionfs", "/a:/b:relative", "rw", "rw")
    assert fuse.shown_by(mount, "/shown/one/file") == ["/a/one/file", "/b/one/file"]


def test_a_directory_of_another_host_is_not_the_one_of_that_name_here(tmp_path: Path) -> None:
    mount = Mount(1, "/", "/shown", "fuse.rclone", str(tmp_path), "rw", "rw")
    (tmp_path / "file").touch()
    assert fuse.stands_on(mount, Path("/shown/file")) == [tmp_path / "file"]
    far = replace(mount, kind="fuse.sshfs", source=f"user@host:{tmp_path}")
    assert fuse.stands_on(far, Path("/shown/file")) == []


def test_files_that_are_appended_to_or_only_written_are_no_images(tmp_path: Path) -> None:
    image, log, out = (tmp_path / name for name in ("image", "log", "out"))
    for one in (image, log, out):
        one.write_bytes(b"x")
    with image.open("r+b"), log.open("a+b"), out.open("wb"):
        opened = set(fuse.opened_by(PROC / "self"))
    assert image in opened
    assert not {log, out} & opened
