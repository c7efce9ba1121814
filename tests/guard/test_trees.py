"""Trees that are changed: who made them, and what is left behind."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from loadstone.errors import RefusedError, RunError
from loadstone.formats.vdbench import ParameterText, expand, lower, read
from loadstone.path import inode
from loadstone.plan import anchors
from loadstone.plan.anchors import CONTROL_FILE, MARK
from loadstone.plan.resolve import resolve
from loadstone.plan.safety import guard, tree_mark
from loadstone.plan.safety.run_targets import hold
from tests.support.devices import attached, call, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.plan.model import Plan
    from loadstone.plan.safety.run_targets import RunTargets

FIRST = Path("vdb.1_1.dir/vdb_f0001.file")
CONTROL = "when  end x\ndepth 1\nwidth 1\nfiles 2\ndist  bottom\nsize  4096\ndirectory status 1\n"


def plan(anchor: Path, operation: str, rd: str = "") -> Plan:
    text = (
        f"fsd=f,anchor={anchor},depth=1,width=1,files=2\nfwd=w,fsd=f,operation={operation}\n"
        f"rd=r,fwd=w,fwdrate=max,elapsed=4{rd}\n"
    )
    file = read([ParameterText(text.encode(), "t.parm", Path())])
    return resolve(lower(file, expand(file)[0])).plan


def tree(anchor: Path) -> Path:
    (anchor / "vdb.1_1.dir").mkdir(parents=True)
    for number in (1, 2):
        (anchor / "vdb.1_1.dir" / f"vdb_f{number:04d}.file").write_bytes(bytes(4096))
    return anchor


@pytest.mark.in_turn
@pytest.mark.parametrize("rd", [",format=yes", ""])
def test_a_tree_that_nobody_marked_needs_consent(tmp_path: Path, rd: str) -> None:
    made = plan(tree(tmp_path / "t"), "write", rd)
    with pytest.raises(RefusedError, match="Loadstone left no mark there") as caught:
        guard.secure(made, guard.Consent())
    assert f"--i-accept-data-loss {tmp_path}/t" in (caught.value.hint or "")
    guard.secure(made, guard.Consent(frozenset({str(tmp_path / "t")})))


def test_reading_it_needs_none(tmp_path: Path) -> None:
    made = plan(tree(tmp_path / "t"), "read")
    assert guard.written(made) == set()
    hold(made, guard.Consent())
    assert not (tmp_path / "t" / MARK).exists()


def test_a_mark_that_cannot_be_written_is_an_error_and_names_the_anchor(tmp_path: Path) -> None:
    (tmp_path / "t" / MARK).mkdir(parents=True)
    with pytest.raises(RunError, match=f"cannot be written to {tmp_path}/t: Is a directory"):
        hold(plan(tmp_path / "t", "write", ",format=yes"), guard.Consent())


def sealed(anchor: Path) -> Path:
    """A tree as a run leaves it behind."""
    tree_mark.begin(tree(anchor), anchors.Structure.of_tree(plan(anchor, "write").trees[0]), 1)
    tree_mark.seal(anchor)
    return anchor


def refusal(anchor: Path, *, consent: bool = False) -> str:
    agreed = guard.Consent(frozenset({str(anchor)} if consent else set()))
    with pytest.raises(RefusedError) as caught:
        guard.secure(plan(anchor, "write"), agreed)
    return str(caught.value)


def test_a_sealed_tree_needs_none_and_may_be_renamed(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    guard.secure(plan(anchor, "write"), guard.Consent())
    renamed = anchor.rename(tmp_path / "u")
    guard.secure(plan(renamed, "write"), guard.Consent())


@pytest.mark.in_turn
def test_the_control_file_of_vdbench_is_no_consent_and_goes(tmp_path: Path) -> None:
    anchor = tree(tmp_path / "t")
    (anchor / CONTROL_FILE).write_text(CONTROL)
    assert "Loadstone left no mark there" in refusal(anchor)
    held = hold(plan(anchor, "delete"), guard.Consent(frozenset({str(anchor)})))
    assert held.own == frozenset()
    assert anchors.look(anchor).maker == "Loadstone"
    assert not (anchor / CONTROL_FILE).exists()


@pytest.mark.parametrize("name", [MARK, CONTROL_FILE])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_file_that_only_has_the_name_of_a_mark_is_not_removed(
    tmp_path: Path, name: str, *, is_sealed: bool
) -> None:
    """An anchor with nothing else counted as empty, and the file was gone."""
    if is_sealed:
        sealed(tmp_path / "t")
    (tmp_path / "t").mkdir(exist_ok=True)
    (tmp_path / "t" / name).write_text("the combination of the safe")
    with pytest.raises(RefusedError) as caught:
        hold(plan(tmp_path / "t", "write", ",format=yes"), guard.Consent())
    assert f"{tmp_path}/t/{name} would be removed, and it is no mark of a tree" in str(caught.value)
    assert (tmp_path / "t" / name).read_text() == "the combination of the safe"


@pytest.mark.parametrize("content", [b"", bytes(100), b'{\n  "format": 2,\n  "fir'])
def test_what_a_crash_left_of_a_mark_is_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / MARK).write_bytes(content)
    (tmp_path / "t" / CONTROL_FILE).write_text(CONTROL)
    hold(plan(tmp_path / "t", "write", ",format=yes"), guard.Consent())
    assert anchors.read_mark(tmp_path / "t" / MARK).format == 2
    assert not (tmp_path / "t" / CONTROL_FILE).exists()


def test_a_run_seals_its_tree_and_one_that_did_not_end_does_not(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    held = hold(plan(anchor, "write"), guard.Consent())
    assert "the run that changed it last did not end" in refusal(anchor)
    (anchor / "vdb.1_1.dir" / "vdb_f0001.file").write_bytes(b"x" * 4096)
    seal(held, anchor)
    guard.secure(plan(anchor, "write"), guard.Consent())


def seal(held: RunTargets, anchor: Path, foreign: str | None = None) -> None:
    """Seal the only tree of a run as after the engine's last look at it."""
    held.seal({0: tree_mark.TreeSeen(newest_ns(anchor), foreign)})


def newest_ns(anchor: Path) -> int:
    return max((one.stat().st_ctime_ns for one in anchor.rglob("vdb*")), default=0)


def test_what_comes_between_the_last_look_and_the_seal_is_not_vouched_for(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    held = hold(plan(anchor, "write"), guard.Consent())
    seen = {0: tree_mark.TreeSeen(newest_ns(anchor))}
    time.sleep(0.05)
    (tmp_path / "mine").write_bytes(b"m" * 4096)
    (tmp_path / "mine").rename(anchor / FIRST)
    held.seal(seen)
    assert f"{anchor / FIRST} came or was changed after" in refusal(anchor)


def test_a_tree_with_a_file_of_somebody_else_is_not_sealed_and_names_it(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    seal(hold(plan(anchor, "write"), guard.Consent()), anchor, foreign=str(FIRST))
    assert f"{anchor / FIRST} came during the run that changed it last" in refusal(anchor)


def test_a_tree_that_the_engine_did_not_look_at_again_is_not_sealed(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    hold(plan(anchor, "write"), guard.Consent()).seal({})
    assert "the run that changed it last did not end" in refusal(anchor)


@pytest.mark.in_turn
def test_a_run_that_did_not_begin_vouches_for_what_was_vouched_for(tmp_path: Path) -> None:
    anchor = sealed(tmp_path / "t")
    hold(plan(anchor, "write"), guard.Consent()).seal()
    guard.secure(plan(anchor, "write"), guard.Consent())
    held = hold(plan(anchor, "write"), guard.Consent())
    (tmp_path / "mine").write_bytes(b"m" * 4096)
    (tmp_path / "mine").rename(anchor / FIRST)
    held.seal()
    assert f"{anchor / FIRST} came or was changed after" in refusal(anchor)


def test_the_engine_is_told_until_when_files_are_vouched_for(tmp_path: Path) -> None:
    """What comes after the safety check and before the engine looks has a later ctime."""
    anchor = sealed(tmp_path / "t")
    told = anchors.read_mark(anchor / MARK).sealed
    assert told is not None
    assert hold(plan(anchor, "write"), guard.Consent()).plan.trees[0].vouched_ns == told.ctime_ns
    assert hold(plan(tmp_path / "new", "write", ",format=yes"), guard.Consent()).plan.trees[0].vouched_ns == 0
    mixed = tree(tmp_path / "mixed")
    agreed = guard.Consent(frozenset({str(mixed)}))
    assert hold(plan(mixed, "write"), agreed).plan.trees[0].vouched_ns is None


@pytest.mark.in_turn
def test_consent_does_not_make_a_tree_loadstones(tmp_path: Path) -> None:
    anchor = tree(tmp_path / "t")
    agreed = guard.Consent(frozenset({str(anchor)}))
    seal(hold(plan(anchor, "write"), agreed), anchor)
    assert "a run changed it with consent" in refusal(anchor)
    anew = hold(plan(anchor, "write", ",format=yes"), agreed)
    seal(anew, anchor)
    assert "a run changed it with consent" in refusal(anchor)
    # All of it was removed first.
    anew = hold(plan(anchor, "write", ",format=yes"), agreed)
    anew.laid_out = True
    seal(anew, anchor)
    guard.secure(plan(anchor, "write"), guard.Consent())


def overwritten(anchor: Path) -> None:
    before = (anchor / FIRST).stat()
    with (anchor / FIRST).open("r+b") as file:
        file.write(b"mine")
    os.utime(anchor / FIRST, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(anchor: Path) -> None:
    (anchor.parent / "mine").write_bytes(b"mine" * 1024)
    (anchor.parent / "mine").rename(anchor / FIRST)


def put_in(anchor: Path) -> None:
    (anchor / "vdb.1_1.dir" / "vdb_f0003.file").write_bytes(b"mine")


def copied(anchor: Path) -> None:
    anchor.rename(anchor.parent / "first")
    subprocess.run(["cp", "-a", str(anchor.parent / "first"), str(anchor)], check=True)


def mark_copied(anchor: Path) -> None:
    anchor.rename(anchor.parent / "first")
    tree(anchor)
    subprocess.run(["cp", "-a", str(anchor.parent / "first" / MARK), str(anchor)], check=True)


def mark_moved(anchor: Path) -> None:
    anchor.rename(anchor.parent / "first")
    tree(anchor)
    (anchor.parent / "first" / MARK).rename(anchor / MARK)


@pytest.mark.in_turn
@pytest.mark.parametrize("change", [overwritten, replaced, put_in, copied, mark_copied, mark_moved])
def test_what_others_did_to_a_sealed_tree_is_seen(tmp_path: Path, change: Callable[[Path], None]) -> None:
    anchor = sealed(tmp_path / "t")
    change(anchor)
    said = refusal(anchor)
    assert "came or was changed after" in said or "was copied from another tree" in said


def test_a_directory_that_is_moved_into_a_sealed_tree_is_seen(tmp_path: Path) -> None:
    """Its files are older than the seal, and keep their ctime: they were written over."""
    mine = tree(tmp_path / "mine")
    time.sleep(0.05)
    anchor = sealed(tmp_path / "t")
    (anchor / "vdb.1_1.dir").rename(tmp_path / "aside")
    (mine / "vdb.1_1.dir").rename(anchor / "vdb.1_1.dir")
    assert "vdb.1_1.dir came or was changed after" in refusal(anchor)


def test_a_file_with_another_name_elsewhere_is_never_written_through(tmp_path: Path) -> None:
    """Issue 11, 1.6: a hard link inside a marked tree was written through."""
    anchor = sealed(tmp_path / "t")
    (tmp_path / "mine").write_bytes(b"mine" * 1024)
    (anchor / FIRST).unlink()
    (anchor / FIRST).hardlink_to(tmp_path / "mine")
    assert "has several names (hard links)" in refusal(anchor, consent=True)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_link_in_a_tree_is_never_followed(tmp_path: Path, what: str) -> None:
    anchor = sealed(tmp_path / "t")
    place = anchor / FIRST if what == "file" else anchor / "vdb.1_2.dir"
    place.unlink(missing_ok=True)
    (tmp_path / "mine").mkdir()
    place.symlink_to(tmp_path / "mine")
    assert "is a symbolic link" in refusal(anchor, consent=True)


@pytest.mark.root
def test_a_mount_below_a_tree_is_never_written_through(tmp_path: Path) -> None:
    """The same file system, so its number does not tell."""
    anchor = sealed(tmp_path / "t")
    tree(tmp_path / "mine")
    point = anchor / "vdb.1_1.dir"
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done = subprocess.run(
        ["mount", "--bind", str(tmp_path / "mine" / "vdb.1_1.dir"), str(point)], check=False
    )
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert f"{point} is mounted below it" in refusal(anchor, consent=True)
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_reading_leaves_the_control_file(tmp_path: Path) -> None:
    anchor = tree(tmp_path / "t")
    (anchor / CONTROL_FILE).write_text(CONTROL)
    hold(plan(anchor, "read"), guard.Consent())
    assert (anchor / CONTROL_FILE).read_text() == CONTROL
    assert not (anchor / MARK).exists()


def test_an_anchor_that_is_missing_is_made_and_marked(tmp_path: Path) -> None:
    made = plan(tmp_path / "new" / "t", "mkdir", ",format=only")
    claimed = hold(made, guard.Consent())
    assert anchors.look(tmp_path / "new" / "t").maker == "Loadstone"
    identity = claimed.plan.targets[0].identity
    assert identity is not None
    assert identity.inode == (tmp_path / "new" / "t").stat().st_ino


def test_other_files_in_the_anchor_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    hold(plan(tmp_path, "mkdir", ",format=yes"), guard.Consent())
    assert (tmp_path / "photo.jpg").read_bytes() == b"x"


def test_a_tree_whose_ctime_programs_set_is_only_known_to_the_process_that_sealed_it(tmp_path: Path) -> None:
    """On exFAT a file that was changed, its mtime set back, has an old ctime: it was written over."""
    anchor = sealed(tmp_path / "t")
    mark = (anchor / MARK).stat()
    assert tree_mark.sealed_until(anchor)[0] is not None
    os.utime(anchor / MARK, ns=(inode.LONG_AGO_NS, inode.LONG_AGO_NS))
    assert (anchor / MARK).stat().st_mtime_ns == mark.st_mtime_ns == inode.LONG_AGO_NS
    with mock.patch.object(inode, "has_place_for_ctime", return_value=False):
        assert "keeps no time of change but one that programs set" in refusal(anchor)
        known = {(mark.st_dev, mark.st_ino)}
        assert tree_mark.look(anchor, known=known).changed is None


@pytest.fixture
def exfat(tmp_path: Path) -> Iterator[Path]:
    """A file system in user space that tells mtime as ctime."""
    with attached(empty(tmp_path / "image", 16 << 20)) as device:
        call("mkfs.exfat", device)
        point = tmp_path / "exfat"
        point.mkdir()
        call("mount.exfat-fuse", device, str(point))
        try:
            yield point
        finally:
            call("umount", str(point))


@pytest.mark.in_turn
@pytest.mark.root
def test_what_is_put_into_a_tree_on_exfat_is_seen(exfat: Path) -> None:
    """Found from outside: changed in place, moved in and copied, each with its times; all were lost."""
    anchor = sealed(exfat / "t")
    before = (anchor / FIRST).stat()
    (anchor / FIRST).write_bytes(b"mine" * 1024)
    os.utime(anchor / FIRST, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (anchor / FIRST).stat().st_ctime_ns == before.st_ctime_ns
    assert "keeps no time of change but one that programs set" in refusal(anchor)
    consent = guard.Consent()
    held = hold(plan(exfat / "new", "write", ",format=yes"), consent)
    tree(exfat / "new")
    held.seal({0: tree_mark.TreeSeen(newest_ns=time.time_ns())})
    with pytest.raises(RefusedError, match="keeps no time of change"):
        guard.secure(plan(exfat / "new", "write"), guard.Consent())
    hold(plan(exfat / "new", "write"), consent)  # The same process: its runs follow each other.
