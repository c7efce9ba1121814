"""The targets of a Plan: each path once per way of opening it, and how it is prepared.

Knows how the needs of several jobs on one path add up. Knows no stream and no worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.plan import model as plan
from loadstone.plan.model import TargetKind
from loadstone.plan.pattern import is_random, shares

if TYPE_CHECKING:
    from loadstone.errors import Where
    from loadstone.plan.files import FileRange
    from loadstone.plan.host import TargetFacts
    from loadstone.plan.notes import Notes
    from loadstone.plan.special_engines import Name
    from loadstone.workload.model import Job


@dataclass(frozen=True, slots=True)
class TargetUse:
    """What a run does to one path that changes it."""

    path: str
    kind: TargetKind
    exists: bool
    identity: plan.Identity | None
    writes: bool
    trims: bool
    lays_out_bytes: int
    """Bytes written or allocated before the run, beyond what exists."""
    unlinks: bool
    jobs: tuple[tuple[str, Where], ...]
    """Names of the sections that ask for it, and where."""


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
    jobs: list[tuple[str, Where]] = field(default_factory=list)

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


class Targets:
    """Collects targets; indexes are those of `Plan.targets`."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._index: dict[tuple[str, bool, str, str | None, Name | None], int] = {}

    def use(self, job: Job, part: FileRange, notes: Notes) -> int:
        """Add a job's use of a file and return the target's index."""
        kind = part.facts.kind
        direct = kind is TargetKind.NVME or (bool(job.engine.direct) and kind is not TargetKind.VIRTUAL)
        sync = plan.OpenSync(job.durability.sync or "none")
        advice = None if part.name else _advice(job, part.facts.kind)
        direct = direct and part.name is None
        key = (part.path, direct, sync.value, advice.value if advice else None, part.name)
        if key not in self._index:
            self._index[key] = len(self._drafts)
            self._drafts.append(_Draft(part.path, part.facts, direct, sync, advice))
        draft = self._drafts[self._index[key]]
        self._add(draft, job, part, notes)
        return self._index[key]

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
        if (job.name, job.where) not in draft.jobs:
            draft.jobs.append((job.name, job.where))
        facts = part.facts
        if reads and facts.allocated_bytes is not None and facts.allocated_bytes < facts.size_bytes:
            notes.trap(
                job,
                "placement.targets",
                f"{part.path} has holes ({facts.allocated_bytes} of {facts.size_bytes} bytes are there): "
                "reading them costs next to nothing and measures nothing",
            )

    def finish(self, seed: int) -> tuple[plan.Target, ...]:
        """Return the targets of the Plan."""
        claimed: set[str] = set()
        result = []
        for draft in self._drafts:
            changes = draft.written or draft.trimmed
            exclusive = changes and draft.facts.is_device and draft.path not in claimed
            if exclusive:
                claimed.add(draft.path)
            result.append(_target(draft, exclusive=exclusive, seed=seed))
        return tuple(result)

    def writes(self) -> tuple[TargetUse, ...]:
        """Return what is changed, one entry per path."""
        by_path: dict[str, list[_Draft]] = {}
        for draft in self._drafts:
            if draft.facts.kind is not TargetKind.VIRTUAL:
                by_path.setdefault(draft.path, []).append(draft)
        uses = []
        for path, drafts in by_path.items():
            use = TargetUse(
                path=path,
                kind=drafts[0].facts.kind,
                exists=drafts[0].facts.exists,
                identity=drafts[0].facts.identity,
                writes=any(d.written for d in drafts),
                trims=any(d.trimmed for d in drafts),
                lays_out_bytes=max(d.missing_bytes for d in drafts),
                unlinks=any(d.unlink or (d.name is not None and d.name.removed) for d in drafts),
                jobs=tuple(dict.fromkeys(job for d in drafts for job in d.jobs)),
            )
            if use.writes or use.trims or use.lays_out_bytes or use.unlinks or not use.exists:
                uses.append(use)
        return tuple(uses)

    def growth_bytes(self) -> int:
        """Bytes that files grow by before the run."""
        grown: dict[str, int] = {}
        for draft in self._drafts:
            grown[draft.path] = max(grown.get(draft.path, 0), draft.missing_bytes)
        return sum(grown.values())


def _advice(job: Job, kind: TargetKind) -> plan.Advice | None:
    """Advice for the page cache, as fio gives it by default; direct I/O has none."""
    wanted = job.files.fadvise or "pattern"
    if job.engine.direct or wanted == "none" or kind not in (TargetKind.FILE, TargetKind.BLOCK):
        return None
    if wanted == "pattern":
        wanted = "random" if is_random(job) else "sequential"
    return plan.Advice(wanted)


def _target(draft: _Draft, *, exclusive: bool, seed: int) -> plan.Target:
    facts = draft.facts
    opened = draft.name is None
    layout = None
    if draft.grows and (opened or draft.needs_data or draft.fallocate is not plan.Fallocate.NONE):
        layout = plan.Layout(
            size_bytes=draft.end_bytes,
            truncate=False,
            fallocate=draft.fallocate,
            write=draft.needs_data,
            fsync=draft.fsync or draft.needs_data,
            seed=seed,
        )
    return plan.Target(
        path=draft.path,
        kind=facts.kind,
        size_bytes=facts.size_bytes if facts.is_device else max(draft.end_bytes, facts.size_bytes),
        direct=draft.direct,
        read_only=opened and not (draft.written or draft.trimmed),
        create=(
            facts.kind is TargetKind.FILE
            and not facts.exists
            and draft.may_create
            and (draft.name is None or draft.name.named is plan.Named.FILE)
        ),
        sync=draft.sync,
        exclusive=exclusive,
        identity=facts.identity,
        layout=layout,
        invalidate=opened and draft.invalidate and facts.kind in (TargetKind.FILE, TargetKind.BLOCK),
        advice=draft.advice,
        unlink=draft.unlink and facts.kind is TargetKind.FILE,
        namesake=facts.namesake,
        named=None if draft.name is None else draft.name.named,
    )
