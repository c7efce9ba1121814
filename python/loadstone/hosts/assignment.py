"""What one host is asked to do: a Workload, how it is resolved there, and what was agreed.

Knows shapes that travel as JSON. Does nothing.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from loadstone.errors import Where
from loadstone.frozen_model import FrozenModel
from loadstone.plan.model import Plan, RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.stream import TotalRate
from loadstone.workload.model import Workload


class HostRate(FrozenModel):
    """A host's part of a total rate."""

    iops: float
    process: RateProcess
    profile: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(cls, total: TotalRate, share: float) -> HostRate:
        """Return a part of a total rate."""
        return cls(iops=total.iops * share, process=total.process, profile=total.profile)


class HostWork(FrozenModel):
    """What one host does in a run."""

    workload: Workload
    vocabulary: dict[str, str] = Field(default_factory=dict)
    """What the language of the job file calls a field: a host tells mistakes in it."""
    plan: Plan | None = None
    """A Plan that ran before, to be run as it is; None: the Workload is resolved there."""
    rate: HostRate | None = None
    keep_ioengine: bool = False
    journal: bool = False
    inputs: dict[str, str] = Field(default_factory=dict)
    """Files the user gave, by name, for the bundle there; bytes as base64."""
    request: dict[str, Any] = Field(default_factory=dict)
    calibration: bool = True
    notes: tuple[dict[str, Any], ...] = ()

    def in_its_language(self) -> Workload:
        """Return the Workload with the words of its language, which do not travel with its jobs."""
        jobs = tuple(job.model_copy(update={"vocabulary": self.vocabulary}) for job in self.workload.jobs)
        return self.workload.model_copy(update={"jobs": jobs})

    def options(self, directory: str) -> ResolveOptions:
        """Return how it is resolved; relative paths start from a directory."""
        rate = None
        if self.rate is not None:
            rate = TotalRate(self.rate.iops, self.rate.process, self.rate.profile)
        return ResolveOptions(
            keep_ioengine=self.keep_ioengine, journal=self.journal, rate=rate, base_directory=directory
        )


class SeenTarget(FrozenModel):
    """One target as a host sees it, before anything was changed there."""

    path: str
    identity: str | None
    also: tuple[str, ...] = ()
    """Other words by which another host may know it."""
    written: bool
    size_bytes: int
    kind: str
    forbidden: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()
    needs_consent: tuple[str, ...] = ()
    named_at: Where | None = None
    """Where a job names it."""
    laid_out_by_run: bool = False
    """The run would write or lengthen it before the load."""
    is_part: bool = False
    """A tree of which this host uses only its own files."""


class Division(FrozenModel):
    """Of targets that several hosts write, this host's part: number `index` of `count`."""

    paths: tuple[str, ...]
    index: int
    count: int
