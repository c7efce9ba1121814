"""The shape of a job file: lines, comments, sections, includes, environment.

Knows how text becomes sections of `name=value` entries, each with its place. Knows no
option and reads no value. What is read from disk is kept byte for byte.
Grammar: fio's HOWTO, "Job file format".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone import input_file
from loadstone.errors import InputError, Where
from loadstone.formats import quote
from loadstone.formats.fio.numbers import Reading, evaluate
from loadstone.messages import make_error, say
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

MAX_INCLUDE_DEPTH: Final = 10
COMMAND_LINE: Final = "<command line>"
_SECTION = re.compile(r"\[(?P<name>[^\]]*)\]")
_COMMENT = re.compile(r"[;#]")
_COMMENT_LINE = re.compile(rb"^[ \t]*[#;].*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_KEYWORD = re.compile(r"\$(pagesize|mb_memory|ncpus)\b")
_ARITHMETIC = re.compile(r"[\d\s.+\-*/%^()]*\d[\d\s.+\-*/%^()]*\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One `name=value` (value None: only the name)."""

    name: str
    value: str | None
    where: Where
    blank_before: bool = False


@dataclass(slots=True)
class Section:
    """A job, or defaults for the jobs after it."""

    name: str
    where: Where
    entries: list[Entry] = field(default_factory=list)

    @property
    def is_default(self) -> bool:
        """Any name that begins with `global` is a section of defaults."""
        return self.name.startswith("global")


@dataclass(frozen=True, slots=True)
class Environment:
    """What a job file may ask about its surroundings."""

    variables: Mapping[str, str]
    pagesize_bytes: int
    memory_mb: int
    cpus: int


@dataclass(slots=True)
class Parser:
    """Turns sources into sections, collecting notes and what was read."""

    environment: Environment
    strict: bool
    notes: list[Note] = field(default_factory=list)
    sources: dict[str, bytes] = field(default_factory=dict)
    known: Collection[str] = ()
    """Names of options: they may be quoted wherever they stand."""

    def file(self, path: Path) -> list[Section]:
        """Read a job file and what it includes."""
        return self.text(self._load(path, None), str(path), path.parent)

    def text(self, text: str, name: str, directory: Path) -> list[Section]:
        """Read the text of a job file; includes are relative to `directory`."""
        sections: list[Section] = []
        self._lines(text, name, directory, sections, 0)
        return sections

    def _load(self, path: Path, where: Where | None) -> str:
        raw = input_file.read(path, "job file", where=where)
        self.sources[str(path)] = raw
        return decode(raw, str(path))

    def _lines(self, text: str, name: str, directory: Path, sections: list[Section], depth: int) -> None:
        for line_number, raw in enumerate(text.split("\n"), start=1):
            where = Where(name, line_number)
            line = self._uncommented(raw, where).strip()
            if not line:
                continue
            if line.startswith("["):
                if depth:
                    raise make_error(InputError, "formats_fio.grammar.included_section", where=where)
                sections.append(self._section(line, where))
            elif re.match(r"include\s*[=\s]", line):
                target = re.sub(r"\Ainclude\s*=?\s*", "", line)
                self._include(self._substitute(target, where), where, directory, sections, depth)
            elif not sections:
                raise make_error(
                    InputError,
                    "formats_fio.grammar.before_section",
                    where=where,
                    quote=quote.line(line, self.known),
                )
            else:
                sections[-1].entries.append(self.entry(line, where))

    def _uncommented(self, raw: str, where: Where) -> str:
        match = _COMMENT.search(raw)
        if match is None:
            return raw
        before_comment = raw[: match.start()]
        if before_comment.strip() and not before_comment[-1].isspace():
            rest = raw[match.start() :].strip()
            self._note(where, say("formats_fio.grammar.comment", rest=repr(rest[:20])))
        return before_comment

    def _section(self, line: str, where: Where) -> Section:
        match = _SECTION.match(line)
        if match is None:
            raise make_error(InputError, "formats_fio.grammar.no_section", where=where, shown=quote.UNSHOWN)
        name = match["name"]
        if not name.strip():
            raise make_error(InputError, "formats_fio.grammar.section_unnamed", where=where)
        rest = line[match.end() :].strip()
        if rest:
            raise make_error(InputError, "formats_fio.grammar.after_section", where=where)
        if len(name) > 255:
            raise make_error(InputError, "formats_fio.grammar.section_long", where=where)
        return Section(name, where)

    def _include(
        self, target: str, where: Where, directory: Path, sections: list[Section], depth: int
    ) -> None:
        if depth >= MAX_INCLUDE_DEPTH:
            raise make_error(
                InputError,
                "formats_fio.grammar.include_depth",
                where=where,
                max_include_depth=MAX_INCLUDE_DEPTH,
            )
        if not target or "\0" in target:
            raise make_error(InputError, "formats_fio.grammar.include_no_file", where=where)
        path = directory / target
        self._lines(self._load(path, where), str(path), path.parent, sections, depth + 1)

    def entry(self, line: str, where: Where) -> Entry:
        """Read `name=value` or `name`."""
        name, equals, value = line.partition("=")
        name = name.strip()
        shown = quote.name(name, has_value=bool(equals and value.strip()), known=self.known)
        where = Where(where.file, where.line, shown)
        if not equals:
            return Entry(name, None, where)
        blank = value[:1].isspace()
        return Entry(name, self._substitute(value.strip(), where), where, blank)

    def _substitute(self, value: str, where: Where) -> str:
        """Put in `${VARIABLE}`, then `$ncpus` and its like with their arithmetic."""

        def variable(match: re.Match[str]) -> str:
            name = match[1]
            if name in self.environment.variables:
                return self.environment.variables[name]
            if not self.strict:
                raise make_error(
                    InputError,
                    "formats_fio.grammar.no_variable",
                    where=where,
                    name=f"{name!r}",
                    variable=name,
                )
            self._note(where, say("formats_fio.grammar.variable_unset", name=repr(name)))
            return ""

        value = _VARIABLE.sub(variable, value)
        if "\0" in value:
            raise make_error(InputError, "formats_fio.grammar.nul_included", where=where)
        replaced = _KEYWORD.sub(self._keyword, value)
        if replaced != value and _ARITHMETIC.match(replaced) and not replaced.strip().isdigit():
            return str(evaluate(replaced, Reading(where)))
        return replaced

    def _keyword(self, match: re.Match[str]) -> str:
        known = {
            "pagesize": self.environment.pagesize_bytes,
            "mb_memory": self.environment.memory_mb,
            "ncpus": self.environment.cpus,
        }
        return str(known[match[1]])

    def _note(self, where: Where, text: str) -> None:
        self.notes.append(Note(where=where, text=text, kind="trap"))


def decode(raw: bytes, name: str) -> str:
    """Return the text of a job file, which must be UTF-8 without NUL; in comments any bytes may stand."""
    raw = _COMMENT_LINE.sub(lambda line: line[0].decode(errors="replace").encode(), raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise make_error(InputError, "formats_fio.grammar.not_utf8", where=Where(name, line)) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise make_error(InputError, "formats_fio.grammar.nul", where=Where(name, line))
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
