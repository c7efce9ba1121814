"""Arguments that the verbs with a job share.

Knows names, help texts and what makes no sense together. Reads no file.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from loadstone.cli.options import suggestions
from loadstone.errors import InputError, LoadstoneError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND_LINE = "command line"
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

    def mapping(self) -> dict[str, str]:
        """`--map` as a dictionary."""
        return pairs(self.map, "--map", "OLD=NEW")

    def parameters(self) -> dict[str, str]:
        """`--set` as a dictionary."""
        return pairs(self.set, "--set", "NAME=VALUE")


@contextlib.contextmanager
def given_as(option: str | None = None) -> Iterator[Where]:
    """Say that an error comes from this option, or the command line, where it names no place itself."""
    where = Where(COMMAND_LINE, option=option)
    try:
        yield where
    except LoadstoneError as error:
        if error.where is not None:
            raise
        raise type(error)(error.message, where=where, hint=error.hint) from error


def pairs(words: list[str], option: str, shape: str) -> dict[str, str]:
    """Split words at their first `=`; raise `InputError` for one without, or a name given twice."""
    found: dict[str, str] = {}
    where = Where(COMMAND_LINE, option=option)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise InputError(f"{word!r} is not {shape}", where=where, hint=f"write {option} {shape}")
        if name in found:
            raise InputError(f"{name} is given twice", where=where, hint="keep one of the two")
        found[name] = value
    return found
