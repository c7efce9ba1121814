"""What holds for every test: an interrupt interrupts, and what could not be tried is told.

A shell without job control lets what it runs in the background ignore SIGINT (POSIX, Shell Command
Language, 2.11), and programs inherit that. Tests that interrupt would then wait for ever.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.wanted import missing_packages

if TYPE_CHECKING:
    import pytest


def pytest_configure() -> None:
    """Take SIGINT as a terminal's program does."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which one command installs what tests were skipped for."""
    packages = missing_packages()
    if packages and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line(
            f"some tests were skipped for want of programs: apt-get install --yes {' '.join(packages)}"
        )
