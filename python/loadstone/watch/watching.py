"""All hosts that are watched during a run: reached together before it, let go after it.

Knows which way leads to which kind of address. Knows no bundle and no screen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import RunError, Where
from loadstone.messages import make_error, say
from loadstone.watch.display import line
from loadstone.watch.shell import Shell
from loadstone.watch.source import WatchError
from loadstone.watch.watcher import STOP_S, Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.watch.address import WatchedAddress
    from loadstone.watch.source import HostSource

CONNECT_S: Final = 30.0


def source(address: WatchedAddress) -> HostSource:
    """Return the way to an address; the libraries of the others are not loaded."""
    match address.kind:
        case "snmp":
            from loadstone.watch.snmp import Snmp  # noqa: PLC0415 - as the function says

            return Snmp(address)
        case "http":
            from loadstone.watch.prometheus import Prometheus  # noqa: PLC0415 - as the function says

            return Prometheus(address)
        case _:
            return Shell(address)


class Watching:
    """Every watched host of a run."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = list(watchers)
        self._events: deque[dict[str, Any]] = deque()

    @classmethod
    def connect(
        cls, addresses: Sequence[WatchedAddress], make: Callable[[WatchedAddress], HostSource] = source
    ) -> Watching:
        """Reach all of them at the same time. Raises `RunError` for one that cannot be reached."""
        watching = cls([Watcher(one, make(one)) for one in addresses])
        failed: dict[str, WatchError] = {}

        def reach(watcher: Watcher) -> None:
            try:
                watcher.connect()
            except WatchError as error:
                failed[watcher.address.name] = error
            except Exception as error:  # noqa: BLE001 - a library's own: it is told below as what it is
                failed[watcher.address.name] = WatchError(f"{type(error).__name__}: {error}"[:200])

        threads = [threading.Thread(target=reach, args=(one,), daemon=True) for one in watching._watchers]
        for thread in threads:
            thread.start()
        for thread, watcher in zip(threads, watching._watchers, strict=True):
            thread.join(CONNECT_S)
            if thread.is_alive():
                failed[watcher.address.name] = make_error(
                    WatchError, "watch.hosts.silent", timeout=f"{CONNECT_S:.0f}"
                )
        for watcher in watching._watchers:
            error = failed.get(watcher.address.name)
            if error is not None:
                watching.close()
                raise RunError(
                    say(
                        "watch.hosts.cannot",
                        name=watcher.address.name,
                        url=watcher.address.url,
                        reason=error.message,
                    ),
                    where=Where("command line", option="--watch"),
                    hint=error.hint,
                )
        return watching

    def begin(self, origin_ns: int, write: Callable[[str, dict[str, int]], None]) -> Iterator[dict[str, Any]]:
        """Start, and yield an event for each host with what does not change."""
        for one in self._watchers:
            yield {
                "type": "watch",
                "name": one.address.name,
                "kind": one.address.kind,
                "url": one.address.url,
                "interval_ns": round(one.address.interval_s * 1e9),
                "facts": one.facts,
            }
            one.start(origin_ns, _writer(write, one.address.name), self._events.append)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what has been told since the last time."""
        while self._events:
            yield self._events.popleft()

    def lines(self) -> list[str]:
        """Return a line for each host, of its last row."""
        return [line(one.address.name, one.latest, one.lost, one.facts) for one in self._watchers]

    def end(self) -> Iterator[dict[str, Any]]:
        """Stop all of them, and yield their accounts."""
        for one in self._watchers:
            one.ask_to_stop()
        # All of them look a last time at once: several that hang take no longer than one.
        until_s = time.monotonic() + STOP_S
        for one in self._watchers:
            account = one.stop(max(0.0, until_s - time.monotonic()))
            yield from self.events()
            yield {"type": "watch_end", **account}

    def close(self) -> None:
        """Let go of all of them."""
        for one in self._watchers:
            one.close()


def _writer(write: Callable[[str, dict[str, int]], None], name: str) -> Callable[[dict[str, int]], None]:
    return lambda row: write(name, row)
