"""Named procedures: several runs of one entry, each with its own values.

Knows the order of runs: what prepares first, then the runs as written or every combination of
the loops, the last one fastest. Does not know when rounds of them are enough.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.workload.catalogue.parameters import size_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.workload.model import Workload


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    """One run before its Workload is made: which jobs, and the values that are its own."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    """Names of the jobs in it; empty: those that no preparation has."""
    role: Literal["measure", "prepare"] = "measure"


@dataclass(frozen=True, slots=True)
class ProcedureRounds:
    """The runs are repeated until one of them is steady, at most so many times."""

    most: int
    tracks: str
    """Name of the run that is looked at."""
    quantity: Literal["iops", "bandwidth", "mean_ns"]
    every: int = 1
    """Rounds between two that are compared."""


@dataclass(frozen=True, slots=True)
class ProcedureRun:
    """One run with its Workload. `factors`: its own values, as text."""

    name: str
    workload: Workload
    factors: Mapping[str, str]
    role: Literal["measure", "prepare"]


def rounds(content: Mapping[str, Any]) -> ProcedureRounds | None:
    """Return how often the runs of an entry are repeated; None: once."""
    return ProcedureRounds(**content["rounds"]) if "rounds" in content else None


def steps(content: Mapping[str, Any], replacements: Mapping[str, str]) -> list[ProcedureStep]:
    """Return the runs of an entry, in order; empty for a workload that is one run.

    `replacements` may replace the values of a loop by others, separated by commas.
    """
    prepared = [
        ProcedureStep(row["name"], _texts(row.get("set", {})), tuple(row.get("jobs", ())), "prepare")
        for row in content.get("prepare", ())
    ]
    written = [
        ProcedureStep(row["name"], _texts(row.get("set", {})), tuple(row.get("jobs", ())))
        for row in content.get("runs", ())
    ]
    loops = {
        name: replacements[name].split(",") if name in replacements else values
        for name, values in _loops(content)
    }
    looped = [
        ProcedureStep(", ".join(f"{name}={value}" for name, value in chosen.items()), chosen)
        for values in itertools.product(*loops.values())
        if (chosen := dict(zip(loops, (str(value).strip() for value in values), strict=True)))
        and not _too_large(content, chosen)
    ]
    return [*prepared, *written, *looped]


def _loops(content: Mapping[str, Any]) -> Sequence[tuple[str, Sequence[str]]]:
    return list(content.get("loops", {}).items())


def _too_large(content: Mapping[str, Any], chosen: Mapping[str, str]) -> bool:
    """Tell a combination in which one size is above another that must hold it."""
    if "at_most" not in content:
        return False
    inner, outer = (size_bytes(chosen[name]) or 0 for name in content["at_most"])
    return inner > outer


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def check_given(name: str, content: Mapping[str, Any], values: Mapping[str, str]) -> None:
    """Refuse to set what every run sets for itself."""
    own = {
        key for row in (*content.get("runs", ()), *content.get("prepare", ())) for key in row.get("set", {})
    }
    for key in values:
        if key in own:
            raise make_error(InputError, "workload.catalogue.own_value", name=name, parameter=key)
