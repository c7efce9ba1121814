"""`--probe` of `loadstone run`, and what both verbs with probes say.

Knows how a budget is written and what a dry run prints. What is probed is decided in `probe`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from loadstone import units
from loadstone.cli.display import console, run_summary
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.errors import Where
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone import Consent
    from loadstone.api.planning import PlannedJob
    from loadstone.api.probed import ProbedFigures
    from loadstone.api.studies.prepared_study import PreparedStudy


def read_budget(text: str) -> float:
    """Read the budget of `--probe`. Raises `InputError`."""
    from loadstone.api.probed import budget_s

    return budget_s(text, Where(COMMAND_LINE, option="--probe"))


def figures(seconds: float, agreed: Consent, *, progress: bool) -> ProbedFigures:
    """Return who probes a run and adds it up."""
    from loadstone.api.probed import ProbedFigures, on_this_host

    runner = on_this_host(agreed, lambda: run_summary.live(wanted=progress))
    return ProbedFigures(seconds, runner, console.say)


def tell_bounds(planned: PlannedJob, seconds: float) -> None:
    """Say before a run what its probes may take and write."""
    written = planned.written_targets
    if written:
        console.say(say("cli.probing.bounds_written", budget_s=seconds, targets=", ".join(written)))
    else:
        console.say(say("cli.probing.bounds_read", budget_s=seconds))


def dry_run(planned: PlannedJob, seconds: float, *, as_json: bool) -> None:
    """Print what probes would be done after a run of this job; nothing runs."""
    probes = planned.probes(seconds)
    if as_json:
        sys.stdout.write(json.dumps(probes, indent=2) + "\n")
    else:
        name = say("cli.probing.the_run")
        sys.stdout.write(say("cli.probing.planned", name=name, budget=f"{seconds:g}") + "\n")
        _write(probes)
    sys.stdout.flush()


def dry_runs(prepared: PreparedStudy, seconds: float, *, as_json: bool) -> None:
    """Print the same of each run of a study; nothing runs."""
    probes = prepared.probes(seconds)
    if as_json:
        sys.stdout.write(json.dumps(probes, indent=2) + "\n")
    for one in () if as_json else probes["runs"]:
        sys.stdout.write(say("cli.probing.planned", name=one["name"], budget=f"{seconds:g}") + "\n")
        _write(one)
    sys.stdout.flush()


def _write(document: dict[str, Any]) -> None:
    out = sys.stdout
    for row in document["probes"]:
        written = units.size(row["most_written_bytes"]) if row["most_written_bytes"] else "nothing"
        out.write(f"  {row['name']:12} {row['seconds']:5.1f} s  writes {written:>10}  {row['asks']}\n")
    for row in document["left_out"]:
        out.write(f"  {row['name']:12} not here: {row['why']}\n")
