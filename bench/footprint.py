"""How much memory a process tree holds while it runs.

Knows the kernel's books of each process (`smaps_rollup`), looked at a few times a second.
Resident memory counts pages that processes share once for each; the proportional share
counts them once in all.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from types import TracebackType

EVERY_S = 0.2


@dataclass
class Footprint:
    """The most seen at once, bytes; 0 before the first look."""

    resident_bytes: int = 0
    proportional_bytes: int = 0


class FootprintWatch:
    """Looks at a process and its descendants until left."""

    def __init__(self, pid: int, most: Footprint) -> None:
        self._pid = pid
        self._most = most
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(self._pid)
                footprints = [_of(process.pid) for process in (root, *root.children(recursive=True))]
                self._most.resident_bytes = max(self._most.resident_bytes, sum(one[0] for one in footprints))
                self._most.proportional_bytes = max(
                    self._most.proportional_bytes, sum(one[1] for one in footprints)
                )


def _of(pid: int) -> tuple[int, int]:
    """Resident and proportional bytes of one process; zeros when it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0, 0
    fields = {line.split()[0]: int(line.split()[1]) << 10 for line in text.splitlines()[1:]}
    return fields.get("Rss:", 0), fields.get("Pss:", 0)
