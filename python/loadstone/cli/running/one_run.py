"""One run of `loadstone run` and `loadstone probe`: here, or on several hosts at once.

Knows what is said before it, and that probes may follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.api.on_hosts import run_job_on_hosts
from loadstone.api.one_run import HowRun, request_of, run_request
from loadstone.api.planning import planned_workload
from loadstone.api.running import run_planned
from loadstone.cli.display import console, run_summary
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.cli.running import probing
from loadstone.cli.running.consent import consent, consent_without_asking, would_end
from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.api.jobs.job_changes import JobChanges
    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.results import Result
    from loadstone.api.types import Plan, Progress, Workload
    from loadstone.cli.options.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class AskedRun:
    """What is to run, and what the verb was given about it."""

    workload: Workload
    changes: JobChanges
    options: dict[str, Any]
    """As `request.json` keeps them."""
    sheet: DataSheet
    probe: str | None
    """The budget of the probes after it; None: there are none."""
    dry_run: bool
    """Only tell which probes there would be."""


def once(request: AskedRun, run_options: RunOptions) -> int:
    """Do one run, with probes after it where a budget is given for them."""
    on = run_options.on_hosts()
    seconds = None if request.probe is None else probing.read_budget(request.probe)
    if on is not None:
        result = _on_hosts(on, request, run_options, seconds)
        return run_summary.tell(result, run_options, require_valid=run_options.require_valid)
    planned = planned_workload(request.workload, request.changes)
    if request.dry_run and seconds is not None:
        probing.dry_run(planned, seconds, as_json=run_options.json)
        return would_end(planned.refusal(consent_without_asking(run_options.i_accept_data_loss)))
    planned.check()

    def tell_before() -> None:
        if run_options.json:
            # The summary tells the notes; without it they are told here.
            console.notes(planned.resolved.notes)
        if seconds is not None:
            probing.tell_bounds(planned, seconds)

    settings = _how(request, run_options, tell_before)
    result = run_planned(
        planned,
        settings,
        _request(request, run_options, {}),
        sheet=request.sheet,
        watch=run_options.watched(),
        figures=None
        if seconds is None
        else probing.figures(seconds, settings.consent, progress=run_options.progress),
    )
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)


def _on_hosts(on: GivenHosts, asked_run: AskedRun, run_options: RunOptions, probe_s: float | None) -> Result:
    if asked_run.dry_run:
        raise make_error(InputError, "hosts.probing.dry_run", where=Where(COMMAND_LINE, option="--dry-run"))

    def tell_before() -> None:
        if probe_s is not None:
            # Each host resolves the job for itself: what it writes is not known here.
            console.say(say("hosts.probing.bounds", most_s=probe_s))

    request = _request(asked_run, run_options, on.document())
    return run_job_on_hosts(
        on,
        asked_run.workload,
        asked_run.changes,
        _how(asked_run, run_options, tell_before),
        run_request(asked_run.workload, (), request, asked_run.sheet, run_options.watched()),
        probe_s=probe_s,
        see_probe=lambda: run_summary.live(wanted=run_options.progress),
    )


class _ToldBefore:
    """Says what belongs before a run when it is about to start: a refusal stands alone. Then shows it."""

    def __init__(self, tell: Callable[[], None], shown: Progress | None) -> None:
        self._tell = tell
        self._shown = shown

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Say it, and show the run."""
        self._tell()
        if self._shown is not None:
            self._shown.begin(plan, bundle)

    def event(self, event: Mapping[str, Any]) -> None:
        """Show what the engine tells."""
        if self._shown is not None:
            self._shown.event(event)

    def finish(self) -> None:
        """Show no more."""
        if self._shown is not None:
            self._shown.finish()


def _how(request: AskedRun, run_options: RunOptions, tell_before: Callable[[], None]) -> HowRun:
    return HowRun(
        run_options.directory(request.workload.name),
        consent(run_options.i_accept_data_loss),
        calibration=run_options.calibration,
        progress=_ToldBefore(tell_before, run_summary.live(wanted=run_options.progress)),
        check=False,
        say=console.say,
    )


def _request(request: AskedRun, run_options: RunOptions, more: dict[str, Any]) -> dict[str, Any]:
    run_arguments = {
        "probe": request.probe,
        "i_accept_data_loss": list(run_options.i_accept_data_loss),
        "json": run_options.json,
        "watch": list(run_options.watch),
    }
    return request_of("run", request.options | run_arguments | more)
