"""Running one job from Python: a job file, its text, or a named workload.

Knows the order: read, change, resolve, check, run, open. Nobody is asked: what would lose data is
refused unless its path is named. Lists of runs are the command line's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.api.one_run import HowRun, consent_of, request_of, run_once, watched
from loadstone.api.place import default_directory
from loadstone.api.probed import ProbedFigures, budget_s
from loadstone.bundle.write import BundleWriter
from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, amount, size, time_ns
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language, recognise
from loadstone.formats.suggest import nearest
from loadstone.plan.model import RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.plan.safety.guard import check_consent
from loadstone.plan.stream import TotalRate
from loadstone.session import RunRequest
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.api.results import Result
    from loadstone.plan.resolve import Resolution
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Progress
    from loadstone.watch.address import WatchedAddress
    from loadstone.workload.model import Workload


@dataclass(frozen=True)
class _Changes:
    targets: tuple[str, ...]
    targets_instead: dict[str, str]
    runtime: str | float | None
    size: str | None
    rate: float | None
    rate_process: str
    parameters: dict[str, str] = field(default_factory=dict)


def run(
    job: Path | str,
    *,
    targets: Sequence[Path | str] = (),
    targets_instead: Mapping[str, str] | None = None,
    runtime: str | float | None = None,
    size: str | None = None,
    rate: float | str | None = None,
    rate_process: str = "linear",
    parameters: Mapping[str, object] | None = None,
    accept_data_loss: Sequence[Path | str] | Consent = (),
    calibration: bool = True,
    probe: str | float | None = None,
    out: Path | str | None = None,
    watch: Sequence[str | WatchedAddress] = (),
    progress: Progress | None = None,
    check: bool = True,
) -> Result:
    """Run a job file of fio, the text of one, or a named workload, and return its result.

    `job` with a line break is the text of a job file. `targets` are used instead of the job's,
    `targets_instead` replaces some by others. `runtime` is seconds or a time such as "5m", `size`
    bytes or a share such as "1g" or "20%", `rate` I/Os per second of all jobs together, `parameters`
    those of a named workload. What stands on a target may be lost only where `accept_data_loss` has
    its path, or is a `Consent` that asks. With `probe`, short runs after the run tell what lies behind
    its number, for so long at most: seconds or a time such as "20s". `out` is the bundle's directory
    [default: ./loadstone-runs/TIME-NAME]. `watch` are hosts to watch, as "NAME=ssh://USER@HOST".
    `progress` sees the run while it runs.

    Raises `InputError`, `RefusedError` or `BundleError` before anything runs. A run that fails
    raises `RunError`, or with `check=False` is returned with its `error`.
    """
    changes = _changes(
        targets, targets_instead, runtime, size, rate=rate, rate_process=rate_process, parameters=parameters
    )
    workload, resolved = _planned(job, changes)
    seconds = None if probe is None else budget_s(probe, _at("probe"))
    consent = consent_of(accept_data_loss)
    check_consent(consent, [resolved.plan])
    directory = Path(out) if out is not None else default_directory(workload.name)
    BundleWriter.check(directory)
    options = {
        "job": str(job),
        **asdict(changes),
        "i_accept_data_loss": sorted(consent.paths),
        "probe": probe,
        "watch": [one for one in watch if isinstance(one, str)],
    }
    asked = RunRequest(
        request=request_of("python", options),
        inputs=workload.sources,
        workload_json=workload.model_dump_json(),
        notes=[note.model_dump(mode="json") for note in resolved.notes],
        watch=watched(watch),
    )
    return run_once(
        resolved.plan,
        asked,
        HowRun(directory, consent, calibration=calibration, progress=progress, check=check),
        None if seconds is None else ProbedFigures(seconds, consent),
    )


class PlannedJob:
    """What a job would do: its Plan, with every default resolved against this host."""

    def __init__(self, resolved: Resolution) -> None:
        self._resolved = resolved

    @property
    def memory_bytes(self) -> int:
        """How much memory the engine would hold."""
        return memory_bytes(self._resolved.plan)

    @property
    def notes(self) -> list[str]:
        """What is to be said of it."""
        return [note.text for note in self._resolved.notes]

    @property
    def targets(self) -> list[Path]:
        """Files and devices it would use."""
        return [Path(target.path) for target in self._resolved.plan.targets]

    def document(self) -> dict[str, Any]:
        """Return the Plan, as `loadstone plan --json` prints it."""
        return self._resolved.plan.model_dump(mode="json")


def plan_job(
    job: Path | str,
    *,
    targets: Sequence[Path | str] = (),
    targets_instead: Mapping[str, str] | None = None,
    runtime: str | float | None = None,
    size: str | None = None,
    rate: float | str | None = None,
    rate_process: str = "linear",
    parameters: Mapping[str, object] | None = None,
) -> PlannedJob:
    """Return what `run` would do with the same arguments; touch nothing. Raises what `run` would."""
    changes = _changes(
        targets, targets_instead, runtime, size, rate=rate, rate_process=rate_process, parameters=parameters
    )
    return PlannedJob(_planned(job, changes)[1])


def _changes(
    targets: Sequence[Path | str],
    targets_instead: Mapping[str, str] | None,
    runtime: str | float | None,
    size: str | None,
    *,
    rate: float | str | None,
    rate_process: str,
    parameters: Mapping[str, object] | None,
) -> _Changes:
    return _Changes(
        targets=tuple(str(one) for one in targets),
        targets_instead=dict(targets_instead or {}),
        runtime=runtime,
        size=size,
        rate=None if rate is None else _per_second(rate),
        rate_process=rate_process,
        parameters={name: str(value) for name, value in (parameters or {}).items()},
    )


def _planned(job: Path | str, changes: _Changes) -> tuple[Workload, Resolution]:
    workload = _changed(_read(job, changes.parameters), changes)
    _refuse_commands(workload)
    return workload, resolve(workload, options=ResolveOptions(rate=_total(changes)))


def _read(job: Path | str, parameters: Mapping[str, str]) -> Workload:
    if isinstance(job, str) and "\n" in job:
        return _fio(TextSource(job, name="job"), job.encode(), parameters)
    path = Path(job)
    known = catalogue.names()
    if str(job) in known and not path.is_file():
        entry = catalogue.load(str(job))
        if entry.is_procedure:
            raise InputError(f"{job} is a list of runs", hint=f"use `loadstone run {job}`, then open_study")
        return entry.workload(parameters)
    try:
        content = path.read_bytes()
    except OSError as error:
        hint = nearest(str(job), known) or "workloads() has the names"
        raise InputError(f"{job} cannot be read: {error.strerror}", hint=hint) from error
    return _fio(FileSource(path), content, parameters)


def _fio(source: FileSource | TextSource, content: bytes, parameters: Mapping[str, str]) -> Workload:
    name = source.path.name if isinstance(source, FileSource) else source.name
    if parameters:
        raise InputError(f"{name} is a job file and has no parameters", hint="they are for named workloads")
    language = recognise(content, name)
    if language is not Language.FIO:
        raise InputError(
            f"{name} is a job file of {language}, a list of runs",
            hint=f"use `loadstone run {name}`, then open_study",
        )
    return read_jobfiles([source], options=ReadOptions())


def _changed(found: Workload, changes: _Changes) -> Workload:
    if changes.targets_instead:
        found = found.map_targets(changes.targets_instead)
    if changes.targets:
        found = found.with_targets(changes.targets)
    if changes.size is not None:
        found = found.with_size(amount(changes.size, Reading(_at("size"))))
    if changes.runtime is not None:
        found = found.with_runtime(_nanoseconds(changes.runtime))
    return found


def _refuse_commands(found: Workload) -> None:
    for job in found.jobs:
        if job.process.ioscheduler:
            raise RefusedError(
                "is not set from Python",
                where=job.at("process.ioscheduler"),
                hint="set it in /sys/block/*/queue/scheduler",
            )


def _nanoseconds(runtime: str | float) -> int:
    if isinstance(runtime, str):
        return time_ns(runtime, Reading(_at("runtime")), SECOND_NS)
    if not 0 < runtime < 10**9:
        raise InputError(f"found {runtime}, expected seconds above 0", where=_at("runtime"))
    return round(runtime * SECOND_NS)


def _per_second(rate: float | str) -> float:
    found = float(size(rate, Reading(_at("rate"), kb_base=1000))) if isinstance(rate, str) else float(rate)
    if not 0 < found < float("inf"):
        raise InputError(f"found {rate!r}, expected I/Os per second above 0", where=_at("rate"))
    return found


def _total(changes: _Changes) -> TotalRate | None:
    processes = [one.value for one in RateProcess]
    if changes.rate_process not in processes:
        raise InputError(
            f"found {changes.rate_process!r}, expected {' or '.join(processes)}", where=_at("rate_process")
        )
    if changes.rate is None:
        return None
    process = RateProcess(changes.rate_process)
    return TotalRate(iops=changes.rate, process=process, profile=(), where=_at("rate"))


def _at(argument: str) -> Where:
    return Where("loadstone.run", option=argument)
