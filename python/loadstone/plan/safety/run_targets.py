"""The targets of one run, from the safety check until the engine has ended.

Knows what has to be made and marked before, and sealed after. `hold` and what it returns are the only
part of the planning that changes anything: missing files and anchors are made, what is Loadstone's is
marked as being written, and vouched for when the run is over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import RunError
from loadstone.messages import make_error
from loadstone.path import inode
from loadstone.plan.anchors import Structure
from loadstone.plan.model import Identity, Plan, Target, TargetKind
from loadstone.plan.safety import guard, in_use, marker, seen, tree_mark
from loadstone.plan.safety.content import BlockReader
from loadstone.plan.safety.held import held, held_as_checked, is_checked, way_to
from loadstone.plan.safety.in_use import Snapshot
from loadstone.plan.safety.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from loadstone.plan.model import Tree

DIGESTS_S: Final = 1.0
"""Time to read what was written for its digests; without one a file is not known again by another name."""


@dataclass(slots=True)
class RunTargets:
    """What `hold` returns."""

    plan: Plan
    """With the identity of every target."""
    own: frozenset[int]
    """Targets that hold nothing but what is Loadstone's, and will after the run."""
    written: frozenset[int]
    left: guard.Left
    """What was left behind before, and by this run when it is sealed."""
    cleared: frozenset[int] = frozenset()
    """Trees that are removed first: what is there afterwards is Loadstone's."""
    vouched_ns: Mapping[int, int] = field(default_factory=dict)
    """Of trees that hold only what is Loadstone's: the latest ctime of a file there."""
    longest_bytes: Mapping[int, int] = field(default_factory=dict)
    """How long files can be afterwards. What makes one longer is not this run: it is somebody's content."""
    laid_out: bool = False
    """All files were laid out and trees made when the load began."""

    def prepared(self) -> None:
        """Mark all files as laid out."""
        for index in self.own:
            target = self.plan.targets[index]
            if target.layout is None:
                continue
            with held_as_checked(target) as file:
                if file is not None and (mark := marker.read(file)) is not None:
                    marker.write(file, marker.Mark("writing", laid_out=True, seal=mark.seal))

    def of_handles(self, handles: frozenset[bytes]) -> frozenset[int]:
        """Return the targets that have these handles."""
        indexes = set()
        for index in sorted(self.own) if handles else ():
            with held_as_checked(self.plan.targets[index]) as path:
                if path is not None and inode.handle(path) in handles:
                    indexes.add(index)
        return frozenset(indexes)

    def seal(
        self,
        trees: Mapping[int, tree_mark.TreeSeen] | None = None,
        foreign: frozenset[int] = frozenset(),
    ) -> guard.Left:
        """Vouch for what the run left behind, when the engine has ended, however it did.

        `trees`: those the engine looked at afterwards; another one stays as it is. None: nothing was
        done in any, and what was vouched for before is again. `foreign`: what others wrote to as well.
        """
        seals: list[marker.Seal] = []
        until_s = time.monotonic() + DIGESTS_S
        for index in sorted((self.own | (self.cleared if self.laid_out else frozenset())) - foreign):
            target = self.plan.targets[index]
            with contextlib.suppress(OSError, ValueError):
                if target.kind is TargetKind.TREE:
                    with held_as_checked(target) as anchor:
                        if anchor is not None and not in_use.tree_uses(anchor, Snapshot(), most=1):
                            self._settle_tree(anchor, index, trees)
                elif target.kind is TargetKind.FILE:
                    seals += self._sealed(index, until_s)
                else:
                    guard.remember(target, self.left)
        self._take_back()
        marker.settle(seals)
        return self.left

    def _settle_tree(
        self, anchor: Path, index: int, looked_at: Mapping[int, tree_mark.TreeSeen] | None
    ) -> None:
        if looked_at is None:
            self.left.trees.add(tree_mark.seal(anchor, self.vouched_ns.get(index, 0)))
        elif index in looked_at:
            left = looked_at[index]
            if left.foreign is None:
                self.left.trees.add(tree_mark.seal(anchor, left.newest_ns))
            else:
                tree_mark.leave(anchor, left.foreign)

    def _take_back(self) -> None:
        """Take back the seal of what others have open: they write on, through a mapping without a trace."""
        host = Snapshot()
        for index in self.own:
            target = self.plan.targets[index]
            if target.kind is not TargetKind.FILE:
                continue
            with contextlib.suppress(OSError), held_as_checked(target) as file:
                if file is not None and in_use.file_uses(file, host):
                    status = file.stat()
                    self.left.files.pop((status.st_dev, status.st_ino), None)
                    if (mark := marker.read(file)) is not None:
                        marker.write(file, marker.Mark("writing", mark.laid_out))

    def _sealed(self, index: int, until_s: float) -> list[marker.Seal]:
        target = self.plan.targets[index]
        with BlockReader(Path(target.path)) as reader:
            status = os.fstat(reader.descriptor)
            longest_bytes = self.longest_bytes.get(index, status.st_size)
            if not _is(target, reader.descriptor) or status.st_size > longest_bytes:
                return []
            mark = marker.read(reader.descriptor)
            laid_out = self.laid_out or target.layout is None or (mark is not None and mark.laid_out)
            seal = marker.seal(reader, laid_out=laid_out, digest_until_s=until_s)
        self.left.files[status.st_dev, status.st_ino] = seal
        return [seal]


def hold(plan: Plan, consent: guard.Consent, *, content: bool = True) -> RunTargets:
    """Check what a Plan writes (`guard.secure`), make what is missing, and mark it.

    Raises RefusedError as the check does, and RunError when something cannot be made.
    """
    checked = guard.secured(plan, consent, content=content)
    plan, own = checked.plan, checked.own
    trees = {tree.target: tree for tree in plan.trees}
    targets = []
    created: dict[str, Identity] = {}
    vouched: dict[int, int] = {}
    for index, target in enumerate(plan.targets):
        if target.kind is TargetKind.TREE:
            marks = target.path not in consent.marked_elsewhere
            if marks and index in own:
                vouched[index] = sealed_ns(target.path, consent.left.trees) or 0
            targets.append(_claimed_tree(target, trees[index], created, own=index in own, marks=marks))
        elif target.kind is TargetKind.FILE:
            targets.append(_claimed(target, created, own=index in own, written=index in checked.written))
        else:
            targets.append(target)
    cleared = frozenset(tree.target for tree in plan.trees if tree.clear)
    looked_at = [tree.model_copy(update={"vouched_ns": vouched.get(tree.target)}) for tree in plan.trees]
    plan = plan.model_copy(update={"targets": tuple(targets), "trees": tuple(looked_at)})
    longest_bytes = _longest_bytes(plan, own)
    return RunTargets(plan, own, checked.written, consent.left, cleared, vouched, longest_bytes)


def _longest_bytes(plan: Plan, own: Container[int]) -> dict[int, int]:
    """Return for the files that are Loadstone's how long each can become: a Plan may name one twice."""
    files = [index for index, one in enumerate(plan.targets) if index in own and one.kind is TargetKind.FILE]
    longest: dict[str, int] = {}
    for index in files:
        target = plan.targets[index]
        with held_as_checked(target) as file:
            size_bytes = file.stat().st_size if file is not None else 0
        planned_bytes = max(target.size_bytes, target.layout.size_bytes if target.layout else 0)
        name = os.path.realpath(target.path)
        longest[name] = max(longest.get(name, 0), size_bytes, planned_bytes)
    return {index: longest[os.path.realpath(plan.targets[index].path)] for index in files}


def sealed_ns(path: str, known: Container[tuple[int, int]] = ()) -> int | None:
    """Return the ctime up to which a tree's mark vouches; None: it does not."""
    with held(path) as anchor:
        return None if anchor is None else tree_mark.sealed_until(anchor, known)[0]


def seal_again(path: str, before_ns: int | None) -> None:
    """Vouch for a tree that this run sealed: other hosts went on when this one had ended.

    `before_ns`: what `sealed_ns` was before the run; while it is that, the run has not sealed it.
    """
    with contextlib.suppress(OSError, ValueError), held(path) as anchor:
        if anchor is None or tree_mark.sealed_until(anchor)[0] in (None, before_ns):
            return
        if not in_use.tree_uses(anchor, Snapshot(), most=1):
            tree_mark.seal(anchor)


def _claimed(target: Target, identities: dict[str, Identity], *, own: bool, written: bool) -> Target:
    if target.create and target.identity is None:
        # Nothing was there when it was looked at: what is there by now, and we did not make, is somebody's.
        real = os.path.realpath(target.path)
        if real not in identities:
            identities[real] = _created(target)
        return target.model_copy(update={"identity": identities[real]})
    if not written:
        return target
    descriptor = _opened(target)
    if descriptor is None:
        return target
    try:
        mark = marker.read(descriptor)
        laid_out = mark is None or mark.laid_out
        if target.layout is not None and not laid_out:
            # The length an unfinished layout left behind would pass for data.
            os.ftruncate(descriptor, 0)
        if own:
            done = laid_out and (
                target.layout is None or not guard.layout_changes(target, way_to(descriptor))
            )
            marker.write(descriptor, marker.Mark("writing", done))
        else:
            marker.remove(descriptor)
    except OSError as error:
        raise make_error(RunError, "plan.target.not_cut", path=target.path, reason=error.strerror) from error
    finally:
        os.close(descriptor)
    return target


def _opened(target: Target) -> int | None:
    """Open the file that was checked; None when it cannot be: the engine will say why."""
    try:
        descriptor = os.open(target.path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    if _is(target, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _is(target: Target, descriptor: int) -> bool:
    return (
        target.identity is not None
        and stat.S_ISREG(os.fstat(descriptor).st_mode)
        and seen.is_same(target.identity, seen.identity(descriptor))
    )


def _claimed_tree(
    target: Target, tree: Tree, identities: dict[str, Identity], *, own: bool, marks: bool
) -> Target:
    """Make an anchor that is missing, and mark the tree that will be changed there."""
    if target.create and target.identity is None:
        real = os.path.realpath(target.path)
        if real not in identities:
            identities[real] = _made_anchor(target)
        target = target.model_copy(update={"identity": identities[real]})
    with held(target.path) as anchor:
        if anchor is None:
            return target  # The engine says why.
        if not is_checked(target, anchor):
            guard.refuse_changed({target.path: seen.REPLACED})
        if marks and not target.read_only:
            try:
                tree_mark.begin(anchor, Structure.of_tree(tree), tree.first_file, shared=not own)
            except OSError as error:
                raise make_error(
                    RunError, "plan.tree.no_mark", path=target.path, reason=error.strerror
                ) from error
        return guard.identified(target, Seen.of(anchor), written=True)


def _made_anchor(target: Target) -> Identity:
    """Make the anchor of a tree; what came there since it was looked at is somebody's."""
    try:
        Path(target.path).mkdir(parents=True)
        descriptor = os.open(target.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise make_error(RunError, "plan.target.not_made", path=target.path, reason=error.strerror) from error
    try:
        if any(way_to(descriptor).iterdir()):
            guard.refuse_changed({target.path: seen.REPLACED})
        return seen.identity(descriptor)
    finally:
        os.close(descriptor)


def _created(target: Target) -> Identity:
    try:
        for directory in reversed([p for p in Path(target.path).parents if not p.exists()]):
            directory.mkdir(mode=0o700)  # For nobody else.
        descriptor = os.open(target.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        remedy = {
            errno.ENOENT: "create the directory first",
            errno.EACCES: "choose a writable directory",
            errno.EEXIST: "it was created while the run began, or is a dangling link: check it, run again",
        }
        raise make_error(
            RunError,
            "plan.target.not_created",
            hint=remedy.get(error.errno or 0),
            path=target.path,
            reason=error.strerror,
        ) from error
    try:
        identity = seen.identity(descriptor)
        marker.write(
            descriptor, marker.Mark("writing", laid_out=target.layout is None or not target.layout.write)
        )
    finally:
        os.close(descriptor)
    return identity
