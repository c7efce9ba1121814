"""Every error a person can meet, as a tree.

Knows what an error says and which exit code it ends with. Knows nothing of how it is
shown: `cli` prints them, everything else raises them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone import exitcodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MORE_FILES: Final = "raise the limit on open files: ulimit -n 1024"
"""What helps against EMFILE and ENFILE."""
MOST_TOLD: Final = 10
"""Of more mistakes than fit on a screen the first are told."""


def system_error_number(error: BaseException) -> int | None:
    """Return the system's number of an error; libraries of other languages say it in words."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (match := re.search(r"os error (\d+)", str(error))):
        number = int(match[1])
    return number


def as_text(name: str) -> str:
    """Return a name that can be written anywhere: of bytes that are no UTF-8 their numbers."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Where:
    """Where in what the user gave: a file (or "command line"), a line from 1, an option."""

    file: str
    line: int | None = None
    option: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", as_text(self.file))

    def __str__(self) -> str:
        text = self.file if self.line is None else f"{self.file}:{self.line}"
        return text if self.option is None else f"{text}: {self.option}"


class LoadstoneError(Exception):
    """Root of the tree. `hint` names the remedy and is shown on a line of its own."""

    exit_code: int = exitcodes.FAILED

    def __init__(self, message: str, *, where: Where | None = None, hint: str | None = None) -> None:
        super().__init__(message if where is None else f"{where}: {message}")
        self.message = message
        self.where = where
        self.hint = hint

    def elsewhere(self, place: Callable[[Where | None], Where | None]) -> LoadstoneError:
        """Return the same error at another place than it names."""
        return type(self)(self.message, where=place(self.where), hint=self.hint)


class InputError(LoadstoneError):
    """What the user gave cannot be read or means nothing."""

    exit_code = exitcodes.USAGE


class NoStorageError(InputError):
    """A result is whole, and of something else than storage."""


class SeveralMistakesError(InputError):
    """More than one part of what the user gave is wrong. Each is an error with its own place and hint."""

    def __init__(self, errors: Sequence[LoadstoneError]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = tuple(errors)

    def elsewhere(self, place: Callable[[Where | None], Where | None]) -> LoadstoneError:
        """Return the same mistakes, each at another place."""
        return SeveralMistakesError([one.elsewhere(place) for one in self.errors])


def each(error: LoadstoneError) -> tuple[LoadstoneError, ...]:
    """Return the mistakes that an error tells of, one by one."""
    return error.errors if isinstance(error, SeveralMistakesError) else (error,)


def told(error: LoadstoneError) -> tuple[LoadstoneError, ...]:
    """Return what a screen has room for of an error's mistakes, and how many more there are."""
    mistakes = each(error)
    if len(mistakes) <= MOST_TOLD:
        return mistakes
    more = len(mistakes) - MOST_TOLD
    left_out = "1 more mistake is not listed" if more == 1 else f"{more} more mistakes are not listed"
    return (*mistakes[:MOST_TOLD], InputError(left_out, hint="fix those above, and try again"))


def raise_all(errors: Iterable[LoadstoneError]) -> None:
    """Raise what was found wrong: one error as it is, several together, and nothing without any.

    What is wrong in one place, and was met by several ways, counts once.
    """
    mistakes = list({(str(one), one.hint): one for error in errors for one in each(error)}.values())
    if len(mistakes) > 1:
        raise SeveralMistakesError(mistakes)
    for error in mistakes:
        raise error


class RefusedError(LoadstoneError):
    """It is understood and will not be done: it could destroy data or have no effect."""

    exit_code = exitcodes.USAGE


class RunError(LoadstoneError):
    """The run started and failed."""

    exit_code = exitcodes.FAILED


class EngineError(RunError):
    """The engine could not be started, ended by itself, or broke the contract."""


class BundleError(LoadstoneError):
    """A bundle cannot be read or written."""

    exit_code = exitcodes.USAGE
