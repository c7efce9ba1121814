"""Options of mounted file systems: what counts as set, what is put back, and what never could be.

On loop devices with ext4, btrfs and XFS, each as this kernel shows its options.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.control import mounts as mounts_module
from loadstone.control.all_controls import Controls
from loadstone.control.changes import Changes, restore
from loadstone.control.mounts import MountOptions
from loadstone.errors import RefusedError
from loadstone.path.mounts import Mount
from tests.support import devices
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = {"ext4": 64 << 20, "btrfs": 128 << 20, "xfs": 320 << 20}
PUT_BACK = (
    ("btrfs", "", "thread_pool=3"),
    ("btrfs", "", "discard=sync"),
    ("btrfs", "", "max_inline=1024,metadata_ratio=4"),
    ("btrfs", "", "fatal_errors=panic"),
    ("btrfs", "compress=zstd,thread_pool=6", "compress-force=lzo"),
    ("btrfs", "compress=zstd,nodatasum", "compress=no"),
    ("btrfs", "nossd,nodatacow", "ssd_spread,datacow"),
    ("btrfs", "discard=sync,nobarrier,strictatime", "nodiscard,barrier,noatime"),
    ("ext4", "", "inode_readahead_blks=64,errors=remount-ro,max_dir_size_kb=1000"),
    ("ext4", "", "data_err=abort,init_itable=20,resuid=5,resgid=6"),
    ("ext4", "commit=77,nobarrier,noatime", "commit=5,barrier=1,strictatime"),
    ("ext4", "stripe=16,max_batch_time=99,discard", "stripe=8,nodiscard"),
    ("ext4", "", "usrquota"),
    ("ext4", "usrquota", "grpquota,noatime"),
    ("xfs", "", "inode32,noatime"),
)
"""A file system, how it is mounted, and a level that a remount takes."""
STAYS = (
    ("btrfs", "", "skip_balance"),
    ("btrfs", "", "nossd"),
    ("ext4", "nodelalloc", "delalloc"),
    ("ext4", "", "journal_async_commit"),
    ("ext4", "", "data=writeback"),
    ("ext4", "", "noatime,no_prefetch_block_bitmaps"),
    ("ext4", "", "abort"),
    ("xfs", "", "allocsize=1m"),
)
"""Levels that no remount would take away again."""


@pytest.fixture
def point(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return where a file system of a kind is mounted with some options."""
    kind, options, _ = request.param
    if os.geteuid() != 0 or not all(map(shutil.which, ("losetup", f"mkfs.{kind}", "mount", "umount"))):
        pytest.skip(f"needs root, losetup, mkfs.{kind} and mount")
    image = empty(tmp_path / "image", SIZES[kind])
    subprocess.run([f"mkfs.{kind}", "-q", *(["-F"] if kind == "ext4" else []), image], check=True)
    with attached(image) as device, devices.mounted(device, tmp_path / "point"):
        if options:
            subprocess.run(["umount", tmp_path / "point"], check=True)
            subprocess.run(["mount", "-o", options, device, tmp_path / "point"], check=True)
        yield tmp_path / "point"


def named(rows: tuple[tuple[str, str, str], ...]) -> pytest.MarkDecorator:
    """Try each row with its file system mounted."""
    return pytest.mark.parametrize(
        ("point", "level"), [(row, row[2]) for row in rows], indirect=["point"], ids=map(" ".join, rows)
    )


def shown(point: Path) -> set[str]:
    """Return the options as the kernel shows them."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    line = next(line for line in reversed(lines) if line[4] == str(point))
    return {*line[5].split(","), *line[-1].split(",")}


@pytest.mark.in_turn
@pytest.mark.root
@named(PUT_BACK)
def test_what_a_remount_changes_it_takes_away_again(point: Path, tmp_path: Path, level: str) -> None:
    before = shown(point)
    child = os.fork()
    if not child:
        try:
            Changes(where=tmp_path / "state").set("mount_options", str(point), level)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert shown(point) != before
    assert [one.is_well for one in restore(Controls(), tmp_path / "state")] == [True]
    assert shown(point) == before


@pytest.mark.root
@named(STAYS)
def test_what_no_remount_takes_away_is_refused_before(point: Path, tmp_path: Path, level: str) -> None:
    before = shown(point)
    with pytest.raises(RefusedError) as refused:
        Changes(where=tmp_path / "state").set("mount_options", str(point), level)
    assert "which no remount of" in (refused.value.hint or "")
    assert shown(point) == before
    assert not list((tmp_path / "state").glob("*"))


@pytest.mark.parametrize(
    ("level", "value", "is_set"),
    [
        ("strictatime", "rw,relatime|rw", False),
        ("strictatime", "rw,noatime|rw", False),
        ("strictatime", "rw|rw", True),
        ("atime", "rw,relatime|rw", True),
        ("commit=5", "rw,relatime|rw,commit=77", False),
        ("commit=5", "rw,relatime|rw", True),
        ("commit=30", "rw,relatime|rw,commit=77", False),
        ("nodiscard", "rw,relatime|rw,discard=async", False),
        ("discard", "rw,relatime|rw,discard=async", False),
        ("discard=sync", "rw,relatime|rw,discard", True),
        ("compress=no", "rw,relatime|rw,compress-force=lzo", False),
        ("compress=zstd", "rw,relatime|rw,compress=zstd:3", True),
        ("compress", "rw,relatime|rw,compress=zlib:3", True),
        ("compress", "rw,relatime|rw,compress=zstd:3", False),
        ("barrier=0", "rw,relatime|rw,nobarrier", True),
        ("barrier", "rw,relatime|rw,nobarrier", False),
        ("treelog", "rw,relatime|rw,notreelog", False),
    ],
)
def test_a_default_counts_as_set_only_where_nothing_else_is_in_its_place(
    level: str, value: str, *, is_set: bool
) -> None:
    """With relatime a level of strictatime was taken as set, and measured relatime."""
    assert MountOptions().agrees(level, value) is is_set


@pytest.mark.parametrize(
    ("kind", "level"), [("btrfs", "delalloc"), ("xfs", "commit=5"), ("ext4", "treelog"), ("xfs", "barrier")]
)
def test_a_default_of_another_file_system_is_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str, level: str
) -> None:
    """It is not shown, so that it would count as set."""
    mount = Mount(1, "/", "/x", kind, "/dev/x", "rw,relatime", "rw")
    monkeypatch.setattr(mounts_module, "mounts", lambda: [mount])
    assert MountOptions().refuses("/x", level) == f"has no {level}: it is {kind}"


def test_a_cpu_that_goes_offline_changes_no_mount_of_btrfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows `thread_pool` where it is not that of the CPUs online: another experiment's change."""
    control = MountOptions()

    def read(cpus: int, own: str) -> str | None:
        mount = Mount(1, "/", "/x", "btrfs", "/dev/x", "rw,relatime", own)
        monkeypatch.setattr(mounts_module, "mounts", lambda: [mount])
        monkeypatch.setattr(os, "sysconf", lambda _: cpus)
        return control.read("/x")

    before, offline = read(2, "rw,space_cache=v2"), read(1, "rw,thread_pool=4,space_cache=v2")
    assert before is not None
    assert offline is not None
    assert control.agrees(before, offline)
    changed = read(1, "rw,space_cache=v2")
    assert changed is not None
    assert not control.agrees(before, changed)
