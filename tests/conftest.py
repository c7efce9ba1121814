"""What holds for every test: an interrupt interrupts, no drawn case has a time limit, what was collected is
no garbage, and what could not be tried is told.

A shell without job control lets what it runs in the background ignore SIGINT (POSIX, Shell Command
Language, 2.11), and programs inherit that. Tests that interrupt would then wait for ever.
"""

from __future__ import annotations

import fcntl
import gc
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import loadstone
from tests.support import draw, huge_pages, order, started
from tests.wanted import missing_packages

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

# A case that takes longer than another says something of the machine, not of the program.
hypothesis.settings.register_profile("loadstone", deadline=None)
hypothesis.settings.load_profile("loadstone")

PACKAGE = Path(__file__).parents[1] / "python" / "loadstone"

NEW_OBJECTS = 10_000
"""So many more objects than were freed are looked through by the garbage collector; Python's own are 700."""
LEFT_OUT = "tests left for the night"
_left_out: dict[str, int] = {LEFT_OUT: 0}


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGINT as a terminal's program does, and draw where the programs do that tests start.

    Raises `UsageError` where the package is not the one beside these tests.
    """
    imported = Path(loadstone.__file__).parent
    if imported != PACKAGE:
        raise pytest.UsageError(
            f"these tests are of {PACKAGE}, and {imported} was imported: set PYTHONPATH={PACKAGE.parent}"
        )
    started.draws_together()
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(SideBySide())
    if (worker := getattr(config, "workerinput", None)) is not None:
        config.pluginmanager.register(order.SlowFirst(worker["workercount"]))
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected out of the garbage collector's way.

    The tests, their modules and what these import are 750,000 objects that stay to the end; half a second
    of CPU time went into each look through all of them, in every process that runs tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        huge_pages.collapse()
        gc.enable()
        gc.set_threshold(NEW_OBJECTS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest of long lists for the night, before the markers are looked at."""
    draw.leave_out(items)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what is left for `make nightly`."""
    _left_out[LEFT_OUT] += sum(item.get_closest_marker("nightly") is not None for item in items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell it to the process that started this one, where tests run side by side."""
    if (told := getattr(session.config, "workeroutput", None)) is not None:
        told.update(_left_out)


class SideBySide:
    """Hears what workers tell; a hook of pytest-xdist, registered where it is in use."""

    def pytest_testnodedown(self, node: Any) -> None:
        _left_out[LEFT_OUT] = max(_left_out[LEFT_OUT], getattr(node, "workeroutput", {}).get(LEFT_OUT, 0))


@pytest.fixture
def host_settings() -> Iterator[None]:
    """Wait until no other test changes a setting of the whole host, in whichever worker it runs."""
    with (Path(tempfile.gettempdir()) / "loadstone-tests-host-settings").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which one command installs what tests were skipped for."""
    packages = missing_packages()
    if packages and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line(
            f"some tests were skipped for want of programs: apt-get install --yes {' '.join(packages)}"
        )
    if _left_out[LEFT_OUT]:
        count = _left_out[LEFT_OUT]
        terminalreporter.write_line(
            f"left out: {count} tests marked nightly; make nightly runs them"
            f" ({draw.VARIABLE}={draw.number()} chose the cases of long lists and the costly tests that ran)"
        )
