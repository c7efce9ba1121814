"""Do new files of a directory take direct I/O: asked with a file of our own, before anybody's load.

Knows files without a name (`O_TMPFILE`), and one that has a name for a moment where there are none.
Leaves nothing behind. Knows no Plan.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from typing import TYPE_CHECKING, Final

from loadstone.plan.safety.held import held, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWN_NAME: Final = ".loadstone-direct-"
OWN: Final = os.O_RDWR | os.O_CLOEXEC


def refused(path: Path) -> bool:
    """Tell whether the driver or file system of what is there takes no direct I/O; opens it for reading."""
    return _is_refused(path, os.O_RDONLY | os.O_NONBLOCK)


def refused_in(directory: Path, *, naming: bool) -> bool:
    """Tell whether new files of a directory take none; False also where that is not known.

    `naming`: a file may have a name there for a moment, which changes the directory's times.
    """
    with _own_file(directory, naming=naming) as path:
        # As the engine does: what is there is opened once more.
        return path is not None and _is_refused(path, os.O_RDWR)


def _is_refused(path: Path, how: int) -> bool:
    try:
        os.close(os.open(path, how | os.O_DIRECT | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EINVAL
    return False


@contextlib.contextmanager
def _own_file(directory: Path, *, naming: bool) -> Iterator[Path | None]:
    """Give a way to a new file there; None where none can be had."""
    with contextlib.ExitStack() as stack:
        own = None
        place = stack.enter_context(held(directory))
        if place is not None:
            with contextlib.suppress(OSError):
                file = os.open(place, os.O_TMPFILE | OWN, 0o600)
                stack.callback(os.close, file)
                own = way_to(file)
        if own is None and place is not None and naming:
            name = place / f"{OWN_NAME}{secrets.token_hex(16)}"
            with contextlib.suppress(OSError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | OWN, 0o600))
                stack.callback(_remove, name)
                own = name
        yield own


def _remove(name: Path) -> None:
    with contextlib.suppress(OSError):
        name.unlink()
