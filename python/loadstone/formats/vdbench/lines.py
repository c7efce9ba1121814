"""Parameter files as lines: comments, ends, includes, variables, repetition for hosts.

Knows which lines count and where each was written. Knows no keyword but `include` and the names
of the entities that a host is put into.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone import file_kind, input_file
from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_FILE_BYTES: Final = 1 << 20
MAX_LINES: Final = 32_768
_COMMENTS: Final = ("/", "#", "*")
_UNRESOLVED: Final = re.compile(r"=[$!](?!hosts?\b)(\w*)")
_ENTITY: Final = ("sd", "fsd", "wd", "fwd", "rd")
_HOST: Final = re.compile(r"[$!]host|#host(?!s)")


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """One line that is no comment, without the blanks around it."""

    text: str
    where: Where


@dataclass(slots=True)
class LineReader:
    """Reads parameter files, one after the other."""

    variables: Mapping[str, str]
    """What `$name` and `!name` stand for."""
    sources: dict[str, bytes] = field(default_factory=dict)
    """Path to content of every file read."""
    used: set[str] = field(default_factory=set)
    """Variables that were put in somewhere."""

    def file(self, path: Path) -> list[ParameterLine]:
        """Read a file and what it includes."""
        return self.text(self._load(path, None), str(path), path.parent)

    def text(self, text: str, name: str, directory: Path | None) -> list[ParameterLine]:
        """Read the text of a file; `directory` None: it is an included one, which includes none."""
        lines: list[ParameterLine] = []
        for number, raw in enumerate(text.split("\n"), start=1):
            where = Where(name, number)
            line = self._substituted(raw, where).strip()
            if line.startswith("eof"):
                break
            if not line or line.startswith(_COMMENTS):
                continue
            if line.startswith("include="):
                lines += self._included(line.removeprefix("include="), where, directory)
            else:
                lines.append(ParameterLine(line, where))
            if len(lines) > MAX_LINES:
                raise make_error(
                    InputError, "formats_vdbench.lines.too_many", where=where, max_lines=MAX_LINES
                )
        return lines

    def refuse_unused(self, where: Where) -> None:
        """Refuse a variable that stands nowhere."""
        for name in self.variables:
            if name not in self.used:
                raise make_error(
                    InputError,
                    "formats_vdbench.lines.unused_variable",
                    where=where,
                    hint=nearest(name, self.used) or say("formats_vdbench.lines.write_it", name=name),
                    name=name,
                )

    def _load(self, path: Path, where: Where | None) -> str:
        raw = input_file.read(path, "parameter file", MAX_FILE_BYTES, where)
        self.sources[str(path)] = raw
        return decode(raw)

    def _included(self, target: str, where: Where, directory: Path | None) -> list[ParameterLine]:
        where = Where(where.file, where.line, "include")
        target = target.split(" ", 1)[0]
        if directory is None:
            raise make_error(InputError, "formats_vdbench.lines.nested_include", where=where)
        if not target or "\0" in target:
            raise make_error(InputError, "formats_vdbench.lines.no_file", where=where)
        # A name without a folder is looked for beside the including file first.
        beside = directory / target if "/" not in target else Path(target)
        path = beside if file_kind.is_file(beside) else Path(target)
        return self.text(self._load(path, where), str(path), None)

    def _substituted(self, line: str, where: Where) -> str:
        # The longest name first, so that $size2 is not $size with a 2 behind it.
        for name in sorted(self.variables, key=len, reverse=True):
            for mark in ("$", "!"):
                if mark + name in line:
                    line = line.replace(mark + name, self.variables[name])
                    self.used.add(name)
        if not line.lstrip().startswith(_COMMENTS) and (match := _UNRESOLVED.search(line)):
            name = match[1]
            hint = nearest(name, self.variables) or say("formats_vdbench.lines.set_it", name=name or "NAME")
            raise make_error(
                InputError, "formats_vdbench.lines.no_variable", where=where, hint=hint, name=f"{name!r}"
            )
        if "\0" in line:
            raise make_error(InputError, "formats_vdbench.lines.nul", where=where)
        return line


def decode(raw: bytes) -> str:
    """Return the text of a parameter file: UTF-8, or else the code page of western Windows."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def repeated(lines: Sequence[ParameterLine], hosts: Sequence[str]) -> list[ParameterLine]:
    """Repeat entities with `$host`, `!host` or `#host` for each host; put the count in for `#hosts`.

    Entities without stay as they are; a run definition is never repeated.
    """
    repeated_lines: list[ParameterLine] = []
    group: list[ParameterLine] = []
    for line in [ParameterLine(line.text.replace("#hosts", str(len(hosts))), line.where) for line in lines]:
        if line.text.startswith(_ENTITY):
            repeated_lines += _for_hosts(group, hosts)
            group = []
        group.append(line)
    return repeated_lines + _for_hosts(group, hosts)


def _for_hosts(group: Sequence[ParameterLine], hosts: Sequence[str]) -> list[ParameterLine]:
    named = any(_HOST.search(line.text) for line in group)
    if not named or group[0].text.startswith("rd") or not group[0].text.startswith(_ENTITY):
        return list(group)
    return [
        ParameterLine(_with_host(line.text, host, number), line.where)
        for number, host in enumerate(hosts)
        for line in group
    ]


def _with_host(text: str, host: str, number: int) -> str:
    return text.replace("$host", host).replace("!host", host).replace("#host", str(number))
