"""What is held while it is looked at or changed, whatever its name leads to by then.

Knows descriptors that open nothing (`O_PATH`) and the way to a file, device or directory through one.
Judges nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.plan.safety import seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.plan.model import Identity, Target


@contextlib.contextmanager
def held(path: Path | str) -> Iterator[Path | None]:
    """Give a way to what stands at a path now, and do not open it; None for nothing.

    Names may change places between two looks and back: what was read would not be what is written.
    One at a time: a job may have more files than this process may open.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield way_to(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def held_as_checked(target: Target) -> Iterator[Path | None]:
    """Give a way to a target that is still what was checked; None for anything else."""
    with held(target.path) as path:
        yield path if path is not None and is_checked(target, path) else None


def way_to(descriptor: int) -> Path:
    """Return the way to what a descriptor of this process leads to."""
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def is_checked(target: Target, way: Path) -> bool:
    """Whether a way leads to what was checked."""
    return target.identity is not None and seen.is_same(target.identity, seen.look(way)[1])


def remove(path: Path, expected: Identity) -> None:
    """Remove a file by its name. Raises OSError, where another one has the name too.

    Linux removes names and no files: it is taken aside under a name that nobody knows, looked at, and
    removed; another file gets its name back.
    """
    with held(path.parent) as directory:
        if directory is None:
            raise FileNotFoundError(2, say("plan.held.no_directory"), str(path))
        name, aside = directory / path.name, directory / f".loadstone-removed-{secrets.token_hex(16)}"
        if seen.is_same(expected, seen.look(name)[1]):
            name.rename(aside)
            if seen.is_same(expected, seen.look(aside)[1]):
                aside.unlink()
                return
            try:
                name.hardlink_to(aside)
            except OSError as error:
                # Its name was taken once more, or it is a directory: it must be found again.
                where = path.with_name(aside.name)
                raise FileExistsError(17, say("plan.held.kept", place=where), str(path)) from error
            aside.unlink()
    raise FileExistsError(17, say("plan.held.other_file"), str(path))
