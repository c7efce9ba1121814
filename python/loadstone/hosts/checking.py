"""`hosts check`: is every host there, alike, on time, and does it see the targets.

Knows which questions are asked and what their answers mean. Changes nothing on a host but the
directory for bundles, which it makes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone.errors import LoadstoneError
from loadstone.hosts.agent_links import Clocks, clocks
from loadstone.hosts.agreement import shared_targets
from loadstone.hosts.asked_host import AskedHost, at_once
from loadstone.hosts.assignment import SeenTarget
from loadstone.hosts.greeting import greeting, is_one_machine
from loadstone.messages import say
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.reach import Reached

State = Literal["ok", "warn", "fail"]
CLOCK_OFF_NS: Final = 1_000_000_000
"""Wall clocks further apart are worth a word: logs of hosts do not match. The start does not use them."""
LOOK_S: Final = 60.0


@dataclass(slots=True)
class HostFinding:
    """One thing about one host."""

    host: str
    name: str
    state: State
    found: str
    remedy: str = ""

    def document(self) -> dict[str, str]:
        """As a JSON object."""
        return {
            "host": self.host,
            "name": self.name,
            "state": self.state,
            "found": self.found,
            "remedy": self.remedy,
        }


class _Asked(AskedHost):
    """One host while it is asked, and what was found."""

    def __init__(self, name: str, reached: Reached) -> None:
        super().__init__(name, reached.link)
        self.findings: list[HostFinding] = []
        self.targets: dict[str, dict[str, Any]] = {}
        self.told: dict[str, Any] = {}

    def tell(self, name: str, state: State, text: str, remedy: str = "") -> None:
        self.findings.append(HostFinding(self.name, name, state, text, remedy))


def check_hosts(hosts: HostsFile, reached: Reached, targets: Sequence[str]) -> list[HostFinding]:
    """Ask every host at the same time; return what was found, host by host."""
    checked_hosts = {name: _Asked(name, reached) for name in hosts.names}
    at_once([partial(_ask, one, hosts, list(targets)) for one in checked_hosts.values()])
    _compare(list(checked_hosts.values()), hosts)
    return [finding for one in checked_hosts.values() for finding in one.findings]


def _ask(one: _Asked, hosts: HostsFile, targets: list[str]) -> None:
    try:
        one.link.open()
        one.answer("up", hosts.run.connect_s)
        number = f"check-{os.getpid()}"
        order = greeting(hosts, one.name, run=number, holder=number)
        one.link.tell({**order, "lost_after_s": hosts.run.lost_after_s + LOOK_S})
        hello = one.told = one.answer("hello", hosts.run.connect_s)
        reached = say(
            "hosts.check.reachable", host=hello["host_name"], kernel=hello["kernel"], cpus=hello["cpus"]
        )
        one.tell("reachable", "ok", reached)
        if hello["version"] != __version__:
            difference = say("hosts.check.version", there=hello["version"], here=__version__)
            one.tell("version", "fail", difference, say("hosts.check.version_hint"))
            return
        one.tell("version", "ok", f"loadstone {hello['version']}")
        _tell_clocks(one, clocks(one.link))
        one.link.tell({"do": "doctor"})
        for check in one.answer("doctor", LOOK_S)["checks"]:
            if check["state"] != "ok":
                state: State = "fail" if check["state"] == "fail" else "warn"
                one.tell(check["name"], state, check["found"], check["remedy"])
        if targets:
            one.link.tell({"do": "identify", "paths": targets})
            one.targets = one.answer("identified", LOOK_S)["targets"]
            for path, target in one.targets.items():
                _tell_target(one, path, target)
    except LoadstoneError as error:
        one.tell("reachable", "fail", error.message, error.hint or "")
    finally:
        one.link.tell({"do": "leave"})
        one.link.close()


def _tell_clocks(one: _Asked, host_clocks: Clocks) -> None:
    off_ns, error_ns = host_clocks.wall.offset_ns, host_clocks.wall.error_ns
    text = say("hosts.check.clock", offset_ms=f"{off_ns / 1e6:+.3f}", error_ms=f"{error_ns / 1e6:.3f}")
    if abs(off_ns) > CLOCK_OFF_NS:
        # The start is told in the host's monotonic clock, so it does not suffer.
        one.tell("clock", "warn", text, say("hosts.check.clock_hint"))
    else:
        one.tell("clock", "ok", text)


def _tell_target(one: _Asked, path: str, seen: dict[str, Any]) -> None:
    if seen.get("missing"):
        one.tell(f"target {path}", "fail", str(seen["missing"]), say("hosts.check.missing_hint"))
        return
    parts = [
        str(seen["identity"] or say("hosts.check.no_identity")),
        say("hosts.check.path", layers=" > ".join(seen["layers"])),
    ]
    if seen.get("ceiling"):
        parts.append(say("hosts.check.ceiling", ceiling=str(seen["ceiling"])))
    used = seen.get("in_use") or []
    if used:
        one.tell(f"target {path}", "warn", "; ".join([*parts, *used]), say("hosts.check.in_use_hint"))
    else:
        one.tell(f"target {path}", "ok", "; ".join([*parts, say("hosts.check.free")]))


def _compare(every: list[_Asked], hosts: HostsFile) -> None:
    """Say which hosts, and which targets of several hosts, are one and the same."""
    for at, one in enumerate(every):
        same = next((other for other in every[:at] if is_one_machine(one.told, other.told)), None)
        if same is not None:
            text = say("hosts.machine.same", other=same.name)
            one.tell("machine", "warn", text, say("hosts.machine.same_hint"))
    targets = {
        one.name: [_as_read(path, target) for path, target in one.targets.items()]
        for one in every
        if one.targets
    }
    by_name = {one.name: one for one in every}
    for group in shared_targets(targets, hosts.shared):
        (host, path), *others = group.places
        names = [other if elsewhere == path else f"{other}:{elsewhere}" for other, elsewhere in others]
        text = say("hosts.check.shared", hosts=", ".join(names))
        by_name[host].tell(f"target {path}", "warn", text, say("hosts.check.shared_hint"))


def _as_read(path: str, target: dict[str, Any]) -> SeenTarget:
    """Return a target as a run that only reads it would."""
    also = tuple(str(word) for word in target.get("also") or ())
    return SeenTarget(
        path=path, identity=target.get("identity"), also=also, written=False, size_bytes=0, kind=""
    )
