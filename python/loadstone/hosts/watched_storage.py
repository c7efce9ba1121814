"""The storage's own side while hosts load it: watched from here, dated by the run's clock.

Knows when to begin and to end, and which of the watched machines are load generators themselves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from loadstone.watch.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from loadstone.watch.address import WatchedAddress


class WatchedStorage:
    """Watched hosts of a run on hosts. Raises `RunError` for one that cannot be reached."""

    def __init__(self, addresses: Sequence[WatchedAddress]) -> None:
        self._watching = Watching.connect(addresses)
        self._asked = bool(addresses)
        self._began = False
        self._ending: threading.Thread | None = None
        self._last: list[dict[str, Any]] = []

    def begin(
        self, origin_ns: int, write: Callable[[str, dict[str, int]], None], generators: Collection[str]
    ) -> list[dict[str, Any]]:
        """Begin at the origin of the run; return what is told of each host. Once is enough.

        `generators`: the boots of the hosts that load. What one of them does is not the storage's work.
        """
        if self._began or not self._asked:
            return []
        self._began = True
        events = list(self._watching.begin(origin_ns, write))
        for one in events:
            boot = one["facts"].get("boot_id")
            if boot is not None:
                one["facts"]["same_host"] = boot in generators
        return events

    def events(self) -> list[dict[str, Any]]:
        """Return what happened since the last time."""
        return list(self._watching.events()) if self._ending is None else []

    def lines(self) -> list[str]:
        """Return a line for each host, to be shown."""
        return self._watching.lines() if self._began and self._ending is None else []

    def end(self) -> None:
        """Look a last time, beside whatever else is done; `account` waits for it."""
        if self._began and self._ending is None:
            self._ending = threading.Thread(
                target=lambda: self._last.extend(self._watching.end()), name="watch end", daemon=True
            )
            self._ending.start()

    def account(self) -> list[dict[str, Any]]:
        """Return what is told of each host at the end."""
        self.end()
        if self._ending is not None:
            self._ending.join()
        return self._last

    def close(self) -> None:
        """Let go of all of them."""
        self._watching.close()
