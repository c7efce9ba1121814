"""fio's triggers: a file that appears, or a time, ends the run and starts a command.

Knows when one is due. The command is the user's, permitted by LOADSTONE_ALLOW_EXEC=1, and runs once the
jobs have ended and their states of verification are written.
"""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.cli.display import console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.cli.fio.args import FioArguments
    from loadstone.plan.model import Plan
    from loadstone.session import Orders


class Trigger:
    """What `--trigger-file`, `--trigger-timeout` and `--trigger` ask for."""

    def __init__(self, arguments: FioArguments, plan: Plan) -> None:
        self._file = Path(arguments.trigger_file) if arguments.trigger_file else None
        self._command = arguments.trigger
        self._due_s = time.monotonic() + arguments.trigger_timeout_s if arguments.trigger_timeout_s else None
        self._last_stage = max(worker.stage for worker in plan.workers)
        self.fired = False

    def steer(self, _: Mapping[str, Any], orders: Orders) -> None:
        """End all stages when it is time."""
        if not self.fired and (self._is_there() or self._is_late()):
            self.fired = True
            orders.end_stage(self._last_stage)

    def _is_late(self) -> bool:
        return self._due_s is not None and time.monotonic() >= self._due_s

    def _is_there(self) -> bool:
        """Whether the file has appeared; it is removed, but only where nothing is in it."""
        if self._file is None:
            return False
        try:
            status = self._file.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size == 0:
                self._file.unlink()
            else:
                sys.stderr.write(f"fio: {self._file} is not empty, so it is not removed\n")
        except FileNotFoundError:
            return False
        except OSError as error:
            sys.stderr.write(f"fio: failed to unlink {self._file}: {error.strerror}\n")
        return True

    def execute(self) -> None:
        """Run the command, if the trigger was fired and there is one."""
        if not (self.fired and self._command):
            return
        console.say(f"--trigger: runs {self._command}")
        # A shell, as fio's system(3): the user's own command. How it ends is not looked at, as in fio.
        subprocess.run(["/bin/sh", "-c", self._command], stdout=sys.stderr, check=False)
