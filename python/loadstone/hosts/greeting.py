"""The first words to an agent: who asks, for which run, and how long each side may be silent.

Knows this process and the hosts file.
"""

from __future__ import annotations

import getpass
import os
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.hosts.hosts_file import HostsFile

WORD_EVERY_S: Final = 2.0
"""How often each agent hears that its coordinator is there, at least."""
WORDS: Final = 5
"""So often it hears that within the time after which it takes its coordinator for lost."""


def word_every_s(lost_after_s: float) -> float:
    """Return how often an agent must hear of its coordinator."""
    return min(WORD_EVERY_S, lost_after_s / WORDS)


def greeting(hosts: HostsFile, name: str, *, run: str, holder: str) -> dict[str, Any]:
    """Return the first order to a host's agent."""
    return {
        "do": "hello",
        "name": name,
        "run": run,
        "holder": holder,
        "version": __version__,
        "by": f"{getpass.getuser()}@{os.uname().nodename} (process {os.getpid()})",
        "directory": hosts.entry(name).directory,
        "lost_after_s": hosts.run.lost_after_s,
    }


def is_one_machine(facts: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two hosts, by what they said of themselves, are two names of one machine."""
    machine = (facts.get("boot_id"), facts.get("host_name"))
    return None not in machine and machine == (other.get("boot_id"), other.get("host_name"))


def new_number() -> str:
    """Return what a run's directories on the hosts are called."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
