"""A pair of commands: one sets something Loadstone knows nothing of, the other puts it back.

Knows how a command is run and told. Whether the user allowed commands is asked by whoever reads them.
"""

from __future__ import annotations

import subprocess
from typing import Final

from loadstone.control import orphans
from loadstone.control.model import Control
from loadstone.errors import RefusedError

PATIENCE_S: Final = 600


class CommandPair(Control):
    """A command; what puts it back stands in the journal as the value before. A reboot does not undo it."""

    by_name = True
    name, title, source = "command", "a command and the one that undoes it", "sh(1)"
    volatile, readable = False, False

    def subjects(self) -> list[str]:
        """Return none: they are whatever the user wrote."""
        return []

    def resolve(self, asked: str) -> list[str]:
        """Return the name the user gave the pair."""
        return [asked]

    def read(self, subject: str) -> str | None:  # noqa: ARG002 - nobody knows what it set
        """Return None: there is nothing to read."""
        return None

    def write(self, subject: str, value: str) -> None:
        """Run a command. Raises RefusedError where it fails."""
        try:
            done = orphans.run(["/bin/sh", "-c", value], timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise RefusedError(f"{subject}: `{value}` took more than {PATIENCE_S} s") from None
        if done.returncode != 0:
            words = " ".join((done.stderr or done.stdout).split())[:500]
            raise RefusedError(f"{subject}: `{value}` ended with {done.returncode}: {words}")
