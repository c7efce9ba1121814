"""The mark of a file: what it survives and what it must not."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError
from loadstone.path import inode
from loadstone.plan import anchors
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.safety import guard, marker, tree_mark
from loadstone.plan.safety.run_targets import RunTargets, hold

from .plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.plan.model import Plan

SIZE = 4 << 20
LAYOUT = {
    "size_bytes": SIZE,
    "truncate": False,
    "fallocate": "native",
    "write": True,
    "fsync": False,
    "seed": 1,
}


@pytest.fixture(autouse=True)
def keeps_marks(tmp_path: Path) -> None:
    (tmp_path / "probe").touch()
    try:
        os.setxattr(tmp_path / "probe", marker.NAME, b"1")
    except OSError as error:
        pytest.skip(f"no user attributes in {tmp_path}: {error}")


def one(path: Path) -> Plan:
    return plan(target(str(path), create=True, size_bytes=SIZE))


def written(path: Path, size: int = SIZE) -> Path:
    """A file as a run leaves it behind."""
    held = hold(one(path), guard.Consent())
    path.write_bytes(os.urandom(size))
    held.seal()
    return path


def refusal(path: Path) -> str:
    with pytest.raises(RefusedError) as caught:
        guard.secure(one(path), guard.Consent())
    return str(caught.value)


def test_run_after_run_on_the_same_file(tmp_path: Path) -> None:
    path = written(tmp_path / "x")
    for _ in range(3):
        held = hold(one(path), guard.Consent())
        assert held.own == {0}
        with path.open("r+b") as file:
            file.write(os.urandom(4096))
        held.seal()


def test_while_a_run_is_under_way_the_mark_is_worth_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "x")
    held = hold(one(path), guard.Consent())
    assert "the run that wrote it did not end" in refusal(path)
    held.seal()
    guard.secure(one(path), guard.Consent())


def test_a_renamed_file_is_known(tmp_path: Path) -> None:
    path = written(tmp_path / "x").rename(tmp_path / "y")
    guard.secure(one(path), guard.Consent())
    path.chmod(0o600)
    guard.secure(one(path), guard.Consent())


def test_a_renamed_file_without_a_digest_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker, "DIGEST_BYTES", SIZE - 1)
    path = written(tmp_path / "x")
    guard.secure(one(path), guard.Consent())
    assert "renamed or changed since" in refusal(path.rename(tmp_path / "y"))


def test_a_long_file_whose_ctime_programs_set_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without ctime a change would be undone by setting mtime back."""
    monkeypatch.setattr(marker, "DIGEST_BYTES", SIZE - 1)
    monkeypatch.setattr(inode, "has_place_for_ctime", lambda _: False)
    assert "renamed or changed since" in refusal(written(tmp_path / "x"))


def test_whether_ctime_is_kept_is_found_out_and_leaves_mtime(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    os.utime(path, ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    with path.open("rb") as file:
        assert inode.keeps_ctime(file.fileno())
    assert path.stat().st_mtime_ns == 1_600_000_000_123_456_789


def same_size(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(SIZE))


def part(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(SIZE // 2 + 12345)
        file.write(b"mine")


def part_with_its_times_set_back(path: Path) -> None:
    before = path.stat()
    part(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def mapped_with_its_times_set_back(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[SIZE // 3] ^= 0xFF
        memory.flush()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"mine")


def shorter(path: Path) -> None:
    os.truncate(path, SIZE // 2)


def moved_over(path: Path) -> None:
    other = path.with_name("mine")
    other.write_bytes(os.urandom(SIZE))
    other.rename(path)


def copied(path: Path) -> None:
    """Somebody's file with the mark of ours, under its name."""
    first = path.rename(path.with_name("first"))
    subprocess.run(["cp", "--preserve=all", str(first), str(path)], check=True)


def copied_and_filled(path: Path) -> None:
    copied(path)
    same_size(path)


def copied_as_extents(path: Path) -> None:
    first = path.rename(path.with_name("first"))
    done = subprocess.run(
        ["cp", "--preserve=all", "--reflink=always", str(first), str(path)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("no reflinks here")


def unpacked(path: Path) -> None:
    archive = path.with_name("archive.tar")
    if shutil.which("tar") is None:
        pytest.skip("tar is not installed")
    subprocess.run(
        ["tar", "--xattrs", "--xattrs-include=*", "-C", path.parent, "-cf", archive, path.name], check=True
    )
    path.unlink()
    subprocess.run(["tar", "--xattrs", "--xattrs-include=*", "-C", path.parent, "-xf", archive], check=True)
    assert os.getxattr(path, marker.NAME)


def copied_by_rsync(path: Path) -> None:
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    first = path.rename(path.with_name("first"))
    subprocess.run(["rsync", "-aX", str(first), str(path)], check=True)


def mark_moved_to_another(path: Path) -> None:
    mark = os.getxattr(path, marker.NAME)
    path.unlink()
    path.write_bytes(os.urandom(SIZE))
    os.setxattr(path, marker.NAME, mark)


def linked(path: Path) -> None:
    path.with_name("second").hardlink_to(path)


@pytest.mark.parametrize(
    "change",
    [
        same_size,
        part,
        part_with_its_times_set_back,
        mapped_with_its_times_set_back,
        longer,
        shorter,
        moved_over,
        copied,
        copied_and_filled,
        copied_as_extents,
        unpacked,
        copied_by_rsync,
        mark_moved_to_another,
        linked,
    ],
)
def test_what_others_do_to_a_marked_file_is_seen(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Issue 11, 1.3: a marked file that somebody then filled was overwritten."""
    path = written(tmp_path / "x")
    change(path)
    assert str(path) in refusal(path)


@pytest.mark.parametrize("seed", range(4))
def test_a_change_right_after_the_seal_is_seen(tmp_path: Path, seed: int) -> None:
    """Within one tick of the file system's clock, with all times set back that can be."""
    path = written(tmp_path / f"x{seed}", 4096)
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"mine")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "was changed since" in refusal(path)


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A file on tmpfs, where a page that is mapped is never written back."""
    with tempfile.TemporaryDirectory(prefix="loadstone-test-", dir="/dev/shm") as folder:
        yield Path(folder) / "x"


def test_a_change_that_ctime_does_not_tell_is_seen(in_memory: Path) -> None:
    """A mapping that was there before the seal changes the content of tmpfs without changing ctime."""
    path = in_memory
    held = hold(one(path), guard.Consent())
    path.write_bytes(os.urandom(SIZE))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[SIZE // 3] ^= 0xFF
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunTargets, "_take_back", lambda _: None)
            held.seal()
        before = path.stat().st_ctime_ns
        memory[SIZE // 3 : SIZE // 3 + 4] = b"mine"
    assert path.stat().st_ctime_ns == before
    assert "was changed since" in refusal(path)


def test_what_others_have_open_when_a_run_ends_is_not_sealed(tmp_path: Path) -> None:
    """Nobody knows what they write, and of a long file only ctime is looked at."""
    path = tmp_path / "x"
    consent = guard.Consent()
    held = hold(one(path), consent)
    path.write_bytes(os.urandom(SIZE))
    words = [sys.executable, "-c", f"f = open({str(path)!r}, 'r+b'); print(flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        held.seal()
        other.communicate(b"\n")
    assert "others had it open" in refusal(path)
    with pytest.raises(RefusedError, match="others had it open"):
        guard.secure(one(path), consent)


@pytest.mark.in_turn
@pytest.mark.parametrize("was_there", [False, True])
def test_what_somebody_appends_during_a_run_is_not_sealed(tmp_path: Path, was_there: bool) -> None:
    """Nobody saw the file open, and the next run of a larger `size` wrote over what was appended."""
    path, consent = tmp_path / "x", guard.Consent()
    if was_there:
        written(path, SIZE // 2)
    held = hold(one(path), consent)
    path.write_bytes(os.urandom(SIZE))
    with path.open("ab") as file:
        file.write(b"mine")
    held.seal()
    assert "others had it open" in refusal(path)
    with pytest.raises(RefusedError, match="others had it open"):
        guard.secure(one(path), consent)


def test_a_file_that_its_run_makes_longer_is_sealed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    written(path, SIZE // 2)
    held = hold(one(path), guard.Consent())
    path.write_bytes(os.urandom(SIZE))
    held.seal()
    guard.secure(one(path), guard.Consent())


def test_consent_for_a_run_does_not_make_a_file_loadstones(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"mine" * 1024)
    hold(one(path), guard.Consent(frozenset({str(path)}))).seal()
    assert "was not created by Loadstone" in refusal(path)


@pytest.mark.parametrize("mark", [b"1", b"{}", b"[]", b'{"format":2}', b"\xff\x00"])
def test_a_mark_of_another_making_is_worth_nothing(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"mine" * 1024)
    os.setxattr(path, marker.NAME, mark)
    assert "is not known to be Loadstone's alone" in refusal(path)


def test_a_layout_that_was_stopped_does_not_count_and_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    layout = plan(target(str(path), create=True, layout=LAYOUT), read=100, write=0)
    held = hold(layout, guard.Consent())
    path.write_bytes(os.urandom(SIZE // 2))
    os.truncate(path, SIZE)
    held.seal()  # It was interrupted: the load never started.
    found = HostFacts.here().target(str(path), None)
    assert (found.exists, found.size_bytes) == (False, 0)
    held = hold(layout, guard.Consent())
    assert path.stat().st_size == 0
    path.write_bytes(os.urandom(SIZE))
    held.prepared()
    held.laid_out = True
    held.seal()
    assert HostFacts.here().target(str(path), None).size_bytes == SIZE
    guard.secure(layout, guard.Consent())


@pytest.mark.in_turn
def test_a_layout_that_was_killed_is_not_cut_without_consent(tmp_path: Path) -> None:
    path = tmp_path / "x"
    layout = plan(target(str(path), create=True, layout=LAYOUT), read=100, write=0)
    hold(layout, guard.Consent())
    path.write_bytes(b"what somebody put there meanwhile")
    for content in (True, False):
        with pytest.raises(RefusedError, match="did not end"):
            hold(layout, guard.Consent(), content=content)
    assert path.read_bytes() == b"what somebody put there meanwhile"
    hold(layout, guard.Consent(frozenset({str(path)})))
    assert path.stat().st_size == 0


def test_where_no_mark_is_kept_a_process_knows_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refused)
    consent, path = guard.Consent(), tmp_path / "x"
    for _ in range(2):
        held = hold(one(path), consent)
        path.write_bytes(os.urandom(SIZE))
        held.seal()
    assert marker.read(path) is None
    assert "was not created by Loadstone" in refusal(path)
    part(path)
    with pytest.raises(RefusedError, match="changed since"):
        guard.secure(one(path), consent)


def test_many_files_are_sealed_in_no_time(tmp_path: Path) -> None:
    paths = [tmp_path / f"x{number}" for number in range(200)]
    many = plan(*[target(str(path), create=True) for path in paths])
    held = hold(many, guard.Consent())
    for path in paths:
        path.write_bytes(b"x")
    slept: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", slept.append)
        held.seal()
    assert len(slept) <= 1
    assert sum(slept) < 1.0
    assert guard.secured(many, guard.Consent()).own == set(range(200))


@pytest.mark.parametrize(
    "told",
    [
        b'{"format":2,"laid_out":true,"seal":"x"}',
        b'{"format":2,"laid_out":true,"seal":' + b"[" * 50_000,
        b'{"format":2,"laid_out":1,"seal":{"inode":"x","ctime_ns":["a","b"]}}',
        b'{"format":2,"laid_out":true,"seal":{"ctime_ns":[1]}}',
        b"[]",
        b"\xff",
        b"",
    ],
)
def test_a_mark_that_somebody_made_up_is_worth_nothing(told: bytes) -> None:
    """Found by fuzzing: a text in place of the seal, or brackets without end, ended in a traceback."""
    mark = marker.parsed(told)
    assert mark.seal is None
    assert mark.state == "unreadable"


@pytest.mark.parametrize("name", [anchors.MARK, anchors.CONTROL_FILE])
@pytest.mark.parametrize(
    "told",
    [
        '{"structure":"x","first_file":1}',
        '{"structure":{"sizes":[[1e999,1]]},"first_file":Infinity}',
        "[" * 50_000,
        "depth 1\nwidth 1\nfiles 4\ndist bottom\nsize inf\nsize 0\ndirectory x\n",
        "depth 1\nwidth 1\nfiles 4\ndist bottom\nsize nan\ndirectory x\n",
        None,
    ],
)
def test_a_mark_of_a_tree_that_somebody_made_up_is_worth_nothing(
    tmp_path: Path, name: str, told: str | None
) -> None:
    """The same of the files that mark a tree; a pipe in their place was waited for."""
    if told is None:
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).write_text(told)
    assert anchors.look(tmp_path).structure is None
    assert tree_mark.look(tmp_path).changed is not None
