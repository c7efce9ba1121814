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

from loadstone.control.file_controls import put
from loadstone.control.remote import drop_page_cache
from loadstone.errors import RefusedError, RunError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path("/proc/sys/vm/drop_caches")


def drop(host: str | None = None, *, sync: bool = True) -> None:
    """Write dirty pages and drop the page cache, of another host through ssh(1).

    Raises RefusedError where it may not be dropped.
    """
    if host is not None:
        drop_page_cache(host)
        return
    if sync:
        os.sync()
    try:
        put(FILE, "1")
    except OSError as error:
        raise make_error(RefusedError, "control.page_cache.local", reason=error.strerror, file=FILE) from None


@contextlib.contextmanager
def dropped_every(seconds: float, host: str | None = None) -> Iterator[None]:
    """Drop the page cache now and every `seconds` until the block is left.

    Raises RunError at the end where it could not be dropped in between.
    """
    drop(host)
    over = threading.Event()
    failed: list[str] = []

    def drop_again() -> None:
        while not over.wait(seconds):
            try:
                drop(host, sync=False)
            except RefusedError as error:
                failed.append(error.message)

    thread = threading.Thread(target=drop_again, name="page cache", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise make_error(RunError, "control.page_cache.during", times=len(failed), reason=failed[0])
