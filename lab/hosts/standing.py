"""A Dask scheduler that outlives runs, with a worker on each namespace host: the third way of words.

Started as docs/hosts.md says of Slurm, without Slurm. What is made ends with this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from lab.hosts.programs import Programs
from lab.parts import LOADSTONE

if TYPE_CHECKING:
    from lab.hosts.namespaces import NamespaceHosts

PORT = 8786


class StandingScheduler(Programs):
    """While entered, hosts files with `settings` find the workers of `hosts` at a scheduler."""

    def __init__(self, hosts: NamespaceHosts) -> None:
        super().__init__(Path())
        self._hosts = hosts

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="standing-", dir=self._hosts.directory))
        return super().__enter__()

    @property
    def environment(self) -> dict[str, str]:
        dask = {
            "DASK_TEMPORARY_DIRECTORY": str(self.directory),
            "DASK_CONFIG": f"{self._certificates}/dask.yaml",
        }
        return os.environ | self._hosts.environment | dask

    @property
    def settings(self) -> str:
        """Lines of [run] of a hosts file."""
        return f'scheduler = "{self._address}"\ncertificates = "{self._certificates}"'

    @property
    def _address(self) -> str:
        return f"tls://{self._hosts.coordinator}:{PORT}"

    @property
    def _certificates(self) -> Path:
        return self.directory / "certificates"

    def _begin(self) -> None:
        names = ",".join(self._hosts.names)
        loadstone = [*LOADSTONE, "hosts", "certificates", names]
        subprocess.run([*loadstone, "--directory", str(self._certificates)], check=True, capture_output=True)
        address = ["--host", self._hosts.coordinator, "--port", str(PORT), "--no-dashboard"]
        dask = [sys.executable, "-m", "dask"]
        self.start(*dask, "scheduler", *address, *self._own("coordinator"), log="scheduler")
        for name in self._hosts.names:
            self.start(
                *self._hosts.argv(name), *dask, "worker", self._address, "--no-nanny", "--nthreads", "1",
                "--memory-limit", "0", "--no-dashboard", "--name", name, *self._own(name), log=name,
            )  # fmt: skip
        every = self._hosts.names
        self.wait_until(
            lambda: all("Registered to" in self.log_text(name) for name in every),
            "worker for each host",
            *every,
        )

    def scheduler(self) -> list[int]:
        """Return the scheduler's process."""
        return [self._processes[0].pid]

    def _own(self, name: str) -> list[str]:
        files = self._certificates
        words = ["--tls-ca-file", f"{files}/ca.pem", "--tls-cert", f"{files}/{name}.pem"]
        return [*words, "--tls-key", f"{files}/{name}.key"]
