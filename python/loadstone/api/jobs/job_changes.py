"""What is changed about a job before it runs, and what who asks calls each change.

Knows that the same change is `--target` on the command line and `targets` in Python. Reads no file.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `name_of` turns the name of an argument here into theirs."""

    place: str
    name_of: Callable[[str], str] = str

    def at(self, argument: str | None = None) -> Where:
        """Return where an argument was given."""
        return Where(self.place, option=None if argument is None else self.name_of(argument))

    def error(
        self, key: str, argument: str | None = None, /, *, hint: str | None = None, **values: str | int | None
    ) -> InputError:
        """Return an error in an argument, with a message of the catalogue."""
        return make_error(InputError, key, where=self.at(argument), hint=hint, **values)

    @contextlib.contextmanager
    def given(self, argument: str | None = None) -> Iterator[Where]:
        """Say that an error comes from this argument where it names no place itself."""
        where = self.at(argument)
        try:
            yield where
        except LoadstoneError as error:
            raise error.elsewhere(lambda known: known or where) from error

    def refuse(self, what: str, **arguments: object) -> None:
        """Refuse arguments that would have no effect on something; None is not given."""
        for name, value in arguments.items():
            if value is not None:
                raise make_error(
                    InputError,
                    "api.option.no_effect_on",
                    where=self.at(name),
                    hint=say("api.option.leave_out"),
                    what=what,
                )


PYTHON: Final = Caller("loadstone")


@dataclass(frozen=True, slots=True)
class JobText:
    """A job file that lies in no file."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


Job = str | JobText
"""A path or the name of a workload, or the text itself."""


def job_of(job: Path | str) -> Job:
    """Return what a Python program named as its job: a str with a line break is the text itself."""
    return JobText("job", job.encode()) if isinstance(job, str) and "\n" in job else job_at(str(job))


def job_at(name: str) -> Job:
    """Return a job that has a name; what a pipe holds can be read only once."""
    path = Path(name)
    with contextlib.suppress(OSError, ValueError):
        if path.is_fifo():
            from loadstone import input_file

            return JobText(name, input_file.read(path, "job file"))
    return name


class JobArguments(TypedDict, total=False):
    """What may be changed about a job from Python; docs/python.md says what each does."""

    targets: Sequence[Path | str]
    targets_instead: Mapping[str, str]
    runtime: str | float | None
    size: str | None
    rate: str | float | None
    rate_process: str | None
    rate_profile: str | None
    parameters: Mapping[str, object]
    sections: Sequence[str]
    language: str | None
    warmup: str | float | None
    interval: str | float | None
    ramp_until_steady: bool
    keep_ioengine: bool
    journal: bool
    allow_exec: bool


@dataclass(frozen=True, slots=True)
class JobChanges:
    """What is changed; docs/python.md has each of them. Times are seconds or a text such as `5m`."""

    targets: Sequence[str] = ()
    targets_instead: Mapping[str, str] = field(default_factory=dict)
    runtime: str | float | None = None
    size: str | None = None
    rate: str | float | None = None
    rate_process: str | None = None
    rate_profile: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[str] = ()
    language: str | None = None
    warmup: str | float | None = None
    interval: str | float | None = None
    ramp_until_steady: bool = False
    keep_ioengine: bool = False
    journal: bool = False
    allow_exec: bool = False
    caller: Caller = PYTHON

    @classmethod
    def of(cls, caller_arguments: JobArguments) -> JobChanges:
        """Return what a Python program gave. Raises `TypeError` for an argument that there is not."""
        if unknown := caller_arguments.keys() - JobArguments.__optional_keys__:
            raise TypeError(f"unexpected keyword arguments: {', '.join(sorted(unknown))}")
        parameters = {name: str(value) for name, value in caller_arguments.get("parameters", {}).items()}
        arguments: dict[str, Any] = {**caller_arguments, "parameters": parameters}
        for name in ("targets", "sections"):
            arguments[name] = tuple(str(one) for one in arguments.get(name, ()))
        return cls(**arguments)

    def document(self) -> dict[str, Any]:
        """Return what was given, as `request.json` keeps it."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "caller"}

    def refuse(self, names: Sequence[str], what: str) -> None:
        """Refuse changes that would have no effect on something."""
        for name in names:
            value = getattr(self, name)
            absent = value is None or value is False or value in ((), {})
            self.caller.refuse(what, **{name: None if absent else value})
