"""vdbench's directory while the runs of a parameter file go on.

Knows when a page may grow: after each interval, and at the end of a run, from its bundle. At the end of the
study the files are what `loadstone export STUDY vdbench DIR` writes. A directory that can no longer be
written ends the pages, never the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.bundle.disk import reason
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError, LoadstoneError
from loadstone.messages import say
from loadstone.report.runs_to_export import open_runs
from loadstone.report.vdbench import anchor_pages, pages
from loadstone.report.vdbench.directory import Directory
from loadstone.report.vdbench.interval_totals import Counted, storages_of
from loadstone.report.vdbench.live_intervals import LiveIntervals
from loadstone.report.vdbench.page_headers import Everything, Known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.study.controller import Done, Next
    from loadstone.workload.model import Workload

LAYOUT: Final = "50407"


class Output:
    """The pages of a study; `workloads`: its runs, as far as they are known."""

    def __init__(self, out: Path, workloads: Sequence[Workload], say: Callable[[str], None]) -> None:
        self._out = out
        self._say = say
        self._known = [_known(workload) for workload in workloads]
        self._directory = Directory(out)
        self._pages: pages.Pages | None = None
        self._run: _RunPages | None = None
        self._broken = False
        self._directory.check()

    def begin(self, _wanted: Next, _number: int, _expected: int | None) -> _RunPages:
        """Return who follows a run."""
        self._run = _RunPages(self)
        return self._run

    def started(self, run: LiveIntervals) -> None:
        """Begin a run on every page, and before the first all pages."""
        if self._pages is None:
            created_s = pages.created_s(run.bundle)
            everything = Everything(self._known, run.bundle.inputs, created_s)
            self._pages = pages.Pages(LAYOUT, self._out.name, everything)
        self._pages.begin(run)
        self.grow()

    def interval(self, run: Counted, number: int) -> None:
        """Add an interval."""
        assert self._pages is not None  # noqa: S101 - a run has started
        if self._broken:
            return
        try:
            self._pages.interval(run, number)
        except OSError as error:
            # Some pages have it and some have not: `close` makes all of them whole.
            self._broken = True
            self._say(say("api.vdbench.run_goes_on", reason=f"{self._out}: {reason(error)}"))

    def grow(self) -> None:
        """Write what is new."""
        if self._pages is None or self._broken:
            return
        try:
            self._directory.grow(self._pages.all)
        except LoadstoneError as error:
            self._broken = True
            self._say(say("api.vdbench.run_goes_on", reason=str(error)))

    def end(self, _done: Done, _number: int, _expected: int | None, _left_s: float | None) -> None:
        """Add what is known of a run once its bundle is sealed."""
        if self._run is None or self._run.growing is None or self._pages is None:
            return
        written, path = self._run.written, self._run.growing.bundle.path
        self._run = None
        try:
            run = Counted(Bundle.open(path))
        except BundleError:
            return  # The study says why.
        for number in range(written + 1, len(run.whole.intervals) + 1):
            self.interval(run, number)
        if run.whole.intervals:
            self._pages.end(run)
        self.grow()

    def close(self, study: Path) -> None:
        """Make the pages what an export writes."""
        try:
            output_pages = pages.of(open_runs(study), self._out.name, LAYOUT)
            if output_pages is not None:
                self._directory.settle(output_pages.all)
        except LoadstoneError as error:
            self._say(say("api.vdbench.write_elsewhere", reason=str(error), study=study))


class _RunPages:
    """A `session.Progress` that tells the pages what is complete."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.growing: LiveIntervals | None = None
        self.written = 0
        self._started = False

    def begin(self, _plan: Plan, bundle: Path) -> None:
        """Remember where the bundle is."""
        self.growing = LiveIntervals(Bundle.open(bundle))

    def event(self, event: Mapping[str, Any]) -> None:
        """Add the intervals that are complete."""
        if self.growing is None or event.get("type") not in ("start", "tick"):
            return
        self.growing.tell(event)
        if event["type"] == "start":
            self._output.started(self.growing)
            return
        try:
            whole = self.growing.advance()
        except OSError:
            return  # What cannot be read now is read at the next tick, or once the bundle is sealed.
        if whole > self.written:
            for number in range(self.written + 1, whole + 1):
                self._output.interval(self.growing, number)
            self.written = whole
            self._output.grow()

    def finish(self) -> None:
        """Leave the rest to the sealed bundle."""


def _known(workload: Workload) -> Known:
    document = workload.model_dump(mode="json")
    facts, jobs = document["global_options"], document["jobs"]
    on_files = any(job["work"]["kind"] == "tree" for job in jobs)
    storage, work = ("fsd", "fwd") if on_files else ("sd", "wd")
    return Known(
        facts["rd"],
        facts["loops"],
        on_files,
        tuple(dict.fromkeys(one for job in jobs for one in storages_of(job["own_options"], storage))),
        tuple(
            dict.fromkeys(
                [*(str(job["own_options"][work]) for job in jobs), *facts.get("made_for", "").split()]
            )
        ),
        frozenset(
            [
                *(str(job["work"]["operation"]) for job in jobs if job["work"]["kind"] == "tree"),
                *facts.get("operations_after", "").split(),
            ]
        ),
        anchor_pages.trees_of(jobs),
    )
