"""Job files and named procedures that are several runs: how they are read, listed and run.

Knows which options make sense for them. A language's runs come from its own reader and controller.
"""

from __future__ import annotations

import importlib
import json as json_module
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.jobs import job_files
from loadstone.cli.jobs.read_workload import language_of, resolution
from loadstone.cli.options.arguments import COMMAND_LINE, LoadOptions
from loadstone.cli.running import commands, study
from loadstone.cli.running.hosts import StudyOnHosts
from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.recognise import Language
from loadstone.path.child import run_in_child
from loadstone.plan.derived import changes_trees
from loadstone.plan.safety import guard
from loadstone.plan.safety.in_use import Snapshot
from loadstone.study.run import StudyRequest
from loadstone.study.run_list import RepeatedList
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.cli.options.data_sheet import DataSheet
    from loadstone.cli.options.run_options import RunOptions
    from loadstone.plan.model import Plan
    from loadstone.session import Progress
    from loadstone.study.controller import Controller, Next
    from loadstone.workload.model import Note

FORMAT: Final = 1
"""Of the document of `loadstone plan FILE --json`."""


@dataclass(frozen=True, slots=True)
class RunList:
    """Everything a job file runs. `listing`: each run with its values, in order."""

    language: Language | Literal["catalogue", "files"]
    name: str
    made: Callable[[], Controller]
    """Makes a controller of all runs, at their start."""
    listing: list[dict[str, Any]]
    lines: list[str]
    """The same for people, a line per run, in the language's own words."""
    inputs: dict[str, bytes]
    notes: list[Note]
    settings: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Runs that the language's reader understands and will not do, and why."""
    once: str = ""
    """Why it cannot be repeated; empty: it can."""
    journal: bool = False
    """The job file asks for a journal of verified writes."""
    closing: Callable[[Controller], list[Any]] | None = None
    """Notes of the study's end."""
    watch: Callable[[Next], Progress | None] | None = None
    """Who shows a run while it runs, when the language has a way of its own."""
    output: Callable[[Path], study.Beside] | None = None
    """Who writes the files of `--vdbench-output` into a directory."""


def read(
    word: str, load: LoadOptions, more: Sequence[str] = (), shuffle: int | None = None
) -> RunList | None:
    """Read a job file of several runs; None when the word is one run.

    `more`: files that go on with it, or are runs of their own; `shuffle`: draws their order.
    """
    if job_files.apart([word, *more], load):
        found = job_files.read([word, *more], load, lambda one: _of_file(one, load), shuffle)
        return _with_journal(found, load)
    refuse_given("runs of one job file", shuffle=shuffle)
    return _of_file(word, load, more)


def _of_file(word: str, load: LoadOptions, more: Sequence[str] = ()) -> RunList | None:
    language = language_of(word, load)
    if any(language_of(one, load) is Language.VDBENCH for one in more):
        language = Language.VDBENCH  # The first may have little but comments.
    module = None if language is None else _READERS.get(language)
    if language is None and catalogue.load(word).is_procedure:
        module = "loadstone.cli.jobs.procedure"
    if module is None:
        refuse(load, ("interval", "warmup"), "a fio job file or a named workload")
        return None
    reader = importlib.import_module(module)
    found: RunList = reader.read(word, load, more) if more else reader.read(word, load)
    return _with_journal(found, load)


def _with_journal(found: RunList, load: LoadOptions) -> RunList:
    """Refuse a journal that nothing would be written to."""
    if load.journal and not any(_verifies(wanted) for wanted in found.made().known()):
        raise InputError(
            "no run writes what it verifies: the journal would be empty",
            where=Where(COMMAND_LINE, option="--journal"),
            hint="leave it out",
        )
    return found


def _verifies(wanted: Next) -> bool:
    return any(job.verification.verify and job.verification.do_verify for job in wanted.workload.jobs)


def _load_of(wanted: Next, load: LoadOptions, found: RunList) -> LoadOptions:
    """Return the options of one run: only a run that verifies what it writes keeps a journal."""
    return replace(load, journal=(load.journal or found.journal) and _verifies(wanted))


def execute(
    found: RunList, load: LoadOptions, options: dict[str, Any], run_options: RunOptions, sheet: DataSheet
) -> int:
    """Run all of them as a study and return the exit code; `repeat` and `vdbench_output` are options."""
    console.notes(found.notes)
    output = options.get("vdbench_output")
    if output is not None and found.output is None:
        raise _without_effect("vdbench_output", "what is no parameter file of vdbench")
    repeats = options.get("repeat")
    if repeats is not None and found.once:
        where = Where(COMMAND_LINE, option="--repeat")
        raise InputError(f"{found.name} cannot be repeated: {found.once}", where=where, hint="leave it out")
    controller = found.made() if repeats is None else RepeatedList(found.made, repeats)
    closing = found.closing
    asked = StudyRequest(
        kind="list",
        name=found.name,
        front_end=str(found.language),
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": str(found.language),
            "options": options,
        },
        inputs={**found.inputs, **sheet.inputs},
        settings=found.settings | ({} if repeats is None else {"repeats": repeats}),
        notes=[note.model_dump(mode="json") for note in found.notes],
        spec=sheet.spec,
    )
    return study.execute(
        controller,
        asked,
        run_options,
        lambda wanted: resolution(wanted.workload, _load_of(wanted, load, found)),
        None if closing is None else lambda: closing(controller),
        watch=found.watch,
        beside=None if output is None or found.output is None else found.output(Path(output)),
        on_hosts=StudyOnHosts(lambda wanted: _load_of(wanted, load, found)),
    )


def show(found: RunList, load: LoadOptions, *, json: bool) -> int:
    """Print the runs, and say which would be refused; touch nothing."""
    console.notes(found.notes)
    for name, why in found.refused.items():
        console.say(f"would be refused: {name}: {why}")
    refused = bool(found.refused) or _told_refused(found, load)
    if json:
        document = {
            "format": FORMAT,
            "language": str(found.language),
            "name": found.name,
            "runs": found.listing,
        }
        sys.stdout.write(json_module.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in found.lines))
    return exitcodes.USAGE if refused else exitcodes.DONE


def _told_refused(found: RunList, load: LoadOptions) -> bool:
    """Say which runs would be refused for what is on this host, and whether any would."""
    prepared = refused = False
    looked_at: set[str] = set()
    for wanted in found.made().known() if not found.refused else []:
        try:
            commands.check(wanted.workload)
            plan = resolution(wanted.workload, _load_of(wanted, load, found)).plan
        except (InputError, RefusedError) as error:
            if not prepared:  # What an earlier run makes is not there yet.
                console.say(f"would be refused: {wanted.name}: {error}")
                refused = True
        else:
            prepared = prepared or changes_trees(plan)
            refused = told_unsafe(plan, looked_at) or refused
        prepared = prepared or wanted.role == "prepare"
    return refused


def told_unsafe(plan: Plan, looked_at: set[str]) -> bool:
    """Say which targets could not be written, or only with consent; return whether one could not."""
    if not {target.path for target in plan.targets} - looked_at:
        return False

    def look() -> list[tuple[str, list[str], list[str]]]:
        host = Snapshot()
        wanted = [plan.targets[index] for index in sorted(guard.written(plan))]
        found = [guard.examine(target, host) for target in wanted if target.path not in looked_at]
        return [(one.path, one.refused, one.needs_consent) for one in found]

    refused = False
    for path, reasons, doubts in run_in_child(look, doing="looking at the targets"):
        looked_at.add(path)
        for reason in reasons:
            console.say(f"would be refused: {path}: {reason}")
        for reason in doubts if not reasons else []:
            console.say(f"would need --i-accept-data-loss {path}: {reason}")
        refused = refused or bool(reasons)
    return refused


def refuse_given(what: str, **options: object) -> None:
    """Refuse options of a verb that would have no effect on something."""
    for name, value in options.items():
        if value is not None:
            raise _without_effect(name, what)


def refuse(load: LoadOptions, names: tuple[str, ...], what: str) -> None:
    """Refuse options that would have no effect on something."""
    for name in names:
        if asdict(load)[name]:
            raise _without_effect(name, what)


def _without_effect(name: str, what: str) -> InputError:
    where = Where(COMMAND_LINE, option="--" + name.replace("_", "-"))
    return InputError(f"has no effect on {what}", where=where, hint="leave it out")


_READERS: Final = {
    Language.VDBENCH: "loadstone.cli.jobs.vdbench",
    Language.IOMETER: "loadstone.cli.jobs.iometer",
}
"""The modules that read a language of several runs, each with `read(word, load)`."""
