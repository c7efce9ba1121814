"""How long runs of an experiment took beside their loads, as its sessions recorded it.

Knows what is on disk of one that stopped or ended. Assumes nothing: what no run has shown is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.experiment.prepared import load_s

if TYPE_CHECKING:
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.experiment.run import StoppedExperiment


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """What earlier sessions took, and what that comes to for the runs that are missing."""

    runs: int
    """Complete ones, that the figures are from."""
    missing: int
    took_s: float
    """All sessions together."""
    beside_s: float | None
    """Of each run: rehearsal, layouts, settings, files, sealing. None: a run ends by its bytes."""
    rest_s: float | None
    """What the missing runs will take; None: nobody knows."""


def recorded(prepared: PreparedExperiment, stopped: StoppedExperiment) -> RecordedTimes | None:
    """Return what earlier sessions show; None where no run is complete."""
    complete = {one.point.name for one in stopped.earlier.done if one.point.status == "complete"}
    if not complete:
        return None
    took_s = sum(one.took_s for one in stopped.document.sessions)
    loads = {wanted.name: load_s(wanted.workload) for wanted in prepared.nexts}
    done = [loads[name] for name in loads if name in complete]
    rest = [loads[name] for name in loads if name not in complete]
    done_s = [one for one in done if one is not None]
    rest_s = [one for one in rest if one is not None]
    beside_s = max(0.0, took_s - sum(done_s)) / len(done) if done and len(done_s) == len(done) else None
    known = beside_s is not None and len(rest_s) == len(rest)
    return RecordedTimes(
        len(done), len(rest), took_s, beside_s, sum(rest_s) + len(rest) * (beside_s or 0.0) if known else None
    )
