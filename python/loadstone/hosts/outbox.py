"""Messages of an agent to its coordinator, on their way.

Knows one JSON object a line, and what may be dropped when nobody reads fast enough.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from typing import Any, Final

MOST_WAITING: Final = 4096
"""Messages that wait to be sent; figures of a second are dropped beyond it, nothing else."""
LIVE: Final = frozenset({"tick", "layout"})


class Outbox:
    """Messages to the coordinator, sent by a thread of its own so that a full pipe holds up no run."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: queue.Queue[bytes | None] = queue.Queue()
        self._thread = threading.Thread(target=self._send_all, name="outbox", daemon=True)
        self._thread.start()

    def put(self, kind: str, /, **fields: Any) -> None:
        """Send a message; figures of a second only where there is room."""
        if fields.get("event", {}).get("type") in LIVE and self._waiting.qsize() > MOST_WAITING:
            return
        line = json.dumps({"type": kind, **fields}, separators=(",", ":"), default=str)
        self._waiting.put(line.encode(errors="replace") + b"\n")

    def close(self, timeout_s: float) -> None:
        """Send what waits, for so long at most."""
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _send_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                return  # Nobody reads; the input tells the same.
