"""What `loadstone fio` prints: before the run, in between, and at its end.

Knows which formats were asked for and their order (terse, JSON, human, as fio). The texts
are made in `report.fio`.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import messages, output
from loadstone.errors import LoadstoneError
from loadstone.plan.derived import reads_back
from loadstone.version import FIO_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

    from polars import LazyFrame

    from loadstone.cli.fio.args import FioArguments
    from loadstone.cli.fio.disks import Disks
    from loadstone.cli.fio.idle import IdleTimes
    from loadstone.plan.model import Plan
    from loadstone.report.fio.collect import Source
    from loadstone.report.fio.live_logs import GrowingLogs
    from loadstone.report.fio.stats import Report
    from loadstone.workload.model import Workload


class FioResults:
    """Prints one run's results to `out`."""

    def __init__(
        self, arguments: FioArguments, workload: Workload, plan: Plan, out: IO[str], notes: list[str]
    ) -> None:
        self._asked = arguments
        self._workload = workload
        self._plan = plan
        self._out = out
        self.notes = notes
        self.disks: Disks | None = None
        self.idle: IdleTimes | None = None
        self._growing: GrowingLogs | None = None

    def follow(self, bundle: Path) -> None:
        """Let the logs grow with the bundle, where some were asked for."""
        if any(job.outputs.logs.wanted for job in self._workload.jobs):
            from loadstone.report.fio.live_logs import GrowingLogs
            from loadstone.report.fio.reported_lines import members

            everyone = members(self._plan, self._workload)
            self._growing = GrowingLogs(self._plan, everyone, bundle, Path())

    def grow(self, event: Mapping[str, Any]) -> None:
        """Add what is certain to the logs; what fails is told by the one who writes them at the end."""
        if self._growing is not None:
            try:
                self._growing.event(event)
            except (LoadstoneError, OSError):
                self._growing = None

    def say(self, text: str) -> None:
        """Print talk, where it cannot spoil JSON or terse output."""
        if "normal" in self._asked.formats:
            self._out.write(text)
            self._out.flush()

    def check_files(self) -> None:
        """Refuse logs that could not be written after the run, before it."""
        wanted = any(
            job.outputs.logs.wanted or job.outputs.logs.iolog is not None for job in self._workload.jobs
        )
        if not wanted and not self._asked.bandwidth_log:
            return
        from loadstone.report.fio import iolog, logs, reported_lines
        from loadstone.report.fio.output_options import naming_option

        everyone = reported_lines.members(self._plan, self._workload)
        for file in logs.requested(self._plan, everyone, Path()):
            with naming_option(file.member.job, file.option):
                _check(file.path)
        for path, asking in iolog.requested(everyone, Path()).items():
            with naming_option(asking[0].job, iolog.OPTION):
                _check(path)
        for path in logs.aggregates(Path()) if self._asked.bandwidth_log else []:
            _check(path)

    def begin(self) -> None:
        """Print what fio prints before the first I/O."""
        if "normal" not in self._asked.formats:
            return
        from loadstone.report.fio.reported_lines import headers, members

        rows = headers(self._plan, members(self._plan, self._workload))
        rows += [f"note: {note}" for note in dict.fromkeys(self.notes)]
        rows.append(FIO_VERSION)
        if "random" in self._asked.debug:
            rows += self._seeds()
        rows.append(self._starting())
        self.say("".join(row + "\n" for row in rows))

    def _seeds(self) -> list[str]:
        rows = ["random   FIO_RAND_NR_OFFS=1"]
        return rows + [f"random   {stream.name} rand_seeds[0]={stream.seed}" for stream in self._plan.streams]

    def _starting(self) -> str:
        threads = sum(job.schedule.numjobs or 1 for job in self._workload.jobs if job.outputs.thread)
        clones = sum(not reads_back(stream) for stream in self._plan.streams)
        processes = clones - threads
        parts = []
        if threads:
            parts.append(f"{threads} thread{'s' if threads > 1 else ''}")
        if processes:
            parts.append(f"{processes} process{'es' if processes > 1 else ''}")
        return f"Starting {' and '.join(parts)}"

    def status(self, bundle: Path, left_s: float | None) -> None:
        """Print the results so far of a run that takes `left_s` more (None: nobody knows)."""
        from loadstone.report.fio import collect
        from loadstone.report.fio.stats import UNKNOWN_S

        report = collect.report(self._source(bundle))
        report.eta_s = UNKNOWN_S if left_s is None else round(left_s)
        self._print(report)

    def end(self, bundle: Path, error: Exception | None) -> int:
        """Print the results and write the logs; return how many clones failed."""
        from loadstone.report.fio import collect, iolog, logs

        source = self._source(bundle)
        report = collect.report(source)
        report.idleness = self.idle.found() if self.idle is not None else None
        everyone = [*report.lines, *report.left_out]
        for line in everyone:
            if line.error:
                self.say(f"fio: pid={line.pid}, err={line.error}/{line.error_text}\n")
            elif line.latency_goal is not None and not line.latency_goal.found:
                depth = line.latency_goal.depth
                self.notes.append(messages.say("cli.fio.search_not_ended", job=line.name, depth=depth))
                sys.stderr.write(f"note: {self.notes[-1]}\n")
        self._print(report)
        ios = self._ios(bundle)
        logs.write(source, ios, Path(), self._growing.grown if self._growing is not None else None)
        if ios is not None:
            iolog.write(source, ios, Path())
        if self._asked.bandwidth_log:
            logs.write_aggregate(source, Path())
        is_reported = any(line.error for line in everyone)
        return max(sum(line.failed_clones for line in everyone), int(error is not None and not is_reported))

    def _source(self, path: Path) -> Source:
        from loadstone.bundle.read import Bundle
        from loadstone.report import fio

        return fio.source(
            Bundle.open(path),
            workload=self._workload,
            disks=self.disks.used() if self.disks is not None else (),
            notes=list(dict.fromkeys(self.notes)),
        )

    def _ios(self, path: Path) -> LazyFrame | None:
        from loadstone.bundle.read import Bundle
        from loadstone.report.fio import logs

        if not any(job.outputs.logs.every_io for job in self._workload.jobs):
            return None
        return logs.ios_of(Bundle.open(path))

    def _print(self, report: Report) -> None:
        from loadstone.report.fio import document, normal, terse

        arguments = self._asked
        text = ""
        if "terse" in arguments.formats:
            text += "".join(line + "\n" for line in terse.lines(report, arguments.terse_version))
        if "json" in arguments.formats:
            text += document.text(document.document(report, plus="json+" in arguments.formats))
        if "normal" in arguments.formats:
            text += normal.text(report)
        try:
            self._out.write(text)
            self._out.flush()
        except (LoadstoneError, OSError):
            # The bundle is temporary: what the file does not take would be lost.
            if arguments.output is not None:
                with contextlib.suppress(OSError):
                    sys.stdout.write(text)
                    sys.stdout.flush()
            raise


def _check(path: Path) -> None:
    """Refuse a file that could not be written."""
    # Directories that are missing are made then: the first of them must be possible.
    missing = [one for one in path.parents if not one.exists()]
    output.check(missing[-1] if missing else path)
