"""Which language a job file is written in, told from its content.

Knows what is unmistakable in each language, and the usual endings of their file names for what
is in none of them. Reads no language: a file that is told to be one may still be wrong in it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePath
from typing import Final

_LOOKED_AT_BYTES: Final = 1 << 20
_SECTION: Final = re.compile(r"^\s*\[[^\]\n]+\]", re.MULTILINE)
_ENTITY: Final = re.compile(r"^\s*(?:sd|wd|rd|fsd|fwd|hd|rg)\s*=", re.MULTILINE | re.IGNORECASE)
_INCLUDE: Final = re.compile(r"^\s*include=", re.MULTILINE)
_ICF: Final = re.compile(
    r"^'(?:TEST SETUP|ACCESS SPECIFICATIONS|MANAGER LIST|Access specification name)",
    re.MULTILINE | re.IGNORECASE,
)
_ICF_VERSION: Final = re.compile(r"\A\s*Version \d", re.IGNORECASE)


class Language(StrEnum):
    """A job-file language."""

    FIO = "fio"
    VDBENCH = "vdbench"
    IOMETER = "iometer"


_ENDINGS: Final = {
    ".fio": Language.FIO,
    ".vdb": Language.VDBENCH,
    ".parm": Language.VDBENCH,
    ".icf": Language.IOMETER,
}


def recognise(text: bytes, name: str) -> Language:
    """Return the language of a file; fio's for what looks like none, so that its reader says why not."""
    start = text[:_LOOKED_AT_BYTES].decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    if _ICF.search(start) or _ICF_VERSION.match(start):
        return Language.IOMETER
    section, entity = _SECTION.search(start), _ENTITY.search(start)
    if entity and (section is None or entity.start() < section.start()):
        return Language.VDBENCH
    if section:
        return Language.FIO
    by_ending = _ENDINGS.get(PurePath(name).suffix.lower())
    if by_ending is not None:
        return by_ending
    return Language.VDBENCH if _INCLUDE.search(start) else Language.FIO
