"""What ends the agents of a coordinator on a Dask scheduler that outlives it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from tests.support.lazily import WITHOUT_DISTRIBUTED, LazyModule

if TYPE_CHECKING:
    from loadstone.hosts import dask_worker
else:
    dask_worker = LazyModule("loadstone.hosts.dask_worker")

pytestmark = WITHOUT_DISTRIBUTED


def removed_after(gone: str, *, known: bool = True) -> list[str]:
    """Let a client be gone; return which plugins of workers and of the scheduler are taken away."""
    removed: list[str] = []

    async def unregister(*, comm: None, name: str) -> None:
        _ = comm
        removed.append(f"worker's {name}")

    async def lose() -> None:
        mine = dask_worker.CoordinatorIsThere("client-1")
        scheduler = SimpleNamespace(
            worker_plugins={mine.name: b""} if known else {},
            unregister_worker_plugin=unregister,
            remove_plugin=lambda name: removed.append(f"scheduler's {name}"),
        )
        mine.remove_client(scheduler, gone)
        await asyncio.sleep(0.01)

    asyncio.run(lose())
    return removed


def test_only_the_end_of_its_own_coordinator_takes_an_agent_away() -> None:
    name = dask_worker.plugin_of("client-1")
    assert removed_after("client-1") == [f"worker's {name}", f"scheduler's {name}"]
    assert removed_after("client-2") == []


def test_a_coordinator_that_left_in_order_has_no_agents_any_more() -> None:
    assert removed_after("client-1", known=False) == [f"scheduler's {dask_worker.plugin_of('client-1')}"]


def test_an_agent_that_is_gone_is_a_loss_and_orders_to_it_do_nothing() -> None:
    """It may have gone before anybody listened: the coordinator waited for its answer in vain."""

    async def lose() -> None:
        sent: list[dict[str, object]] = []
        worker = SimpleNamespace(
            stream_handlers={}, plugins={}, batched_stream=SimpleNamespace(send=sent.append)
        )
        agent = dask_worker.HostAgent("client-1")
        await agent.setup(worker)
        worker.plugins[agent.name] = agent
        assert agent._process is not None
        agent._process.kill()
        await agent._process.wait()
        worker.stream_handlers[dask_worker.WORD](run="client-1", order='{"do": "hello"}')
        assert agent._reading is not None
        await agent._reading
        assert {key: sent[-1][key] for key in ("op", "run")} == {"op": dask_worker.WORD, "run": "client-1"}
        assert json.loads(cast("bytes", sent[-1]["line"]))["type"] == "lost"
        await agent.teardown(worker)

    asyncio.run(lose())


def test_a_scheduler_passes_words_to_the_coordinator_of_their_run_and_orders_of_no_other() -> None:
    passed: list[tuple[str, dict[str, object]]] = []
    scheduler = SimpleNamespace(
        stream_handlers={},
        client_send=lambda client, message: passed.append((client, message)),
        worker_send=lambda address, message: passed.append((address, message)),
    )
    asyncio.run(dask_worker.CoordinatorIsThere("client-1").start(scheduler))
    handler = scheduler.stream_handlers[dask_worker.WORD]
    asyncio.run(dask_worker.CoordinatorIsThere("client-2").start(scheduler))
    assert scheduler.stream_handlers == {dask_worker.WORD: handler}
    handler(run="client-1", worker="tls://1", line=b"{}")
    handler(run="client-1", client="client-1", address="tls://1", order="{}")
    handler(run="client-1", client="client-2", address="tls://1", order="{}")
    assert passed == [
        ("client-1", {"op": dask_worker.WORD, "worker": "tls://1", "line": b"{}"}),
        ("tls://1", {"op": dask_worker.WORD, "run": "client-1", "order": "{}"}),
    ]
