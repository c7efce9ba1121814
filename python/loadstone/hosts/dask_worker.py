"""The agent of a host where Dask distributed carries the words: a worker that runs nothing itself.

Knows two plugins: the worker's owns one agent process and passes lines, the scheduler's takes it away
from the workers when the coordinator's connection breaks. No task is ever given to the worker, and
the engine is a grandchild of it, so that neither a busy event loop nor a task that is run twice can
touch a load. When the worker ends, the agent's input closes, and the engine with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import math
import os
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import dask.config
import distributed
import yaml
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin

from loadstone import temporary
from loadstone.hosts.agent_links import LINE_BYTES, WANTED_BY, why_gone
from loadstone.hosts.certificates import COORDINATOR, dask_settings, names_told
from loadstone.hosts.heard import is_message
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WORD: Final = "loadstone-word"
"""Of what goes between a coordinator and its agents by the connections of a scheduler, either way."""
CONNECT_S: Final = 10.0
CLOSE_S: Final = 3.0
FIGURES_EVERY_S: Final = 60.0
LOOK_S: Final = 0.05
LOOKS: Final = 200
DASK: Final[Any] = distributed
"""Its functions have no types."""


def configure(patience_s: float = CONNECT_S) -> None:
    """Let Dask do nothing beside a load (`hosts/dask.yaml`), and wait so long for a connection."""
    dask.config.update(dask.config.config, yaml.safe_load(dask_settings()), priority="new")
    timeouts = {"distributed.comm.timeouts.connect": f"{patience_s} s"}
    dask.config.set(timeouts)
    # What it says of connections that close is told by the agent and the coordinator, in words.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class NamedSecurity(distributed.Security):
    """TLS by which whoever connects to a scheduler sees that it is the coordinator's.

    Dask's own takes every certificate of the authority for it, a host's too.
    """

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """Return what a connection is opened with."""
        arguments: dict[str, Any] = super().get_connection_args(role)  # type: ignore[no-untyped-call]
        # A scheduler connects to workers that have registered: those were looked at then.
        if role in ("client", "worker") and arguments.get("ssl_context") is not None:
            arguments["ssl_context"].check_hostname = True
            arguments["server_hostname"] = COORDINATOR
        return arguments


async def shown_by(address: str, dask_scheduler: Any) -> list[str] | None:
    """Return whose certificate a worker registered with; None where it did without one."""
    for _ in range(LOOKS):
        stream = dask_scheduler.stream_comms.get(address)
        # It is there a moment after the worker is: its plugins are told of first.
        if stream is not None and stream.comm is not None:
            peer = stream.comm.extra_info.get("peercert")
            return None if peer is None else names_told(peer)
        await asyncio.sleep(LOOK_S)
    raise ConnectionError(address)


def security(credentials: Mapping[str, str] | None) -> Any:
    """Return TLS with a certificate that both ends must have, or none where it was switched off."""
    if credentials is None:
        return DASK.Security(require_encryption=False)
    parts: dict[str, Any] = {"tls_ca_file": credentials["authority"]}
    for role in ("scheduler", "worker", "client"):
        parts |= {f"tls_{role}_cert": credentials["certificate"], f"tls_{role}_key": credentials["key"]}
    return NamedSecurity(require_encryption=True, **parts)  # type: ignore[no-untyped-call]


def plugin_of(client: str) -> str:
    """Return what the plugins of a coordinator are called: on a scheduler others may have theirs, too."""
    return f"loadstone-host-agent-{client}"


class HostWorker(DASK.Worker):  # type: ignore[misc] # it has no types
    """A worker that seldom tells its figures: nobody asks for them, and its connection tells the rest."""

    _told_s = -math.inf

    async def heartbeat(self) -> None:
        """Tell them, no more often than every `FIGURES_EVERY_S`."""
        if time.monotonic() - self._told_s >= FIGURES_EVERY_S:
            self._told_s = time.monotonic()
            await super().heartbeat()


def pass_order(scheduler: Any, address: str, run: str, order: str) -> None:
    """Send an order to a worker. Who is no worker any more was told of as lost."""
    # Who cannot be spoken with is taken from the workers by it.
    with contextlib.suppress(KeyError):
        scheduler.worker_send(address, {"op": WORD, "run": run, "order": order})


def pass_word(
    scheduler: Any,
    *,
    run: str,
    worker: str = "",
    line: bytes = b"",
    client: str = "",
    address: str = "",
    order: str = "",
) -> None:
    """Pass the line of a worker to the run's coordinator, or the order of that to a worker.

    What a scheduler that is somebody else's does with words, for all runs on it.
    """
    if worker:
        scheduler.client_send(run, {"op": WORD, "worker": worker, "line": line})
    elif client == run:
        pass_order(scheduler, address, run, order)


class CoordinatorIsThere(SchedulerPlugin):
    """Passes words on, and ends a coordinator's agents when its connection to the scheduler does."""

    def __init__(self, client: str) -> None:
        self.name = plugin_of(client)
        self._client = client
        self._ending: asyncio.Task[None] | None = None

    async def start(self, scheduler: Any) -> None:
        """Know words from now on. They stay known: a scheduler ends a connection that says anything else."""
        scheduler.stream_handlers.setdefault(WORD, functools.partial(pass_word, scheduler))

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Take the agents away from all workers."""
        if client == self._client:
            self._ending = asyncio.create_task(self._end(scheduler))

    async def _end(self, scheduler: Any) -> None:
        if self.name in scheduler.worker_plugins:
            await scheduler.unregister_worker_plugin(comm=None, name=self.name)
        scheduler.remove_plugin(self.name)


class HostAgent(WorkerPlugin):
    """Owns the agent process of one worker."""

    def __init__(self, client: str) -> None:
        self.name = plugin_of(client)
        self._run = client
        self._worker: Any = None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def setup(self, worker: Any) -> None:
        """Start the agent."""
        self._worker = worker
        # The same for all runs, and for ever: a worker ends a connection that says anything else.
        worker.stream_handlers.setdefault(WORD, functools.partial(hear_order, worker))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "loadstone.hosts.agent",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
            # While this process is stopped, only the engine can see that the coordinator is gone.
            pass_fds=[int(descriptor)] if (descriptor := os.environ.get(WANTED_BY)) else (),
        )
        self._reading = asyncio.create_task(self._read())

    async def teardown(self, worker: Any) -> None:
        """Close its input, and see that it ends."""
        _ = worker
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), CLOSE_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def hear(self, order: str) -> None:
        """Pass an order on; an agent that is gone was told of as such."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(order.encode() + b"\n")

    async def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        try:
            async for line in process.stdout:
                self._pass_on(line)
        except ValueError:
            # What asyncio says of a line beyond the limit.
            why = say("hosts.ended.endless", most_bytes=LINE_BYTES)
        else:
            why = why_gone(await process.wait(), [], ssh=False)
        self._say(json.dumps({"type": "lost", "why": why}).encode())

    def _pass_on(self, line: bytes) -> None:
        """Let the coordinator hear what the agent says, and nothing else that is written there."""
        with contextlib.suppress(ValueError, RecursionError):
            if is_message(json.loads(line)):
                self._say(line)

    def _say(self, line: bytes) -> None:
        """Let the coordinator hear it; where it is gone, so is what it would have heard."""
        with contextlib.suppress(OSError):
            # As the line it came as: Dask would look at each part of it, on every side.
            self._worker.batched_stream.send({"op": WORD, "run": self._run, "line": line})


def hear_order(worker: Any, run: str, order: str) -> None:
    """Pass an order to this run's agent on a worker; one that is not there any more does nothing."""
    agent = worker.plugins.get(plugin_of(run))
    if agent is not None:
        agent.hear(order)


def main() -> int:
    """Be a worker; the first line of standard input says whose, and its end is ours."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.environ[WANTED_BY] = str(source)
    with os.fdopen(source, "rb", buffering=0) as orders:
        line = b""
        while not line.endswith(b"\n"):
            piece = orders.read(1)
            if not piece:
                return 1
            line += piece
        settings = json.loads(line)
        configure(settings["patience_s"])
        with temporary.directory() as scratch:

            def until_closed() -> None:
                while orders.read(65536):
                    pass
                # The coordinator is gone: the agent's input closes with this process.
                shutil.rmtree(scratch.parent, ignore_errors=True)
                os._exit(0)

            threading.Thread(target=until_closed, daemon=True).start()
            try:
                asyncio.run(_work(settings, scratch))
            except (OSError, TimeoutError) as error:
                os.write(sink, json.dumps({"error": str(error)}).encode() + b"\n")
                return 1
    return 0


async def _work(job: dict[str, Any], scratch: Path) -> None:
    scheduler = job["scheduler"]
    if scheduler is None:
        # Where the ssh connection comes from is where the coordinator is.
        address = os.environ.get("SSH_CONNECTION", "").split(" ")[0] or "127.0.0.1"
        scheduler = f"{job['protocol']}://{f'[{address}]' if ':' in address else address}:{job['port']}"
    worker = HostWorker(
        scheduler,
        name=job["name"],
        nthreads=1,
        memory_limit=0,
        dashboard=False,
        dashboard_address=":0",
        security=security(job["credentials"]),
        death_timeout=job["connect_s"],
        local_directory=str(scratch),
    )
    async with worker:
        await worker.finished()


if __name__ == "__main__":
    sys.exit(main())
