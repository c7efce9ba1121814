"""`--probe` of `loadstone run`, and what both verbs with probes say.

Knows how a budget is written and what a dry run prints. What is probed is decided in `probe`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.bundle import layout
from loadstone.bundle.disk import Disk
from loadstone.cli.display import console, run_summary
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle
    from loadstone.plan.model import Plan
    from loadstone.plan.safety.guard import Consent

DEFAULT: Final = "20s"
LEAST_S: Final = 2.0
MOST_S: Final = 3600.0


def budget_s(text: str) -> float:
    """Read the budget of `--probe`. Raises `InputError`."""
    from loadstone.formats.fio.numbers import SECOND_NS, Reading, time_ns

    where = Where(COMMAND_LINE, option="--probe")
    seconds = time_ns(text or DEFAULT, Reading(where), SECOND_NS) / 1e9
    if not LEAST_S <= seconds <= MOST_S:
        raise InputError(
            f"found {text}, expected a time from {LEAST_S:g} s to {MOST_S / 60:g} min", where=where
        )
    return seconds


@dataclass
class ProbedSummary(run_summary.RunSummary):
    """A run that is probed before it is added up: its result has what the probes measured."""

    budget: float
    consent: Consent
    progress: bool

    def document(self, bundle: Bundle) -> dict[str, Any]:
        """Probe, keep what was measured, and compute `result.json`."""
        from loadstone.probe.after_run import Wanted, after

        told = super().document(bundle)
        if bundle.status != "complete":
            return told
        wanted = Wanted(self.budget, self.consent, self._live, console.say)
        probed = after(bundle, self.audited, wanted)
        if probed is None:
            return told
        if not any(one.seconds for one in probed.tried):
            console.say(f"no probe was done: {probed.left_out[0].why if probed.left_out else probed.ended}")
        Disk().put(bundle.path / layout.PROBED, probed.model_dump_json(indent=2).encode() + b"\n")
        return super().document(type(bundle)(bundle.path, bundle.manifest, verified=bundle.verified))

    def _live(self) -> Any:
        return run_summary.live(wanted=self.progress)


def tell_bounds(plan: Plan, seconds: float) -> None:
    """Say before a run what its probes may take and write."""
    written = _writes(plan)
    what = "read only" if not written else f"write only where the run does ({', '.join(written)})"
    console.say(f"probes after the run: at most {units.seconds(seconds)}; they {what}")


def _writes(plan: Plan) -> list[str]:
    from loadstone.plan.derived import asked_operations, targets_of

    found = {
        plan.targets[index].path: None
        for stream in plan.streams
        if "write" in asked_operations(stream)
        for index in targets_of(plan, stream)
    }
    return list(found)


def dry_run(plan: Plan, seconds: float, *, as_json: bool) -> int:
    """Print what probes would be done after a run of this Plan; nothing runs."""
    from loadstone.probe.forecast import forecast

    told = forecast(plan, seconds)
    if as_json:
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
        return 0
    out = sys.stdout
    out.write(f"probes after the run: at most {seconds:g} s, the most telling per second first\n")
    for row in told["probes"]:
        written = units.size(row["most_written_bytes"]) if row["most_written_bytes"] else "nothing"
        out.write(f"  {row['name']:12} {row['seconds']:5.1f} s  writes {written:>10}  {row['asks']}\n")
    for row in told["left_out"]:
        out.write(f"  {row['name']:12} not here: {row['why']}\n")
    return 0
