"""One file on a file server is one, by whatever name each host mounted it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone.path import identity
from loadstone.path.mounts import Mount, mount_of

if TYPE_CHECKING:
    from pathlib import Path


def mounted(source: str, options: str, kind: str = "nfs4") -> str:
    return identity.server(Mount(0, "/", "/mnt", kind, source, "rw,relatime", options))


OPTIONS = "rw,vers=4.2,rsize=131072,hard,proto=tcp,sec=sys,clientaddr={0},local_lock=none,addr={1}"


@pytest.mark.parametrize(
    ("sources", "options"),
    [
        (("nas:/exp", "nas.example.com:/exp", "10.0.0.5:/exp"), OPTIONS),
        (("[fe80::5]:/exp", "nas:/exp"), OPTIONS),
        (("//nas/share/d", "//10.0.0.5/share/d"), "rw,vers=3.1.1,username=u,uid=0,addr={1}"),
    ],
)
def test_a_server_with_several_names_is_one(sources: tuple[str, ...], options: str) -> None:
    found = {
        mounted(one, options.format(f"10.0.0.{number}", "10.0.0.5")) for number, one in enumerate(sources)
    }
    assert len(found) == 1
    assert found.pop().endswith(("10.0.0.5:/exp", "//10.0.0.5/share/d"))


def test_other_servers_and_paths_stay_apart() -> None:
    one = mounted("nas:/exp", OPTIONS.format("10.0.0.1", "10.0.0.5"))
    assert one != mounted("nas:/other", OPTIONS.format("10.0.0.1", "10.0.0.5"))
    assert one != mounted("nas:/exp", OPTIONS.format("10.0.0.1", "10.0.0.6"))
    assert mounted("mon1,mon2:/", "rw,name=admin", "ceph") == "mon1,mon2:/"


def test_a_file_that_is_not_there_yet_is_one_for_all_hosts_of_a_kernel(tmp_path: Path) -> None:
    """Two hosts of one kernel, or of one file server, wrote over each other what neither had seen."""
    (tmp_path / "link").symlink_to(tmp_path)
    new = identity.identity(str(tmp_path / "new"))
    assert new is not None
    assert new.startswith(f"new in file {tmp_path.stat().st_ino} on ")
    assert identity.identity(str(tmp_path / "link" / "new")) == new
    deeper = identity.identity(str(tmp_path / "a" / "new"))
    assert deeper == new.replace("new in", "a/new in")
    (tmp_path / "new").touch()
    assert identity.identity(str(tmp_path / "new")) != new


def test_a_file_has_one_handle_whatever_its_name(tmp_path: Path) -> None:
    """The kernel's own of any file system, which on NFS has the server's."""
    kind = mount_of(tmp_path)
    assert kind is not None
    kinds = frozenset({kind.kind})
    (tmp_path / "a").touch()
    (tmp_path / "other").touch()
    handle = identity.file_handle(str(tmp_path / "a"), kinds)
    if handle is None:
        pytest.skip(f"{kind.kind} has no handles")
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path)
    assert identity.file_handle(str(tmp_path / "link" / "b"), kinds) == handle
    assert identity.file_handle(str(tmp_path / "other"), kinds) not in {handle, None}
    folder = identity.file_handle(str(tmp_path), kinds)
    assert identity.file_handle(str(tmp_path / "link" / "c" / "new"), kinds) == f"c/new in {folder}"
    # Elsewhere files are known by their kernel.
    assert identity.file_handle(str(tmp_path / "a")) is None


def test_a_volume_of_lvm_on_shared_storage_is_one_for_all_hosts(tmp_path: Path) -> None:
    """Its kernel numbers it; LVM's own name of it is on the storage."""
    device = tmp_path / "devices" / "dm-3"
    (device / "dm").mkdir(parents=True)
    (device / "dm" / "uuid").write_text("LVM-aBcD1234\n")
    (device / "dev").write_text("253:3\n")
    (tmp_path / "dev" / "block").mkdir(parents=True)
    (tmp_path / "dev" / "block" / "253:3").symlink_to(device)
    assert identity._of_device(os.makedev(253, 3), tmp_path) == "LVM-aBcD1234"
    (device / "dm" / "uuid").write_text("CRYPT-LUKS2-aBcD-name\n")
    assert str(identity._of_device(os.makedev(253, 3), tmp_path)).startswith("device 253:3 of kernel ")
