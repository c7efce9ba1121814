"""Only files of file systems that keep files, and block devices, are ever written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadstone.errors import RefusedError
from loadstone.path import inode
from loadstone.plan.safety import guard, writable

from .plans import plan, target

KERNELS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/self/oom_score_adj",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/blkio/cgroup.procs",
    "/sys/fs/cgroup/unified/cgroup.procs",
    "/sys/kernel/debug/clear_warn_once",
    "/sys/kernel/tracing/trace_marker",
)


@pytest.mark.parametrize("path", KERNELS)
def test_a_file_of_the_kernels_is_refused_even_with_consent(path: str) -> None:
    """Issue 11, 1.7: their length is 0, and they passed as empty."""
    if not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    with pytest.raises(RefusedError, match="only files and block devices are written"):
        guard.secure(plan(target(path)), guard.Consent(frozenset({path})))


@pytest.mark.parametrize("place", ["/proc/new", "/sys/new", "/sys/fs/cgroup/blkio/new"])
def test_nothing_is_made_there_either(place: str) -> None:
    if not Path(place).parent.exists():
        pytest.skip(f"there is no {Path(place).parent} here")
    with pytest.raises(RefusedError, match="of the kernel's"):
        guard.secure(plan(target(place, create=True)), guard.Consent(frozenset({place})))
    assert not Path(place).exists()


def test_a_name_that_leads_through_proc_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.touch()
    descriptor = os.open(file, os.O_RDWR)
    (tmp_path / "link").symlink_to(f"/proc/self/fd/{descriptor}")
    try:
        for path in (f"/proc/self/fd/{descriptor}", f"/dev/fd/{descriptor}", str(tmp_path / "link")):
            with pytest.raises(RefusedError, match="reached through /proc"):
                guard.secure(plan(target(path)), guard.Consent(frozenset({path})))
    finally:
        os.close(descriptor)
    guard.secure(plan(target(str(file))), guard.Consent())


@pytest.mark.parametrize("name", ["tty", "mem", "kmsg", "random", "urandom", "loop-control"])
def test_a_character_device_is_refused_even_with_consent(name: str) -> None:
    path = f"/dev/{name}"
    if not Path(path).is_char_device():
        pytest.skip(f"there is no {path} here")
    with pytest.raises(RefusedError, match="it is a character device"):
        guard.secure(plan(target(path, "char")), guard.Consent(frozenset({path})))


def test_a_pipe_is_refused_without_waiting_for_its_other_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / "pipe")
    with pytest.raises(RefusedError, match="neither a file nor a device"):
        guard.secure(plan(target(path)), guard.Consent(frozenset({path})))


def test_links_to_files_are_no_matter(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "link").symlink_to(f"up/{tmp_path.name}/x")
    guard.secure(plan(target(str(tmp_path / "link"))), guard.Consent())


@pytest.mark.parametrize(("blocks", "forbidden"), [(0, True), (1000, False)])
def test_a_file_system_nobody_knows_needs_consent_and_one_without_room_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, forbidden: bool
) -> None:
    monkeypatch.setattr(inode, "file_system_magic", lambda _: 0x12345678)
    monkeypatch.setattr(os, "major", lambda _: 0)
    real = os.statvfs(tmp_path)
    fields = [*real[:2], blocks, *real[3:]]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    assert (writable.forbidden(tmp_path / "x") is not None) == forbidden
    assert "0x12345678" in (writable.doubtful(tmp_path / "x") or "")


def test_no_type_is_on_both_lists() -> None:
    assert not writable.FILES & set(writable.KERNEL)
