"""Several job files as one study: a list of files, or all that lie in a directory.

Knows which files of a directory are job files, and their order: as given, or shuffled from a seed.
A file of several runs does them in its own order. Reads no language itself.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loadstone import input_file
from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.api.jobs.job_source import language_of, source
from loadstone.api.jobs.read_workload import workload
from loadstone.api.jobs.run_list import RunList
from loadstone.errors import InputError, RefusedError, raise_all
from loadstone.formats.recognise import Language
from loadstone.study.controller import Next
from loadstone.study.list_controller import ChangedRuns, ListController

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.errors import LoadstoneError
    from loadstone.study.controller import Controller
    from loadstone.workload.model import Note, Workload

T = TypeVar("T")

SUFFIXES: Final = (".fio", ".job", ".ini", ".vdb", ".parm", ".vdbench", ".icf")
"""What job files are called; other files of a directory are left alone."""


def files_of(jobs: Sequence[Job], changes: JobChanges) -> list[Job]:
    """Put the job files of a directory in its place, in the order of their names."""
    files: list[Job] = []
    for job in jobs:
        if not _is_directory(job):
            files.append(job)
            continue
        inside = sorted(
            one for one in Path(str(job)).iterdir() if one.is_file() and one.suffix.lower() in SUFFIXES
        )
        if not inside:
            raise changes.caller.error("api.job.no_files", path=str(job), endings=", ".join(SUFFIXES))
        files += [str(one) for one in inside]
    return files


def _is_directory(job: Job) -> bool:
    return isinstance(job, str) and Path(job).is_dir()


def apart(jobs: Sequence[Job], changes: JobChanges) -> bool:
    """Tell whether these are runs of their own; files of vdbench that go on with each other are not."""
    if any(_is_directory(job) for job in jobs):
        return True
    if len(jobs) < 2:
        return False
    languages = _of_each(jobs, lambda job: language_of(job, changes))
    if Language.VDBENCH not in languages:
        return True
    # A file with little but comments is fio's by default, and goes on as well.
    return any(
        language is not Language.VDBENCH and (language is not Language.FIO or _has_sections(job, changes))
        for job, language in zip(jobs, languages, strict=True)
    )


def _has_sections(job: Job, changes: JobChanges) -> bool:
    job_source = source(job, changes)
    text = job_source.content if isinstance(job_source, JobText) else input_file.read(job_source, "job file")
    return any(line.lstrip().startswith(b"[") for line in text.splitlines())


def read(
    jobs: Sequence[Job],
    changes: JobChanges,
    one: Callable[[Job], RunList | None],
    shuffle: int | None = None,
) -> RunList:
    """Read all files. `one` reads a file of several runs, and says None of what is a single run."""
    job_files = files_of(jobs, changes)
    if shuffle is not None:
        random.Random(shuffle).shuffle(job_files)  # noqa: S311 - an order, no secret
    words = [str(job) for job in job_files]
    names = _names(words)
    lists: dict[str, RunList] = {}
    singles: dict[str, Workload] = {}
    for name, work in zip(
        names, _of_each(job_files, lambda job: one(job) or workload(job, changes)), strict=True
    ):
        if isinstance(work, RunList):
            lists[name] = work
        else:
            singles[name] = work.model_copy(update={"name": name})

    def parts() -> Controller:
        return ListController(
            [
                ChangedRuns(lists[name].made(), partial(_with_file, name))
                if name in lists
                else Next(name, singles[name])
                for name in names
            ]
        )

    return RunList(
        language="files",
        name=_title([str(job) for job in jobs], words),
        made=parts,
        listing=_listing(names, words, lists),
        lines=[line for name, word in zip(names, words, strict=True) for line in _lines(name, word, lists)],
        inputs=_inputs(lists, singles),
        notes=_notes(lists, singles),
        settings={"files": words, "shuffle": shuffle},
        refused={f"{name} {run}": why for name, runs in lists.items() for run, why in runs.refused.items()},
        once=next((f"{name}: {runs.once}" for name, runs in lists.items() if runs.once), ""),
        journal=any(runs.journal for runs in lists.values()),
    )


def _of_each(jobs: Sequence[Job], read_one: Callable[[Job], T]) -> list[T]:
    """Return what is read of each file. Raises what is wrong with any of them, together."""
    contents: list[T] = []
    wrong: list[LoadstoneError] = []
    for job in jobs:
        try:
            contents.append(read_one(job))
        except (InputError, RefusedError) as error:
            wrong.append(error)
    raise_all(wrong)
    return contents


def _with_file(name: str, wanted: Next) -> Next:
    """Return a run with the name of its file before its own."""
    return replace(wanted, name=f"{name} {wanted.name}")


def _names(words: Sequence[str]) -> list[str]:
    """Name each file by its stem, those of one stem by their whole name, those of one name by a number."""
    stems = [Path(word).stem if Path(word).is_file() else word for word in words]
    names = [
        Path(word).name if stems.count(stem) > 1 else stem for word, stem in zip(words, stems, strict=True)
    ]
    counts: dict[str, int] = {}
    unique_names = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        unique_names.append(f"{name} {counts[name]}" if names.count(name) > 1 else name)
    return unique_names


def _title(words: Sequence[str], names: Sequence[str]) -> str:
    """Name the study by its directory, or by how many files it has."""
    if len(words) == 1:
        return Path(words[0]).resolve().name
    parents = {str(Path(word).resolve().parent.name) for word in names}
    return f"{len(names)} files" + (f" of {parents.pop()}" if len(parents) == 1 else "")


def _listing(names: Sequence[str], words: Sequence[str], lists: dict[str, RunList]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, word in zip(names, words, strict=True):
        runs = lists[name].listing if name in lists else [{"name": name}]
        for run in runs:
            own = str(run["name"])
            full = f"{name} {own}" if name in lists else own
            rows.append({**run, "number": len(rows) + 1, "name": full, "file": word})
    return rows


def _lines(name: str, word: str, lists: dict[str, RunList]) -> list[str]:
    if name in lists:
        return [f"{name}: {line}" for line in lists[name].lines]
    return [f"{name}: {word}"]


def _inputs(lists: dict[str, RunList], singles: dict[str, Workload]) -> dict[str, bytes]:
    every = [runs.inputs for runs in lists.values()] + [one.sources for one in singles.values()]
    return {name: content for inputs in every for name, content in inputs.items()}


def _notes(lists: dict[str, RunList], singles: dict[str, Workload]) -> list[Note]:
    """Return what was said of any file, each thing once."""
    every = [*(note for runs in lists.values() for note in runs.notes)]
    every += [note for one in singles.values() for note in one.notes]
    return list(dict.fromkeys(every))
