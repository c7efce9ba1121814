"""The targets of a Plan: each path once per way of opening it, and how it is prepared.

Knows how the needs of several jobs on one path add up. Knows no stream and no worker; of a tree
its anchor is the target, which says itself what is done to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan import model as plan
from loadstone.plan.host_facts import DEVICES
from loadstone.plan.model import TargetKind
from loadstone.plan.pattern import is_random, shares

if TYPE_CHECKING:
    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.host_facts import TargetFacts
    from loadstone.plan.planning_notes import Notes
    from loadstone.plan.special_engines import Name
    from loadstone.plan.tree_anchor import Anchor
    from loadstone.workload.model import Job

_LAYOUT_SEED: Final = 0x4C6F_6164


@dataclass(slots=True)
class _Draft:
    """A target while jobs still add to it."""

    path: str
    facts: TargetFacts
    direct: bool
    sync: plan.OpenSync
    advice: plan.Advice | None
    end_bytes: int = 0
    written: bool = False
    trimmed: bool = False
    needs_data: bool = False
    fallocate: plan.Fallocate = plan.Fallocate.NATIVE
    fsync: bool = False
    invalidate: bool = False
    unlink: bool = False
    empty: bool = True
    """Not laid out: whoever uses it wants it created only."""
    may_create: bool = True
    name: Name | None = None
    """Its name is what is used of it."""

    @property
    def grows(self) -> bool:
        """Whether the file is shorter than what is used of it."""
        return (
            self.facts.kind is TargetKind.FILE and not self.empty and self.end_bytes > self.facts.size_bytes
        )

    @property
    def missing_bytes(self) -> int:
        """Bytes to lay out before the run."""
        return self.end_bytes - self.facts.size_bytes if self.grows else 0

    def target(self) -> plan.Target:
        """Return it as a target of the Plan."""
        facts = self.facts
        opened = self.name is None
        layout = None
        if self.grows and (opened or self.needs_data or self.fallocate is not plan.Fallocate.NONE):
            layout = plan.Layout(
                size_bytes=self.end_bytes,
                truncate=False,
                fallocate=self.fallocate,
                write=self.needs_data,
                fsync=self.fsync or self.needs_data,
                seed=_LAYOUT_SEED,
            )
        return plan.Target(
            path=self.path,
            kind=facts.kind,
            size_bytes=facts.size_bytes if facts.is_device else max(self.end_bytes, facts.size_bytes),
            direct=self.direct,
            read_only=opened and not (self.written or self.trimmed),
            create=(
                facts.kind is TargetKind.FILE
                and not facts.exists
                and self.may_create
                and (self.name is None or self.name.named is plan.Named.FILE)
            ),
            sync=self.sync,
            exclusive=False,
            identity=facts.identity,
            layout=layout,
            invalidate=opened and self.invalidate and facts.kind in (TargetKind.FILE, TargetKind.BLOCK),
            advice=self.advice,
            unlink=self.unlink and facts.kind is TargetKind.FILE,
            namesake=facts.namesake,
            named=None if self.name is None else self.name.named,
        )


class Targets:
    """Collects targets; indexes are those of `Plan.targets`."""

    def __init__(self) -> None:
        self._drafts: list[_Draft | Anchor] = []
        self._index: dict[tuple[str, bool, str, str | None, Name | None], tuple[int, _Draft]] = {}

    def use(self, job: Job, part: FileRange, notes: Notes) -> int:
        """Add a job's use of a file and return the target's index."""
        kind = part.facts.kind
        direct = kind is TargetKind.NVME or (bool(job.engine.direct) and kind is not TargetKind.VIRTUAL)
        sync = plan.OpenSync(job.durability.sync or "none")
        advice = None if part.name else _advice(job, part.facts.kind)
        direct = direct and part.name is None
        key = (part.path, direct, sync.value, advice.value if advice else None, part.name)
        if key not in self._index:
            self._index[key] = len(self._drafts), _Draft(part.path, part.facts, direct, sync, advice)
            self._drafts.append(self._index[key][1])
        index, draft = self._index[key]
        self._add(draft, job, part, notes)
        return index

    def _add(self, draft: _Draft, job: Job, part: FileRange, notes: Notes) -> None:
        reads, writes, trims = shares(job)
        draft.end_bytes = max(draft.end_bytes, part.end_bytes)
        if part.name is not None:
            draft.name = part.name
            draft.end_bytes = max(draft.end_bytes, part.name.size_bytes)
            draft.empty = part.name.named is not plan.Named.FILE
        draft.written |= (writes > 0 or job.engine.ioengine == "falloc") and part.name is None
        draft.trimmed |= trims > 0
        draft.needs_data |= reads > 0 or bool(job.files.overwrite) or job.engine.ioengine == "mmap"
        draft.fallocate = plan.Fallocate(job.files.fallocate or draft.fallocate.value)
        draft.fsync |= bool(job.files.create_fsync)
        draft.invalidate |= job.files.invalidate is not False
        draft.unlink |= bool(job.files.unlink)
        draft.empty &= bool(job.files.create_on_open) or part.name is not None
        draft.may_create &= job.files.allow_file_create is not False
        facts = part.facts
        if reads and facts.allocated_bytes is not None and facts.allocated_bytes < facts.size_bytes:
            notes.trap(
                job,
                "placement.targets",
                say(
                    "plan.notes.holes",
                    path=part.path,
                    allocated=facts.allocated_bytes,
                    size=facts.size_bytes,
                ),
            )

    def add_anchor(self, anchor: Anchor) -> int:
        """Add the anchor of a tree and return the target's index."""
        self._drafts.append(anchor)
        return len(self._drafts) - 1

    def finish(self) -> tuple[plan.Target, ...]:
        """Return the targets of the Plan; who changes a device first has it alone."""
        claimed: set[str] = set()
        result = []
        for target in (draft.target() for draft in self._drafts):
            exclusive = target.kind in DEVICES and not target.read_only and target.path not in claimed
            if exclusive:
                claimed.add(target.path)
            result.append(target.model_copy(update={"exclusive": exclusive}))
        return tuple(result)


def _advice(job: Job, kind: TargetKind) -> plan.Advice | None:
    """Advice for the page cache, by the pattern unless another is given; direct I/O has none."""
    wanted = job.files.fadvise or "pattern"
    if job.engine.direct or wanted == "none" or kind not in (TargetKind.FILE, TargetKind.BLOCK):
        return None
    if wanted == "pattern":
        wanted = "random" if is_random(job) else "sequential"
    return plan.Advice(wanted)
