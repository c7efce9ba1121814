"""What the growing files of a run that is not sealed held, so that it is known when the run was killed.

Knows the files that only grow while a run lasts, and BLAKE3 of what they held when they were last looked
at. A run that ends in order is sealed and needs none of it. Does not know what any line means.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Annotated, Any, Final

from blake3 import blake3
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadstone.bundle import layout, members, seal
from loadstone.errors import BundleError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.bundle.disk import Disk

_PIECE_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 4096
_BECOMES: Final = {**layout.STREAMS, layout.HOST: layout.HOST_TABLE}


class _Grown(BaseModel):
    """`growth.json`."""

    model_config = ConfigDict(strict=True)

    files: dict[seal.Name, seal.Sealed]
    blake3: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Growth:
    """Keeps `growth.json` of a run. Its file is open: each note takes the place of the one before."""

    def __init__(self, file: int, disk: Disk) -> None:
        self._file = file
        self._disk = disk
        self._hashed: dict[str, tuple[int, Any]] = {}

    def note(self, directory: Path) -> None:
        """Write down what the files hold now; of one that cannot be read what it held before stays true."""
        with contextlib.suppress(OSError, MemoryError, BundleError):
            for name in _growing(directory):
                self._hashed.setdefault(name, (0, blake3()))
                with contextlib.suppress(OSError, BundleError):
                    self._hash_on(directory, name)
            files = {
                name: {"size_bytes": size, "blake3": hasher.hexdigest()}
                for name, (size, hasher) in self._hashed.items()
            }
            text = json.dumps(seal.with_digest({"files": files})).encode()
            # Whole pages, and files are never fewer: nothing is left of what it is written over.
            length = -(-(len(text) + 1) // _PAGE_BYTES) * _PAGE_BYTES
            self._disk.write_over(self._file, text.ljust(length - 1) + b"\n")

    def _hash_on(self, directory: Path, name: str) -> None:
        size, hashed = self._hashed[name]
        # Where reading fails, size and hash stay those of one moment.
        hasher = hashed.copy()
        with members.open_member(directory, name) as file:
            file.seek(size)
            while piece := file.read(_PIECE_BYTES):
                hasher.update(piece)
                size += len(piece)
        self._hashed[name] = (size, hasher)


def differences(directory: Path) -> list[str]:
    """Return in words what of the growing files of a run is not as it was while the run went on."""
    try:
        document = members.table(directory, layout.GROWTH)
        grown = _Grown.model_validate(document)
    except (BundleError, ValidationError):
        begun = members.exists(directory, layout.GROWTH)
        if not begun or _is_blank(directory):
            # It is made before the first of what grows, and removed after the last.
            left = any(members.exists(directory, name) for name in layout.STREAMS)
            return [f"{layout.GROWTH} is {'empty' if begun else 'missing'}"] if left else []
        return [f"{layout.GROWTH} was altered"]
    changes = seal.own_difference(document, layout.GROWTH, required=True)
    for name, noted in grown.files.items():
        if members.exists(directory, name):
            changes += _of_file(directory, name, noted)
        elif noted.size_bytes and not members.exists(directory, _table_of(name)):
            changes.append(f"{name} is missing")
    return changes


def _is_blank(directory: Path) -> bool:
    """Whether nothing was ever written to the note, or a power failure left zeros of it."""
    try:
        return not members.content(directory, layout.GROWTH).strip(b"\0 \n")
    except BundleError:
        return False


def _growing(directory: Path) -> list[str]:
    names = [layout.EVENTS, layout.HOST, *layout.STREAMS]
    watched = sorted((directory / layout.WATCHED).glob("*.jsonl"))
    names += [path.relative_to(directory).as_posix() for path in watched]
    return [name for name in names if members.exists(directory, name)]


def _table_of(name: str) -> str:
    """Return what a file becomes when the bundle is sealed."""
    return _BECOMES.get(name, name.removesuffix(".jsonl") + ".parquet")


def _of_file(directory: Path, name: str, noted: seal.Sealed) -> Iterator[str]:
    try:
        with members.open_member(directory, name) as file:
            size = os.fstat(file.fileno()).st_size
            if size < noted.size_bytes:
                yield say("bundle.seal.lost_end", name=name, size=size, noted=noted.size_bytes)
                return
            hasher, left = blake3(), noted.size_bytes
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                hasher.update(piece)
                left -= len(piece)
    except BundleError as error:
        yield error.message.removeprefix(f"{directory}{os.sep}").replace(": ", " ", 1)
        return
    except OSError as error:
        if members.is_shortage(error):
            raise
        yield say("bundle.seal.unreadable", name=name, reason=error.strerror)
        return
    if left or hasher.hexdigest() != noted.blake3:
        yield f"{name} was altered"
