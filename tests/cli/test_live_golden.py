"""The live display of four phases and 128 jobs in tmux at four sizes, resized on the way, as golden files.

To write them anew: LOADSTONE_WRITE_GENERATED=1 python -m pytest tests/cli/test_live_golden.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[1] / "data" / "terminal"
SIZES = ((60, 24), (80, 24), (120, 16), (200, 40))
PATIENCE_S = 60.0
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
"""Without what would say the terminal's size, whatever it is resized to."""
STAYS = """before
bundle: runs/vostok
phase 1 of 4 done: 4k-random-read-lun-00 and 31 more: 501k IOPS, 1.91 GiB/s
phase 2 of 4 done: 4k-random-write-lun-00 and 31 more: 501k IOPS, 1.91 GiB/s
phase 3 of 4 done: 128k-sequential-read-lun-00 and 31 more: 501k IOPS, 61.1 GiB/s
after"""
"""All that a terminal holds afterwards."""

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A terminal of tmux's, on a server of its own, in which the display runs."""

    def __init__(self, place: Path, width: int, height: int) -> None:
        self._socket, self._steps, self._done = place / "tmux", place / "steps", place / "done"
        os.mkfifo(self._steps)
        display = f"{sys.executable} -m tests.cli.live_display {self._steps} {self._done}"
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height), "/bin/sh")
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("respawn-pane", "-k", f"echo before; {display}; echo after; exec sleep {PATIENCE_S}")
        self._file = self._steps.open("w")

    def draw(self, phase: int, second: int) -> None:
        """Have a phase drawn, and wait for it."""
        step = f"{10 * phase + second}\n"
        self._file.write(step)
        self._file.flush()
        self._until(lambda: self._done.exists() and self._done.read_text() == step, step)

    def resize(self, width: int, height: int) -> None:
        """Give the terminal another size; its program is told later, when the resizing is over."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))
        with Path(self._tmux("display-message", "-p", "#{pane_tty}").strip()).open() as tty:
            self._until(lambda: os.get_terminal_size(tty.fileno()) == (width, height), "the new size")

    def lines(self, *more: str) -> list[str]:
        """What stands on the screen."""
        text = self._tmux("capture-pane", "-p", *more)
        return [line.rstrip().replace("\N{NO-BREAK SPACE}", " ") for line in text.rstrip().splitlines()]

    def end(self) -> list[str]:
        """Have the display end; return all that the terminal holds then, lines that it broke as one."""
        self._file.close()
        self._until(lambda: "after" in self.lines(), "after")
        return self.lines("-J", "-S", "-")

    def close(self) -> None:
        self._file.close()
        self._tmux("kill-server")

    def _until(self, is_so: Callable[[], bool], wanted: str) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, f"{wanted!r} did not come: {self.lines()}"
            time.sleep(0.02)

    def _tmux(self, *words: str) -> str:
        asked = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(asked, capture_output=True, check=True, text=True, env=ENVIRONMENT).stdout


@pytest.mark.parametrize("last", SIZES, ids=lambda size: str(size[0]))
@pytest.mark.in_turn
def test_four_phases_and_128_jobs_in_a_terminal_that_is_resized(
    tmp_path: Path, last: tuple[int, int]
) -> None:
    sizes = [*(one for one in reversed(SIZES) if one != last), last]
    terminal = Terminal(tmp_path, *sizes[0])
    try:
        for phase, size in enumerate(sizes):
            terminal.draw(phase, 1)
            terminal.resize(*size)
            terminal.draw(phase, 2)
        found = terminal.lines()
        golden = GOLDEN / f"live-{last[0]}.txt"
        text = "\n".join(found) + "\n"
        if os.environ.get("LOADSTONE_WRITE_GENERATED"):
            golden.write_text(text)
        assert text == golden.read_text()
        assert len(found) <= last[1]
        assert all(len(line) <= last[0] for line in found)
        for part in ("IOPS", "bandwidth", "p99", "total", "phase 4 of 4", "left", "█", "phase 3 of 4 done"):
            assert part in text, part
        assert "\n".join(terminal.end()) == STAYS
    finally:
        terminal.close()
