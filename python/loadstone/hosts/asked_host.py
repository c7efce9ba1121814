"""One host that is asked, question by question, outside of any run.

Knows an agent's answers in their order. What is asked is somebody else's business.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from loadstone.errors import RefusedError, RunError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.hosts.agent_links import Link


class AskedHost:
    """A link, and what was heard of it."""

    def __init__(
        self, name: str, reach: Callable[[str, Callable[[str, dict[str, Any]], None]], Link]
    ) -> None:
        self.name = name
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.link = reach(name, lambda _, message: self._answers.put(message))

    def answer(self, wanted: str, timeout_s: float) -> dict[str, Any]:
        """Wait for an answer of this kind.

        Raises `RefusedError` for a refusal, `RunError` for a loss and for silence.
        """
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                message = self._answers.get(timeout=left_s)
            except queue.Empty:
                break
            kind = message.get("type")
            if kind == wanted:
                return message
            if kind == "lost":
                raise RunError(str(message["why"]))
            if kind == "refused":
                raise RefusedError(str(message["error"]), hint=message.get("hint"))
        raise RunError(say("hosts.asked.silent", waited_s=float(timeout_s)))


def at_once(asking: Sequence[Callable[[], None]]) -> None:
    """Ask all of them at the same time, and wait for the last."""
    threads = [threading.Thread(target=one, daemon=True) for one in asking]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
