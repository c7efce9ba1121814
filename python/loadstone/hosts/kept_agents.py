"""Agents that stay between the runs of a study, so that nobody else takes their hosts meanwhile.

Knows links, and that an agent that is told to leave one run is free for the next. Each run sees an
agent as if it had just been started.
"""

from __future__ import annotations

import enum
import threading
from typing import TYPE_CHECKING, Any

from loadstone.hosts.asked_host import at_once
from loadstone.hosts.greeting import word_every_s
from loadstone.hosts.reach import Reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.hosts.hosts_file import HostsFile


class KeptAgents:
    """While entered, `link` makes the link to a host: to the agent of the run before, if there is one."""

    def __init__(self, hosts: HostsFile) -> None:
        self._hosts = hosts
        self._reached = Reached(hosts)
        self._links: dict[str, KeptLink] = {}
        self._over = threading.Event()

    def __enter__(self) -> KeptAgents:
        self._reached.__enter__()
        threading.Thread(target=self._say_we_are_here, name="kept agents", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._let_go()

    def link(self, name: str, heard: Callable[[str, dict[str, Any]], None]) -> KeptLink:
        """Return the link to a host for one run, not yet open."""
        if name not in self._links:
            self._links[name] = KeptLink(name, self._reached)
        self._links[name].heard_by(heard)
        return self._links[name]

    @property
    def is_broken(self) -> bool:
        """Whether an agent was lost, so that all are to be started anew."""
        return any(link.is_broken for link in self._links.values())

    def renew(self) -> dict[str, str]:
        """Start all agents anew where one of them was lost: the others may wait for an answer of it.

        Returns why, by host, for those that were lost while no run heard them.
        """
        links = self._links.values()
        lost = {link.name: link.lost_unheard for link in links if link.lost_unheard is not None}
        if self.is_broken:
            self._let_go()
            self._reached = Reached(self._hosts)
            self._reached.__enter__()
        return lost

    def _let_go(self) -> None:
        links, self._links = list(self._links.values()), {}
        at_once([link.shut for link in links])
        self._reached.__exit__()

    def _say_we_are_here(self) -> None:
        while not self._over.wait(word_every_s(self._hosts.run.lost_after_s)):
            for link in list(self._links.values()):
                link.say_we_are_here()


class _At(enum.Enum):
    """Where an agent is."""

    ABSENT = enum.auto()
    IN_RUN = enum.auto()
    LEAVING = enum.auto()
    """It was told to leave its run, and says when it has."""
    FREE = enum.auto()
    BROKEN = enum.auto()


class KeptLink:
    """One agent through all runs."""

    def __init__(self, name: str, reached: Reached) -> None:
        self.name = name
        self._heard: Callable[[str, dict[str, Any]], None] = lambda _, __: None
        self._at = _At.ABSENT
        self._wanted = False
        """A run waits for it to be free."""
        self._is_up = False
        """Before it said so, there is nobody to speak to."""
        self.lost_unheard: str | None = None
        """Why it was lost, if no run was there to hear it."""
        self._lock = threading.Lock()
        self._link = reached.link(name, self._hear)

    @property
    def is_broken(self) -> bool:
        """Whether nothing can be said to it any more."""
        return self._at is _At.BROKEN

    def say_we_are_here(self) -> None:
        """Let an agent that is there know that its coordinator is, too."""
        if self._is_up and not self.is_broken:
            self._link.tell({"do": "alive"})

    def heard_by(self, heard: Callable[[str, dict[str, Any]], None]) -> None:
        """Let another run hear it."""
        with self._lock:
            self._heard = heard

    def open(self) -> None:
        """Reach it, or take it over as soon as it is free."""
        with self._lock:
            was = self._at
            lost = self.lost_unheard
            self._wanted = was is _At.LEAVING
            if was in {_At.ABSENT, _At.FREE}:
                self._at = _At.IN_RUN
        if was is _At.ABSENT:
            self._link.open()
        elif was is _At.FREE:
            self._heard(self.name, {"type": "up"})
        elif lost is not None:
            self._heard(self.name, {"type": "lost", "why": lost})

    def tell(self, order: dict[str, Any]) -> None:
        """Send an order; who is to leave leaves the run only."""
        if order["do"] != "leave":
            self._link.tell(order)
            return
        with self._lock:
            if self._at is not _At.IN_RUN:
                return
            self._at = _At.LEAVING
        self._link.tell({**order, "do": "next"})

    def ask(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a question and wait for its answer."""
        return self._link.ask(order, timeout_s)

    def close(self) -> None:
        """Let go of an agent that did not leave its run in order, or not in time for the next."""
        with self._lock:
            if self._at is _At.FREE or (self._at is _At.LEAVING and not self._wanted):
                return
            self._at = _At.BROKEN
        self._link.close()

    def shut(self) -> None:
        """Let it end."""
        with self._lock:
            self._at = _At.BROKEN
        self._link.tell({"do": "leave"})
        self._link.close()

    def _hear(self, name: str, message: dict[str, Any]) -> None:
        kind = message.get("type")
        with self._lock:
            heard = self._heard if self._at is _At.IN_RUN or self._wanted else None
            self._is_up = self._is_up or kind == "up"
            if kind == "lost":
                if heard is None and self._at is not _At.BROKEN:
                    self.lost_unheard = str(message["why"])
                self._at = _At.BROKEN
            elif kind == "free" and self._at is _At.LEAVING:
                # What it said before is of the run it left.
                self._at = _At.IN_RUN if self._wanted else _At.FREE
                self._wanted = False
                message = {"type": "up"}
            elif self._at is not _At.IN_RUN:
                heard = None
        if heard is not None:
            heard(name, message)
