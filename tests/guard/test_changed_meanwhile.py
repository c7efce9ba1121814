"""What is written is what was looked at: paths that change while the check goes on, or somebody is asked."""

from __future__ import annotations

import contextlib
import random
import resource
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError, RunError
from loadstone.experiment import allocation
from loadstone.plan.anchors import MARK
from loadstone.plan.model import TargetKind
from loadstone.plan.safety import content_evidence, guard, in_use, marker, run_targets, seen
from tests.support.plans import layout

from .plans import plan, target
from .test_trees import plan as tree_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINE = b"somebody's" * 1000
LAYOUT = layout(8192)
FORMAT = ",format=yes"


def exchanged(directory: Path) -> None:
    """Let the directories `here` and `there` change places."""
    for old, new in (("here", "third"), ("there", "here"), ("third", "there")):
        (directory / old).rename(directory / new)


def moved_over(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(MINE)
    other.rename(path)


def linked(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(MINE)
    path.unlink()
    path.symlink_to(other)


def made_anew(path: Path) -> None:
    """Often under the number of the inode that was there."""
    path.unlink()
    path.write_bytes(MINE)


CHANGES = {
    "something else stands at its path": (moved_over, linked),
    "it was changed while it was looked at": (lambda path: path.write_bytes(MINE),),
    "it is gone since": (lambda path: path.unlink(),),
}


@pytest.mark.parametrize(
    ("change", "told"),
    [(change, told) for told, changes in CHANGES.items() for change in changes]
    + [(made_anew, "it was changed while|something else stands")],
)
def test_what_changes_while_it_is_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], told: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(8192))
    real = content_evidence.evidence

    def slow(*words: object) -> list[str]:
        found = real(*words)  # type: ignore[arg-type] # as it is called
        change(path)
        return found

    monkeypatch.setattr(content_evidence, "evidence", slow)
    with pytest.raises(RefusedError, match=told):
        guard.secure(plan(target(str(path))), guard.Consent())


def test_other_hosts_may_write_what_they_share_and_put_nothing_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(8192))
    real = content_evidence.evidence
    changes = [lambda path: path.write_bytes(bytes(8192)), moved_over]

    def slow(*words: object) -> list[str]:
        found = real(*words)  # type: ignore[arg-type] # as it is called
        changes.pop(0)(path)
        return found

    monkeypatch.setattr(content_evidence, "evidence", slow)
    consent = guard.Consent(changed_elsewhere=frozenset({str(path)}))
    guard.secure(plan(target(str(path))), consent)
    with pytest.raises(RefusedError, match="something else stands at its path"):
        guard.secure(plan(target(str(path))), consent)


def test_what_another_host_of_the_run_marked_and_opened_is_still_own(tmp_path: Path) -> None:
    """With --divide the slower host refused a file of Loadstone's: the faster one had begun to write it."""
    path = tmp_path / "x"
    path.write_bytes(MINE)
    marker.write(path, marker.Mark("writing"))
    shared = frozenset({str(path)})
    with path.open("r+b") as file, subprocess.Popen(["sleep", "60"], stdin=file) as other:
        file.close()
        try:
            with pytest.raises(RefusedError, match=f"process {other.pid} .* has it open for writing"):
                guard.secure(plan(target(str(path))), guard.Consent())
            secured = guard.secured(plan(target(str(path))), guard.Consent(changed_elsewhere=shared))
            assert (secured.own, secured.written) == (frozenset({0}), frozenset({0}))
            consented = guard.Consent(shared, changed_elsewhere=shared)
            assert guard.secured(plan(target(str(path))), consented).own == frozenset()
        finally:
            other.kill()
    with pytest.raises(RefusedError, match="the run that wrote it did not end"):
        guard.secure(plan(target(str(path))), guard.Consent())


def test_directories_that_change_places_and_back_do_not_lend_a_file_their_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by drawn races: zeros were read under the name of what was written."""
    for name, held in (("here", MINE), ("there", bytes(8192))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(held)
    uses, evidence = in_use.file_uses, content_evidence.evidence

    def before(*words: object) -> list[str]:
        found = uses(*words)  # type: ignore[arg-type] # as it is called
        exchanged(tmp_path)
        return found

    def after(*words: object) -> list[str]:
        found = evidence(*words)  # type: ignore[arg-type] # as it is called
        exchanged(tmp_path)
        return found

    monkeypatch.setattr(in_use, "file_uses", before)
    monkeypatch.setattr(content_evidence, "evidence", after)
    with pytest.raises(RefusedError, match="would destroy existing data"):
        guard.secure(plan(target(str(tmp_path / "here" / "x"))), guard.Consent())


def test_directories_that_change_places_do_not_hide_who_uses_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its uses were looked up by name: those of the other file were found, and none of its own."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(bytes(8192))
    uses = in_use.file_uses

    def meanwhile(*words: object) -> list[str]:
        exchanged(tmp_path)
        try:
            return uses(*words)  # type: ignore[arg-type] # as it is called
        finally:
            exchanged(tmp_path)

    monkeypatch.setattr(in_use, "file_uses", meanwhile)
    with (tmp_path / "here" / "x").open("r+b") as used:
        other = subprocess.Popen(["sleep", "60"], stdin=used)
        try:
            with pytest.raises(RefusedError, match="in use"):
                guard.secure(plan(target(str(tmp_path / "here" / "x"))), guard.Consent())
        finally:
            other.kill()
            other.wait()


def test_what_changes_while_somebody_is_asked_of_another_is_refused(tmp_path: Path) -> None:
    """Found by reading: the inode was noted after the answer, so that the engine took the new file."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(MINE)
    second.write_bytes(bytes(8192))

    def asked(path: str, _evidence: list[str]) -> str:
        moved_over(second)
        return path

    with pytest.raises(RefusedError, match="second: something else stands at its path"):
        guard.secure(plan(target(str(first)), target(str(second))), guard.Consent(ask=asked))
    assert second.read_bytes() == MINE


def remade(path: Path, content: bytes) -> None:
    """Remove a file and make another that gets its inode number, as ext4 does at once."""
    before = path.stat().st_ino
    for _ in range(50):
        path.unlink()
        path.write_bytes(content)
        if path.stat().st_ino == before:
            return
    pytest.skip("this file system gives no inode number again so soon: needs ext4")


def test_a_file_made_later_with_the_same_inode_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(8192))
    real = guard.secured

    def late(*words: object, **named: object) -> object:
        found = real(*words, **named)  # type: ignore[arg-type] # as it is called
        remade(path, MINE)
        return found

    monkeypatch.setattr(guard, "secured", late)
    held = run_targets.hold(plan(target(str(path))), guard.Consent())
    assert marker.read(path) is None, "somebody's file was marked as ours"
    [checked] = [one.identity for one in held.plan.targets]
    assert checked is not None
    _status, now = seen.look(path)
    assert (checked.device, checked.inode) == (now.device, now.inode)
    assert not seen.is_same(checked, now)
    assert path.read_bytes() == MINE


@pytest.mark.parametrize("as_link", [False, True])
def test_what_appears_after_the_check_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, as_link: bool
) -> None:
    path, other = tmp_path / "x", tmp_path / "other"
    other.write_bytes(MINE)
    real = guard.secured

    def late(*words: object, **named: object) -> object:
        found = real(*words, **named)  # type: ignore[arg-type] # as it is called
        path.symlink_to(other) if as_link else path.write_bytes(MINE)
        return found

    monkeypatch.setattr(guard, "secured", late)
    with pytest.raises(RunError, match="cannot be created: File exists"):
        run_targets.hold(plan(target(str(path), create=True)), guard.Consent())
    assert path.read_bytes() == MINE


def test_what_appears_while_it_is_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    real = guard.examine

    def late(*words: object, **named: object) -> object:
        found = real(*words, **named)  # type: ignore[arg-type] # as it is called
        path.write_bytes(MINE)
        return found

    monkeypatch.setattr(guard, "examine", late)
    with pytest.raises(RefusedError, match="it was not there when it was looked at, and is now"):
        guard.secure(plan(target(str(path), create=True)), guard.Consent())


def test_a_file_of_several_targets_is_made_once(tmp_path: Path) -> None:
    """Two ways to open one file are two targets; so are two names of it."""
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    names = [str(tmp_path / "x"), str(tmp_path / "x"), str(tmp_path / "link" / "x")]
    made = run_targets.hold(plan(*(target(name, create=True) for name in names)), guard.Consent()).plan
    identities = {one.identity for one in made.targets if one.kind is TargetKind.FILE}
    status = (tmp_path / "x").stat()
    assert len(identities) == 1
    (one,) = identities
    assert one is not None
    assert (one.device, one.inode) == (status.st_dev, status.st_ino)


def test_a_job_may_have_more_files_than_this_process_may_open(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(200)]
    for path in paths:
        path.write_bytes(bytes(4096))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (tmp_path / "0").open("rb") as lowest:
        free = lowest.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 50, hard))
    try:
        found = guard.secure(plan(*(target(str(path)) for path in paths)), guard.Consent())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(one.identity is not None for one in found.targets)


def somebodys_tree(place: Path) -> None:
    place.mkdir()
    (place / "vdb_control.file").write_bytes(MINE)
    (place / "vdb_f0001.file").write_bytes(MINE)


def kept(place: Path) -> bool:
    """Whether a tree of somebody's is as it was."""
    names = {one.name for one in place.iterdir()}
    return names == {"vdb_control.file", "vdb_f0001.file"} and all(
        one.read_bytes() == MINE for one in place.iterdir()
    )


@pytest.mark.parametrize("was_there", [True, False])
def test_a_directory_that_took_the_place_of_an_anchor_is_not_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, was_there: bool
) -> None:
    """Found by reading: its mark was written and vdbench's control file removed by name."""
    anchor = tmp_path / "t"
    if was_there:
        anchor.mkdir()
    real = guard.secured

    def late(*words: object, **named: object) -> object:
        found = real(*words, **named)  # type: ignore[arg-type] # as it is called
        if was_there:
            anchor.rename(tmp_path / "away")
        somebodys_tree(anchor)
        return found

    monkeypatch.setattr(guard, "secured", late)
    with pytest.raises((RefusedError, RunError), match=r"something else stands|File exists"):
        run_targets.hold(tree_plan(anchor, "write", FORMAT), guard.Consent())
    assert kept(anchor)


def test_a_directory_that_took_the_place_of_an_anchor_is_not_sealed(tmp_path: Path) -> None:
    anchor = tmp_path / "t"
    held = run_targets.hold(tree_plan(anchor, "write", FORMAT), guard.Consent())
    anchor.rename(tmp_path / "away")
    somebodys_tree(anchor)
    (anchor / MARK).write_bytes((tmp_path / "away" / MARK).read_bytes())
    before = (anchor / MARK).read_bytes()
    held.seal()
    assert (anchor / MARK).read_bytes() == before


def test_a_file_that_takes_a_name_while_its_length_is_looked_at_is_not_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by reading: the first was long enough and so nobody's business, the second was noted."""
    path = tmp_path / "x"
    path.write_bytes(bytes(8192))
    number = path.stat().st_ino
    (tmp_path / "other").write_bytes(b"short")
    real = guard.layout_changes

    def late(*words: object) -> bool:
        found = real(*words)  # type: ignore[arg-type] # as it is called
        path.rename(tmp_path / "away")
        (tmp_path / "other").rename(path)
        return found

    monkeypatch.setattr(guard, "layout_changes", late)
    one = target(str(path), size_bytes=8192, read_only=True, layout=LAYOUT)
    held = run_targets.hold(plan(one, read=100, write=0), guard.Consent())
    [identity] = [one.identity for one in held.plan.targets]
    assert identity is not None
    assert identity.inode == number, "the engine would lay out what nobody looked at"


def test_a_file_that_takes_a_name_during_the_layout_is_not_marked_as_laid_out(tmp_path: Path) -> None:
    path = tmp_path / "x"
    held = run_targets.hold(
        plan(target(str(path), create=True, size_bytes=8192, layout=LAYOUT)), guard.Consent()
    )
    path.rename(tmp_path / "away")
    path.write_bytes(MINE)
    if not marker.write(path, marker.Mark("writing", laid_out=False)):
        pytest.skip("this file system keeps no attributes")
    held.prepared()
    held.seal()
    found = marker.read(path)
    assert found == marker.Mark("writing", laid_out=False)


def test_what_the_planner_saw_and_nobody_looked_at_is_refused(tmp_path: Path) -> None:
    """Found by drawn races: its names led elsewhere during the look, and to somebody's files again after."""
    path = tmp_path / "x"
    path.write_bytes(MINE)
    identity = seen.look(path)[1].model_dump(mode="json")
    path.rename(tmp_path / "away")
    with pytest.raises(RefusedError, match="it is gone since it was looked at"):
        guard.secure(plan(target(str(path), identity=identity)), guard.Consent())


@pytest.mark.parametrize("change", [moved_over, made_anew])
def test_what_takes_the_name_of_a_target_while_somebody_is_asked_is_not_prepared(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Found by reading: it was removed by its name, and what came then was sealed by it."""
    path = tmp_path / "x"
    path.write_bytes(b"may be lost" * 1000)

    def asked(named: str, _evidence: list[str]) -> str:
        change(path)
        return named

    with pytest.raises(RunError, match="another file is there now"):
        allocation.prepare(
            plan(target(str(path), size_bytes=8192)), "preallocated", guard.Consent(ask=asked), lambda: False
        )
    assert path.read_bytes() == MINE
    assert marker.read(path) is None
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.in_turn
@pytest.mark.drawn(3)
@pytest.mark.parametrize("seed", range(12))
def test_names_that_change_places_at_drawn_moments_lend_nobody_a_mark(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "x").write_bytes(bytes(8192))
    (tmp_path / "there" / "x").write_bytes(MINE)
    somebodys_tree(tmp_path / "there" / "t")
    file = target(str(tmp_path / "here" / "x"), size_bytes=8192, create=True, layout=LAYOUT)
    made = [plan(file), tree_plan(tmp_path / "here" / "t", "write", FORMAT)]
    over = threading.Event()

    def exchange_again_and_again() -> None:
        while not over.wait(drawn.random() * 0.002):
            for old, new in (("here", "third"), ("there", "here"), ("third", "there")):
                with contextlib.suppress(OSError):  # A file and the directories above it are made.
                    (tmp_path / old).rename(tmp_path / new)

    other = threading.Thread(target=exchange_again_and_again)
    other.start()
    try:
        for one in made * 4:
            with contextlib.suppress(RefusedError, RunError):
                held = run_targets.hold(one, guard.Consent())
                held.prepared()
                held.seal()
    finally:
        over.set()
        other.join()
    theirs = next(one for one in tmp_path.iterdir() if (one / "t" / "vdb_f0001.file").exists())
    assert kept(theirs / "t")
    assert (theirs / "x").read_bytes() == MINE
    assert marker.read(theirs / "x") is None
