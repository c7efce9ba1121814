"""The safety check: may this Plan write what it wants to write.

Knows the rules: what is in use, or is no place for data, is refused, whatever the user says; what holds
anything needs that target's path typed out; what is new, empty, all zeros or marked as written by
Loadstone alone needs nothing (`examine`, `secure`). Knows no command line: consent comes as a value.
What is checked is held for the run in `plan.run_targets`.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError, Where
from loadstone.messages import say
from loadstone.path import nvme
from loadstone.path.child import run_in_child
from loadstone.plan.anchors import look as look_below
from loadstone.plan.host_facts import namesake_of
from loadstone.plan.model import BackendMoveExtents, BackendNames, Plan, Target, TargetKind
from loadstone.plan.safety import content_evidence, in_use, marker, tree_mark, writable
from loadstone.plan.safety.content import BlockReader
from loadstone.plan.safety.device_seal import DeviceSeal
from loadstone.plan.safety.held import held
from loadstone.plan.safety.in_use import Snapshot
from loadstone.plan.safety.seen import GONE, Seen, change
from loadstone.plan.safety.use import UseKind
from loadstone.plan.special_engines import REMOVING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HARMLESS_CHARS: Final = frozenset({(1, 3), (1, 5), (1, 7)})
"""/dev/null, /dev/zero, /dev/full (Linux Documentation/admin-guide/devices.txt)."""


def _as_options(paths: Sequence[str]) -> str:
    return say("refusals.consent.option", options=" ".join(f"--i-accept-data-loss {path}" for path in paths))


@dataclass(slots=True)
class Left:
    """What runs of this process left behind where no mark can be kept, so that the next one knows it."""

    files: dict[tuple[int, int], marker.Seal] = field(default_factory=dict)
    """By `st_dev` and `st_ino`."""
    devices: dict[int, DeviceSeal] = field(default_factory=dict)
    """By `st_rdev` of the block device."""
    trees: set[tuple[int, int]] = field(default_factory=set)
    """Their marks, by `st_dev` and `st_ino`."""

    def take(self, other: Left) -> None:
        """Add what is newer."""
        self.files |= other.files
        self.devices |= other.devices
        self.trees |= other.trees


AS_OPTION: Final = Where("command line", option="--i-accept-data-loss")


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
    where: Where = AS_OPTION
    """Where it is given."""
    places: Mapping[str, Where] = field(default_factory=dict, compare=False)
    """Where each target was named."""
    tell: Callable[[str, float], None] | None = None
    """Hears what share of a path was looked at, where that takes a while."""
    left: Left = field(default_factory=Left, compare=False)
    marked_elsewhere: frozenset[str] = frozenset()
    """Trees that another host of the run looked at, marks and vouches for."""
    changed_elsewhere: frozenset[str] = frozenset()
    """Files that other hosts of the run write, too: they mark and open them while they are looked at here."""

    def beforehand(self, path: str) -> bool:
        """Tell whether it was given for `path` without a look at it."""
        real = os.path.realpath(path)
        return any(os.path.realpath(one) == real for one in self.paths)

    def placed(self, places: Mapping[str, Where]) -> Consent:
        """Return the same, which knows where these targets were named."""
        return replace(self, places={**self.places, **places})

    def given(self, path: str, evidence: list[str]) -> bool:
        """Tell whether the content of `path` may be lost."""
        if self.beforehand(path):
            return True
        return self.ask is not None and self.ask(path, evidence).strip() == path


NONE: Final = Consent()


@dataclass(frozen=True, slots=True)
class TargetFinding:
    """What the check of one written target found: nothing in the first three means go ahead."""

    path: str
    forbidden: list[str] = field(default_factory=list)
    """Why nothing may ever be written there."""
    in_use: list[str] = field(default_factory=list)
    needs_consent: list[str] = field(default_factory=list)
    unseen: bool = False
    """Nobody looked at what it holds."""

    @property
    def own(self) -> bool:
        """Whether it holds nothing but what is Loadstone's."""
        return not (self.refused or self.needs_consent or self.unseen)

    @property
    def refused(self) -> list[str]:
        """What no consent lifts."""
        return self.forbidden + self.in_use


@dataclass(frozen=True, slots=True)
class Secured:
    """A Plan that may be run."""

    plan: Plan
    """With the identity of every target."""
    own: frozenset[int]
    """Targets that hold nothing but what is Loadstone's."""
    written: frozenset[int]
    """Targets that are written, removed or laid out."""


def written(plan: Plan) -> set[int]:
    """Return the indices of targets whose content the Plan may change, by I/O or by preparing them."""
    laid_out = {index for index, target in enumerate(plan.targets) if layout_changes(target)}
    return _changed_by_load(plan) | {index for index in laid_out if _is_real(plan.targets[index])}


def _changed_by_load(plan: Plan) -> set[int]:
    """Return the indices of targets that are changed whatever they hold now."""
    changed = {index for index, target in enumerate(plan.targets) if target.unlink}
    for stream in plan.streams:
        if stream.headers is not None and stream.headers.only:
            continue  # Its writes are only remembered, and its targets are opened for reading.
        if stream.pattern.write_percent or stream.pattern.trim_percent or stream.pattern.trim_then_write:
            changed |= {use.target for use in stream.files}
    for stream in plan.streams:
        backend = plan.workers[stream.worker].backend
        if isinstance(backend, BackendNames) and backend.operation in REMOVING:
            changed |= {use.target for use in stream.files}
        elif isinstance(backend, BackendMoveExtents):
            changed.add(backend.donor)
    changed |= {tree.target for tree in plan.trees if not plan.targets[tree.target].read_only}
    return {index for index in changed if _is_real(plan.targets[index])}


def examine(
    target: Target,
    host: Snapshot,
    consent: Consent = NONE,
    *,
    content: bool = True,
    pinned: Path | None = None,
) -> TargetFinding:
    """Look at one target that would be written. Changes nothing.

    `content=False` leaves what regular files hold unseen. Consent given beforehand does the same.
    `pinned` leads to the file that is looked at, whatever stands at its path by then.
    """
    path = Path(target.path)
    reason = writable.forbidden(path, pinned)
    if reason is not None:
        return TargetFinding(target.path, forbidden=[reason])
    if target.kind is TargetKind.TREE:
        finding = _examine_tree(target.path, pinned or path, host, consent)
        if target.path in consent.marked_elsewhere:
            return replace(finding, needs_consent=[], unseen=True)
        return finding
    return _examine(target.path, pinned or path, host, consent, content=content)


def _examine(name: str, path: Path, host: Snapshot, consent: Consent, *, content: bool) -> TargetFinding:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return TargetFinding(name, needs_consent=_doubts(path))
    except OSError as error:
        return TargetFinding(name, needs_consent=[say("refusals.target.unreadable", reason=error.strerror)])
    if stat.S_ISBLK(status.st_mode):
        return examine_device(name, path, status.st_rdev, host, consent)
    if stat.S_ISCHR(status.st_mode):
        return _examine_char(name, status.st_rdev, host, consent)
    if not stat.S_ISREG(status.st_mode):
        return TargetFinding(name, forbidden=[say("refusals.target.no_file")])
    return _examine_file(name, path, status, host, consent, content=content)


def examine_device(name: str, path: Path, number: int, host: Snapshot, consent: Consent) -> TargetFinding:
    """Look at one block device that would be written. Changes nothing."""
    used = in_use.device_uses(path, host)
    if used:
        return TargetFinding(name, in_use=used)
    if consent.beforehand(name):
        return TargetFinding(name, needs_consent=[say("refusals.target.consented")])
    left = consent.left.devices.get(number)
    if left is not None and left.holds(path):
        return TargetFinding(name)
    return TargetFinding(name, needs_consent=content_evidence.evidence(path, _telling(consent, name)))


def _examine_char(name: str, number: int, host: Snapshot, consent: Consent) -> TargetFinding:
    """Look at a character device.

    Of an NVMe namespace the block device with the same data: who uses it and what it holds is
    known there.
    """
    if not nvme.is_generic(number, host.sys):
        known = (os.major(number), os.minor(number)) in HARMLESS_CHARS
        return TargetFinding(name, forbidden=[] if known else [say("refusals.target.character")])
    block = nvme.namesake(number, host.sys)
    beside = None if block is None else namesake_of(block)
    if block is None or beside is None:
        return TargetFinding(name, in_use=[say("refusals.target.no_namespace")])
    with held(beside.path) as pinned:
        return examine_device(name, pinned or Path(beside.path), block.number, host, consent)


def check_consent(consent: Consent, plans: Sequence[Plan]) -> None:
    """Raise `InputError` for consent to lose what no Plan works on: it would have no effect."""
    if consent.paths:
        # What does not answer must not hold us.
        run_in_child(lambda: _check_known(consent, plans), doing=say("path.child.looking.targets"))


def _check_known(consent: Consent, plans: Sequence[Plan]) -> None:
    known = {os.path.realpath(target.path): target.path for plan in plans for target in plan.targets}
    for path in sorted(consent.paths):
        if os.path.realpath(path) not in known:
            near = difflib.get_close_matches(path, known.values(), n=1)
            raise InputError(
                say("refusals.consent.unknown", path=repr(path)),
                where=consent.where,
                hint=say("refusals.consent.near", near=repr(near[0]))
                if near
                else say("refusals.consent.leave_out"),
            )


def secure(plan: Plan, consent: Consent, *, content: bool = True) -> Plan:
    """Check every written target and return the Plan with identities filled in.

    Raises `RefusedError` listing every target that may not be written, with the evidence.
    `content=False` leaves what regular files hold unseen; who uses them is looked at all the same.
    Devices that will be written are opened exclusively, so that the kernel refuses one that came
    into use since.
    """
    return secured(plan, consent, content=content).plan


def secured(plan: Plan, consent: Consent, *, content: bool = True) -> Secured:
    """Do as `secure`; say also which targets are written, and which hold only what is Loadstone's."""
    by_load = _changed_by_load(plan)
    host = Snapshot()
    # What is written later is what was looked at, and as it was then.
    before: dict[int, Seen | None] = {}
    findings: list[tuple[int, TargetFinding]] = []
    for index, target in enumerate(plan.targets):
        if not _is_real(target):
            continue
        with held(target.path) as pinned:
            before[index] = None if pinned is None else Seen.of(pinned)
            if index in by_load or layout_changes(target, pinned):
                findings.append((index, examine(target, host, consent, content=content, pinned=pinned)))
    forbidden = {one.path: one.forbidden for _, one in findings if one.forbidden}
    refuse(say("refusals.forbidden.refusal"), forbidden, say("refusals.forbidden.hint"), consent.places)
    used = {one.path: one.in_use for _, one in findings if one.in_use}
    refuse(say("refusals.in_use.refusal"), used, say("refusals.in_use.hint"), consent.places)
    lost = [one for _, one in findings if one.needs_consent]
    unconsented = {
        one.path: one.needs_consent for one in lost if not consent.given(one.path, one.needs_consent)
    }
    hint = say("refusals.consent.hint", remedy=consent.remedy(list(unconsented)))
    refuse(say("refusals.consent.refusal"), unconsented, hint, consent.places)
    changed: dict[str, str] = {}
    for index, one in findings:
        difference = _changed(before[index], Path(one.path), consent)
        if difference is None and before[index] is None and plan.targets[index].identity is not None:
            # What the planner saw and nobody looked at would be opened unchecked, were it back by then.
            difference = GONE
        if difference is not None:
            changed[one.path] = difference
    refuse_changed(changed, consent.places)
    to_write = frozenset(index for index, _ in findings)
    targets = tuple(
        identified(target, before.get(index), written=index in to_write)
        for index, target in enumerate(plan.targets)
    )
    own = frozenset(index for index, one in findings if one.own)
    for index in own:
        target = plan.targets[index]
        if target.kind in (TargetKind.BLOCK, TargetKind.NVME):
            remember(target, consent.left)
    return Secured(plan.model_copy(update={"targets": targets}), own, to_write)


def _changed(before: Seen | None, path: Path, consent: Consent) -> str | None:
    """Say what became of a path since it was looked at; what other hosts of the run write is theirs."""
    now = Seen.of(path)
    if before is not None and now is not None and str(path) in consent.changed_elsewhere:
        now = replace(now, state=before.state)
    return change(before, now)


def remember(target: Target, left: Left) -> None:
    """Remember what a device holds, so that it is known to be Loadstone's when it is written next."""
    node = target if target.namesake is None else target.namesake
    identity = node.identity
    with contextlib.suppress(OSError), held(node.path) as path:
        if path is None:
            return
        status = path.stat()
        if stat.S_ISBLK(status.st_mode) and (identity is None or identity.special == status.st_rdev):
            left.devices[status.st_rdev] = DeviceSeal.of(path, status.st_rdev)


def layout_changes(target: Target, file: Path | None = None) -> bool:
    """Tell whether preparing the file writes into it or changes its length.

    `file` is what is held of it; without it whatever stands at its path now is looked at.
    """
    if target.layout is None:
        return False
    file = Path(target.path) if file is None else file
    try:
        size_bytes = file.stat().st_size
    except OSError:
        return True
    mark = marker.read(file)
    return (
        (mark is not None and not mark.laid_out)
        or target.layout.size_bytes > size_bytes
        or (target.layout.truncate and size_bytes > target.layout.size_bytes)
    )


def _examine_file(
    name: str, path: Path, status: os.stat_result, host: Snapshot, consent: Consent, *, content: bool
) -> TargetFinding:
    """Look at one file; where something would be lost, see also whether others read it."""
    finding = _file_content(name, path, status, host, consent, content=content)
    would_lose = status.st_size and (finding.needs_consent or finding.unseen) and not finding.in_use
    if would_lose and name not in consent.changed_elsewhere and (readers := in_use.file_readers(path, host)):
        return TargetFinding(name, in_use=readers)
    return finding


def _file_content(
    name: str, path: Path, status: os.stat_result, host: Snapshot, consent: Consent, *, content: bool
) -> TargetFinding:
    # All hosts looked before one of them was told to go on: who opened it since is another host.
    used = in_use.file_uses(path, host, UseKind.OPEN if name in consent.changed_elsewhere else None)
    doubts = _doubts(path, hidden=not used and in_use.is_use_hidden(path))
    mark = marker.read(path)
    marked_by_host = False
    if name in consent.changed_elsewhere:
        marked_by_host = mark is not None and mark.state == "writing" and not consent.beforehand(name)
    if used or marked_by_host or not status.st_size:
        return TargetFinding(name, in_use=used, needs_consent=doubts)
    seal = consent.left.files.get((status.st_dev, status.st_ino))
    flaw = None
    try:
        if mark is not None or seal is not None:
            with BlockReader(path) as reader:
                flaw = mark.flaw(reader) if mark is not None else seal.flaw(reader) if seal else None
            if flaw is None:
                return TargetFinding(name, needs_consent=doubts)
    except OSError as error:
        flaw = say("refusals.target.mark", reason=error.strerror)
    if consent.beforehand(name):
        return TargetFinding(name, needs_consent=[say("refusals.target.consented")])
    if not content and (mark is None or mark.laid_out):  # Else it may be cut although it is only read.
        return TargetFinding(name, needs_consent=doubts, unseen=True)
    evidence = content_evidence.evidence(path, _telling(consent, name))
    if evidence:
        key = "refusals.target.foreign_file" if mark is None else "refusals.target.shared_file"
        evidence.insert(0, say(key, size_bytes=status.st_size))
    if evidence and flaw is not None:
        evidence.insert(1, flaw)
    return TargetFinding(name, needs_consent=doubts + evidence)


def _doubts(path: Path, *, hidden: bool = False) -> list[str]:
    """Return why nobody knows whether it may be written. `hidden`: who uses it is not to be seen."""
    doubt = writable.doubtful(path)
    doubts = [] if doubt is None else [doubt]
    return [*doubts, say("refusals.target.hidden_use")] if hidden else doubts


def _telling(consent: Consent, path: str) -> Callable[[float], None] | None:
    tell = consent.tell
    return None if tell is None else lambda share: tell(path, share)


def _examine_tree(name: str, anchor: Path, host: Snapshot, consent: Consent) -> TargetFinding:
    """Look at a tree that would be changed: one that nobody marked may hold anything."""

    def named(names: Sequence[str]) -> list[str]:
        return [one.replace(str(anchor), name) for one in names]

    try:
        tree = look_below(anchor)
        if not tree.exists:
            return TargetFinding(name, needs_consent=_doubts(anchor))
        walked = tree_mark.look(anchor, known=consent.left.trees)
    except OSError as error:
        return TargetFinding(name, in_use=[say("refusals.target.unreadable", reason=error.strerror)])
    would_lose = not tree.is_empty and walked.changed is not None
    if used := in_use.tree_uses(anchor, host) or (would_lose and in_use.tree_readers(anchor, host)):
        return TargetFinding(name, in_use=named(used))
    if walked.unfit:
        return TargetFinding(name, forbidden=named(walked.unfit))
    lost = [say("refusals.target.tree_mark", path=path) for path in tree_mark.name_sharers(anchor)]
    if not would_lose:
        doubts = _doubts(anchor, hidden=in_use.is_use_hidden_below(anchor))
        return TargetFinding(name, needs_consent=doubts + named(lost))
    key = "refusals.target.tree_files" if tree.has_files else "refusals.target.tree_directories"
    return TargetFinding(name, needs_consent=named([say(key, change=walked.changed), *lost]))


def identified(target: Target, seen: Seen | None, *, written: bool) -> Target:
    """Note what stood at a target's path when it was looked at: the engine opens nothing else."""
    if seen is None or not _is_real(target):
        return target
    exclusive = target.exclusive or (written and (seen.is_device or target.kind is TargetKind.NVME))
    update: dict[str, object] = {"identity": seen.identity, "exclusive": exclusive}
    if target.kind is TargetKind.NVME:
        block = nvme.namesake(seen.identity.special)
        update["namesake"] = None if block is None else namesake_of(block)
    return target.model_copy(update=update)


def _is_real(target: Target) -> bool:
    return target.kind is not TargetKind.VIRTUAL


def refuse_changed(changed: Mapping[str, str], places: Mapping[str, Where] | None = None) -> None:
    """Raise `RefusedError` for paths of which something is told."""
    reasons = {path: [difference] for path, difference in changed.items()}
    refuse(say("refusals.changed.refusal"), reasons, say("refusals.changed.hint"), places)


def refuse(
    refusal: str,
    reasons: Mapping[str, list[str]],
    hint: str | None,
    places: Mapping[str, Where] | None = None,
    more: str = "",
) -> None:
    """Raise `RefusedError` for the paths that have reasons, with where they were named."""
    if reasons:
        places = {path: where for path, where in (places or {}).items() if path in reasons}
        one = len(set(places.values())) == 1 and len(places) == len(reasons)
        listed = _listing(reasons, {} if one else places)
        where = next(iter(places.values())) if one else None
        raise RefusedError(refusal + listed + more, where=where, hint=hint)


def _listing(evidence: Mapping[str, list[str]], places: Mapping[str, Where]) -> str:
    named = {path: f"{path} ({places[path]})" if path in places else path for path in evidence}
    return "".join(f"\n  {named[path]}: {reason}" for path, reasons in evidence.items() for reason in reasons)
