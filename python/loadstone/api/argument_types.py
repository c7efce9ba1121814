"""What each argument of the public functions may be: one name means the same in all of them.

Knows types alone. What a text or a number says is read, and refused, where it is used.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATH: Final = (str, os.PathLike)


@dataclass(frozen=True, slots=True)
class Expected:
    """The types of an argument, the name of their description, and whether it is a list of them."""

    types: tuple[type, ...]
    words: str
    is_list: bool = False
    attribute: str | None = None
    """What an object of the caller's own has, where one will do."""

    def allows(self, value: object) -> bool:
        """Tell whether a value may stand here; None always may, and is what the function takes it for."""
        if value is None or (self.attribute is not None and hasattr(value, self.attribute)):
            return True
        if not self.is_list:
            return self._is_one(value)
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
            return False
        return all(self._is_one(one) for one in value)

    def _is_one(self, value: object) -> bool:
        # To Python True is the number 1: as a depth or a time it is a slip.
        if isinstance(value, bool) and bool not in self.types:
            return False
        return isinstance(value, self.types) or (
            self.attribute is not None and hasattr(value, self.attribute)
        )


_A_PATH: Final = Expected(_PATH, "path")
_A_RESULT: Final = Expected(_PATH, "result", attribute="path")
_A_JOB: Final = Expected(_PATH, "job")
_A_FLAG: Final = Expected((bool,), "flag")
_A_TEXT: Final = Expected((str,), "words")
_A_TIME: Final = Expected((str, int, float), "time")
_A_COUNT: Final = Expected((int,), "count")
_A_SHARE: Final = Expected((int, float), "share")
_A_MAPPING: Final = Expected((Mapping,), "mapping")
_PATHS: Final = Expected(_PATH, "paths", is_list=True)
_NAMES: Final = Expected((str,), "names", is_list=True)

EXPECTED: Final[Mapping[str, Expected]] = {
    "accept_data_loss": Expected(_PATH, "paths", is_list=True, attribute="beforehand"),
    "allow_exec": _A_FLAG,
    "alpha": _A_SHARE,
    "bs": Expected((int,), "values", is_list=True),
    "bundle": _A_RESULT,
    "calibration": _A_FLAG,
    "check": _A_FLAG,
    "directory": _A_PATH,
    "divide": _A_FLAG,
    "file": _A_PATH,
    "force": _A_FLAG,
    "gain": _A_TEXT,
    "hosts": _A_TEXT,
    "interval": _A_TIME,
    "iodepth": Expected((int,), "values", is_list=True),
    "job": _A_JOB,
    "journal": _A_FLAG,
    "keep_ioengine": _A_FLAG,
    "language": _A_TEXT,
    "leave_out_unset": _A_FLAG,
    "limit": _A_COUNT,
    "more": _A_JOB,
    "numjobs": Expected((int,), "values", is_list=True),
    "other_targets": Expected(_PATH, "paths", is_list=True, attribute="beforehand"),
    "others": _A_PATH,
    "out": _A_PATH,
    "output": _A_PATH,
    "parameters": _A_MAPPING,
    "path": _A_PATH,
    "points": _A_TEXT,
    "probe": _A_TIME,
    "progress": Expected((), "progress", attribute="begin"),
    "ramp_until_steady": _A_FLAG,
    "rate": Expected((str, int, float), "rate"),
    "rate_process": _A_TEXT,
    "rate_profile": _A_TEXT,
    "read": Expected((int,), "values", is_list=True),
    "repeat": _A_COUNT,
    "result": _A_PATH,
    "results": _A_RESULT,
    "runtime": _A_TIME,
    "sections": _NAMES,
    "shuffle": _A_COUNT,
    "size": _A_TEXT,
    "slo": _A_TEXT,
    "spec": _A_PATH,
    "study": _A_RESULT,
    "targets": _PATHS,
    "targets_instead": _A_MAPPING,
    "tell": Expected((), "function", attribute="__call__"),
    "times": _A_COUNT,
    "unverified": _A_FLAG,
    "until": _A_TEXT,
    "vdbench_output": _A_PATH,
    "warmup": _A_TIME,
    "watch": Expected((str,), "watched", is_list=True, attribute="url"),
}
"""By the argument's name. Lists of numbers may be written as one text: see `_VALUES`."""

_VALUES: Final = frozenset({"bs", "iodepth", "numjobs", "read"})


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked before it does anything.

    It raises `InputError` for a value of a type that its argument cannot have, with what was expected.
    A traceback of any error of ours shows its remedy.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*positional: object, **named: object) -> object:
        try:
            for name, value in _one_by_one(signature.bind(*positional, **named)):
                _check(name, value)
            return function(*positional, **named)
        except LoadstoneError as error:
            if error.hint is not None:
                # A traceback shows the remedy too.
                error.add_note(error.hint)
            raise

    return call


def _one_by_one(bound: inspect.BoundArguments) -> Iterator[tuple[str, object]]:
    """Yield each value with its name: those of `*results` one by one, those of `**changes` by their own."""
    for name, value in bound.arguments.items():
        match bound.signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                yield from ((name, one) for one in value)
            case inspect.Parameter.VAR_KEYWORD:
                yield from value.items()
            case _:
                yield name, value


def _check(name: str, value: object) -> None:
    expected = EXPECTED.get(name)
    if expected is None or expected.allows(value) or (name in _VALUES and isinstance(value, str)):
        return
    raise make_error(
        InputError,
        "api.argument.type",
        where=Where("loadstone", option=name),
        found=repr(value),
        expected=say(f"api.argument.{expected.words}"),
    )
