"""An `.icf` file as a whole.

Knows the order of its sections, its version line and what changed with which version. What a
test means is in `run_cycle` and `lower`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, Where
from loadstone.formats.iometer import access, managers, setup
from loadstone.formats.iometer.lines import MAX_FILE_BYTES, IcfLines
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from loadstone.formats.iometer.access import AccessSpec
    from loadstone.formats.iometer.managers import Manager
    from loadstone.formats.iometer.setup import Setup

_VERSION: Final = re.compile(r"Version\s+(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b", re.IGNORECASE)
_NAMED_SINCE: Final = (1998, 5, 21)
_OLDEST: Final = (3, 26, 97)
"""How a file that came with Iometer 1998.01.05 is marked."""
_FIRST_DATE: Final = 1998
_SECTIONS: Final = ("TEST SETUP", "RESULTS DISPLAY", "ACCESS SPECIFICATIONS", "MANAGER LIST")


@dataclass(slots=True)
class Configuration:
    """Everything one file says."""

    name: str
    version: str
    setup: Setup
    specs: list[AccessSpec] = field(default_factory=list)
    managers: list[Manager] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    source: bytes = b""

    @property
    def where(self) -> Where:
        """The file."""
        return Where(self.name)

    def note(self, where: Where, text: str) -> None:
        """Keep something that Iometer would have done without a word."""
        self.notes.append(Note(where=where, text=text, kind="trap"))


def read_icf(source: bytes, name: str) -> Configuration:
    """Read a file's bytes. Raises InputError, and RefusedError for what is understood and not done."""
    if len(source) > MAX_FILE_BYTES:
        raise make_error(
            InputError, "formats_iometer.read.large", where=Where(name), max_file=MAX_FILE_BYTES >> 20
        )
    lines = IcfLines(_decoded(source, name), name, (*setup.KEYS, *access.KEYS, *managers.KEYS))
    version, named = _version(lines)
    configuration = Configuration(name, version, setup.Setup(), source=source)
    sections: set[str] = set()
    while True:
        line = lines.peek()
        if line is None or _VERSION.match(line.text):
            break
        section = next((one for one in _SECTIONS if line.text.upper().startswith(f"'{one}")), None)
        if section is None:
            raise make_error(
                InputError,
                "formats_iometer.read.no_section",
                where=lines.where(line),
                hint=nearest(line.text.removeprefix("'").rstrip("= ").upper(), _SECTIONS),
                line=f"{line.text[:60]!r}",
            )
        if section in sections:
            raise make_error(
                InputError, "formats_iometer.read.section_twice", where=lines.where(line), section=section
            )
        sections.add(section)
        lines.take()
        _section(section, lines, configuration, named=named)
    _check_end(lines)
    return configuration


def _section(section: str, lines: IcfLines, configuration: Configuration, *, named: bool) -> None:
    if section == "TEST SETUP":
        configuration.setup = setup.read_setup(lines)
    elif section == "ACCESS SPECIFICATIONS":
        configuration.specs = access.read_access(lines, configuration.note, named=named)
    elif section == "MANAGER LIST":
        configuration.managers = managers.read_managers(lines)
    else:
        _skip_display(lines)


def _skip_display(lines: IcfLines) -> None:
    """Go past the settings of Iometer's window: they change no run."""
    while True:
        pair = lines.pair("RESULTS DISPLAY")
        if pair.key == "end results display":
            return


def _version(lines: IcfLines) -> tuple[str, bool]:
    """Return the version, and whether access specifications have names in it."""
    line = lines.take()
    match = _VERSION.match(line.text) if line else None
    if match is None or line is None:
        # Not quoted: nothing says yet that this is a configuration.
        content = "something else" if line else "an empty file"
        raise make_error(
            InputError, "formats_iometer.read.no_version", where=lines.where(line), found=content
        )
    parts = (int(match[1]), int(match[2]), int(match[3]))
    if parts[0] >= _FIRST_DATE:
        return line.text[len("Version") :].strip(), parts >= _NAMED_SINCE
    return line.text[len("Version") :].strip(), parts != _OLDEST or _has_names(lines)


def _has_names(lines: IcfLines) -> bool:
    """Files with the mark of the oldest version were also written by newer programs."""
    return lines.has_key(access.NAME_KEY)


def _check_end(lines: IcfLines) -> None:
    lines.take()
    rest = lines.peek()
    if rest is not None:
        raise make_error(
            InputError, "formats_iometer.read.after_end", where=lines.where(rest), rest=f"{rest.text[:60]!r}"
        )


def _decoded(source: bytes, name: str) -> str:
    """Return the text: UTF-8, or the Western code page of Windows in older files."""
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = source.decode("cp1252", errors="replace")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise make_error(InputError, "formats_iometer.read.nul", where=Where(name, line))
    return text.replace("\r\n", "\n").replace("\r", "\n")
