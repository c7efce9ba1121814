"""Running one job from Python: a job file, its text, or a named workload.

Knows the order: read, change, resolve, check, run, open. Nobody is asked: what would lose data is
refused unless its path is named. Lists of runs are the command line's.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import file_name
from loadstone.analysis.summary import summarise
from loadstone.api.results import Result
from loadstone.audit.run import audit
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.errors import InputError, RefusedError, RunError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, amount, size, time_ns
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language, recognise
from loadstone.formats.suggest import nearest
from loadstone.plan.model import RateProcess
from loadstone.plan.resolve import ResolveOptions, resolve
from loadstone.plan.safety.guard import Consent, check_consent
from loadstone.plan.stream import TotalRate
from loadstone.session import RunRequest, run_plan
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.workload.model import Workload

RUNS: Final = Path("loadstone-runs")


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
    accept_data_loss: Sequence[Path | str] = (),
    calibration: bool = True,
    out: Path | str | None = None,
    check: bool = True,
) -> Result:
    """Run a job file of fio, the text of one, or a named workload, and return its result.

    `job` with a line break is the text of a job file. `targets` are used instead of the job's,
    `targets_instead` replaces some by others. `runtime` is seconds or a time such as "5m", `size`
    bytes or a share such as "1g" or "20%", `rate` I/Os per second of all jobs together, `parameters`
    those of a named workload. What stands on a target may be lost only where `accept_data_loss` has
    its path. `out` is the bundle's directory [default: ./loadstone-runs/TIME-NAME].

    Raises `InputError`, `RefusedError` or `BundleError` before anything runs. A run that fails
    raises `RunError`, or with `check=False` is returned with its `error`.
    """
    changes = _Changes(
        targets=tuple(str(one) for one in targets),
        targets_instead=dict(targets_instead or {}),
        runtime=runtime,
        size=size,
        rate=None if rate is None else _per_second(rate),
        rate_process=rate_process,
        parameters={name: str(value) for name, value in (parameters or {}).items()},
    )
    workload = _changed(_read(job, changes.parameters), changes)
    _refuse_commands(workload)
    resolved = resolve(workload, options=ResolveOptions(rate=_total(changes)))
    consent = Consent(
        frozenset(str(one) for one in accept_data_loss),
        remedy=lambda paths: f"accept_data_loss=[{', '.join(map(repr, paths))}]",
    )
    check_consent(consent, [resolved.plan])
    directory = Path(out) if out is not None else _directory(workload.name)
    BundleWriter.check(directory)
    options = {"job": str(job), **asdict(changes), "i_accept_data_loss": sorted(consent.paths)}
    outcome = run_plan(
        resolved.plan,
        asked=RunRequest(
            request={"argv": sys.argv, "cwd": str(Path.cwd()), "front_end": "python", "options": options},
            inputs=workload.sources,
            workload_json=workload.model_dump_json(),
            notes=[note.model_dump(mode="json") for note in resolved.notes],
        ),
        out_dir=directory,
        consent=consent,
        result=_document,
        calibration=calibration,
    )
    if check and outcome.error is not None:
        raise outcome.error
    if check and outcome.status != "complete":
        raise RunError(
            f"the run was {outcome.status}", hint=f"open_bundle({str(directory)!r}) has its figures"
        )
    return Result(Bundle.open(directory), outcome.error)


def workloads() -> dict[str, str]:
    """Return the named workloads that `run` takes, and what each does."""
    entries = [catalogue.load(name) for name in catalogue.names()]
    return {entry.name: entry.meaning for entry in entries if not entry.is_procedure}


def _document(bundle: Bundle) -> dict[str, Any]:
    made = summarise(bundle)
    return made.document(audit(made))


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
        if job.ioscheduler:
            raise RefusedError(
                "is not set from Python",
                where=job.at("ioscheduler"),
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


def _directory(name: str) -> Path:
    """Return a new directory under ./loadstone-runs, named after the time and the job."""
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name.safe(name, most_bytes=64, keep='-_.')}"
    found, number = RUNS / stem, 1
    while os.path.lexists(found):
        number += 1
        found = RUNS / f"{stem}-{number}"
    return found
