"""The part of `loadstone fio` that runs jobs and writes the results.

Knows what is printed before, during and after a run and where it goes. The bundle is
temporary unless LOADSTONE_FIO_BUNDLES names a directory to keep it in; consent to
overwrite what holds something comes from LOADSTONE_ACCEPT_DATA_LOSS, paths separated by
colons, or for all regular files, as fio does it, from LOADSTONE_FIO_OVERWRITE=1. For which fios
it writes headers is in LOADSTONE_FIO_VERIFY.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import exitcodes, file_name, messages, output, temporary
from loadstone.api.jobs import exec_commands, schedulers
from loadstone.cli.display import console
from loadstone.cli.fio import file_names as fio_names
from loadstone.cli.fio.disks import Disks
from loadstone.cli.fio.eta import Eta
from loadstone.cli.fio.fio_errors import FAILED, say
from loadstone.cli.fio.fio_results import FioResults
from loadstone.cli.fio.idle import IdleTimes
from loadstone.cli.fio.trigger import Trigger
from loadstone.cli.fio.verify_state_files import save_state
from loadstone.errors import BundleError, InputError, LoadstoneError, RefusedError, RunError
from loadstone.messages import make_error
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.model import HeaderLayout, TargetKind
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.plan.safety import guard
from loadstone.plan.safety.guard import Consent
from loadstone.printable import unfiltered
from loadstone.session import RunRequest, run_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

    from loadstone.cli.fio.args import FioArguments
    from loadstone.errors import Where
    from loadstone.plan.model import Plan
    from loadstone.workload.model import Workload

KEEP: Final = "LOADSTONE_FIO_BUNDLES"
ACCEPT: Final = "LOADSTONE_ACCEPT_DATA_LOSS"
OVERWRITE: Final = "LOADSTONE_FIO_OVERWRITE"
VERIFY: Final = "LOADSTONE_FIO_VERIFY"
"""Version of the fio that is to read what is written with verify."""
_LAYOUTS: Final = {"3.33": HeaderLayout.EARLIER, "3.42": HeaderLayout.LATER}
INTERRUPTED: Final = 128
"""fio's own code after a signal."""
MAX_FAILED: Final = 255
"""fio ends with the number of clones that failed; 256 of them would be none."""


def run(arguments: FioArguments, workload: Workload, argv: Sequence[str]) -> int:
    """Run the jobs, write what was asked for, return fio's exit code.

    What is refused names files as the jobs do.
    """
    try:
        return _run(arguments, workload, argv)
    except LoadstoneError as error:
        _tell(error, workload)
        return FAILED


def _tell(error: LoadstoneError, workload: Workload) -> None:
    """Say an error; a hint names what decides here where the bundle is: fio has no --out."""
    if error.hint is not None:
        error.hint = error.hint.replace("--out", KEEP if os.environ.get(KEEP) else "TMPDIR")
    say(error, fio_names.by_path(workload))


def _run(arguments: FioArguments, workload: Workload, argv: Sequence[str]) -> int:
    exec_commands.check(workload)
    resolution = resolve(workload, options=_options(arguments, workload))
    if arguments.read_only:
        _refuse_changes(resolution.plan, target_places(resolution.plan, workload))
    notes = [str(note.text) for note in resolution.notes]
    with _bundle_directory(workload.name) as bundle, _output(arguments.output) as out:
        results = FioResults(arguments, workload, resolution.plan, out, notes)
        results.check_files()
        results.begin()
        trigger = Trigger(arguments, resolution.plan)
        watch = _Watch(arguments, workload, resolution.plan, results)
        exec_commands.before(
            workload, console.say
        )  # Refused by the reader unless LOADSTONE_ALLOW_EXEC permits them.
        with schedulers.as_asked(workload, resolution.plan, console.say):
            outcome = run_plan(
                resolution.plan,
                request=RunRequest(
                    {"argv": list(argv), "cwd": str(Path.cwd()), "front_end": "fio"},
                    dict(workload.sources),
                    workload.model_dump_json(),
                    [note.model_dump(mode="json") for note in resolution.notes],
                ),
                out_dir=bundle,
                progress=watch,
                consent=_consent().placed(target_places(resolution.plan, workload)),
                steer=trigger.steer,
                check_content=os.environ.get(OVERWRITE) != "1",
            )
        trigger.execute()
        if outcome.exit_code == exitcodes.USAGE and outcome.error is not None:
            _tell(outcome.error, workload)  # The engine refused the Plan: there is nothing to report.
            return FAILED
        if outcome.exit_code == exitcodes.INTERRUPTED:
            results.say("\nfio: terminating on signal 2\n")
        if outcome.status == "partial":
            return INTERRUPTED
        exec_commands.after(workload, console.say)
        try:
            failed = results.end(outcome.bundle_path, outcome.error)
        except (BundleError, OSError) as error:
            # Without a bundle the error has what is known of the run.
            _tell(outcome.error or RunError(str(error)), workload)
            return FAILED
        if outcome.error is not None and not watch.told:
            _tell(outcome.error, workload)
    if outcome.exit_code == exitcodes.INTERRUPTED:
        return INTERRUPTED
    return min(failed, MAX_FAILED)


def _consent() -> Consent:
    """Return the consent of the environment: fio's command line has no word for it."""
    paths = frozenset(filter(None, os.environ.get(ACCEPT, "").split(":")))
    return Consent(paths, remedy=_remedy)


def _remedy(paths: Sequence[str]) -> str:
    setting = f"set {ACCEPT}={':'.join(paths)}"
    return (
        f"{setting}, or {OVERWRITE}=1 for all files" if any(Path(one).is_file() for one in paths) else setting
    )


def _options(arguments: FioArguments, workload: Workload) -> ResolveOptions:
    # A line of the result per clone, unless whole groups share one and no log is apart.
    apart = any(not job.schedule.group_reporting or job.outputs.logs.wanted for job in workload.jobs)
    return ResolveOptions(
        per_clone_units=apart,
        read_only=arguments.read_only,
        aux_directory=arguments.aux_directory,
        header_layout=_layout(os.environ.get(VERIFY) or "3.42"),
    )


def _layout(version: str) -> HeaderLayout:
    if version not in _LAYOUTS:
        raise make_error(
            InputError, "cli.fio.version", variable=VERIFY, found=repr(version), names=" and ".join(_LAYOUTS)
        )
    return _LAYOUTS[version]


def _refuse_changes(plan: Plan, places: Mapping[str, Where]) -> None:
    """Refuse, for --readonly, what changes a file without being a write of a job."""
    written = guard.written(plan)
    for index, target in enumerate(plan.targets):
        is_missing = target.kind is TargetKind.FILE and target.identity is None
        if index not in written and not is_missing:
            continue
        # What writes was refused before: without more to lay out it is removed.
        removes = target.unlink or (target.layout is None and not is_missing)
        change = "removed" if removes else "made" if is_missing else "extended"
        raise RefusedError(
            messages.say("cli.fio.read_only", path=target.path, change=change),
            where=places.get(target.path),
            hint=messages.say("cli.fio.remove_unlink") if removes else messages.say("cli.fio.no_more"),
        )


@contextlib.contextmanager
def _bundle_directory(name: str) -> Iterator[Path]:
    keep = os.environ.get(KEEP)
    if keep:
        yield Path(keep) / f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name.safe(name)}-{os.getpid()}"
        return
    with temporary.directory() as directory:
        yield directory / "bundle"


@contextlib.contextmanager
def _output(name: str | None) -> Iterator[IO[str]]:
    if name is None:
        yield sys.stdout
        return
    with output.stream(Path(name)) as file:
        yield file


class _Watch:
    """The run's `Progress`: status line, errors as they come, results in between."""

    def __init__(self, arguments: FioArguments, workload: Workload, plan: Plan, results: FioResults) -> None:
        self._asked = arguments
        self._names = fio_names.by_path(workload)
        self._plan = plan
        self._results = results
        self._bundle: Path | None = None
        self._eta = _eta(arguments, plan)
        self._statuses = 0
        """Intervals whose results were printed."""
        self._idle = IdleTimes(arguments.idle_prof) if arguments.idle_prof else None
        results.idle = self._idle
        self._wanted = False
        """Somebody sent SIGUSR1, as to fio, to see the results so far."""
        self.told: set[int] = set()
        """Streams whose first error was printed."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Note where the bundle is; load what the results need while the engine works."""
        self._bundle = bundle
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGUSR1, self._asked_for_status)
        self._results.disks = Disks(plan)
        self._results.follow(bundle)
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=_load_early, daemon=True).start()

    def event(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        kind = event.get("type")
        if kind == "too_late":
            self._too_late(event)
        elif kind in {"io_error", "hung"} and event.get("stream") not in self.told:
            self.told.add(int(event["stream"]))
            self._error(event)
        elif kind == "damage":
            self.told.add(int(event["stream"]))
            sys.stderr.write(self._as_given(str(event.get("lines") or "")))
            sys.stderr.flush()
        elif kind == "write_state":
            save_state(self._plan, event, self._asked.aux_directory)
        elif kind == "note":
            self._results.notes.append(str(event.get("text")))
        self._eta.event(event)
        self._results.grow(event)
        if self._idle is not None:
            self._idle.event(str(kind))
        if kind in {"tick", "end"}:
            self._status(int(event.get("t_ns", 0)))

    def finish(self) -> None:
        """End the status line."""
        self._eta.finish()

    def _asked_for_status(self, *_: object) -> None:
        # Printed with the next tick: a handler may run in the middle of another line.
        self._wanted = True

    def _target(self, event: Mapping[str, Any]) -> str:
        """Return the target of an event by the name the job gave it, as fio does."""
        path = self._plan.targets[int(event["target"])].path
        return self._names.get(path, path)

    def _as_given(self, lines: str) -> str:
        """Return what fio prints of damage, with the names of files as the jobs have them."""
        return re.sub(r"(?<= at file )(.+?)(?= offset )", lambda it: self._names.get(it[1], it[1]), lines)

    def _error(self, event: Mapping[str, Any]) -> None:
        target = self._target(event)
        number = int(event.get("errno") or 0)
        reason = os.strerror(number) if number else "short or hung I/O"
        names = ("read", "write", "trim", "sync")
        op = event["op"] if isinstance(event["op"], str) else names[int(event["op"])]
        sys.stderr.write(
            f"fio: io_u error on file {target}: {reason}: {op} offset={event.get('offset')},"
            f" buflen={event.get('bytes')}\n"
        )
        sys.stderr.flush()

    def _too_late(self, event: Mapping[str, Any]) -> None:
        target = self._target(event)
        sys.stderr.write(
            f"fio: latency of {event['lat_ns']} nsec exceeds specified max ({event['max_ns']} nsec): "
            f"{target} {event['op']} {event['offset']} {event['bytes']}\n"
        )
        sys.stderr.flush()

    def _status(self, t_ns: int) -> None:
        """Print results where an interval is over by this time of the run, or somebody asked."""
        every_s = self._asked.status_interval_s
        due = int(t_ns / 1e9 / every_s) if every_s else 0
        if self._bundle is None or not (due > self._statuses or self._wanted):
            return
        self._statuses = max(due, self._statuses)
        self._wanted = False
        self._results.status(self._bundle, self._eta.left_s)


def _load_early() -> None:
    # Whoever needs it later loads it again, and hears why it cannot be loaded.
    with contextlib.suppress(Exception):
        importlib.import_module("loadstone.report.fio.collect")


def _eta(arguments: FioArguments, plan: Plan) -> Eta:
    """Return the status line, shown where fio would print one, always on standard output."""
    mixes_with_data = arguments.output is None and "normal" not in arguments.formats
    wanted = arguments.eta == "always" or (arguments.eta == "auto" and sys.stdout.isatty())
    # Drawn over and over; it holds numbers only.
    out = unfiltered(sys.stdout) if wanted and not mixes_with_data else None
    return Eta(plan, out, interval_s=arguments.eta_interval_s, newline_s=arguments.eta_newline_s)
