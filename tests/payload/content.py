"""Write with Loadstone; make the same share of random bytes by hand.

Knows the drop-in's command line only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.support import started

if TYPE_CHECKING:
    from pathlib import Path

BLOCK_BYTES = 4096


def write(path: str | Path, size_bytes: int, *options: str) -> None:
    """Write it once, front to back, in 4 KiB blocks."""
    command = ["fio", "--name=a", f"--filename={path}", "--rw=write"]
    command += [f"--bs={BLOCK_BYTES}", f"--size={size_bytes}", "--ioengine=psync", *options]
    agreed = {**os.environ, "LOADSTONE_FIO_OVERWRITE": "1", "LOADSTONE_ACCEPT_DATA_LOSS": str(path)}
    done = started.run(command, env=agreed)
    assert done.returncode == 0, done.stderr


def best(size_bytes: int, compress_percent: int) -> bytes:
    """The easiest bytes for a coder with this share to save: each block random first, then zeros."""
    random = BLOCK_BYTES * (100 - compress_percent) // 100
    blocks = size_bytes // BLOCK_BYTES
    return b"".join(os.urandom(random) + bytes(BLOCK_BYTES - random) for _ in range(blocks))
