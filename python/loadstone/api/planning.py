"""What jobs would do: read, changed and resolved; nothing runs and nothing is touched.

Knows what stands against a run. What a Plan and a list of runs look like is told by `jobs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from loadstone.api.jobs import exec_commands, plan_lines, read_runs, run_list, schedulers
from loadstone.api.jobs.job_changes import JobArguments, JobChanges, job_of
from loadstone.api.jobs.read_workload import resolution, workload
from loadstone.api.jobs.spec_option import DataSheet
from loadstone.api.one_run import consent_of
from loadstone.api.studies.lists import prepare_list
from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import InputError, RefusedError
from loadstone.messages import make_error, say
from loadstone.path.child import run_in_child
from loadstone.plan import tree_jobs
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.derived import asked_operations, changes_trees, targets_of
from loadstone.plan.safety import guard
from loadstone.plan.safety.in_use import Snapshot
from loadstone.study.run_maker import check_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.jobs.job_changes import Job
    from loadstone.api.jobs.run_list import RunList
    from loadstone.errors import LoadstoneError
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.plan.safety.guard import Consent
    from loadstone.workload.model import Workload

FORMAT: Final = 1
"""Of `PlannedRuns.document`."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why something would not be done, or only with consent."""

    what: str
    """The path of a target, or the name of a run."""
    why: str
    needs_consent: bool = False
    """It is done where the path is accepted; otherwise it is refused."""


class PlannedJob:
    """What a job would do: its Plan, with every default resolved against this host."""

    def __init__(self, work: Workload, resolved: Resolution) -> None:
        self.asked, self.resolved = work, resolved

    @property
    def memory_bytes(self) -> int:
        """How much memory the engine would hold."""
        return memory_bytes(self.resolved.plan)

    def check(self) -> None:
        """Raise `InputError` where the engine would refuse the Plan; nothing is touched."""
        memory_bytes(self.resolved.plan)

    @property
    def notes(self) -> list[str]:
        """What is to be said of it."""
        return [note.text for note in self.resolved.notes]

    @property
    def targets(self) -> list[Path]:
        """Files and devices it would use."""
        return [Path(target.path) for target in self.resolved.plan.targets]

    @property
    def written_targets(self) -> list[str]:
        """Paths of the targets it would write."""
        plan = self.resolved.plan
        paths = {
            plan.targets[index].path: None
            for stream in plan.streams
            if "write" in asked_operations(stream)
            for index in targets_of(plan, stream)
        }
        return list(paths)

    @property
    def lines(self) -> list[str]:
        """The Plan for people: a line for each target, and for each phase its jobs."""
        return list(plan_lines.lines(self.resolved.plan))

    @cached_property
    def obstacles(self) -> list[Obstacle]:
        """Targets that would not be written, or only with consent; looks at what they hold."""
        return obstacles_of(self.resolved.plan, set())

    def refusal(self, accept_data_loss: Sequence[Path | str] | Consent = ()) -> LoadstoneError | None:
        """Return what `run` would raise with this consent before anything runs; None: it would run."""
        try:
            consent, plan = consent_of(accept_data_loss), self.resolved.plan
            self.check()
            guard.check_consent(consent, [plan])
            schedulers.check(self.asked, plan)
            check_targets([plan], consent.placed(target_places(plan, self.asked)), only_told=True)
        except (InputError, RefusedError) as error:
            return error
        return None

    def document(self) -> dict[str, Any]:
        """Return the Plan, as `loadstone plan --json` prints it."""
        return self.resolved.plan.model_dump(mode="json")

    def probes(self, seconds: float) -> dict[str, Any]:
        """Return which probes would follow the run within so many seconds, and what each would write."""
        from loadstone.probe.forecast import forecast

        return forecast(self.resolved.plan, self.asked.jobs, seconds)


class PlannedRuns:
    """What a job file of several runs, or several job files, would do."""

    def __init__(self, planned_list: RunList, changes: JobChanges) -> None:
        self.found, self._changes = planned_list, changes

    @property
    def name(self) -> str:
        """What they are called together."""
        return self.found.name

    @property
    def notes(self) -> list[str]:
        """What is to be said of them."""
        return [note.text for note in self.found.notes]

    @property
    def lines(self) -> list[str]:
        """A line for each run, in the language's own words."""
        return self.found.lines

    @cached_property
    def obstacles(self) -> list[Obstacle]:
        """Runs that would be refused, and targets that would not be written, or only with consent."""
        if self.found.refused:
            return [Obstacle(name, why) for name, why in self.found.refused.items()]
        obstacles: list[Obstacle] = []
        prepared = False
        looked_at: set[str] = set()
        for wanted in self.found.made().known():
            changes = run_list.changes_of(wanted, self._changes, self.found)
            try:
                exec_commands.check(wanted.workload)
                plan = resolution(wanted.workload, changes).plan
            except (InputError, RefusedError) as error:
                if prepared:  # What an earlier run makes is not there yet.
                    obstacles += _tree_obstacles(wanted.workload, changes, looked_at)
                else:
                    obstacles.append(Obstacle(wanted.name, str(error)))
            else:
                prepared = prepared or changes_trees(plan)
                obstacles += obstacles_of(plan, looked_at)
            prepared = prepared or wanted.role == "prepare"
        return obstacles

    def refusal(self, accept_data_loss: Sequence[Path | str] | Consent = ()) -> LoadstoneError | None:
        """Return what `run` would raise with this consent before the first run; None: it would run."""
        try:
            prepared = prepare_list(
                self.found, self._changes, repeat=None, vdbench_output=None, sheet=DataSheet(), request={}
            )
        except (InputError, RefusedError) as error:
            return error
        return prepared.refusal(consent_of(accept_data_loss))

    def document(self) -> dict[str, Any]:
        """Return the runs with their values, as `loadstone plan --json` prints them."""
        return {
            "format": FORMAT,
            "language": str(self.found.language),
            "name": self.found.name,
            "runs": self.found.listing,
        }


def plan_job(job: Path | str, **changes: Unpack[JobArguments]) -> PlannedJob:
    """Return what `run` would do with the same arguments; touch nothing. Raises what `run` would."""
    return planned_job(job_of(job), JobChanges.of(changes))


def plan_runs(job: Path | str, *more: Path | str, **changes: Unpack[JobArguments]) -> PlannedRuns:
    """Return what job files of several runs, or several job files, would do; touch nothing.

    `more` are job files that go on with the first, or are runs of their own. Raises `InputError` or
    `RefusedError` for what cannot be read or would not be done.
    """
    plan = planned(job_of(job), JobChanges.of(changes), [job_of(one) for one in more])
    if isinstance(plan, PlannedJob):
        raise make_error(InputError, "api.plan.one_run", job=job)
    return plan


def planned(job: Job, changes: JobChanges, more: Sequence[Job] = ()) -> PlannedJob | PlannedRuns:
    """Plan a job, or several runs. Raises `InputError` or `RefusedError`."""
    if (runs := read_runs.read(job, changes, more)) is not None:
        return PlannedRuns(runs, changes)
    return planned_job(job, changes)


def planned_job(job: Job, changes: JobChanges) -> PlannedJob:
    """Plan what is one run. Raises `InputError` or `RefusedError`."""
    return planned_workload(asked_for(job, changes), changes)


def asked_for(job: Job, changes: JobChanges) -> Workload:
    """Read what is one run, and change it. Raises `InputError` or `RefusedError`."""
    job_workload = workload(job, changes)
    exec_commands.check(job_workload)
    return job_workload


def planned_workload(work: Workload, changes: JobChanges) -> PlannedJob:
    """Plan a Workload. Raises `InputError` or `RefusedError`."""
    return PlannedJob(work, resolution(work, changes))


def _tree_obstacles(work: Workload, changes: JobChanges, looked_at: set[str]) -> list[Obstacle]:
    """Look at the trees that a Workload changes, where it cannot be resolved yet."""
    changed = tree_jobs.only_making_directories(work)
    try:
        return [] if changed is None else obstacles_of(resolution(changed, changes).plan, looked_at)
    except (InputError, RefusedError):
        return []


def obstacles_of(plan: Plan, looked_at: set[str]) -> list[Obstacle]:
    """Look at what a Plan writes to, unless it was looked at; adds it there."""
    if not {target.path for target in plan.targets} - looked_at:
        return []

    def look() -> list[tuple[str, list[str], list[str]]]:
        host = Snapshot()
        wanted = [plan.targets[index] for index in sorted(guard.written(plan))]
        findings = [guard.examine(target, host) for target in wanted if target.path not in looked_at]
        return [(one.path, one.refused, one.needs_consent) for one in findings]

    obstacles: list[Obstacle] = []
    for path, refused, doubts in run_in_child(look, doing=say("path.child.looking.targets")):
        looked_at.add(path)
        obstacles += [Obstacle(path, why) for why in refused]
        obstacles += [Obstacle(path, why, needs_consent=True) for why in doubts if not refused]
    return obstacles
