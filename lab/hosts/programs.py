"""Programs that run beside a trial: each in a session of its own, with a log, and ended with the trial."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PATIENCE_S = 300.0
END_S = 5.0


class Programs(ABC):
    """While entered, what `_begin` started runs. Their logs are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @abstractmethod
    def _begin(self) -> None: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """What they are started with."""
        return os.environ

    def start(self, *words: str, log: str = "programs") -> None:
        """Start a program."""
        with self._log(log).open("ab") as out:
            self._processes.append(
                subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    env=self.environment,
                )
            )

    def log_text(self, log: str = "programs") -> str:
        """Return what programs with this log said."""
        return self._log(log).read_text(errors="replace")

    def wait_until(self, true: Callable[[], bool], what: str, *logs: str) -> None:
        """Wait until it is so. Raises `TimeoutError` with what the programs said."""
        until_s = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > until_s:
                logged = "\n".join(self.log_text(log)[-2000:] for log in logs or ("programs",))
                raise TimeoutError(f"no {what} within {PATIENCE_S:g} s: {logged}")
            time.sleep(0.1)

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"
