"""Who gives the terminal back where nobody else is left to: after `kill -9` of the whole program.

A shell that waits at a pipe. It ends when told that the display is over; if the pipe closes unsaid and
the process that waits for ours is gone too, it takes the display from the screen. Knows no display.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

SHELL: Final = "/bin/sh"
# Of a process that is dead and not yet waited for this link is gone.
WAITS: Final = 'read -r over || [ -e "/proc/$1/exe" ] || printf %s "$2"'


class ScreenKeeper:
    """From `begin` to `end` somebody outside of us watches over the terminal."""

    def __init__(self, terminal: TextIO, leave: str) -> None:
        self._terminal = terminal
        self._leave = leave
        """What takes the display from the screen."""
        self._shell: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Set it up; without one where that cannot be had, or there is no terminal."""
        with contextlib.suppress(OSError, ValueError):
            if not self._terminal.isatty():
                return
            self._shell = subprocess.Popen(
                [SHELL, "-c", WAITS, SHELL, str(os.getppid()), self._leave],
                stdin=subprocess.PIPE,
                stdout=self._terminal.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # What the terminal sends to us is not for it.
            )

    def end(self) -> None:
        """Tell it that the display is over."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        pipe: IO[bytes] | None = shell.stdin
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.write(b"\n")
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            shell.wait(timeout=1.0)
