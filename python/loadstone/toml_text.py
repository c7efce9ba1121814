"""Text as TOML: what is none is refused in one way, whatever is wrong with it.

Knows the parser and what it raises besides its own error: numbers that are too long, and what is nested
too deep for whoever walks through it. Knows no file and no key.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import say
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEEPEST: Final = 64
"""Levels of tables and arrays; no file of ours has more than five."""


IN_TOML: Final = frozenset(
    (
        "tuple_type",
        "list_type",
        "dict_type",
        "int_type",
        "int_parsing",
        "int_from_float",
        "float_type",
        "bool_type",
        "string_type",
        "finite_number",
        "string_too_short",
    )
)
"""What pydantic calls it where a key takes something else; it speaks of Python's types."""
BOUNDS: Final = {
    "greater_than": "gt",
    "greater_than_equal": "ge",
    "less_than": "lt",
    "less_than_equal": "le",
}
"""What it calls a number beyond a bound, and the bound."""


class TomlError(ValueError):
    """It is no TOML. `line` where the parser says one."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def decoded(raw: bytes) -> str:
    """Return bytes as text without the mark that editors put first. Raises `UnicodeDecodeError`."""
    return raw.decode("utf-8-sig")


def parsed(text: str) -> dict[str, Any]:
    """Return the tables of a text. Raises `TomlError`."""
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise TomlError(say("toml.nested", most=DEEPEST)) from None
    except ValueError as error:
        # A number of thousands of digits is a plain ValueError.
        at = re.search(r"(.*) \(at (?:line (\d+), (column \d+)|end of document)\)", str(error))
        if at is None:
            raise TomlError(str(error)) from error
        # The line is told by whoever says it, before the message.
        # Its reader tells a table as Python's tuple.
        reason = re.sub(r"\('(.+?)',?\)", lambda names: "[" + names[1].replace("', '", ".") + "]", at[1])
        place = at[3] or say("toml.end_of_file")
        message = say("toml.wrong", reason=f"{reason[:1].lower()}{reason[1:]}", place=place)
        raise TomlError(message, int(at[2]) if at[2] else None) from error
    if _deeper(tables):
        raise TomlError(say("toml.nested", most=DEEPEST))
    return tables


def _deeper(document: dict[str, Any]) -> bool:
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def wrong_value(error: ErrorDetails) -> str:
    """Say what a key takes, and what was found there, in TOML's words."""
    kind, context = str(error["type"]).replace("model_type", "dict_type"), error.get("ctx", {})
    kind = kind.replace("bool_parsing", "bool_type")
    if kind == "too_short":
        return say("toml.expected.too_short", least=context["min_length"], found=context["actual_length"])
    if kind in ("tuple_type", "list_type") and isinstance(error.get("input"), dict):
        return say("toml.expected.tables", name=str(error["loc"][-1]))
    if kind == "literal_error":
        message = say("toml.expected.literal_error", choices=context["expected"])
    elif kind in BOUNDS:
        message = say(f"toml.expected.{kind}", bound=f"{context[BOUNDS[kind]]:.15g}")
    elif kind in IN_TOML:
        message = say(f"toml.expected.{kind}")
    else:
        message = str(error["msg"]).removeprefix("Value error, ")
    value = error.get("input")
    shown = isinstance(value, (str, int, float)) and (kind in BOUNDS or repr(value)[:40] not in message)
    input_text = str(value).lower() if isinstance(value, bool) else repr(value)[:80]
    return message + (say("toml.expected.found", found=input_text) if shown else "")


def near_choice(error: ErrorDetails) -> str | None:
    """Return a hint for a text that is none of the few that a key takes."""
    value = error.get("input")
    if error["type"] != "literal_error" or not isinstance(value, str):
        return None
    return nearest(value, re.findall(r"'([^']+)'", str(error["ctx"]["expected"])), limit=0)
