"""The link to an agent behind a Dask worker: no order is lost at its beginning or its end."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("distributed", reason="the extra `hosts` is not installed")
import dask.config

from loadstone.errors import RunError
from loadstone.hosts import certificates, dask_link, dask_worker
from loadstone.hosts.dask_link import ControlPlane, DaskLink
from loadstone.hosts.hosts_file import HostsFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOSTS = HostsFile.model_validate(
    {"run": {"scheduler": "tcp://127.0.0.1:1", "tls": False}, "host": [{"name": "h1"}]}
)
TELL = SimpleNamespace(tell=None)


class Plane:
    """A control plane whose host is up before `listen` returns, as on a machine with other work."""

    is_straight = False

    def __init__(self) -> None:
        self.hosts = HOSTS
        self.dask = TELL
        self.addresses = {"h1": "tcp://127.0.0.1:2"}
        self.passed: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def begin(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def listen(self, _: str, heard: Callable[[dict[str, Any]], None]) -> None:
        heard({"type": "up"})

    async def call(self, _name: str, _function: object, order: dict[str, Any]) -> None:
        await asyncio.sleep(0.01)
        self.passed.append(order["do"])


@pytest.fixture
def plane() -> Iterator[Plane]:
    one = Plane()
    yield one
    one.loop.call_soon_threadsafe(one.loop.stop)
    one.thread.join(60)
    one.loop.close()


def test_an_order_is_passed_however_early_it_is_given(plane: Plane) -> None:
    """The greeting was lost where a host was heard of before its link was ready: a run waited `connect_s`."""

    def heard(_: str, message: dict[str, Any]) -> None:
        assert message == {"type": "up"}
        link.tell({"do": "hello"})

    link = DaskLink(plane, HOSTS.host[0], heard)  # type: ignore[arg-type] # in the place of a scheduler
    link.open()
    link.close()
    assert plane.passed == ["hello"]


def test_the_last_orders_are_passed_before_a_host_is_let_go(plane: Plane) -> None:
    """The last one tells an agent to remove what the coordinator has."""
    link = DaskLink(plane, HOSTS.host[0], lambda _, __: None)  # type: ignore[arg-type] # as above
    link.open()
    for order in ("stop", "stop", "leave"):
        link.tell({"do": order})
    link.close()
    assert plane.passed == ["stop", "stop", "leave"]


def test_all_hosts_hear_that_we_are_here_in_one_message_that_no_order_waits_for() -> None:
    """A message for each stood in the way of the order to stop: 64 hosts stopped after 46 s, 24 were lost."""
    hosts = HostsFile.model_validate(
        {"run": {"transport": "dask"}, "host": [{"name": "h1"}, {"name": "h2"}, {"name": "h3"}]}
    )
    heard: list[tuple[str, dict[str, Any]]] = []
    asked: list[list[str]] = []

    async def run(_function: object, _plugin: str, order: dict[str, Any], **how: Any) -> dict[str, Any]:
        assert order == {"do": "alive"}
        asked.append(sorted(how["workers"]))
        return {"tls://1": True, "tls://2": ConnectionError("gone")}

    plane = ControlPlane(hosts)
    plane._client = SimpleNamespace(run=run)
    plane._thread.start()
    plane.addresses = {"h1": "tls://1", "h2": "tls://2"}
    links = [DaskLink(plane, entry, lambda _, __: None) for entry in hosts.host]
    for link in links:
        plane._heard[link.name] = lambda message, name=link.name: heard.append((name, message))  # type: ignore[misc]
        link.tell({"do": "alive"})
    for _ in range(500):
        if heard:
            break
        time.sleep(0.01)
    assert all(link._orders.empty() for link in links)
    assert asked == [["tls://1", "tls://2"]]
    assert heard == [("h2", {"type": "lost", "why": dask_link._broken(OSError())})]
    plane._loop.call_soon_threadsafe(plane._loop.stop)
    plane._thread.join(60)
    plane._loop.close()


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
    monkeypatch.setattr(dask_worker, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    worker = object.__new__(dask_worker.HostWorker)
    for now_s[0] in (100.0, 102.0, 159.0, 160.0, 161.0):
        asyncio.run(worker.heartbeat())
    assert sent == [100.0, 160.0]


def until(came: Callable[[], object]) -> None:
    end_s = time.monotonic() + 60
    while not came():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_what_is_told_each_second_goes_straight_between_our_scheduler_and_its_workers() -> None:
    """Each word went through events, a client and its pickles: 64 hosts took 10.8 % of a CPU, limit 5."""
    run = {"transport": "dask", "tls": False, "coordinator": "127.0.0.1"}
    plane = ControlPlane(HostsFile.model_validate({"run": run, "host": [{"name": "h1"}]}))
    heard: list[dict[str, Any]] = []
    ordered: list[str] = []
    plane.start()
    try:
        link = DaskLink(plane, plane.hosts.host[0], lambda _, message: heard.append(message))
        plane.listen("h1", link._hear)

        async def register() -> Any:
            return await dask_worker.DASK.Worker(
                f"tcp://127.0.0.1:{plane.port}", name="h1", nthreads=1, memory_limit=0,
                dashboard=False, dashboard_address=":0",
            )  # fmt: skip

        worker = plane.wait(register(), 60)
        agent = worker.plugins[plane.dask.plugin_of(plane._run)]
        until(lambda: "alive" in [message["type"] for message in heard])
        assert heard[0] == {"type": "up"}
        assert link.ask({"do": "ping"}, 60)["type"] == "pong"
        hear = agent.hear

        def hear_too(order: str) -> None:
            ordered.append(order)
            hear(order)

        worker.stream_handlers[plane.dask.WORD] = hear_too
        link.tell({"do": "stop"})
        plane.say_we_are_here("h1")
        until(lambda: len(ordered) == 2)
        assert ordered == ['{"do": "stop"}', '{"do": "alive"}']
        until(lambda: "ended" in [message["type"] for message in heard])
        assert plane._scheduler.get_events(plane.dask.TOPIC) == ()
        link.tell({"do": "identify", "paths": []})
        link.close()
        assert [json.loads(order)["do"] for order in ordered[2:]] == ["identify", "ping"]
        agent._process.kill()
        with pytest.raises(RunError, match="killed by signal 9"):
            link.ask({"do": "ping"}, 60)
        plane.wait(worker.close(), 60)
        plane.wait(plane._tell_that_we_are_here(), 60)
    finally:
        plane.stop()


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
        plane._hear_straight("tcp://1", json.dumps(message).encode())
    assert heard == []
    plane._take("h1", "tcp://1", None)
    plane._hear_straight("tcp://1", b'{"type": "alive"}')
    plane._hear_straight("tcp://2", b'{"type": "ended", "status": "complete"}')
    plane._loop.close()
    assert heard == [{"type": "up"}, {"type": "lost", "why": "killed"}, {"type": "alive"}]
