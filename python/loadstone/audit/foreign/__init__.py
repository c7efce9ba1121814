"""Results of other tools, and published figures, as Cases.

Knows which reader takes which file; each of them knows one format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.foreign import (
    diskspd,
    fio_json,
    fio_normal,
    fio_terse,
    iometer,
    published,
    published_cases,
    reader,
    vdbench,
)
from loadstone.errors import InputError, Where
from loadstone.messages import make_error

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.foreign.reader import ForeignResults, ResultsReader

READERS: Final[tuple[ResultsReader, ...]] = (
    reader.ResultsReader("fio JSON", fio_json.recognises, fio_json.read),
    reader.ResultsReader("fio terse", fio_terse.recognises, fio_terse.read),
    reader.ResultsReader("fio text", fio_normal.recognises, fio_normal.read),
    reader.ResultsReader("vdbench's output directories", vdbench.recognises, vdbench.read),
    reader.ResultsReader("Iometer's CSV", iometer.recognises, iometer.read),
    reader.ResultsReader("DISKSPD's XML", diskspd.recognises, diskspd.read),
    reader.ResultsReader("published figures (TOML)", published.recognises, published_cases.read),
)
"""The first that recognises a file reads it."""


def recognise(path: Path) -> ResultsReader | None:
    """Return the reader of a file or directory, None when it is no result that is known."""
    head = reader.head(path)
    return next((one for one in READERS if one.recognises(path, head)), None)


def read(path: Path) -> ForeignResults:
    """Read a result. Raises InputError for what is none, or cannot be understood."""
    results_reader = recognise(path)
    if results_reader is None and path.suffix == ".toml":
        # Named by its user, so what it lacks is said; in a directory it is passed over.
        return published_cases.read(path)
    if results_reader is None:
        known = ", ".join(one.name for one in READERS)
        raise make_error(InputError, "audit.results.unknown", where=Where(str(path)), known=known)
    return results_reader.read(path)
