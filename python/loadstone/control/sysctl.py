"""Kernel parameters by their sysctl names.

Knows `/proc/sys` (Documentation/admin-guide/sysctl). Parameters that name a program, and those that
do something when they are written, are not settings, and are refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loadstone.control.file_controls import FileControl
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say
from loadstone.messages.suggest import meant_by, nearest

WHOLE: Final = r"-?\d+"
ALLOWED: Final = ("vm.", "fs.", "net.", "dev.", "sunrpc.", "kernel.sched_", "kernel.numa_balancing")
REFUSED: Final = {
    "vm.drop_caches": "writing it drops the page cache, and it has no value to put back: use page_cache",
    "vm.compact_memory": "writing it starts an action, and it has no value to put back",
    "vm.dirty_ratio": "use dirty_limit, which puts back both of its forms",
    "vm.dirty_bytes": "use dirty_limit, which puts back both of its forms",
    "vm.dirty_background_ratio": "use dirty_background_limit, which puts back both of its forms",
    "vm.dirty_background_bytes": "use dirty_background_limit, which puts back both of its forms",
    "fs.binfmt_misc": "it makes the kernel run programs",
}


class Sysctl(FileControl):
    """One parameter: of `vm.swappiness`."""

    by_name = True
    name, title, source = "sysctl", "kernel parameter", "Documentation/admin-guide/sysctl"

    def path(self, subject: str) -> Path:
        """Return its file; within a name a `/` stands for a dot, as for sysctl(8)."""
        return self.root / "sys" / subject.replace(".", "\0").replace("/", ".").replace("\0", "/")

    def resolve(self, subject: str) -> list[str]:
        """Return the parameter meant."""
        if not subject:
            raise make_error(RefusedError, "control.sysctl.no_name")
        if why := next((why for name, why in REFUSED.items() if subject.startswith(name)), None):
            raise make_error(RefusedError, "control.sysctl.not_set", asked=subject, reason=why)
        if not subject.startswith(ALLOWED) or ".." in subject or "\0" in subject:
            raise make_error(
                RefusedError, "control.sysctl.not_allowed", asked=subject, allowed=", ".join(ALLOWED)
            )
        if self.read(subject) is None:
            hint = nearest(subject, self._beside(subject))
            raise make_error(RefusedError, "control.sysctl.no_parameter", hint=hint, asked=subject)
        return [subject]

    def nearest_subject(self, subject: str) -> str | None:
        """Return the parameter of its directory that a misspelt one is nearest to."""
        return meant_by(subject, self._beside(subject))

    def _beside(self, subject: str) -> list[str]:
        """Return the parameters of the same directory."""
        folder = subject.rpartition(".")[0]
        return [f"{folder}.{file.name.replace('.', '/')}" for file in self.path(folder).glob("*")]

    def read(self, subject: str) -> str | None:
        """Return its value, numbers with one space between."""
        value = super().read(subject)
        return None if value is None else " ".join(value.split())

    def refuses(self, subject: str, value: str) -> str:
        """Return why it takes no such value: one that holds numbers takes as many."""
        now = (self.read(subject) or "").split()
        if not now or not all(re.fullmatch(WHOLE, word) for word in now):
            return ""
        numbers = value.split()
        if len(numbers) == len(now) and all(re.fullmatch(WHOLE, word) for word in numbers):
            return ""
        return (
            say("control.sysctl.takes_one")
            if len(now) == 1
            else say("control.sysctl.takes", count=str(len(now)))
        )

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether it is what was asked for."""
        return " ".join(requested.split()) == value

    def identity(self, subject: str) -> str:
        """Return the network namespace: `net` has its own parameters in each."""
        return str(Path("/proc/self/ns/net").readlink()) if subject.startswith("net.") else ""
