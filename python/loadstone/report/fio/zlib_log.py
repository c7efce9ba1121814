"""Compressed logs: zlib streams of the log's text.

Knows how one is unpacked. fio's own `.fz` files hold records of its memory instead; they
are not read here.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from loadstone import input_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIX: Final = "log.fz"


def inflate(path: Path) -> Iterator[bytes]:
    """Unpack a compressed log, piece by piece. Raises `zlib.error` for anything else."""
    unpacker = zlib.decompressobj()
    with input_file.opened(path) as file:
        while piece := file.read(1 << 16):
            yield unpacker.decompress(piece)
    yield unpacker.flush()
    if not unpacker.eof:
        raise zlib.error("the file ends early")
