"""Job files as command lines, which is what fio's --showcmd asks for.

Knows the order fio writes options in and what a shell needs quoted. Reads no value: whether
the jobs can be run is for `read_jobfiles` to say.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from loadstone.formats.fio.read import TokenSource, parser_for, sections_of
from loadstone.formats.fio.table import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from loadstone.formats.fio.grammar import Entry, Section
    from loadstone.formats.fio.read import ReadOptions, Source

_FIRST: Final = frozenset({"kb_base", "unit_base", "lockfile", "cpus_allowed_policy"})
_LAST: Final = frozenset({"filename", "filename_format"})


def command_lines(
    sources: Sequence[Source], *, sections: Collection[str] = (), options: ReadOptions | None = None
) -> list[str]:
    """Return a command line for each job file, since a stonewall stands between two of them.

    What was on the command line already goes before the first. `sections` keeps only the jobs
    of these names.
    """
    parser = parser_for(options)
    lines: list[str] = []
    waiting: list[Section] = []
    for source in sources:
        waiting += sections_of(source, parser)
        if not isinstance(source, TokenSource):
            lines.append(_line(waiting, sections))
            waiting = []
    if waiting:
        lines.append(_line(waiting, sections))
    return lines


def _line(sections: Sequence[Section], wanted: Collection[str]) -> str:
    words = ["fio"]
    late: list[Entry] = []
    jobs = 0
    for section in sections:
        if section.is_default:
            # On a command line what stands behind a --name belongs to that job: defaults that
            # come after a job are given to each job they are for.
            if jobs:
                late += section.entries
            else:
                words += _words(section.entries)
        elif not wanted or section.name in wanted:
            jobs += 1
            words += [shlex.quote(f"--name={_name(section)}"), *_words([*late, *section.entries])]
        else:
            jobs += 1
    return " ".join(words)


def _name(section: Section) -> str:
    names = [entry.value for entry in section.entries if entry.name == "name" and entry.value]
    return names[-1] if names else section.name


def _words(entries: Sequence[Entry]) -> list[str]:
    # A name among the options would begin another job: a job's is told before, the defaults' is void.
    options = [entry for entry in entries if entry.name != "name"]
    named = [(BY_NAME[entry.name].name if entry.name in BY_NAME else entry.name, entry) for entry in options]
    named.sort(key=lambda pair: (pair[0] not in _FIRST, pair[0] in _LAST))
    return [_word(name, entry.value) for name, entry in named]


def _word(name: str, value: str | None) -> str:
    if value is None:
        return f"--{name}"
    if name == "description" and not set(value) & set("\"'$`\\!"):
        return f'--{name}="{value}"'
    return shlex.quote(f"--{name}={value}")
