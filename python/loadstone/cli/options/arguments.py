"""Arguments that the verbs with a job share.

Knows names, help texts and what makes no sense together. Reads no file.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from loadstone.api.jobs.job_changes import Caller, JobChanges, JobText, job_at
from loadstone.cli.options import suggestions
from loadstone.errors import InputError, Where
from loadstone.messages import make_error

COMMAND_LINE = "command line"
STANDARD_INPUT: Final = "-"
_OPTIONS: Final = {
    "targets": "--target",
    "targets_instead": "--map",
    "parameters": "--set",
    "sections": "--section",
}
Repeat = Parameter(negative="", show_default=False)
Flag = Parameter(negative="", show_default=False)
OfParameters = Parameter(completer=suggestions.parameters)
OfSections = Parameter(completer=suggestions.sections)
Unverified = Annotated[
    bool,
    Parameter(
        negative="",
        show_default=False,
        help="Read also what was altered, added or lost since it was sealed; all that is written says so.",
    ),
]
Job = Annotated[
    str,
    Parameter(
        completer=suggestions.jobs_and_files,
        help="A job file of fio, vdbench or Iometer, `-` for standard input, or a name from "
        "`loadstone workloads`.",
    ),
]
OneJob = Annotated[
    str,
    Parameter(
        completer=suggestions.jobs_and_files,
        help="A job file of fio, or one run of vdbench's, `-` for standard input, or a name from "
        "`loadstone workloads`.",
    ),
]
Sheet = Annotated[
    Path | None,
    Parameter(help="A data sheet of the storage as TOML (docs/spec.md): results are shown as a share of it."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class LoadOptions:
    """What to run, and what to change about it."""

    target: Annotated[list[str], Repeat] = field(default_factory=list)
    """File or device to use instead of those named (repeat for several)."""
    map: Annotated[list[str], Repeat] = field(default_factory=list)
    """Replace one target by another, as OLD=NEW (repeat for several)."""
    runtime: str | None = None
    """Longest time each job runs, as 30s or 5m."""
    size: str | None = None
    """Bytes each job works on, as 1g or 20%."""
    rate: str | None = None
    """I/Os per second of all jobs that run at the same time, as 20000 or 20k."""
    rate_process: Literal["linear", "poisson"] | None = None
    """Spacing of these I/Os: evenly, or with random gaps as from many users [default: linear]."""
    rate_profile: str | None = None
    """Share of the rate over time, as 0s:10%,60s:100%; straight lines between, a time twice is a step."""
    set: Annotated[list[str], Repeat, OfParameters] = field(default_factory=list)
    """Set a parameter of a named workload, as NAME=VALUE (repeat for several)."""
    section: Annotated[list[str], Repeat, OfSections] = field(default_factory=list)
    """Run only this section of a job file, or this job of a named workload (repeat for several)."""
    language: Literal["fio", "vdbench", "iometer"] | None = None
    """Language of the job file [default: told from its content]."""
    warmup: str | None = None
    """Time before the measurement of each run of a parameter file, as 30s."""
    interval: str | None = None
    """Reporting interval of each run of a parameter file, as 5s."""
    ramp_until_steady: Annotated[bool, Flag] = False
    """After the run, leave out its start up to where the load had settled; no run gets longer by it."""
    keep_ioengine: Annotated[bool, Flag] = False
    """Run on the job file's I/O engine, not on io_uring in its place."""
    journal: Annotated[bool, Flag] = False
    """Note every verified write, so that `loadstone verify` can tell what a crash left."""
    allow_exec: Annotated[bool, Flag] = False
    """Permit the commands in the job file (exec_prerun, exec_postrun) to run."""

    def changes(self) -> JobChanges:
        """Return what the options change. Raises `InputError` for what is no OLD=NEW or NAME=VALUE."""
        return JobChanges(
            targets=tuple(self.target),
            targets_instead=pairs(self.map, "--map", "OLD=NEW"),
            runtime=self.runtime,
            size=self.size,
            rate=self.rate,
            rate_process=self.rate_process,
            rate_profile=self.rate_profile,
            parameters=pairs(self.set, "--set", "NAME=VALUE"),
            sections=tuple(self.section),
            language=self.language,
            warmup=self.warmup,
            interval=self.interval,
            ramp_until_steady=self.ramp_until_steady,
            keep_ioengine=self.keep_ioengine,
            journal=self.journal,
            allow_exec=self.allow_exec,
            caller=SHELL,
        )


def option_of(argument: str) -> str:
    """Return the option that is an argument of the Python API."""
    return _OPTIONS.get(argument) or f"--{argument.replace('_', '-')}"


SHELL: Final = Caller(COMMAND_LINE, option_of)
"""Who asks by options."""


def job_of(word: str) -> str | JobText:
    """Return the job that a word names; what stands on standard input is read once."""
    return _standard_input() if word == STANDARD_INPUT else job_at(word)


@functools.cache
def _standard_input() -> JobText:
    return JobText("standard input", sys.stdin.buffer.read())


def pairs(words: list[str], option: str, shape: str) -> dict[str, str]:
    """Split words at their first `=`; raise `InputError` for one without, or a name given twice."""
    values: dict[str, str] = {}
    where = Where(COMMAND_LINE, option=option)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise make_error(
                InputError, "cli.option.pair", where=where, found=repr(word), shape=shape, option=option
            )
        if name in values:
            raise make_error(InputError, "cli.option.name_twice", where=where, name=name)
        values[name] = value
    return values
