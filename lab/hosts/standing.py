"""A Dask scheduler that outlives runs, with a worker on each namespace host: the third way of words.

Started as docs/hosts.md says of Slurm, without Slurm. What is made ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.hosts.namespaces import NamespaceHosts

PORT = 8786
PATIENCE_S = 120.0


class StandingScheduler:
    """While entered, hosts files with `settings` find the workers of `hosts` at a scheduler."""

    def __init__(self, hosts: NamespaceHosts) -> None:
        self._hosts = hosts
        self._processes: list[subprocess.Popen[bytes]] = []
        self._place = Path()

    def __enter__(self) -> StandingScheduler:
        self._place = Path(tempfile.mkdtemp(prefix="standing-", dir=self._hosts.directory))
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def settings(self) -> str:
        """Lines of [run] of a hosts file."""
        return f'scheduler = "{self._address}"\ncertificates = "{self._certificates}"'

    @property
    def _address(self) -> str:
        return f"tls://{self._hosts.coordinator}:{PORT}"

    @property
    def _certificates(self) -> Path:
        return self._place / "certificates"

    def _begin(self) -> None:
        names = ",".join(self._hosts.names)
        loadstone = [sys.executable, "-m", "loadstone", "hosts", "certificates", names]
        subprocess.run([*loadstone, "--directory", str(self._certificates)], check=True, capture_output=True)
        address = ["--host", self._hosts.coordinator, "--port", str(PORT), "--no-dashboard"]
        self._start("scheduler", "scheduler", *address, *self._own("coordinator"))
        for name in self._hosts.names:
            self._start(
                name, "worker", self._address, "--no-nanny", "--nthreads", "1", "--memory-limit", "0",
                "--no-dashboard", "--name", name, *self._own(name), inside=self._hosts.argv(name),
            )  # fmt: skip
        self._await("worker", "Registered to", self._hosts.names)

    def _own(self, name: str) -> list[str]:
        files = self._certificates
        words = ["--tls-ca-file", f"{files}/ca.pem", "--tls-cert", f"{files}/{name}.pem"]
        return [*words, "--tls-key", f"{files}/{name}.key"]

    def _start(self, log: str, *words: str, inside: list[str] | None = None) -> None:
        with self._log(log).open("wb") as out:
            self._processes.append(
                subprocess.Popen(
                    [*(inside or []), sys.executable, "-m", "dask", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    env=os.environ | self._hosts.environment | {"DASK_TEMPORARY_DIRECTORY": str(self._place)},
                )
            )

    def _log(self, name: str) -> Path:
        return self._place / f"{name}.log"

    def _await(self, what: str, told: str, names: list[str]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not all(told in self._log(name).read_text(errors="replace") for name in names):
            if time.monotonic() > until_s:
                said = "\n".join(self._log(name).read_text(errors="replace")[-800:] for name in names)
                raise TimeoutError(f"no {what} of the standing scheduler is there: {said}")
            time.sleep(0.1)
