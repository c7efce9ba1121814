"""fio's job language in: sources to a Workload.

Knows the order of sources and what carries from one to the next. Knows no option.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import InputError, Where, as_text, raise_all
from loadstone.formats.fio import tokens
from loadstone.formats.fio.grammar import COMMAND_LINE, Environment, Parser, decode
from loadstone.formats.fio.jobs import JobReader
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.formats.fio.grammar import Section


@dataclass(frozen=True, slots=True)
class FileSource:
    """A job file on disk."""

    path: Path


@dataclass(frozen=True, slots=True)
class TextSource:
    """The bytes of a job file, e.g. from standard input; includes are relative to `directory`."""

    text: str | bytes
    name: str = "<text>"
    directory: Path = field(default_factory=Path)


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Job options of a command line, `--name=job --rw=read ...`."""

    tokens: tuple[str, ...]


Source = FileSource | TextSource | TokenSource


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read.

    `strict_fio_reading` keeps fio's reading of the traps in its grammar. `environment` is
    what `${NAME}` sees (None: this process's).
    """

    strict_fio_reading: bool = False
    allow_exec: bool = False
    may_be_empty: bool = False
    """There need be no job: only what is there is checked."""
    environment: Mapping[str, str] | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    page_size_bytes: int | None = None


def read_jobfiles(
    sources: Sequence[Source], *, sections: Sequence[str] = (), options: ReadOptions | None = None
) -> Workload:
    """Read fio job files into a Workload.

    A source that is a file is separated from the file before it by a stonewall and starts
    without its defaults; the defaults of a command line carry into the file after it, as
    in fio. `sections` keeps only the jobs of these names. Raises InputError for what
    cannot be read and RefusedError for what is understood and not done, each with file,
    line, option and a hint; several mistakes together.
    """
    options = options or ReadOptions()
    parser = parser_for(options)
    reader = JobReader(options.strict_fio_reading, options.allow_exec, frozenset(sections))
    files = 0
    for source in sources:
        if isinstance(source, TokenSource):
            reader.read(sections_of(source, parser))
            continue
        if files:
            reader.defaults.clear()
        reader.read(sections_of(source, parser), wall_before=files > 0)
        files += 1
    raise_all(reader.wrong)
    if not options.may_be_empty:
        _check_sections(reader, sections, ", ".join(parser.sources) or COMMAND_LINE)
    return Workload(
        name=as_text(_name(sources, reader)),
        jobs=tuple(reader.jobs),
        notes=(*parser.notes, *reader.notes),
        missing_targets="files" if options.strict_fio_reading else "refused",
        # The order in which fio numbers them is seen in the numbers of its logs.
        clone_order="descending_after_first" if options.strict_fio_reading else "ascending",
        global_options=reader.global_options,
        sources=parser.sources,
    )


def parser_for(options: ReadOptions | None) -> Parser:
    """Return a parser for sources, one for all that belong together."""
    options = options or ReadOptions()
    return Parser(_environment(options), options.strict_fio_reading, known=BY_NAME)


def sections_of(source: Source, parser: Parser) -> list[Section]:
    """Return the sections of a source as they are written; nothing is inherited yet."""
    if isinstance(source, TokenSource):
        parser.sources[COMMAND_LINE] = "\n".join(source.tokens).encode("utf-8", "surrogateescape")
        return tokens.sections(_clean(source.tokens), parser)
    if isinstance(source, FileSource):
        return parser.file(Path(source.path))
    raw = source.text.encode() if isinstance(source.text, str) else source.text
    parser.sources[source.name] = raw
    return parser.text(decode(raw, source.name), source.name, source.directory)


def _environment(options: ReadOptions) -> Environment:
    page = options.page_size_bytes or os.sysconf("SC_PAGE_SIZE")
    memory = options.memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    variables = os.environ if options.environment is None else options.environment
    return Environment(variables, page, memory >> 20, options.cpus or os.cpu_count() or 1)


def _clean(words: Sequence[str]) -> Sequence[str]:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise make_error(InputError, "formats_fio.read.not_utf8", where=Where(COMMAND_LINE)) from None
    return words


def _check_sections(reader: JobReader, sections: Sequence[str], read: str) -> None:
    jobs = {name for name in reader.seen if not name.startswith("global")}
    for name in sections:
        if name not in jobs:
            raise make_error(InputError, "formats_fio.read.no_section", hint=nearest(name, jobs), name=name)
    if not reader.jobs:
        raise make_error(InputError, "formats_fio.read.no_job", read=read)


def _name(sources: Sequence[Source], reader: JobReader) -> str:
    for source in sources:
        if isinstance(source, FileSource):
            return Path(source.path).stem
    return reader.jobs[0].name if reader.jobs else "none"
