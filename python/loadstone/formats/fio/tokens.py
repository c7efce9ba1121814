"""Jobs given on a command line: `--name=job --rw=read --bs 4k --time_based`.

Knows how fio's command line turns into sections (options before the first `--name` are
defaults). Knows nothing of fio's options that are not about jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import InputError, Where
from loadstone.formats.fio.grammar import COMMAND_LINE, Parser, Section
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence


def sections(tokens: Sequence[str], parser: Parser) -> list[Section]:
    """Return the sections that `--option[=value]` and `--option value` tokens make."""
    all_sections: list[Section] = []
    waiting = list(tokens)
    while waiting:
        name, value = _option(waiting)
        if name == "name":
            if not value:
                raise make_error(
                    InputError, "formats_fio.tokens.needs_value", where=Where(COMMAND_LINE, option="--name")
                )
            all_sections.append(Section(value, Where(COMMAND_LINE, option=f"--name={value[:64]}")))
            continue
        if not all_sections:
            all_sections.append(Section("global", Where(COMMAND_LINE)))
        line = name if value is None else f"{name}={value}"
        all_sections[-1].entries.append(parser.entry(line, Where(COMMAND_LINE)))
    return all_sections


def _option(waiting: list[str]) -> tuple[str, str | None]:
    """Take one option and its value off the front."""
    token = waiting.pop(0)
    if not token.startswith("--"):
        raise make_error(
            InputError, "formats_fio.tokens.no_option", where=Where(COMMAND_LINE), token=f"{token!r}"
        )
    name, equals, value = token[2:].partition("=")
    if equals:
        return name, value
    if name == "name":
        return name, waiting.pop(0) if waiting else None
    option = BY_NAME.get(name)
    if option is None:
        raise make_error(
            InputError,
            "formats_fio.tokens.unknown",
            where=Where(COMMAND_LINE),
            hint=nearest(name, BY_NAME),
            name=f"{name[:64]!r}",
        )
    if option.flag or not waiting or waiting[0].startswith("--"):
        return name, None
    return name, waiting.pop(0)
