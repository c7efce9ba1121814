"""Running several runs as a study: lists, repeats, sweeps, curves, and each of them again.

Knows the arguments that all of them take. Nobody is asked: what would lose data is refused unless its path
is named, or a `Consent` that asks is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from loadstone.api.jobs import read_runs, spec_option
from loadstone.api.jobs.job_changes import PYTHON, JobArguments, JobChanges, job_of
from loadstone.api.on_hosts import given_hosts, study_maker
from loadstone.api.one_run import consent_of, request_of, watched
from loadstone.api.place import default_directory
from loadstone.api.probed import ProbedFigures, budget_s, on_this_host
from loadstone.api.results import Study, open_study
from loadstone.api.studies.curves import prepare_curve
from loadstone.api.studies.lists import prepare_list
from loadstone.api.studies.prepared_study import StudyMeans, StudyOfJob, run_prepared
from loadstone.api.studies.repeats import prepare_repeats
from loadstone.api.studies.study_rerun import prepare_again
from loadstone.api.studies.sweeps import FactorName, prepare_sweep
from loadstone.errors import InputError, RunError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.studies.prepared_study import PreparedStudy
    from loadstone.audit.run import SealedFigures
    from loadstone.plan.safety.guard import Consent
    from loadstone.study.run import StudyProgress
    from loadstone.watch.address import WatchedAddress

Values = str | Sequence[int]
"""Of a factor: a list, or a text such as `1,2,4` or `1..256`."""


class HowArguments(TypedDict, total=False):
    """How a study is run; docs/python.md says what each does."""

    accept_data_loss: Sequence[Path | str] | Consent
    calibration: bool
    out: Path | str | None
    hosts: str | None
    divide: bool
    watch: Sequence[str | WatchedAddress]
    progress: StudyProgress | None
    check: bool


class StudyArguments(HowArguments, JobArguments, total=False):
    """The same, and what is changed about its jobs."""

    spec: Path | str | None


def run_all(
    job: Path | str,
    *more: Path | str,
    repeat: int | None = None,
    shuffle: int | None = None,
    vdbench_output: Path | str | None = None,
    probe: str | float | None = None,
    **arguments: Unpack[StudyArguments],
) -> Study:
    """Run a job file of several runs, or several job files, and return the study.

    A directory stands for the job files in it. `shuffle` draws the order of several files, `repeat` does all
    of them so many times, `vdbench_output` is a directory for vdbench's own files. With `probe`, short runs
    after each run tell what lies behind its number, within so many seconds. Raises as `run` does.
    """
    seconds = None if probe is None else budget_s(probe, PYTHON.at("probe"))
    changes = _changes(arguments)
    runs = read_runs.read(job_of(job), changes, [job_of(one) for one in more], shuffle)
    if runs is None:
        raise make_error(InputError, "api.study.one_run", job=job)
    request = _request(
        arguments, changes, job=str(job), more=[str(one) for one in more], repeat=repeat, probe=probe
    )
    output = None if vdbench_output is None else Path(vdbench_output)
    prepared = prepare_list(
        runs, changes, repeat=repeat, vdbench_output=output, sheet=_sheet(arguments), request=request
    )
    if seconds is None:
        return _done(prepared, arguments)
    if arguments.get("hosts") is not None:
        PYTHON.refuse("several runs on hosts", probe=probe)
    runner = on_this_host(consent_of(arguments.get("accept_data_loss", ())))
    return _done(prepared, arguments, lambda: ProbedFigures(seconds, runner))


def repeat(
    job: Path | str,
    times: int | None = None,
    *,
    until: str | None = None,
    **arguments: Unpack[StudyArguments],
) -> Study:
    """Run a job so many times, or `until` its mean rate is known as well as that, and return the study.

    `until` is the half width of the 95 % interval as a share of the mean, and perhaps a time: "2%,30m".
    Raises as `run` does.
    """
    if times is None and until is None:
        raise PYTHON.error("api.study.how_often", "repeat")
    study = _study_of(job, arguments, repeat=times, until=until)
    return _done(prepare_repeats(study, repeat=times, until=until), arguments)


def sweep(
    job: Path | str,
    *,
    iodepth: Values | None = None,
    bs: Values | None = None,
    read: Values | None = None,
    numjobs: Values | None = None,
    gain: str | None = None,
    repeat: int | None = None,
    **arguments: Unpack[StudyArguments],
) -> Study:
    """Run a job at every combination of one to three factors, and return the study.

    Factors are depths, block sizes in bytes (or as "4k..1m"), percents of reads, and clones: a list or a
    text. `gain` is what throughput must gain per doubling of the depth that is recommended, as "10%";
    `repeat` passes over all combinations. Raises as `run` does.
    """
    factors: dict[FactorName, Values | None] = {
        "bs": bs,
        "read": read,
        "numjobs": numjobs,
        "iodepth": iodepth,
    }
    # The last is drawn to the right and runs fastest.
    texts: dict[FactorName, str | None] = {name: _text(values) for name, values in factors.items()}
    study = _study_of(job, arguments, **texts, gain=gain, repeat=repeat)
    return _done(prepare_sweep(study, texts, gain=gain, repeat=repeat), arguments)


def curve(
    job: Path | str,
    *,
    points: str | None = None,
    slo: str | None = None,
    repeat: int | None = None,
    **arguments: Unpack[StudyArguments],
) -> Study:
    """Find a job's maximum, measure its latency at shares of it, and return the study.

    `points` are percents of the maximum, as "10,50,100", or "adaptive". `slo` is a limit as "p99<1ms", whose
    highest load is searched for. `repeat` measures every load so often. Raises as `run` does.
    """
    study = _study_of(job, arguments)
    return _done(prepare_curve(study, points=points, slo=slo, repeat=repeat), arguments)


def rerun_study(
    study: Study | Path | str, *, unverified: bool = False, **arguments: Unpack[HowArguments]
) -> Study:
    """Run the Plans of a study again, in their order, and return the new study; commands are not run again.

    `unverified` takes one that was altered. A study on hosts needs `hosts` of the same names. Raises
    `BundleError` for what is no study, `RefusedError` for an experiment, and as `run` does.
    """
    path = study.path if isinstance(study, Study) else Path(study)
    prepared, _ = prepare_again(
        path,
        _hosts(arguments),
        consent_of(arguments.get("accept_data_loss", ())),
        unverified=unverified,
    )
    return _done(prepared, arguments)


def _text(values: Values | None) -> str | None:
    return values if values is None or isinstance(values, str) else ",".join(map(str, values))


def _changes(arguments: StudyArguments) -> JobChanges:
    own = StudyArguments.__optional_keys__ - JobArguments.__optional_keys__
    return JobChanges.of(JobArguments(**{name: one for name, one in arguments.items() if name not in own}))  # type: ignore[typeddict-item] # of the same type


def _sheet(arguments: StudyArguments) -> DataSheet:
    path = arguments.get("spec")
    return spec_option.read(None if path is None else Path(path))


def _study_of(job: Path | str, arguments: StudyArguments, **options: Any) -> StudyOfJob:
    changes = _changes(arguments)
    request = _request(arguments, changes, job=str(job), **options)
    is_alone = arguments.get("hosts") is None
    return StudyOfJob(job_of(job), changes, _sheet(arguments), request, on_this_host=is_alone)


def _request(arguments: StudyArguments, changes: JobChanges, **options: Any) -> dict[str, Any]:
    consent = consent_of(arguments.get("accept_data_loss", ()))
    on = _hosts(arguments)
    return request_of(
        "python",
        {
            **options,
            **changes.document(),
            "i_accept_data_loss": sorted(consent.paths),
            **({} if on is None else on.document()),
        },
    )


def _hosts(arguments: HowArguments) -> GivenHosts | None:
    return given_hosts(arguments.get("hosts"), divide=arguments.get("divide", False))


def _done(
    prepared: PreparedStudy, arguments: HowArguments, figures: Callable[[], SealedFigures] | None = None
) -> Study:
    out, calibration = arguments.get("out"), arguments.get("calibration", True)
    outcome = run_prepared(
        prepared,
        StudyMeans(
            Path(out) if out is not None else default_directory(prepared.asked.name),
            consent_of(arguments.get("accept_data_loss", ())),
            calibration=calibration,
            watch=watched(arguments.get("watch", ())),
            progress=arguments.get("progress"),
            maker=study_maker(_hosts(arguments), prepared, calibration=calibration),
            figures=figures,
        ),
    )
    if arguments.get("check", True):
        if outcome.error is not None:
            raise outcome.error
        if outcome.study.status != "complete":
            raise make_error(
                RunError, "api.study.ended", status=outcome.study.status, path=repr(str(outcome.path))
            )
    return open_study(outcome.path)
