"""A pair of commands: one sets something Loadstone knows nothing of, the other puts it back.

Knows how a command is run and told, and that what it started may outlive it when this process is
killed: before another command of the same pair is run, that is waited for. Whether the user
allowed commands is asked by whoever reads them.
"""

from __future__ import annotations

import subprocess
from typing import Final

from loadstone.control import orphans
from loadstone.control.control_kind import Control
from loadstone.errors import RefusedError
from loadstone.messages import make_error

PATIENCE_S: Final = 600


class CommandPair(Control):
    """A command; what puts it back stands in the journal as the value before. A reboot does not undo it."""

    by_name = True
    name, title, source = "command", "a command and the one that undoes it", "sh(1)"
    volatile, readable, forgettable = False, False, True

    def resolve(self, subject: str) -> list[str]:
        """Return the name the user gave the pair."""
        return [subject]

    def read(self, subject: str) -> str | None:  # noqa: ARG002 - nobody knows what it set
        """Return None: there is nothing to read."""
        return None

    def write(self, subject: str, value: str) -> None:
        """Run a command. Raises RefusedError where it fails, or where what was left by another goes on."""
        # What runs to its end forgets its lock: it is there after a kill only.
        lock = orphans.lock_of(self.name, subject)
        # The other command may be what ends it.
        is_settled = orphans.wait_until_gone(lock, orphans.SETTLE_S)
        try:
            done = orphans.run(["/bin/sh", "-c", value], lock, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise make_error(
                RefusedError, "control.commands.too_long", subject=subject, command=value, patience=PATIENCE_S
            ) from None
        if not is_settled and not orphans.wait_until_gone(lock, 0):
            raise make_error(RefusedError, "control.commands.still_runs", subject=subject)
        orphans.forget(lock)
        if done.returncode != 0:
            words = " ".join((done.stderr or done.stdout).split())[:500]
            raise make_error(
                RefusedError,
                "control.commands.failed",
                subject=subject,
                command=value,
                code=done.returncode,
                output=f": {words}" if words else "",
            )
