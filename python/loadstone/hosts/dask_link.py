"""Links to hosts whose words Dask distributed carries, and the scheduler in between.

The scheduler lives in this process: when it dies, every worker's connection breaks, and every
engine ends. Workers are started over ssh and get their certificate on its standard input, or are
those of a scheduler that is there already (Slurm, Kubernetes). That one passes words on as they are, by the
connections that it has. Nothing is ever submitted as a task.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import temporary
from loadstone.errors import LoadstoneError, RefusedError, RunError
from loadstone.hosts import certificates
from loadstone.hosts.agent_links import TALK_BYTES, Waiting, ssh_argv, why_gone
from loadstone.messages import say

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine

    from loadstone.hosts.hosts_file import HostEntry, HostsFile

START_S: Final = 15.0
FIND_EVERY_S: Final = 0.5
HEAR_EVERY_S: Final = 0.002
PASS_S: Final = 1.0
"""So long a host may take for its last orders when it is let go."""
FIND_SHARE: Final = 0.8
"""Of the time a host has to answer: then its worker is not there, and who is there is told."""


class ControlPlane:
    """A scheduler and a client, on an event loop of their own."""

    def __init__(self, hosts: HostsFile) -> None:
        try:
            from loadstone.hosts import dask_worker  # noqa: PLC0415 # an extra
        except ImportError as error:
            raise RefusedError(
                say("hosts.dask.package", package=error.name),
                hint=say("hosts.dask.package_hint"),
            ) from error
        self.dask = dask_worker
        self.hosts = hosts
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="control plane", daemon=True)
        self._scheduler: Any = None
        self._scratch = contextlib.ExitStack()
        """Of the directory that Dask makes for a scheduler."""
        self._client: Any = None
        self._heard: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._credentials: dict[str, certificates.Credentials] = {}
        self._run = ""
        self.port = 0
        self.addresses: dict[str, str] = {}
        """By host: its worker's address."""
        self._names: dict[str, str] = {}
        """By address: its host."""
        self._lost_early: dict[str, dict[str, Any]] = {}
        """By address: why an agent was gone before its worker was taken for a host."""
        self._hears_of_workers = False

    def start(self) -> None:
        """Start the scheduler, or reach the one that is there within `connect_s`."""
        self.dask.configure(self._patience_s)
        self._thread.start()
        try:
            self._make_certificates()
            scratch = self._scratch.enter_context(temporary.directory())
            self.wait(self._begin(str(scratch)), self._start_s)
        except BaseException as error:
            # Nobody else would: who could not start it has nothing to stop.
            self.stop()
            if isinstance(error, LoadstoneError) or not isinstance(error, Exception):
                raise
            where = self.hosts.run.scheduler or "here"
            # A time limit has no words of its own.
            reason = str(error) or say("hosts.asked.silent", waited_s=self._start_s)
            raise RunError(
                say("hosts.dask.not_started", where=where, reason=reason),
                hint=say("hosts.dask.not_started_hint"),
            ) from error

    @property
    def _patience_s(self) -> float:
        """So long a worker may take to take a connection: its host may be busy, and is not lost for it."""
        settings = self.hosts.run
        return max(self.dask.CONNECT_S, settings.connect_s, settings.lost_after_s)

    @property
    def _start_s(self) -> float:
        """So long it may take until the scheduler answers; one of our own is slow on a busy machine only."""
        settings = self.hosts.run
        return max(START_S, settings.connect_s) if settings.scheduler is None else settings.connect_s

    def stop(self) -> None:
        """Let go of everything; done already where it could not be started."""
        if not self._thread.is_alive():
            return
        with contextlib.suppress(Exception):
            self.wait(self._end(), START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._scratch.close()

    def wait(self, work: Coroutine[Any, Any, Any], timeout_s: float) -> Any:
        """Do something on the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def begin(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Do something on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def listen(self, name: str, heard: Callable[[dict[str, Any]], None]) -> None:
        """Let somebody hear what comes of a host."""
        self._heard[name] = heard
        if self.hosts.run.scheduler is not None:
            self.begin(self._find_or_lose(name))

    def given(self, entry: HostEntry) -> dict[str, Any]:
        """Return what a worker must know, its key among it."""
        credentials = self._credentials.get(entry.name)
        coordinator = self.hosts.run.coordinator
        protocol = "tls" if credentials is not None else "tcp"
        return {
            "name": entry.name,
            "scheduler": None if coordinator is None else _url(protocol, coordinator, self.port),
            "protocol": protocol,
            "port": self.port,
            "credentials": None if credentials is None else credentials.document(),
            "connect_s": self.hosts.run.connect_s,
            "patience_s": self._patience_s,
        }

    def send(self, name: str, order: dict[str, Any]) -> None:
        """Send an order to a host; they arrive in this order."""
        self._loop.call_soon_threadsafe(self._send, name, json.dumps(order))

    def _send(self, name: str, order: str) -> None:
        address = self.addresses.get(name, "")
        if self._scheduler is not None:
            self.dask.pass_order(self._scheduler, address, self._run, order)
            return
        try:
            self._client.scheduler_comm.send(
                {"op": self.dask.WORD, "run": self._run, "address": address, "order": order}
            )
        except OSError as error:
            self._heard[name]({"type": "lost", "why": _broken(error)})

    def _make_certificates(self) -> None:
        settings = self.hosts.run
        if not settings.tls:
            return
        names = [certificates.COORDINATOR, *self.hosts.names]
        if settings.certificates is not None:
            directory = Path(settings.certificates).expanduser()
            wanted = names if settings.scheduler is None else names[:1]
            also = {one.name: one.reached_by for one in self.hosts.host}
            self._credentials = {
                name: certificates.read(directory, name, also.get(name, name)) for name in wanted
            }
        elif settings.scheduler is None:
            authority = certificates.Authority(days=30)
            self._credentials = {name: authority.issue(name) for name in names}
        else:
            raise RefusedError(
                say("hosts.dask.certificates", address=settings.scheduler),
                hint=say("hosts.dask.certificates_hint"),
            )

    async def _begin(self, scratch: str) -> None:
        own = self._credentials.get(certificates.COORDINATOR)
        security = self.dask.security(None if own is None else own.document())
        address = self.hosts.run.scheduler
        if address is None:
            protocol = "tls" if own is not None else "tcp"
            self._scheduler = self.dask.DASK.Scheduler(
                host=self.hosts.run.coordinator or "",
                port=0,
                protocol=protocol,
                security=security,
                dashboard=False,
                dashboard_address=":0",
                local_directory=scratch,
            )
            self._scheduler.stream_handlers[self.dask.WORD] = self._hear
            await self._scheduler
            self.port = int(self._scheduler.address.rpartition(":")[2])
            address = _url(protocol, self.hosts.run.coordinator or "127.0.0.1", self.port)
        # Known before it is connected: one that is never closed closes itself when nothing can wait for that.
        self._client = self.dask.DASK.Client(
            address, asynchronous=True, security=security, set_as_default=False, timeout=self._start_s
        )
        await self._client
        self._run = str(self._client.id)
        if self._scheduler is None:
            self._client._stream_handlers[self.dask.WORD] = self._hear
        self._client.subscribe_topic("all", self._hear_of_workers)
        # First what ends the agents, so that none begins that nobody would end.
        await self._client.register_plugin(self.dask.CoordinatorIsThere(self._run))
        await self._client.register_plugin(self.dask.HostAgent(self._run))
        # A worker that registers before the subscription has come through would never be heard of.
        while self._scheduler is not None and not self._hears_of_workers:
            self._scheduler.log_event("all", {"action": "look"})
            await asyncio.sleep(HEAR_EVERY_S)

    async def _end(self) -> None:
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.unsubscribe_topic("all")
                await self._client.unregister_worker_plugin(self.dask.plugin_of(self._run))
            await self._client.close()
        if self._scheduler is not None:
            await self._scheduler.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _find_or_lose(self, name: str) -> None:
        try:
            await self._find(name)
        except Exception as error:  # noqa: BLE001 # whatever breaks it: nobody would hear of it
            self._heard[name]({"type": "lost", "why": _broken(error)})

    async def _find(self, name: str) -> None:
        """Find a host among the workers of a scheduler that was there before; they may still be starting."""
        entry = next(one for one in self.hosts.host if one.name == name)
        until_s = time.monotonic() + FIND_SHARE * self.hosts.run.connect_s
        while True:
            identity = await self._client.scheduler.identity(n_workers=-1)
            workers = identity["workers"]
            for address, identity in workers.items():
                if str(identity.get("name")) == name or identity.get("host") == entry.reached_by:
                    shown = await self._client.run_on_scheduler(self.dask.shown_by, address)
                    self._take(name, address, shown)
                    return
            if time.monotonic() > until_s:
                break
            await asyncio.sleep(FIND_EVERY_S)
        names = ", ".join(sorted(str(identity.get("name")) for identity in workers.values()))
        self._heard[name]({"type": "lost", "why": say("hosts.ended.no_worker", names=names or "none")})

    async def _look_and_take(self, name: str, address: str) -> None:
        try:
            self._take(name, address, await self.dask.shown_by(address, self._scheduler))
        except ConnectionError:
            # It is gone already, and its ssh tells why.
            return

    def _take(self, name: str, address: str, shown: list[str] | None) -> None:
        """Take a worker for a host, unless it shows another's certificate."""
        entry = next(one for one in self.hosts.host if one.name == name)
        if shown is not None and not certificates.is_of(shown, (name, entry.reached_by)):
            why = say("hosts.ended.certificate", names=", ".join(shown) or "nobody")
            self._heard[name]({"type": "lost", "why": why})
            return
        self.addresses[name] = address
        self._names[address] = name
        self._heard[name]({"type": "up"})
        if (lost := self._lost_early.pop(address, None)) is not None:
            self._heard[name](lost)

    def _hear(self, worker: str, line: bytes, run: str = "") -> None:
        """Hear a worker, once it was taken for its host."""
        _ = run
        message = json.loads(line)
        name = self._names.get(worker)
        if name is not None:
            self._heard[name](message)
        elif message.get("type") == "lost":
            self._lost_early[worker] = message

    async def _hear_of_workers(self, event: tuple[float, dict[str, Any]]) -> None:
        self._hears_of_workers = True
        change = event[1]
        address = str(change.get("worker"))
        if change.get("action") == "add-worker" and self._scheduler is not None:
            worker = self._scheduler.workers.get(address)
            if worker is not None and str(worker.name) in self._heard:
                self.begin(self._look_and_take(str(worker.name), address))
        elif change.get("action") == "remove-worker":
            name = self._names.get(address)
            if name is not None:
                self._heard[name]({"type": "lost", "why": say("hosts.ended.connection")})


class DaskLink:
    """The agent of one host, behind a worker."""

    def __init__(
        self, plane: ControlPlane, entry: HostEntry, heard: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.name = entry.name
        self._plane = plane
        self._entry = entry
        self._heard = heard
        self._waiting = Waiting()
        self._process: subprocess.Popen[bytes] | None = None
        self._said: list[str] = []
        self._closed = False
        self._is_up = False

    def open(self) -> None:
        """Start the worker by ssh; one of another scheduler is only found."""
        self._plane.listen(self.name, self._hear)
        if self._plane.hosts.run.scheduler is not None:
            return
        argv = [
            *ssh_argv(self._entry, self._plane.hosts.run),
            shlex.join([*self._entry.program, "hosts", "worker"]),
        ]
        try:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
            )
        except OSError as error:
            self._heard(self.name, {"type": "lost", "why": f"{argv[0]}: {error.strerror}"})
            return
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(self._plane.given(self._entry)).encode() + b"\n")
                self._process.stdin.flush()
        threading.Thread(target=self._watch, name=f"{self.name} ssh", daemon=True).start()

    def tell(self, order: dict[str, Any]) -> None:
        """Send an order; they arrive in this order."""
        self._plane.send(self.name, order)

    def ask(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a question and wait for its answer."""
        number = self._waiting.number()
        self._plane.send(self.name, {**order, "id": number})
        return self._waiting.wait(self.name, number, timeout_s)

    def close(self) -> None:
        """Let go of it, once it has its orders: the worker ends with its ssh, and the agent with it."""
        self._closed = True
        if self._is_up:
            # Who answers has what was sent before; an agent that leaves at once need not answer.
            with contextlib.suppress(RunError):
                self.ask({"do": "ping"}, PASS_S)
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3.0)
            return
        self._process.terminate()

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("type") == "up":
            # A worker says so when it is there, its agent when that is; either may be the first.
            if self._is_up or self.name not in self._plane.addresses:
                return
            self._is_up = True
        if self._waiting.answered(message):
            return
        if message.get("type") == "lost":
            self._waiting.broke(str(message["why"]))
        if not self._closed:
            self._heard(self.name, message)

    def _watch(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        while line := process.stdout.readline(TALK_BYTES):
            text = line.decode(errors="replace").strip()
            if text and " - distributed." not in text:
                self._said.append(text)
                del self._said[:-20]
        process.stdout.close()
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(5.0)
        if not self._closed:
            self._heard(self.name, {"type": "lost", "why": why_gone(code, self._said, ssh=True)})


def _url(protocol: str, host: str, port: int) -> str:
    return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"


def _broken(error: BaseException) -> str:
    """Return why a host cannot be spoken with: what Dask says of a stream names objects and ports."""
    if isinstance(error, TimeoutError):
        return say("hosts.ended.no_answer")
    # A worker that is gone is no longer among those that a call may go to.
    if isinstance(error, OSError | ValueError | KeyError):
        return say("hosts.ended.connection")
    return say("hosts.ended.connection_told", reason=str(error) or type(error).__name__)
