"""The named workloads: TOML files beside this one, with their meaning and source.

Knows how a file becomes a Workload, or the runs of a procedure, and what its parameters accept.
Knows no job-file language and no host. Keys of a job are fields of `workload.model.Job`, as
`engine.iodepth`; `sizes.block_bytes` stands for one fixed block size; a text `$name` is the value of a
parameter.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload.block_sizes import FixedSize
from loadstone.workload.catalogue.parameters import WorkloadParameter, filled
from loadstone.workload.catalogue.procedure import (
    ProcedureRounds,
    ProcedureRun,
    ProcedureStep,
    check_given,
    rounds,
    steps,
)
from loadstone.workload.model import Job, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "GROUPS",
    "CatalogueEntry",
    "ProcedureRounds",
    "ProcedureRun",
    "WorkloadParameter",
    "load",
    "names",
]

GROUPS: Final = (
    "Corners",
    "StorageReview",
    "Iometer",
    "Virtual desktops",
    "Databases",
    "Hyper-converged",
    "SPC-1-like",
    "SNIA PTS and JEDEC",
    "File systems",
    "AERODISK VOSTOK",
)
"""In the order in which they are listed."""


@dataclass(frozen=True)
class CatalogueEntry:
    """A named workload, or procedure, before its parameters are set."""

    name: str
    text: str
    """The TOML file."""

    @cached_property
    def _content(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @property
    def group(self) -> str:
        """What it is listed under, one of `GROUPS`."""
        return str(self._content["group"])

    @property
    def meaning(self) -> str:
        """What it does, in a sentence."""
        return str(self._content["meaning"])

    @property
    def source(self) -> str:
        """Where it is from, and what is approximated."""
        return str(self._content["source"])

    @cached_property
    def parameters(self) -> tuple[WorkloadParameter, ...]:
        """What may be set."""
        return tuple(
            WorkloadParameter(key, row["type"], str(row["default"]), row["meaning"])
            for key, row in self._content.get("parameters", {}).items()
        )

    @property
    def is_procedure(self) -> bool:
        """Whether it is several runs."""
        return any(key in self._content for key in ("runs", "loops", "prepare"))

    @property
    def loops(self) -> list[str]:
        """Parameters every combination of whose values is a run, the last one fastest."""
        return list(self._content.get("loops", {}))

    @property
    def rounds(self) -> ProcedureRounds | None:
        """How often its runs are repeated; None: once."""
        return rounds(self._content)

    def workload(self, values: Mapping[str, str] | None = None) -> Workload:
        """Return the Workload with parameters set. Raises InputError for an unknown one."""
        return self._workload(values or {}, ProcedureStep(self.name))

    def runs(self, values: Mapping[str, str] | None = None) -> list[ProcedureRun]:
        """Return the runs of a procedure with parameters set, in order."""
        values = values or {}
        check_given(self.name, self._content, values)
        loops = self._content.get("loops", {})
        common = {name: value for name, value in values.items() if name not in loops}
        return [
            ProcedureRun(step.name, self._workload({**common, **step.values}, step), step.values, step.role)
            for step in steps(self._content, values)
        ]

    def _workload(self, texts: Mapping[str, str], step: ProcedureStep) -> Workload:
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in texts:
            if name not in known:
                hint = nearest(name, known, limit=len(known)) or say("workload.catalogue.no_parameters")
                raise make_error(
                    InputError, "workload.catalogue.parameter", hint=hint, workload=self.name, name=repr(name)
                )
        values = {name: p.value(texts.get(name, p.default)) for name, p in known.items()}
        where = Where(f"{self.name}.toml")
        common = self._content.get("all", {})
        wanted = [job for job in self._content["jobs"] if self._belongs(job["name"], step)]
        return Workload(
            name=self.name,
            jobs=tuple(_job(_over(common, job), values, where) for job in wanted),
            needs_targets=True,
            job_per_target=bool(self._content.get("job_per_target", False)),
            sources={f"{self.name}.toml": self.text.encode()},
        )

    def _belongs(self, job: str, step: ProcedureStep) -> bool:
        if step.jobs:
            return job in step.jobs
        own = {name for row in self._content.get("prepare", ()) for name in row.get("jobs", ())}
        return job not in own

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON-ready values."""
        return {
            "name": self.name,
            "group": self.group,
            "meaning": self.meaning,
            "source": self.source,
            "runs": len(self.runs()) if self.is_procedure else 1,
            "parameters": [
                {"name": p.name, "type": p.type, "default": p.default, "meaning": p.meaning}
                for p in self.parameters
            ],
        }


def _job(fields: Mapping[str, Any], values: Mapping[str, object], where: Where) -> Job:
    ready: dict[str, Any] = filled(dict(fields), values)
    sizes = ready.get("sizes", {})
    block = sizes.pop("block_bytes", None)
    if block is not None:
        sizes["bs"] = (FixedSize(bytes=block),) * 3
    return Job.of({"where": where, **ready})


def _over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what jobs have in common with a job's own values over it, part by part."""
    parts = {
        name: _over(value, own[name])
        for name, value in common.items()
        if isinstance(value, dict) and isinstance(own.get(name), dict)
    }
    return {**common, **own, **parts}


def names() -> list[str]:
    """Return the names of all workloads, sorted."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load(name: str) -> CatalogueEntry:
    """Return the entry of one name. Raises InputError for an unknown one."""
    if name not in names():
        hint = nearest(name, names(), limit=len(names()))
        raise make_error(InputError, "workload.catalogue.unknown", hint=hint, name=repr(name))
    return CatalogueEntry(name, (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))
