"""The runs of a study once more: the same Plans in the same order, whoever decided on them then.

Knows how a bundle of a study becomes a run of another. Resolves nothing and decides nothing:
the loads of a curve are those that were found then, and pauses between runs are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loadstone.bundle import members
from loadstone.bundle import study as on_disk
from loadstone.errors import BundleError
from loadstone.messages import make_error
from loadstone.path.spec import Spec
from loadstone.study.controller import Next
from loadstone.workload.model import Note, Workload

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.bundle.hosts import HostsRecord
    from loadstone.bundle.read import Bundle
    from loadstone.bundle.study import Point, StudyRecord
    from loadstone.plan.model import Plan


@dataclass(frozen=True, slots=True)
class PlanAsRun:
    """A Plan as it ran, in place of one that is resolved."""

    plan: Plan
    notes: tuple[Note, ...]
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What one host did in a run on several."""

    workload: Workload
    plan: Plan


@dataclass(frozen=True, slots=True)
class HostPlans:
    """What each host did in a run on several, by its name."""

    of: dict[str, HostPlan]
    missing: tuple[str, ...]
    """Hosts whose bundles did not come: nobody knows their Plans."""
    own_parts: frozenset[tuple[str, str]]
    """Host and path of targets that were divided: each Plan has a part of its own there."""

    @property
    def names(self) -> tuple[str, ...]:
        """All hosts that took part."""
        return (*self.of, *self.missing)


@dataclass(frozen=True, slots=True)
class StudyRerun:
    """A study to be done again. `left_out`: runs that never began."""

    study: StudyRecord
    inputs: dict[str, bytes]
    spec: Spec | None
    nexts: tuple[Next, ...]
    settled: dict[str, PlanAsRun]
    """By the run's name."""
    of_hosts: dict[str, HostPlans]
    """By the run's name; empty where the study was on one host."""
    left_out: int
    doubt: str | None
    """Why this may not be what ran, in words."""
    commands: bool
    """Whether jobs had commands of their own, which are not run again."""


def read(path: Path, *, unverified: bool = False) -> StudyRerun:
    """Read all runs that a study got to; raises `BundleError` when there is none."""
    opened = on_disk.open_all(path, unverified=unverified)
    study = opened.study
    bundles = [(point, opened.bundles[point.name]) for point in study.points if point.name in opened.bundles]
    if not bundles:
        raise make_error(BundleError, "study.again", path=str(path))
    workloads = [bundle.workload for _, bundle in bundles]
    sheet = bundles[0][1].environment.get("spec")
    return StudyRerun(
        study=study,
        inputs={name: members.content(path, file) for name, file in study.inputs.items()},
        spec=None if sheet is None else Spec.model_validate(sheet),
        nexts=tuple(_next(point, workload) for (point, _), workload in zip(bundles, workloads, strict=True)),
        settled={
            point.name: PlanAsRun(forget_identities(bundle.plan), tuple(map(_note, bundle.notes)))
            for point, bundle in bundles
        },
        of_hosts={
            point.name: plans_of_hosts(bundle, bundle.hosts)
            for point, bundle in bundles
            if bundle.hosts is not None
        },
        left_out=len(study.points) - len(bundles),
        doubt=next((bundle.doubt for _, bundle in bundles if bundle.doubt), None),
        commands=any(
            job.process.exec_prerun or job.process.exec_postrun for one in workloads for job in one.jobs
        ),
    )


def forget_identities(plan: Plan) -> Plan:
    """Return the Plan without what the old safety check saw: inode and device numbers change."""
    targets = tuple(target.model_copy(update={"identity": None}) for target in plan.targets)
    return plan.model_copy(update={"targets": targets})


def plans_of_hosts(bundle: Bundle, record: HostsRecord) -> HostPlans:
    """Return what each host did in a run on several. Raises `BundleError`."""
    own = {
        part.name: type(bundle).open(bundle.path / part.bundle, unverified=True)
        for part in record.hosts
        if part.bundle is not None
    }
    return HostPlans(
        {name: HostPlan(one.workload, forget_identities(one.plan)) for name, one in own.items()},
        tuple(part.name for part in record.hosts if part.bundle is None),
        frozenset(place for one in record.shared if one.divided for place in one.paths.items()),
    )


def _note(recorded: dict[str, Any] | str) -> Note:
    """Return a note of a bundle, which may be words alone or name no kind and place that is known."""
    try:
        return Note.model_validate(recorded)
    except ValidationError:
        text = recorded if isinstance(recorded, str) else str(recorded["text"])
        return Note(where=None, text=text, kind="info")


def _next(point: Point, workload: Workload) -> Next:
    # Commands need a permission that was given for another run.
    jobs = tuple(
        job.changed({"process.exec_prerun": None, "process.exec_postrun": None}) for job in workload.jobs
    )
    return Next(point.name, workload.model_copy(update={"jobs": jobs}), dict(point.factors), point.role)
