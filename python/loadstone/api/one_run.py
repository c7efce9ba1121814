"""One Plan run into a new bundle, which opens as a `Result`.

Knows what every run has, whoever asked for it: consent, a directory, who sees it. Resolves nothing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.api.jobs.job_changes import PYTHON
from loadstone.api.results import Result
from loadstone.audit.run import SealedFigures
from loadstone.errors import InputError, RunError, as_text
from loadstone.formats.fio.numbers import SECOND_NS, Reading, time_ns
from loadstone.messages import make_error
from loadstone.plan.safety.guard import Consent
from loadstone.session import RunRequest, run_plan
from loadstone.watch.address import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.errors import Where
    from loadstone.plan.model import Plan
    from loadstone.session import Outcome, Progress
    from loadstone.watch.address import WatchedAddress
    from loadstone.workload.model import Note, Workload

    Watched = tuple[WatchedAddress, ...]
    """Hosts to watch meanwhile."""


@dataclass(frozen=True, slots=True)
class HowRun:
    """How a run is done, whatever is in it."""

    out: Path
    """Directory of the bundle; new or empty."""
    consent: Consent = field(default_factory=Consent)
    calibration: bool = True
    progress: Progress | None = None
    """Who sees the run while it runs."""
    check: bool = True
    """Raise when the run fails."""
    say: Callable[[str], None] = lambda _: None
    """Who hears what is done beside the load: commands of the job, a scheduler that is set."""


def run_once(
    plan: Plan, request: RunRequest, settings: HowRun, figures: SealedFigures | None = None
) -> Result:
    """Run a Plan. `figures` computes the bundle's `result.json`, and may do more before."""
    figures = figures or SealedFigures()
    ended = run_plan(
        plan,
        request=request,
        out_dir=settings.out,
        consent=settings.consent,
        progress=settings.progress,
        result=figures.document,
        calibration=settings.calibration,
    )
    return result_of(ended, figures, check=settings.check)


def result_of(ended: Outcome, figures: SealedFigures, *, check: bool) -> Result:
    """Return the result of a run that has ended; with `check` raise what kept it from being complete."""
    if check and ended.error is not None:
        raise ended.error
    if check and ended.status != "complete":
        raise make_error(RunError, "api.run.ended", status=ended.status, path=repr(str(ended.bundle_path)))
    return Result(ended.bundle_path, ended, figures)


def consent_of(consent: Sequence[Path | str] | Consent) -> Consent:
    """Return the consent to lose what is on these paths; what needs more is told in Python's words."""
    if isinstance(consent, Consent):
        return consent
    return Consent(
        frozenset(str(one) for one in consent),
        remedy=lambda needed: f"accept_data_loss=[{', '.join(map(repr, needed))}]",
        where=PYTHON.at("accept_data_loss"),
    )


def watched(
    hosts: Sequence[str | WatchedAddress],
    *,
    interval: str | None = None,
    interval_at: Where | None = None,
    secrets: Path | None = None,
) -> Watched:
    """Return the hosts to watch; a str is read as the command line's `--watch`.

    `interval`: how often each is looked at [default: 1s]; what is wrong with it is told at `interval_at`.
    """
    interval_s = 1.0
    if interval is not None:
        if not hosts:
            raise make_error(InputError, "api.no_effect_without_watch", where=interval_at)
        interval_s = time_ns(interval, Reading(interval_at or PYTHON.at("watch_interval")), SECOND_NS) / 1e9
    words = [one for one in hosts if isinstance(one, str)]
    read = addresses(words, interval_s=interval_s, secrets=secrets) if words or secrets is not None else ()
    return (*read, *(one for one in hosts if not isinstance(one, str)))


def run_request(
    asked_for: Workload, notes: Sequence[Note], request: dict[str, Any], sheet: DataSheet, watch: Watched
) -> RunRequest:
    """Return what a bundle keeps of what was asked for. `notes`: what is to be said of the run."""
    return RunRequest(
        request=request,
        inputs={**asked_for.sources, **sheet.inputs},
        workload_json=asked_for.model_dump_json(),
        notes=[note.model_dump(mode="json") for note in notes],
        spec=sheet.spec,
        watch=watch,
    )


def request_of(
    front_end: str, options: dict[str, Any], first: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return `request.json`; `first` is that of the run it goes back to."""
    document = {"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": front_end, "options": options}
    document |= {} if first is None else {"first_request": first}
    return {name: _texts(value) for name, value in document.items()}


def _texts(value: Any) -> Any:
    """Return what JSON can hold in every reader: names of files may be bytes that are no text."""
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, dict):
        return {key: _texts(one) for key, one in value.items()}
    return [_texts(one) for one in value] if isinstance(value, list | tuple) else value
