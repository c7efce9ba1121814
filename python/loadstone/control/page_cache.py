"""The page cache dropped: before a run, or again and again during it.

Knows `/proc/sys/vm/drop_caches` (Documentation/admin-guide/sysctl/vm.rst). There is nothing to put
back. Dirty pages are written first; what is dirty by then stays.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.control.files import put
from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path("/proc/sys/vm/drop_caches")


def drop(*, sync: bool = True) -> None:
    """Write dirty pages and drop the page cache. Raises RefusedError where it may not be dropped."""
    if sync:
        os.sync()
    try:
        put(FILE, "1")
    except OSError as error:
        raise RefusedError(
            f"the page cache cannot be dropped: {error.strerror} ({FILE})", hint="it needs root"
        ) from None


@contextlib.contextmanager
def dropped_every(seconds: float) -> Iterator[None]:
    """Drop the page cache now and every `seconds` until the block is left."""
    drop()
    over = threading.Event()

    def again() -> None:
        while not over.wait(seconds):
            drop(sync=False)

    thread = threading.Thread(target=again, name="page cache", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
