"""The link to an agent behind a Dask worker: no order is lost at its beginning or its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import tempfile
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.errors import RunError
from loadstone.hosts import certificates, dask_link
from loadstone.hosts.dask_link import ControlPlane, DaskLink
from loadstone.hosts.hosts_file import HostsFile
from tests.support.lazily import WITHOUT_DISTRIBUTED, LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.hosts import dask_worker
else:
    dask_worker = LazyModule("loadstone.hosts.dask_worker")

pytestmark = WITHOUT_DISTRIBUTED

HOSTS = HostsFile.model_validate(
    {"run": {"scheduler": "tcp://127.0.0.1:1", "tls": False}, "host": [{"name": "h1"}]}
)


def test_a_scheduler_that_goes_while_hosts_are_looked_for_is_a_loss() -> None:
    """Nobody heard of it, and a run waited `connect_s`."""
    heard: list[dict[str, Any]] = []

    async def gone(**_: object) -> None:
        raise OSError("the stream is closed")

    async def look() -> None:
        plane = ControlPlane(HOSTS)
        plane._client = SimpleNamespace(scheduler=SimpleNamespace(identity=gone))
        plane._heard["h1"] = heard.append
        await plane._find_or_lose("h1")
        plane._loop.close()

    asyncio.run(look())
    assert heard == [{"type": "lost", "why": dask_link._broken(OSError())}]


def test_a_scheduler_that_does_not_answer_is_told_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit has no words, and the message ended in a colon: an ssh server's address did it."""

    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(ControlPlane, "_begin", never)
    quick = HOSTS.model_copy(update={"run": HOSTS.run.model_copy(update={"connect_s": 0.05})})
    plane = ControlPlane(quick)
    with pytest.raises(RunError, match=r"tcp://127.0.0.1:1\): no answer within 50.*ms"):
        plane.start()
    plane.stop()
    plane._loop.close()


def test_no_time_limit_of_dask_loses_a_host_that_may_be_silent_for_longer() -> None:
    """Its 30 s took 28 of 64 hosts away on a busy machine, where `lost_after_s` was 300."""
    hosts = HostsFile.model_validate({"run": {"lost_after_s": 300.0}, "host": [{"name": "h1"}]})
    plane = ControlPlane(hosts)
    dask_worker.configure(plane._patience_s)
    plane._loop.close()
    import dask.config  # noqa: PLC0415 - all processes of the tests would import it

    assert dask.config.get("distributed.scheduler.worker-ttl") is None
    assert dask.config.get("distributed.comm.timeouts.connect") == "300.0 s"
    assert plane.given(hosts.host[0])["patience_s"] == 300


def credentials(authority: certificates.Authority, name: str) -> Any:
    return dask_worker.security(authority.issue(name).document())


async def scheduler_of(authority: certificates.Authority, name: str) -> Any:
    return await dask_worker.DASK.Scheduler(
        host="127.0.0.1", port=0, protocol="tls", security=credentials(authority, name),
        dashboard=False, dashboard_address=":0",
    )  # fmt: skip


@pytest.mark.parametrize(("certificate", "taken"), [("h1", True), ("h2", False)])
def test_a_worker_is_a_host_only_by_that_hosts_certificate(certificate: str, taken: bool) -> None:
    """Any certificate of the authority was taken for the host that a worker said it is."""
    pytest.importorskip("cryptography")
    heard: list[dict[str, Any]] = []

    async def register() -> dict[str, str]:
        dask_worker.configure()
        authority = certificates.Authority()
        scheduler = await scheduler_of(authority, "coordinator")
        worker = await dask_worker.DASK.Worker(
            scheduler.address, name="h1", nthreads=1, memory_limit=0, dashboard=False,
            dashboard_address=":0", security=credentials(authority, certificate),
        )  # fmt: skip
        plane = ControlPlane(HOSTS)
        plane._heard["h1"] = heard.append
        plane._take("h1", worker.address, await dask_worker.shown_by(worker.address, scheduler))
        plane._loop.close()
        await worker.close()
        await scheduler.close()
        return plane.addresses

    addresses = asyncio.run(register())
    assert list(addresses) == (["h1"] if taken else [])
    lost = {"type": "lost", "why": "it shows the certificate of h2, not its own"}
    assert heard == [{"type": "up"} if taken else lost]


def test_what_has_a_hosts_certificate_is_not_taken_for_the_scheduler() -> None:
    """A host that listened in the coordinator's place was told everything."""
    pytest.importorskip("cryptography")

    async def connect() -> None:
        dask_worker.configure()
        authority = certificates.Authority()
        for name, refused in (("coordinator", False), ("h1", True)):
            scheduler = await scheduler_of(authority, name)
            own = credentials(authority, "coordinator")
            client = dask_worker.DASK.Client(
                scheduler.address, asynchronous=True, security=own, set_as_default=False, timeout=5
            )
            if refused:
                with pytest.raises(OSError, match="certificate does not match"):
                    await client
            else:
                await client
                await client.close()
            await scheduler.close()

    asyncio.run(connect())


def test_a_scheduler_that_is_silent_gets_the_time_that_is_set_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It got 15 s whatever `connect_s` was, and its directory and thread stayed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        run = {"scheduler": address, "tls": False, "connect_s": 1.5}
        plane = ControlPlane(HostsFile.model_validate({"run": run, "host": [{"name": "h1"}]}))
        with pytest.raises(RunError) as raised:
            plane.start()
    assert address in str(raised.value)
    assert "15.0 s" not in str(raised.value)
    assert not list(tmp_path.iterdir())
    assert "control plane" not in {thread.name for thread in threading.enumerate()}


def test_a_worker_tells_its_figures_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads them, and those of 24 hosts took a third of what the coordinator takes of a CPU."""
    sent: list[float] = []
    now_s = [100.0]

    async def heartbeat(_worker: object) -> None:
        sent.append(now_s[0])

    monkeypatch.setattr(dask_worker.DASK.Worker, "heartbeat", heartbeat)
    monkeypatch.setattr("loadstone.hosts.dask_worker.time", SimpleNamespace(monotonic=lambda: now_s[0]))
    worker = object.__new__(dask_worker.HostWorker)
    for now_s[0] in (100.0, 102.0, 159.0, 160.0, 161.0):
        asyncio.run(worker.heartbeat())
    assert sent == [100.0, 160.0]


def until(came: Callable[[], object]) -> None:
    end_s = time.monotonic() + 60
    while not came():
        assert time.monotonic() < end_s
        time.sleep(0.02)


@contextlib.contextmanager
def standing_scheduler() -> Iterator[str]:
    """A scheduler that is somebody else's, on an event loop of its own; yields its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> Any:
        return await dask_worker.DASK.Scheduler(host="127.0.0.1", port=0, dashboard=False)

    scheduler = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    yield scheduler.address
    asyncio.run_coroutine_threadsafe(scheduler.close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


async def worker_at(address: str) -> Any:
    return await dask_worker.DASK.Worker(
        address, name="h1", nthreads=1, memory_limit=0, dashboard=False, dashboard_address=":0"
    )


def hears_and_obeys(plane: ControlPlane, scheduler: str | None) -> None:
    """Hold a plane to all words of an agent and all orders to it, the last ones among them."""
    heard: list[dict[str, Any]] = []
    ordered: list[str] = []
    link = DaskLink(plane, plane.hosts.host[0], lambda _, message: heard.append(message))
    plane.listen("h1", link._hear)
    worker = plane.wait(worker_at(scheduler or f"tcp://127.0.0.1:{plane.port}"), 60)
    agent = worker.plugins[plane.dask.plugin_of(plane._run)]
    until(lambda: "alive" in [message["type"] for message in heard])
    assert heard[0] == {"type": "up"}
    assert link.ask({"do": "ping"}, 60)["type"] == "pong"
    hear = agent.hear

    def hear_too(order: str) -> None:
        ordered.append(order)
        hear(order)

    agent.hear = hear_too
    link.tell({"do": "stop"})
    link.tell({"do": "alive"})
    until(lambda: len(ordered) == 2)
    assert ordered == ['{"do": "stop"}', '{"do": "alive"}']
    until(lambda: "ended" in [message["type"] for message in heard])
    link.tell({"do": "identify", "paths": []})
    link.close()
    assert [json.loads(order)["do"] for order in ordered[2:]] == ["identify", "ping"]
    # What is for another run's agent, or for one that is gone, does nothing, and breaks nothing.
    dask_worker.hear_order(worker, "another run", '{"do": "stop"}')
    agent._process.kill()
    with pytest.raises(RunError, match="killed by signal 9"):
        link.ask({"do": "ping"}, 60)
    plane.wait(worker.close(), 60)
    link.tell({"do": "alive"})
    # Whether the question to the dead agent came through before its end was told is chance.
    assert '{"do": "alive"}' not in ordered[2:]


@pytest.mark.in_turn
@pytest.mark.parametrize("whose", ["ours", "somebody else's"])
def test_words_go_by_the_connections_of_the_scheduler_whoever_it_belongs_to(whose: str) -> None:
    """Each word went through events, a client and its pickles: 64 hosts took 10.8 % of a CPU, limit 5.

    Behind another's scheduler each order was a connection of its own, and on a busy machine that broke.
    """
    run: dict[str, Any] = {"transport": "dask", "tls": False}
    with standing_scheduler() if whose != "ours" else contextlib.nullcontext() as scheduler:
        own = {"coordinator": "127.0.0.1"} if scheduler is None else {"scheduler": scheduler}
        plane = ControlPlane(HostsFile.model_validate({"run": run | own, "host": [{"name": "h1"}]}))
        plane.start()
        try:
            hears_and_obeys(plane, scheduler)
        finally:
            plane.stop()


def test_an_order_behind_a_connection_that_broke_is_a_loss() -> None:
    def broken(_: dict[str, Any]) -> None:
        raise OSError("closed")

    heard: list[dict[str, Any]] = []
    plane = ControlPlane(HOSTS)
    plane._client = SimpleNamespace(scheduler_comm=SimpleNamespace(send=broken))
    plane._heard["h1"] = heard.append
    plane._send("h1", "{}")
    plane._loop.close()
    assert heard == [{"type": "lost", "why": dask_link._broken(OSError())}]


def test_an_agent_that_is_gone_before_its_host_is_known_is_a_loss() -> None:
    """What a worker says before it is taken for a host is not the host's, but for the end of its agent."""
    plane = ControlPlane(HOSTS)
    heard: list[dict[str, Any]] = []
    plane._heard["h1"] = heard.append
    for message in (
        {"type": "up"},
        {"type": "lost", "why": "killed"},
        {"type": "ended", "status": "complete"},
    ):
        plane._hear("tcp://1", json.dumps(message).encode())
    assert heard == []
    plane._take("h1", "tcp://1", None)
    plane._hear("tcp://1", b'{"type": "alive"}')
    plane._hear("tcp://2", b'{"type": "ended", "status": "complete"}')
    plane._loop.close()
    assert heard == [{"type": "up"}, {"type": "lost", "why": "killed"}, {"type": "alive"}]
