"""The Workload: what was asked, before anything is resolved against a host.

Knows jobs in the field's words, where each value was written and what was said about it
on the way. A language is lowered into it and gone: what its words mean together is settled.
Knows no job-file syntax, no device and no file on disk.
Units stand last in the names: `_ns` nanoseconds, `_bytes` bytes, `_hz` per second.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from pydantic import Field

from loadstone import units
from loadstone.errors import InputError, RefusedError, Where
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error, say
from loadstone.workload.addresses import SeedRequests
from loadstone.workload.blocks import BlockWork
from loadstone.workload.engine_choice import Durability, EngineChoice
from loadstone.workload.job_parts import (
    DepthTarget,
    ErrorRequests,
    HeaderRequests,
    JobLimits,
    JobSchedule,
    PaceRequests,
    PriorityRequests,
    ProcessRequests,
    Recording,
    SteadyRequest,
    VerificationRequests,
)
from loadstone.workload.missing_target import refuse_missing_target
from loadstone.workload.output_requests import OutputRequests
from loadstone.workload.payload import PayloadRequests
from loadstone.workload.placement import Amount, FilePreparation, HostPlace, Placement, TargetName
from loadstone.workload.rows import RowWork
from loadstone.workload.trees import TreeWork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Model = TypeVar("_Model", bound=FrozenModel)
Work = Annotated[BlockWork | RowWork | TreeWork, Field(discriminator="kind")]
"""What kind of work a job does. The replay of a trace would be another."""
_OF_BLOCKS: Final = ("mix", "sizes", "addresses")
NoteKind = Literal["harmless", "trap", "changed", "info"]


class Note(FrozenModel):
    """Something the user should know that is not an error.

    `harmless`: an option that changes nothing here. `trap`: another tool would have read
    it differently. `changed`: done another way than written. `info`: the rest.
    """

    where: Where | None
    text: str
    kind: NoteKind


class Job(FrozenModel):
    """One part of the load: what it does, in typed parts."""

    name: str
    where: Where
    section: str = ""
    """What files made for the job are called after; empty: its name."""
    set_at: dict[str, Where] = Field(default_factory=dict)
    """Field by its parts (`limits.runtime_ns`) to where its value was written."""
    vocabulary: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    """What the language the job was written in calls a field, or one with a value (`engine.direct=0`)."""
    own_options: dict[str, str] = Field(default_factory=dict)
    """The options of the job's own section, as text, by their canonical names."""

    work: Work
    hosts: tuple[HostPlace, ...] = ()
    """Of a job file for several hosts: those that do the job together, each its part of depth and rate.
    Empty: every host of the run does all of it."""
    seeds: SeedRequests = SeedRequests()
    placement: Placement = Placement()
    files: FilePreparation = FilePreparation()
    engine: EngineChoice = EngineChoice()
    durability: Durability = Durability()
    schedule: JobSchedule = JobSchedule()
    limits: JobLimits = JobLimits()
    pacing: PaceRequests = PaceRequests()
    search: DepthTarget = DepthTarget()
    steady: SteadyRequest = SteadyRequest()
    payload: PayloadRequests = PayloadRequests()
    verification: VerificationRequests = VerificationRequests()
    headers: HeaderRequests = HeaderRequests()
    process: ProcessRequests = ProcessRequests()
    priorities: PriorityRequests = PriorityRequests()
    errors: ErrorRequests = ErrorRequests()
    recording: Recording = Recording()
    outputs: OutputRequests = OutputRequests()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Job:
        """Make a job of values by the names of their fields (`limits.runtime_ns`).

        Those of a mix, of sizes and of addresses are its blocks', or those of the tree in `work`.
        """
        fields: dict[str, Any] = {}
        for field, value in values.items():
            *parts, last = field.split(".")
            inner = fields
            for part in parts:
                inner = inner.setdefault(part, {})
            inner[last] = value
        blocks = {part: fields.pop(part) for part in _OF_BLOCKS if part in fields}
        if "work" not in fields:
            fields["work"] = {"kind": "blocks", **blocks}
        elif blocks:
            fields["work"] = {**fields["work"], "transfers": blocks}
        return cls(**fields)

    def changed(self, values: Mapping[str, Any]) -> Job:
        """Return the job with other values, by the names of their fields (`limits.runtime_ns`)."""
        return _changed(self, {self._place(field): value for field, value in values.items()})

    def value(self, field: str) -> Any:
        """Return a value by the name of its field (`limits.runtime_ns`)."""
        return attrgetter(self._place(field))(self)

    def _place(self, field: str) -> str:
        if field.partition(".")[0] not in _OF_BLOCKS:
            return field
        return f"work.transfers.{field}" if isinstance(self.work, TreeWork) else f"work.{field}"

    @property
    def blocks(self) -> BlockWork | None:
        """Its reads, writes and trims, or those in the files of its tree; None where rows say them."""
        return self.work.blocks

    @property
    def tree(self) -> TreeWork | None:
        """What it does in its tree; None where it works in none."""
        return self.work if isinstance(self.work, TreeWork) else None

    @property
    def stem(self) -> str:
        """What files made for the job are called after."""
        return self.section or self.name

    def option(self, field: str) -> str:
        """Name a field as the job's language does, as it was written, or else as it is called here."""
        written = self.set_at.get(field)
        name = self.vocabulary.get(field) or (written.option if written is not None else None)
        return name or field.rpartition(".")[2].removesuffix("_ns").removesuffix("_bytes")

    def setting(self, field: str, value: str | int) -> str:
        """Write a field with a value as the job's language does."""
        return self.vocabulary.get(f"{field}={value}", f"{self.option(field)}={value}")

    def at(self, field: str) -> Where:
        """Where a field was written, or the job's section when it was not."""
        return self.set_at.get(field, self.where)

    def error(
        self, key: str, field: str, /, *, hint: str | None = None, **values: str | int | None
    ) -> InputError:
        """Return an error in a field, with a message of the catalogue."""
        return make_error(InputError, key, where=self.at(field), hint=hint, **values)

    def refusal(
        self, key: str, field: str, /, *, hint: str | None = None, **values: str | int | None
    ) -> RefusedError:
        """Return why a field is refused, with a message of the catalogue."""
        return make_error(RefusedError, key, where=self.at(field), hint=hint, **values)


class Workload(FrozenModel):
    """Everything asked for in one run."""

    name: str
    jobs: tuple[Job, ...]
    notes: tuple[Note, ...] = ()
    missing_targets: Literal["refused", "files"] = "refused"
    """A job without a target beside others that name devices: refused, or it has files of its own name."""
    clone_order: Literal["ascending", "descending_after_first"] = "ascending"
    """In which order the clones of a job are numbered."""
    needs_targets: bool = False
    """The jobs name no target of their own: `with_targets` must be used."""
    job_per_target: bool = False
    """`with_targets` makes one job for each target, not one job on all of them."""
    hand_over: bool = False
    """What is known of verified blocks goes from one run of a study to the next."""
    global_options: dict[str, str] = Field(default_factory=dict)
    """Options of the default sections, as text; where they differ the last."""
    sources: dict[str, bytes] = Field(default={}, exclude=True)
    """Path (or `<command line>`) to what was read there, byte for byte."""

    def map_targets(self, mapping: Mapping[str, str]) -> Workload:
        """Replace targets by name. Raises InputError for an old name that occurs nowhere."""
        jobs = []
        for job in self.jobs:
            targets = tuple(
                TargetName(path=mapping.get(target.path, target.path), written=target.written)
                for target in job.placement.targets
            )
            if not targets and job.stem in mapping:
                targets = (TargetName(path=mapping[job.stem], written=job.stem),)
            jobs.append(job.changed({"placement.targets": targets}))
        names = {
            name for job in self.jobs for name in (*(t.path for t in job.placement.targets), *_own_name(job))
        }
        for old in mapping:
            if old not in names:
                if self.missing_targets == "refused":
                    # The name may be missing because a section forgot it: say that first.
                    refuse_missing_target(jobs)
                hint = say("workload.target.no_file")
                if names:
                    hint = say("workload.target.in_use", names=", ".join(sorted(names)))
                raise make_error(InputError, "workload.target.not_used", hint=hint, name=repr(old))
        return self._with(jobs, ", ".join(f"{old} is {new}" for old, new in mapping.items()))

    def with_targets(self, paths: Sequence[str]) -> Workload:
        """Let every job use these targets instead of its own. Raises InputError without effect."""
        if not paths:
            raise make_error(InputError, "workload.target.none")
        if len(set(paths)) != len(paths):
            raise make_error(InputError, "workload.target.twice")
        if all(job.engine.ioengine == "null" for job in self.jobs):
            raise make_error(InputError, "workload.target.no_effect")
        targets = tuple(TargetName(path=path, written=path) for path in paths)
        update: dict[str, object] = {
            "placement.directories": (),
            "placement.filename_format": None,
            "placement.nrfiles": None,
        }
        jobs = []
        for job in self.jobs:
            if not self.job_per_target:
                jobs.append(job.changed({**update, "placement.targets": targets}))
                continue
            for number, target in enumerate(targets, start=1):
                name = job.name if len(targets) == 1 else f"{job.name}-{number}"
                wall = job.schedule.stonewall if number == 1 else None
                jobs.append(
                    job.changed(
                        {**update, "name": name, "placement.targets": (target,), "schedule.stonewall": wall}
                    )
                )
        return self._with(jobs, say("workload.change.targets", targets=", ".join(paths)))

    def with_runtime(self, runtime_ns: int) -> Workload:
        """Let every job run this long at most. Nanoseconds, above 0."""
        if runtime_ns <= 0:
            raise make_error(InputError, "workload.change.runtime")
        jobs = [job.changed({"limits.runtime_ns": runtime_ns}) for job in self.jobs]
        return self._with(jobs, say("workload.change.runs_at_most", runtime=f"{runtime_ns / 1e9:g}"))

    def with_size(self, size: Amount, *, io_size_stays: bool = False) -> Workload:
        """Let every job use this much of its targets. Raises InputError where it has no effect.

        It moves as much, too, whatever it was to move before, but for `io_size_stays`.
        """
        if not (size.bytes or size.percent):
            raise make_error(InputError, "workload.change.size")
        for job in self.jobs:
            if job.placement.filesize_bytes is not None:
                raise make_error(
                    InputError,
                    "workload.change.filesize",
                    where=job.at("placement.filesize_bytes"),
                    name=job.name,
                )
        changes: dict[str, Any] = {"placement.size": size}
        if not io_size_stays:
            changes["limits.io_size"] = None
        jobs = [job.changed(changes) for job in self.jobs]
        amount = f"{size.percent:g}%" if size.percent is not None else units.size(size.bytes)
        return self._with(jobs, say("workload.change.uses", amount=amount))

    def _with(self, jobs: Sequence[Job], change: str) -> Workload:
        note = Note(where=None, text=say("workload.change.note", change=change), kind="changed")
        return self.model_copy(update={"jobs": tuple(jobs), "notes": (*self.notes, note)})


def _own_name(job: Job) -> tuple[str, ...]:
    """Return the job's name where it may be its target: a path, and no other target given."""
    return (job.stem,) if not job.placement.targets and "/" in job.stem else ()


def _changed(model: _Model, values: Mapping[str, Any]) -> _Model:
    """Return a model with other values, which are validated as those it was made of."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for field, value in values.items():
        part, dot, rest = field.partition(".")
        if dot:
            inner.setdefault(part, {})[rest] = value
        else:
            own[part] = value
    own |= {part: _changed(getattr(model, part), changes) for part, changes in inner.items()}
    return type(model).model_validate(dict(model) | own)
