"""The workload of a pattern: from a job file, a named workload, or options of its own.

Knows how each is read and that one run must come of it. Changes nothing for a level: that is `levels`'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import input_file
from loadstone.errors import InputError, LoadstoneError, Where, raise_all
from loadstone.experiment.amounts import size_bytes, time_s
from loadstone.experiment.file import level_name
from loadstone.formats import iometer, vdbench
from loadstone.formats.fio.override import with_options
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language, recognise
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.workload import catalogue
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.experiment.file import ExperimentFile, ExperimentPattern
    from loadstone.workload.model import Workload

SECOND_NS: Final = 10**9


def workload_of(
    pattern: ExperimentPattern,
    whole: ExperimentFile,
    file: Path,
    *,
    parameters: Mapping[str, str],
    targets: Sequence[str],
    targets_key: str,
    allow_exec: bool,
) -> Workload:
    """Return the workload of a pattern, with what the experiment says for all of them.

    `parameters`: levels of factors that are parameters; `targets`: where it works, none for its own;
    `targets_key`: where the file names them.
    """
    where = Where(str(file), option=f"patterns.{pattern.name}")
    try:
        workload = _read(pattern, whole, file, parameters=parameters, targets=targets, allow_exec=allow_exec)
        if pattern.job is not None or pattern.workload is not None:
            options = {key: level_name(value) for key, value in pattern.options.items()}
            workload = _with_options(workload, options, where)
        notes = workload.notes
        if targets:
            workload = _on_targets(workload, targets, Where(str(file), option=targets_key))
        # What the experiment's own file asks for needs no note that it was asked for.
        return _for_all(workload, whole, pattern).model_copy(update={"notes": notes})
    except LoadstoneError as error:
        raise error.elsewhere(lambda known: known or where) from error


def _with_options(workload: Workload, options: Mapping[str, str], where: Where) -> Workload:
    """Set options of the pattern in each job; what is wrong with one is told where the file has it."""
    try:
        return with_options(workload, options, where)
    except LoadstoneError as error:

        def place(known: Where | None) -> Where | None:
            own = known is not None and known.file == where.file and known.option in options
            return (
                Where(where.file, option=f"{where.option}.options.{known.option}") if own and known else known
            )

        raise error.elsewhere(place) from error


def _on_targets(workload: Workload, targets: Sequence[str], place: Where) -> Workload:
    """Return a workload on these targets; what is wrong with them is told where the file names them."""
    try:
        moved = workload.with_targets(targets)
    except LoadstoneError as error:
        raise error.elsewhere(lambda known: known or place) from error
    jobs = (
        job.model_copy(update={"set_at": {**job.set_at, "placement.targets": place}}) for job in moved.jobs
    )
    return moved.model_copy(update={"jobs": tuple(jobs)})


def says_io_size(pattern: ExperimentPattern, whole: ExperimentFile) -> bool:
    """Return whether the file says how much a pattern moves, apart from its size."""
    options = {*pattern.options, *(factor.option for factor in whole.factors)}
    return bool(options.intersection(("io_size", "io_limit")))


def _for_all(workload: Workload, whole: ExperimentFile, pattern: ExperimentPattern) -> Workload:
    if whole.size is not None:
        size = Amount(bytes=size_bytes(whole.size))
        workload = workload.with_size(size, io_size_stays=says_io_size(pattern, whole))
    if whole.runtime is not None:
        workload = workload.with_runtime(int(time_s(whole.runtime) * SECOND_NS))
        jobs = tuple(job.changed({"limits.time_based": True}) for job in workload.jobs)
        workload = workload.model_copy(update={"jobs": jobs})
    if whole.ramp is not None:
        ramp = {"limits.ramp_ns": int(time_s(whole.ramp) * SECOND_NS)}
        workload = workload.model_copy(update={"jobs": tuple(job.changed(ramp) for job in workload.jobs)})
    return workload


def _read(
    pattern: ExperimentPattern,
    whole: ExperimentFile,
    file: Path,
    *,
    parameters: Mapping[str, str],
    targets: Sequence[str],
    allow_exec: bool,
) -> Workload:
    where = Where(str(file), option=f"patterns.{pattern.name}")
    own_values = {key: level_name(value) for key, value in pattern.set.items()}
    values = own_values | dict(parameters)
    if pattern.workload is not None:
        return _named(pattern, values, where)
    language, path, content = Language.FIO, file, b""
    if pattern.job is not None:
        path = file.parent / pattern.job
        content = input_file.read(path, "job file")
        language = recognise(content, path.name)
    if language == Language.VDBENCH:
        return _of_vdbench(pattern, path, values, where, allow_exec=allow_exec)
    wrong: list[LoadstoneError] = [*_without_effect(own_values, parameters, whole, where)]
    try:
        if language == Language.IOMETER:
            workload = _of_iometer(pattern, path, content, targets)
        elif pattern.job is None:
            workload = _own(pattern, file, allow_exec=allow_exec)
        else:
            options = ReadOptions(allow_exec=allow_exec)
            workload = read_jobfiles([FileSource(path)], sections=pattern.section, options=options)
    except LoadstoneError as error:
        wrong.append(error)
    raise_all(wrong)
    return workload


def _named(pattern: ExperimentPattern, values: Mapping[str, str], where: Where) -> Workload:
    try:
        entry = catalogue.load(str(pattern.workload))
    except InputError as error:
        place = Where(where.file, option=f"{where.option}.workload")
        raise error.elsewhere(lambda known: known or place) from error
    if not entry.is_procedure:
        return entry.workload(values)
    if not _is_one_run(pattern, entry):
        raise make_error(
            InputError, "experiment.pattern.procedure", name=str(pattern.workload), runs=len(entry.runs())
        )
    (only,) = entry.runs(values)
    return only.workload


def _without_effect(
    own: Mapping[str, str], parameters: Mapping[str, str], whole: ExperimentFile, where: Where
) -> Iterator[LoadstoneError]:
    """Refuse parameters of a load that has none, where the pattern or the factor sets them."""
    for name in own:
        place = Where(where.file, option=f"{where.option}.set")
        yield make_error(InputError, "experiment.parameters.no_effect", where=place, name=repr(name))
    for factor in whole.factors:
        if factor.parameter in parameters:
            place = Where(where.file, option=f"factors.{factor.name}.parameter")
            name = repr(factor.parameter)
            yield make_error(InputError, "experiment.parameters.no_effect", where=place, name=name)


def _is_one_run(pattern: ExperimentPattern, entry: catalogue.CatalogueEntry) -> bool:
    values = {key: level_name(value) for key, value in pattern.set.items()}
    return len(entry.runs(values)) == 1 and entry.rounds is None


def _own(pattern: ExperimentPattern, file: Path, *, allow_exec: bool) -> Workload:
    lines = [f"{key}={level_name(value)}" for key, value in pattern.options.items()]
    text = "\n".join([f"[{pattern.name}]", *lines]) + "\n"
    source = TextSource(text, name=f"{file}: patterns.{pattern.name}.options", directory=file.parent)
    return read_jobfiles([source], options=ReadOptions(allow_exec=allow_exec))


def plain() -> Workload:
    """Return a load that any option may be tried on, where those of the file cannot be read."""
    return read_jobfiles([TextSource("[plain]\nrw=randread\nsize=1m\n", name="plain")])


def _of_vdbench(
    pattern: ExperimentPattern, path: Path, values: Mapping[str, str], where: Where, *, allow_exec: bool
) -> Workload:
    read = vdbench.read([path], variables=values, variables_where=where)
    runs = vdbench.expand(read)
    known = {run.definition.name for run in runs}
    _check_sections(pattern, known, path, "run definition")
    runs = [run for run in runs if not pattern.section or run.definition.name in pattern.section]
    titles = [run.title for run in runs]
    if len(runs) != 1:
        raise _several(path, titles)
    return vdbench.lower(read, runs[0], vdbench.Given(allow_exec=allow_exec))


def _of_iometer(pattern: ExperimentPattern, path: Path, content: bytes, targets: Sequence[str]) -> Workload:
    configuration = iometer.read_icf(content, str(path))
    runs = iometer.runs(configuration, iometer.CommandLineChanges(targets=list(targets)))
    known = {str(run.factors["access_specification"]) for run in runs}
    _check_sections(pattern, known, path, "access specification")
    runs = [
        run for run in runs if not pattern.section or run.factors["access_specification"] in pattern.section
    ]
    if len(runs) != 1:
        raise _several(path, [run.name for run in runs])
    return runs[0].workload


def _check_sections(pattern: ExperimentPattern, known: set[str], path: Path, kind: str) -> None:
    for name in pattern.section:
        if name not in known:
            raise make_error(
                InputError,
                "experiment.pattern.no_section",
                hint=nearest(name, known),
                path=path,
                what=kind,
                name=repr(name),
            )


def _several(path: Path, names: Sequence[str]) -> InputError:
    return make_error(
        InputError, "experiment.pattern.several", path=path, runs=len(names), names=", ".join(names[:6])
    )
