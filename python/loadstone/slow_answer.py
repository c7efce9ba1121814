"""A word on an input that does not answer, while it is waited for.

Under the command line the process that waits for this one says it of files, from outside
(`cli.process.supervisor`); a program that uses the Python API gets a warning. Ends no waiting.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from typing import TYPE_CHECKING, Final

from loadstone import crash_note

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SILENT_S: Final = 2.0


def words(what: str | Path) -> str:
    """Say it of a file, a directory or a pipe."""
    return f"{what} has not answered for {SILENT_S:g} s: still waiting"


@contextlib.contextmanager
def told(what: str | Path, *, is_pipe: bool = False) -> Iterator[None]:
    """Say what is waited for, when that takes long. That a pipe is waited for nobody sees from outside."""
    if crash_note.is_shared() and not is_pipe:
        yield
        return
    late = threading.Timer(SILENT_S, _tell, (what,))
    late.daemon = True
    with contextlib.suppress(RuntimeError):  # No thread may be had (ulimit -u): then nobody says it.
        late.start()
    try:
        yield
    finally:
        late.cancel()


def _tell(what: str | Path) -> None:
    if crash_note.is_shared():
        with contextlib.suppress(OSError):
            os.write(2, f"loadstone: {words(what)}\n".encode(errors="replace"))
    else:
        warnings.warn(words(what), RuntimeWarning, stacklevel=1)
