"""mountinfo and swaps, as the kernel writes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loadstone.path.mounts import mount_of, mounts, swaps

if TYPE_CHECKING:
    from pathlib import Path

LINES = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
30 27 8:1 /sub /mnt/with\040space rw,noatime shared:1 master:2 - ext4 /dev/sda1 rw,data=ordered
31 27 0:40 / /mnt/nfs rw - nfs4 host:/export rw,vers=4.2
"""


def proc(tmp_path: Path) -> Path:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(LINES)
    (tmp_path / "swaps").write_text("Filename Type Size Used Priority\n/swap\\040file file 10 0 -2\n")
    return tmp_path


def test_a_line_with_optional_fields_and_escapes(tmp_path: Path) -> None:
    one = mounts(proc(tmp_path))[1]
    assert (one.point, one.root, one.kind, one.source) == ("/mnt/with space", "/sub", "ext4", "/dev/sda1")
    assert (one.options, one.super_options) == ("rw,noatime", "rw,data=ordered")
    assert one.device == os.makedev(8, 1)


def test_swap_names_are_unescaped_and_may_be_missing(tmp_path: Path) -> None:
    assert swaps(proc(tmp_path)) == ["/swap file"]
    assert swaps(tmp_path / "nowhere") == []


def test_a_path_that_does_not_exist_yet_has_the_mount_of_its_parent(tmp_path: Path) -> None:
    found = mount_of(tmp_path / "new" / "file")
    assert found == mount_of(tmp_path)
    assert found is not None
    assert str(tmp_path).startswith(found.point)
