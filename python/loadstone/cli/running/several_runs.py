"""What the verbs that do several runs have in common: how a study is run and what it says.

Knows a study's place, its progress on standard error and its end on standard output. What is
run is a controller's business, what the numbers say the analysis'.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone import exitcodes, units
from loadstone.api.jobs import spec_option
from loadstone.api.on_hosts import study_maker
from loadstone.api.one_run import request_of
from loadstone.api.studies.ended import EndedStudy, in_short
from loadstone.api.studies.prepared_study import StudyMeans, StudyOfJob, run_prepared
from loadstone.cli.display import console, run_summary
from loadstone.cli.main import show
from loadstone.cli.options.arguments import job_of
from loadstone.cli.running import probing
from loadstone.cli.running.consent import consent
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.api.jobs.run_list import Beside, Say
    from loadstone.api.studies.prepared_study import PreparedStudy
    from loadstone.api.types import Done, Next, Plan, Progress, StudyProgress
    from loadstone.cli.options.arguments import LoadOptions
    from loadstone.cli.options.run_options import RunOptions


def of_job(
    verb: str,
    job: str,
    load: LoadOptions,
    *,
    spec: Path | None,
    options: dict[str, Any],
    run_options: RunOptions,
) -> StudyOfJob:
    """Return the study of a job that a command line asks for; `options` as `request.json` keeps them."""
    sheet, is_alone = spec_option.read(spec), run_options.hosts is None
    return StudyOfJob(job_of(job), load.changes(), sheet, request_of(verb, options), on_this_host=is_alone)


def execute(
    prepared: PreparedStudy, run_options: RunOptions, probe_s: float | None = None, notes: Sequence[str] = ()
) -> int:
    """Run a study, print its result and return the exit code.

    `probe_s`: for the probes after each run. `notes`: what else belongs before the first run.
    """
    if probe_s is not None:
        notes = [say("cli.probing.each_run", most_s=probe_s), *notes]
    known = prepared.controller.known()
    calibration = run_options.calibration
    agreed = consent(run_options.i_accept_data_loss)
    maker = study_maker(run_options.on_hosts(), prepared, calibration=calibration, say_to=console.say)
    outcome = run_prepared(
        prepared,
        StudyMeans(
            run_options.directory(prepared.asked.name),
            agreed,
            calibration=calibration,
            watch=run_options.watched(),
            progress=shown(
                live=run_options.progress,
                watch=prepared.watch,
                beside=prepared.beside,
                certain=len(known),
                most=prepared.controller.most(),
            ),
            maker=maker,
            say=console.say,
            checked=partial(_tell_before, prepared, notes, json=run_options.json),
            figures=None
            if probe_s is None
            else partial(probing.figures, probe_s, agreed, progress=run_options.progress),
        ),
    )
    return _tell(EndedStudy(outcome), run_options)


def _tell_before(prepared: PreparedStudy, notes: Sequence[str], *, json: bool) -> None:
    """Say what belongs before the first run, when none is refused: a refusal stands alone."""
    for line in notes:
        console.say(line)
    console.notes(prepared.notes)
    if prepared.first is not None and json:
        # The summary tells the notes; without it they are told here.
        console.notes(prepared.first.notes)
    if prepared.length:
        console.say(prepared.length)


def shown(
    *,
    live: bool,
    certain: int,
    most: int | None = None,
    watch: Callable[[Next, Say], Progress | None] | None = None,
    beside: Beside | None = None,
) -> StudyProgress:
    """Return who shows a study while it runs: so many runs are certain, and there can be so many at most."""
    return _Shown(live=live, watch=watch, beside=beside, certain=certain, most=most)


def _tell(ended: EndedStudy, run_options: RunOptions) -> int:
    if run_options.json and ended.document_text is not None:
        # As it stands in the study, so that the two never differ.
        sys.stdout.write(ended.document_text)
    else:
        ended.print(console.data())
    sys.stdout.flush()
    if ended.error is not None:
        show(ended.error)
    console.say(f"study: {ended.path}")
    code = ended.exit_code(require_valid=run_options.require_valid)
    if run_options.report and not run_summary.reported(ended.report):
        return code or exitcodes.FAILED
    return code


class _Both:
    """Two who want to see a run."""

    def __init__(self, *all_of_them: Progress) -> None:
        self._all = all_of_them

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Tell both."""
        for one in self._all:
            one.begin(plan, bundle)

    def event(self, event: Mapping[str, Any]) -> None:
        """Tell both."""
        for one in self._all:
            one.event(event)

    def finish(self) -> None:
        """Tell both."""
        for one in self._all:
            one.finish()


class _Shown:
    """A line for each run on standard error, and on a terminal the run while it runs."""

    def __init__(
        self,
        *,
        live: bool,
        watch: Callable[[Next, Say], Progress | None] | None,
        beside: Beside | None,
        certain: int = 1,
        most: int | None = None,
    ) -> None:
        self._live = live
        self._certain = certain
        self._most = most
        self._watch = watch
        self._beside = beside

    def begin(self, wanted: Next, number: int, expected: int | None) -> Progress | None:
        """Show a run while it runs, and let it be written."""
        shown = self._show(wanted, number, expected)
        written = self._beside.begin(wanted, number, expected) if self._beside is not None else None
        if shown is None or written is None:
            return shown or written
        return _Both(shown, written)

    def _show(self, wanted: Next, number: int, expected: int | None) -> Progress | None:
        """Return who shows a run; the usual table on a terminal only."""
        watched = self._watch(wanted, console.say) if self._live and self._watch is not None else None
        if watched is not None:
            return watched
        shown = run_summary.live(wanted=self._live)
        if shown is not None:
            console.say(f"{_of(number, expected, self._certain, self._most)} {wanted.name}")
        return shown

    def end(self, done: Done, number: int, expected: int | None, left_s: float | None) -> None:
        """Say what a run measured and how long the rest will take."""
        if self._beside is not None:
            self._beside.end(done, number, expected, left_s)
        goes_on = done.run.point.status != "interrupted"
        left = f"; about {units.whole_seconds(left_s)} left" if left_s and goes_on else ""
        console.say(f"{_of(number, expected, self._certain, self._most)} {in_short(done)}{left}")


def _of(number: int, expected: int | None, certain: int, most: int | None) -> str:
    if expected is not None and number <= expected:
        more = f", at most {most}" if most is not None and most > expected else ""
        return f"run {number} of {expected}{more}:"
    # What the results decide is not known: how many there can be at most is.
    if most is not None and number <= most:
        least = f"{certain} to " if certain > number else "at most "
        return f"run {number} of {least}{most}:"
    return say("cli.run.of_at_least", number=number, least=max(number, certain))
