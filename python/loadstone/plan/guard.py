"""The safety check: may this Plan write what it wants to write.

Knows the rules: what is in use is refused, whatever the user says; what carries a signature
or somebody's content needs that target's path typed out; what is empty, new, made by
Loadstone or holds test data only needs nothing. Knows no command line: consent comes as a value. `claim` and
`prepared` are the only functions here that change anything: files that are Loadstone's.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError, RunError, Where
from loadstone.path import nvme
from loadstone.plan import anchors, in_use, marker, signatures
from loadstone.plan.called import REMOVING
from loadstone.plan.content import content
from loadstone.plan.host import namesake_of
from loadstone.plan.in_use import Snapshot
from loadstone.plan.model import BackendMoveExtents, BackendNames, Identity, Plan, Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.plan.trees import Tree

HARMLESS_CHARS: Final = frozenset({(1, 3), (1, 5), (1, 7)})
"""/dev/null, /dev/zero, /dev/full (Linux Documentation/admin-guide/devices.txt)."""


def _as_options(paths: Sequence[str]) -> str:
    return "add: " + " ".join(f"--i-accept-data-loss {path}" for path in paths)


@dataclass(frozen=True, slots=True)
class Consent:
    """Which targets the user agreed to lose, path by path.

    `ask` is called with a path and the evidence when the path was not given beforehand, and
    returns what the user typed; it stands only if it is exactly that path.
    """

    paths: frozenset[str] = frozenset()
    ask: Callable[[str, list[str]], str] | None = None
    remedy: Callable[[Sequence[str]], str] = _as_options
    """Says how it is given for paths."""

    def given(self, path: str, evidence: list[str]) -> bool:
        """Tell whether the content of `path` may be lost."""
        real = os.path.realpath(path)
        if any(os.path.realpath(one) == real for one in self.paths):
            return True
        return self.ask is not None and self.ask(path, evidence).strip() == path


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of one written target found: both lists empty means go ahead."""

    path: str
    in_use: list[str] = field(default_factory=list)
    needs_consent: list[str] = field(default_factory=list)


def written(plan: Plan) -> set[int]:
    """Return the indices of targets whose content the Plan may change, by I/O or by preparing them."""
    changed = {index for index, target in enumerate(plan.targets) if target.unlink or _layout_changes(target)}
    for stream in plan.streams:
        if stream.pattern.write_percent or stream.pattern.trim_percent or stream.pattern.trim_then_write:
            changed |= {use.target for use in stream.files}
    for stream in plan.streams:
        backend = plan.workers[stream.worker].backend
        if isinstance(backend, BackendNames) and backend.operation in REMOVING:
            changed |= {use.target for use in stream.files}
        elif isinstance(backend, BackendMoveExtents):
            changed.add(backend.donor)
    changed |= {tree.target for tree in plan.trees if not plan.targets[tree.target].read_only}
    return {index for index in changed if plan.targets[index].kind is not TargetKind.VIRTUAL}


def examine(target: Target, host: Snapshot) -> Finding:
    """Look at one target that would be written. Changes nothing."""
    path = Path(target.path)
    return _examine_tree(path) if target.kind is TargetKind.TREE else _examine(target, path, host)


def _examine(target: Target, path: Path, host: Snapshot) -> Finding:
    try:
        status = path.stat()
    except FileNotFoundError:
        return Finding(target.path)
    except OSError as error:
        return Finding(target.path, needs_consent=[f"it cannot be looked at: {error.strerror}"])
    if stat.S_ISBLK(status.st_mode):
        return Finding(target.path, in_use.device_uses(path, host), _signatures(path))
    if stat.S_ISCHR(status.st_mode):
        return _examine_char(target.path, status.st_rdev, host)
    if not stat.S_ISREG(status.st_mode):
        return Finding(target.path, in_use=["it is neither a file nor a device"])
    return _examine_file(target, path, status, host)


def _examine_char(path: str, number: int, host: Snapshot) -> Finding:
    """Look at a character device.

    Of an NVMe namespace the block device with the same data: who uses it and what it holds is
    known there.
    """
    if not nvme.is_generic(number, host.sys):
        known = (os.major(number), os.minor(number)) in HARMLESS_CHARS
        return Finding(path, needs_consent=[] if known else ["it is a character device"])
    block = nvme.namesake(number, host.sys)
    beside = None if block is None else namesake_of(block)
    if beside is None:
        why = "the block device with the same data cannot be found, nor who uses it"
        return Finding(path, in_use=[why])
    node = Path(beside.path)
    return Finding(path, in_use.device_uses(node, host), _signatures(node))


def check_consent(consent: Consent, plans: Sequence[Plan]) -> None:
    """Raise `InputError` for consent to lose what no Plan works on: it would have no effect."""
    known = {os.path.realpath(target.path): target.path for plan in plans for target in plan.targets}
    for path in sorted(consent.paths):
        if os.path.realpath(path) not in known:
            near = difflib.get_close_matches(path, known.values(), n=1)
            raise InputError(
                f"{path!r} is no target of this run",
                where=Where("command line", option="--i-accept-data-loss"),
                hint=f"did you mean {near[0]!r}?" if near else "leave it out",
            )


def secure(plan: Plan, consent: Consent, *, files: bool = True) -> Plan:
    """Check every written target and return the Plan with identities filled in.

    Raises `RefusedError` listing every target that may not be written, with the evidence.
    `files=False` leaves regular files unchecked. Devices that will be written are opened
    exclusively, so that the kernel refuses one that came into use since.
    """
    to_write = written(plan)
    refused: dict[str, list[str]] = {}
    unconsented: dict[str, list[str]] = {}
    host = Snapshot()
    for index in sorted(to_write):
        target = plan.targets[index]
        if not files and target.kind is TargetKind.FILE:
            continue
        finding = examine(target, host)
        if finding.in_use:
            refused[finding.path] = finding.in_use
        elif finding.needs_consent and not consent.given(finding.path, finding.needs_consent):
            unconsented[finding.path] = finding.needs_consent
    _refuse_used(refused)
    _refuse_unconsented(unconsented, consent)
    targets = tuple(
        _identified(target, written=index in to_write) for index, target in enumerate(plan.targets)
    )
    return plan.model_copy(update={"targets": targets})


def claim(plan: Plan) -> Plan:
    """Create the missing files and anchors the Plan wants created, mark them, note their identity.

    Files of Loadstone's that are about to be laid out are marked as unfinished until
    `prepared` is called. Raises `RunError` when one cannot be created.
    """
    trees = {tree.target: tree for tree in plan.trees}
    return plan.model_copy(
        update={
            "targets": tuple(
                _claimed_tree(target, trees[index]) if target.kind is TargetKind.TREE else _claimed(target)
                for index, target in enumerate(plan.targets)
            )
        }
    )


def prepared(plan: Plan) -> None:
    """Take note that the files of the Plan are laid out."""
    for target in plan.targets:
        path = Path(target.path)
        if target.layout is not None and marker.read(path) == marker.UNFINISHED:
            marker.write(path, marker.READY)


def _layout_changes(target: Target) -> bool:
    """Tell whether preparing the file writes into it or changes its length."""
    if target.layout is None:
        return False
    try:
        size_bytes = Path(target.path).stat().st_size
    except OSError:
        return True
    return target.layout.size_bytes > size_bytes or (
        target.layout.truncate and size_bytes > target.layout.size_bytes
    )


def _examine_file(target: Target, path: Path, status: os.stat_result, host: Snapshot) -> Finding:
    used = in_use.file_uses(path, host)
    if used or status.st_size == 0 or marker.read(path) is not None:
        return Finding(target.path, used)
    found = _signatures(path)
    try:
        held = content(path)
    except OSError as error:
        held = f"it cannot be read to see what it holds: {error.strerror}"
    if held is not None:
        found.append(held)
    if found:
        found.insert(0, f"it exists, holds {status.st_size} bytes and was not created by Loadstone")
    return Finding(target.path, needs_consent=found)


def _examine_tree(anchor: Path) -> Finding:
    """Look at a tree that would be changed: one that nobody marked may hold anything."""
    try:
        found = anchors.look(anchor)
    except OSError as error:
        return Finding(str(anchor), in_use=[f"it cannot be looked at: {error.strerror}"])
    if found.is_empty or found.maker is not None:
        return Finding(str(anchor))
    what = "files" if found.has_files else "directories"
    told = f"it holds {what} named as those of a test, and neither Loadstone nor vdbench left a mark there"
    return Finding(str(anchor), needs_consent=[told])


def _signatures(path: Path) -> list[str]:
    try:
        return [f"it carries {signature}" for signature in signatures.read(path)]
    except OSError as error:
        return [f"it cannot be read to look for signatures: {error.strerror}"]


def _identified(target: Target, *, written: bool) -> Target:
    if target.kind is TargetKind.VIRTUAL:
        return target
    try:
        status = Path(target.path).stat()
    except OSError:
        return target
    device = stat.S_ISBLK(status.st_mode)
    special = status.st_rdev if device or stat.S_ISCHR(status.st_mode) else 0
    identity = Identity(device=status.st_dev, inode=status.st_ino, special=special)
    exclusive = target.exclusive or (written and (device or target.kind is TargetKind.NVME))
    found: dict[str, object] = {"identity": identity, "exclusive": exclusive}
    if target.kind is TargetKind.NVME:
        block = nvme.namesake(special)
        found["namesake"] = None if block is None else namesake_of(block)
    return target.model_copy(update=found)


def _claimed(target: Target) -> Target:
    path = Path(target.path)
    if target.create and not path.exists():
        target = _created(target)
    if target.layout is None or not target.layout.write:
        return target
    if marker.read(path) == marker.UNFINISHED:
        # The length an unfinished layout left behind would pass for data.
        os.truncate(path, 0)
    if marker.read(path) is not None and _layout_changes(target):
        marker.write(path, marker.UNFINISHED)
    return target


def _claimed_tree(target: Target, tree: Tree) -> Target:
    """Make an anchor that is missing, and mark the tree that will be changed there."""
    path = Path(target.path)
    if target.create and not path.exists():
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise RunError(f"{target.path} cannot be made: {error.strerror}") from error
    if not target.read_only:
        anchors.marked(path, anchors.Structure.of_tree(tree), tree.first_file)
    return _identified(target, written=True)


def _created(target: Target) -> Target:
    try:
        for directory in reversed([p for p in Path(target.path).parents if not p.exists()]):
            directory.mkdir(mode=0o700)  # As fio makes them: for nobody else.
        descriptor = os.open(target.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        remedy = {errno.ENOENT: "create the directory first", errno.EACCES: "choose a writable directory"}
        raise RunError(
            f"{target.path} cannot be created: {error.strerror}", hint=remedy.get(error.errno or 0)
        ) from error
    os.close(descriptor)
    marker.write(Path(target.path), marker.READY)
    return _identified(target, written=True)


def _refuse_used(refused: Mapping[str, list[str]]) -> None:
    if refused:
        raise RefusedError(
            "writing to what is in use is refused" + _listing(refused),
            hint="unmount it, stop what uses it, or choose another target; consent does not lift this",
        )


def _refuse_unconsented(unconsented: Mapping[str, list[str]], consent: Consent) -> None:
    if unconsented:
        raise RefusedError(
            "the run would destroy what is there" + _listing(unconsented),
            where=Where("command line"),
            hint=f"if all of that may be lost, {consent.remedy(list(unconsented))}",
        )


def _listing(evidence: Mapping[str, list[str]]) -> str:
    return "".join(f"\n  {path}: {reason}" for path, reasons in evidence.items() for reason in reasons)
