"""What an experiment has taken of its budget: time and bytes written, over all of its sessions.

Knows what each session took, what the runs wrote, and what was written beside them: targets prepared,
file systems filled, layouts built and synchronised. Knows no run and no setting.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loadstone import units
from loadstone.bundle.experiment import ExperimentBudget, ExperimentSession
from loadstone.errors import RunError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(slots=True)
class BudgetLedger:
    """What was taken, and what is left. `earlier`: the sessions before this one."""

    limits: ExperimentBudget = field(default_factory=ExperimentBudget)
    earlier: Sequence[ExperimentSession] = ()
    system: str | None = None
    """Host and kernel of this session's runs."""
    now: Callable[[], float] = time.monotonic
    runs_bytes: int = 0
    """What all runs wrote, those of earlier sessions too."""
    beside_bytes: int = 0
    """What this session wrote beside its runs."""
    exceeded: str | None = None
    """Why there is nothing left, once something was refused."""
    _began_s: float | None = None
    _began: str = ""

    def begin(self) -> None:
        """Begin this session."""
        self._began_s, self._began = self.now(), _clock()

    @property
    def sessions(self) -> tuple[ExperimentSession, ...]:
        """Return all sessions, this one as it is now."""
        if self._began_s is None:
            return tuple(self.earlier)
        own = ExperimentSession(
            began=self._began,
            took_s=self.now() - self._began_s,
            beside_bytes=self.beside_bytes,
            system=self.system,
        )
        return (*self.earlier, own)

    @property
    def used_s(self) -> float:
        """Return the time that all sessions took."""
        return sum(one.took_s for one in self.sessions)

    @property
    def written_bytes(self) -> int:
        """Return what all sessions wrote."""
        return self.runs_bytes + self.beside_bytes + sum(one.beside_bytes for one in self.earlier)

    def wrote(self, count: int) -> None:
        """Count bytes that were written beside the runs."""
        self.beside_bytes += count

    def why_over(self, doing: str, *, more_s: float = 0.0, more_bytes: int = 0) -> str | None:
        """Return which budget would be exceeded by so much more; None where none."""
        limit_s, limit_bytes = self.limits.time_s, self.limits.written_bytes
        if limit_s is not None and self.used_s + more_s > limit_s:
            return say("experiment.budget.more_time", step=doing, budget=units.whole_seconds(limit_s))
        if limit_bytes is not None and self.written_bytes + more_bytes > limit_bytes:
            return say("experiment.budget.more_written", step=doing, budget_bytes=limit_bytes)
        return None

    def refuse(self, doing: str, *, more_bytes: int = 0) -> None:
        """Raise RunError where a budget would be exceeded; no further run is begun then."""
        if why := self.why_over(doing, more_bytes=more_bytes):
            self.exceeded = why
            raise RunError(why)


def _clock() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
