"""Files inside a bundle or a study: opened only when they are what they should be.

Knows that a directory may come from anybody: a member is a regular file below it, and no link on
the way to it leads elsewhere. Opening a pipe, a device or a file of another owner by way of a
bundle is refused by name. Knows no file's meaning.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from loadstone import file_kind
from loadstone.errors import BundleError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

    from pydantic import ValidationError

MOST_BYTES: Final = 1 << 28
"""A document larger than this is none of ours: it is refused before it is read."""
LARGEST: Final = 2**64
"""Numbers beyond it, or that are not finite, stand in no document of ours."""


def is_inside(name: str) -> bool:
    """Tell whether a name means a place below the directory it is relative to."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name


def exists(directory: Path, name: str) -> bool:
    """Tell whether anything has this name, be it a broken link or what may not be looked at."""
    try:
        (directory / name).lstat()
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def is_shortage(error: BaseException) -> bool:
    """Tell whether memory or descriptors ran out: no damage of a bundle, and nothing to read on without."""
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
    )


def open_member(directory: Path, name: str) -> BufferedReader:
    """Open a regular file below a directory. Raises `BundleError`, by name, for anything else.

    Raises `OSError` where this process has no memory or descriptors left.
    """
    try:
        return os.fdopen(_descriptor(directory, name), "rb")
    except OSError as error:
        if is_shortage(error):
            raise
        hint = None
        if error.errno == errno.ENOENT:
            hint = say("bundle.file.killed")
        raise make_error(
            BundleError,
            "bundle.file.unreadable",
            hint=hint,
            path=directory / name,
            reason=error.strerror or str(error),
        ) from error


def check_directory(directory: Path, name: str) -> None:
    """Raise `BundleError` unless a name is a directory below another, with no link on the way."""
    at = directory
    for part in PurePosixPath(name).parts:
        at /= part
        try:
            mode = at.lstat().st_mode
        except OSError as error:
            if is_shortage(error):
                raise
            raise make_error(BundleError, "bundle.file.unreadable", path=at, reason=error.strerror) from error
        if not is_inside(name) or not stat.S_ISDIR(mode):
            raise make_error(
                BundleError,
                "bundle.file.no_directory",
                path=at,
                found=file_kind.words(mode),
                directory=directory,
            )


def _descriptor(directory: Path, name: str) -> int:
    path = directory / name
    if not is_inside(name):
        raise make_error(BundleError, "bundle.file.outside", path=path, directory=directory)
    at = directory
    for part in PurePosixPath(name).parts:
        at /= part
        mode = at.lstat().st_mode
        wanted = stat.S_ISREG if at == path else stat.S_ISDIR
        if not wanted(mode):
            raise make_error(BundleError, "bundle.file.other", path=at, found=file_kind.words(mode))
    # Without O_NONBLOCK the opening of a pipe that came in between would wait for ever.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise make_error(BundleError, "bundle.file.not_regular", path=path)
    return number


def malformed(path: Path, error: ValidationError) -> BundleError:
    """Return the error of a document that has another shape than its model."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return BundleError(f"{path}: {place or 'all of it'}: {first['msg']}")


def content(directory: Path, name: str) -> bytes:
    """Return a member's bytes. Raises `BundleError`, also for one that is too large for a document."""
    with open_member(directory, name) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if size <= MOST_BYTES:
                return file.read(MOST_BYTES)
        except OSError as error:
            if is_shortage(error):
                raise
            raise make_error(
                BundleError, "bundle.file.unreadable", path=directory / name, reason=error.strerror
            ) from error
    raise make_error(BundleError, "bundle.file.too_large", path=directory / name, size=size, most=MOST_BYTES)


def document(directory: Path, name: str) -> Any:
    """Return a member that is JSON. Raises `BundleError`."""
    try:
        return decoded(content(directory, name))
    except ValueError as error:
        raise make_error(
            BundleError, "bundle.file.not_json", path=directory / name, reason=str(error)
        ) from error


def table(directory: Path, name: str) -> dict[str, Any]:
    """Return a member that is one JSON object. Raises `BundleError`."""
    json_object = document(directory, name)
    if not isinstance(json_object, dict):
        raise make_error(BundleError, "bundle.file.not_object", path=directory / name)
    return json_object


def decoded(data: bytes) -> Any:
    """Return what JSON says. Raises `ValueError`; also for numbers that nobody can compute with."""
    json_value = from_json(data, allow_inf_nan=False)
    for value in _numbers(json_value):
        if not -LARGEST <= value <= LARGEST:
            raise make_error(ValueError, "bundle.file.number")
    return json_value


def _numbers(value: Any) -> Iterator[float]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, float | int):
            yield one


def below(directory: Path, most: int) -> Iterator[tuple[str, int]]:
    """Yield name and mode of what lies below a directory, links not followed, at most so many."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(directory / inside) as entries:
            for entry in entries:
                name = f"{inside}{entry.name}"
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    waiting.append(f"{name}/")
                yield name, mode
                most -= 1
                if not most:
                    return
