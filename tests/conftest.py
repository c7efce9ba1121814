"""What holds for every test: an interrupt interrupts.

A shell without job control lets what it runs in the background ignore SIGINT (POSIX, Shell Command
Language, 2.11), and programs inherit that. Tests that interrupt would then wait for ever.
"""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take SIGINT as a terminal's program does."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
