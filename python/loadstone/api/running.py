"""Running one job: a job file, its text, or a named workload.

Knows the order: plan, check, set what the job asks of the host, run, put back, open. Nobody is asked: what
would lose data is refused unless its path is named, or a `Consent` that asks is given.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from loadstone.api.jobs import exec_commands, schedulers, spec_option
from loadstone.api.jobs.job_changes import PYTHON, JobArguments, JobChanges, job_of
from loadstone.api.on_hosts import given_hosts, run_job_on_hosts
from loadstone.api.one_run import HowRun, consent_of, request_of, run_once, run_request, watched
from loadstone.api.place import default_directory
from loadstone.api.planning import PlannedJob, asked_for, planned_workload
from loadstone.api.probed import ProbedFigures, budget_s, on_this_host
from loadstone.bundle.write import BundleWriter
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.safety.guard import check_consent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.results import Result
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Progress
    from loadstone.watch.address import WatchedAddress


def run(
    job: Path | str,
    *,
    accept_data_loss: Sequence[Path | str] | Consent = (),
    calibration: bool = True,
    probe: str | float | None = None,
    spec: Path | str | None = None,
    out: Path | str | None = None,
    hosts: str | None = None,
    divide: bool = False,
    watch: Sequence[str | WatchedAddress] = (),
    progress: Progress | None = None,
    check: bool = True,
    **changes: Unpack[JobArguments],
) -> Result:
    """Run a job file of one run, the text of one, or a named workload, and return its result.

    `job` with a line break is the text of a job file. `changes` are what is changed about it: `targets`,
    `runtime` and the others of `JobArguments`. What stands on a target may be lost only where
    `accept_data_loss` has its path, or is a `Consent` that asks. With `probe`, short runs after the run tell
    what lies behind its number, for so long at most: seconds or a time such as "20s". `spec` is a data sheet
    that the results are held against. `out` is the bundle's directory [default:
    ./loadstone-runs/TIME-NAME]. `hosts` are load generators that run it at once, as "h1,root@h2:2222" or a
    file HOSTS.toml; `divide` gives each its own part of what several of them write. `watch` are hosts to
    watch, as "NAME=ssh://USER@HOST". `progress` sees the run while it runs.

    Raises `InputError`, `RefusedError` or `BundleError` before anything runs. A run that fails
    raises `RunError`, or with `check=False` is returned with its `error`.
    """
    job_changes, on = JobChanges.of(changes), given_hosts(hosts, divide=divide)
    seconds = None if probe is None else budget_s(probe, PYTHON.at("probe"))
    consent = consent_of(accept_data_loss)
    request = _request(str(job), job_changes, consent, on, {"probe": probe, "watch": watch})
    sheet = spec_option.read(None if spec is None else Path(spec))
    wanted = asked_for(job_of(job), job_changes)
    settings = HowRun(
        Path(out) if out is not None else default_directory(wanted.name),
        consent,
        calibration=calibration,
        progress=progress,
        check=check,
    )
    if on is not None:
        whole = run_request(wanted, (), request, sheet, watched(watch))
        return run_job_on_hosts(on, wanted, job_changes, settings, whole, probe_s=seconds)
    planned = planned_workload(wanted, job_changes)
    figures = None if seconds is None else ProbedFigures(seconds, on_this_host(consent))
    return run_planned(planned, settings, request, sheet=sheet, watch=watched(watch), figures=figures)


def _request(
    job: str, changes: JobChanges, consent: Consent, on: GivenHosts | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the call as `request.json` keeps it: what a person could have typed."""
    return request_of(
        "python",
        {
            "job": job,
            **changes.document(),
            "i_accept_data_loss": sorted(consent.paths),
            **options,
            "watch": [one for one in options["watch"] if isinstance(one, str)],
            **({} if on is None else on.document()),
        },
    )


def run_planned(
    planned: PlannedJob,
    settings: HowRun,
    request: dict[str, Any],
    *,
    sheet: DataSheet,
    watch: tuple[WatchedAddress, ...],
    figures: ProbedFigures | None,
) -> Result:
    """Run what was planned, between the commands and on the scheduler that its jobs ask for."""
    job_workload, plan = planned.asked, planned.resolved.plan
    wanted = run_request(job_workload, planned.resolved.notes, request, sheet, watch)
    check_consent(settings.consent, [plan])
    settings = replace(settings, consent=settings.consent.placed(target_places(plan, job_workload)))
    BundleWriter.check(settings.out)
    with (
        exec_commands.around(job_workload, settings.say),
        schedulers.as_asked(job_workload, plan, settings.say),
    ):
        return run_once(plan, wanted, settings, figures)
