"""Trees that are changed: who made them, and what is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError
from loadstone.formats.vdbench import TextSource, expand, lower, read
from loadstone.plan import anchors, guard
from loadstone.plan.anchors import CONTROL_FILE, MARK
from loadstone.plan.resolve import resolve

if TYPE_CHECKING:
    from loadstone.plan.model import Plan

CONTROL = "when  end x\ndepth 1\nwidth 1\nfiles 2\ndist  bottom\nsize  4096\ndirectory status 1\n"


def plan(anchor: Path, operation: str, rd: str = "") -> Plan:
    text = (
        f"fsd=f,anchor={anchor},depth=1,width=1,files=2\nfwd=w,fsd=f,operation={operation}\n"
        f"rd=r,fwd=w,fwdrate=max,elapsed=4{rd}\n"
    )
    file = read([TextSource(text.encode(), "t.parm", Path())])
    return resolve(lower(file, expand(file)[0])).plan


def tree(anchor: Path) -> Path:
    (anchor / "vdb.1_1.dir").mkdir(parents=True)
    for number in (1, 2):
        (anchor / "vdb.1_1.dir" / f"vdb_f{number:04d}.file").write_bytes(bytes(4096))
    return anchor


@pytest.mark.parametrize("rd", [",format=yes", ""])
def test_a_tree_that_nobody_marked_needs_consent(tmp_path: Path, rd: str) -> None:
    made = plan(tree(tmp_path / "t"), "write", rd)
    with pytest.raises(RefusedError, match="neither Loadstone nor vdbench left a mark") as caught:
        guard.secure(made, guard.Consent())
    assert f"--i-accept-data-loss {tmp_path}/t" in (caught.value.hint or "")
    guard.secure(made, guard.Consent(frozenset({str(tmp_path / "t")})))


def test_reading_it_needs_none(tmp_path: Path) -> None:
    made = plan(tree(tmp_path / "t"), "read")
    assert guard.written(made) == set()
    guard.claim(guard.secure(made, guard.Consent()))
    assert not (tmp_path / "t" / MARK).exists()


@pytest.mark.parametrize("mark", ["vdbench", "Loadstone"])
def test_a_marked_tree_needs_none(tmp_path: Path, mark: str) -> None:
    anchor = tree(tmp_path / "t")
    if mark == "vdbench":
        (anchor / CONTROL_FILE).write_text(CONTROL)
    made = plan(anchor, "delete")
    if mark == "Loadstone":
        anchors.marked(anchor, anchors.Structure.of_tree(made.trees[0]), 1)
    guard.claim(guard.secure(made, guard.Consent()))
    assert anchors.look(anchor).maker == "Loadstone"
    assert not (anchor / CONTROL_FILE).exists()


def test_reading_leaves_the_control_file(tmp_path: Path) -> None:
    anchor = tree(tmp_path / "t")
    (anchor / CONTROL_FILE).write_text(CONTROL)
    guard.claim(guard.secure(plan(anchor, "read"), guard.Consent()))
    assert (anchor / CONTROL_FILE).read_text() == CONTROL
    assert not (anchor / MARK).exists()


def test_an_anchor_that_is_missing_is_made_and_marked(tmp_path: Path) -> None:
    made = plan(tmp_path / "new" / "t", "mkdir", ",format=only")
    claimed = guard.claim(guard.secure(made, guard.Consent()))
    assert anchors.look(tmp_path / "new" / "t").maker == "Loadstone"
    identity = claimed.targets[0].identity
    assert identity is not None
    assert identity.inode == (tmp_path / "new" / "t").stat().st_ino


def test_other_files_in_the_anchor_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    guard.claim(guard.secure(plan(tmp_path, "mkdir", ",format=yes"), guard.Consent()))
    assert (tmp_path / "photo.jpg").read_bytes() == b"x"
